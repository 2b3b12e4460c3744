package resolvers

import (
	"encoding/base64"
	"testing"

	"oddsgraph/internal/market"
)

// FuzzCursors checks that a valid cursor leads to a position in its list, and that another list rejects the cursor. For any other
// text, the error must be BAD_USER_INPUT.
func FuzzCursors(f *testing.F) {
	keys := numberedKeys(40)
	for i := range keys {
		f.Add(listCursor(testList, hashesOf(keys), i), 50)
	}
	for _, c := range []pageCursor{
		{List: testList, Page: "p", Limit: 20}, {List: testList, Limit: 1, Element: 1 << 63, Index: 7}, {List: testList, Limit: 200, Index: -1}, {List: testList + 1, Limit: 20},
	} {
		f.Add(c.String(), 20)
	}
	for _, text := range []string{"", " ", "AAAA", "/////////////////////w==", `{"o":7,"l":1e9}`, `{"o":7,"l":5,"p":"\u0000&limit=9"}`, `{"o":7,"o":8,"l":5}`, "[]", "null"} {
		f.Add(text, 20)
		f.Add(base64.RawURLEncoding.EncodeToString([]byte(text)), 20)
	}
	f.Fuzz(func(t *testing.T, after string, first int) {
		place, err := parseListCursor(testList, &after)
		switch {
		case err != nil && market.CodeOf(err) != market.CodeBadUserInput:
			t.Errorf("parseListCursor returned %v, want %s", err, market.CodeBadUserInput)
		case err == nil:
			if n := place.start(hashesOf(keys)); n < 0 || n > len(keys) || len(place) > maxHashes {
				t.Errorf("the cursor leads to index %d of %d and contains %d hashes", n, len(keys), len(place))
			}
			if _, err := parseListCursor(testList+1, &after); err == nil && after != "" {
				t.Error("the cursor is also valid for another list")
			}
		}
		first = 1 + max(first, -first-1)%maxUpstreamPage
		c, err := parsePageCursor(testList, &after, first, maxUpstreamPage)
		switch {
		case err != nil && market.CodeOf(err) != market.CodeBadUserInput:
			t.Errorf("parsePageCursor returned %v, want %s", err, market.CodeBadUserInput)
		case err == nil:
			if c.List != testList || c.Limit < 1 || c.Limit > maxUpstreamPage || c.Index < 0 {
				t.Errorf("parsePageCursor returned the invalid cursor %+v", c)
			}
			text := c.String()
			if again, err := parsePageCursor(testList, &text, first, maxUpstreamPage); err != nil || again != c {
				t.Errorf("the text of %+v is parsed as %+v with the error %v", c, again, err)
			}
			if _, err := parsePageCursor(testList+1, &text, first, maxUpstreamPage); err == nil {
				t.Error("the page cursor is also valid for another list")
			}
		}
	})
}
