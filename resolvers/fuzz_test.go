package resolvers

import (
	"encoding/base64"
	"testing"

	"oddsgraph/internal/market"
)

// FuzzCursors checks that a valid cursor leads to a position in its list, and that another list rejects the cursor. For any other
// text, the error must be BAD_USER_INPUT.
func FuzzCursors(f *testing.F) {
	keys := numbered(40)
	for i := range keys {
		f.Add(listCursor(ofKeys, hashesOf(keys), i), 50)
	}
	for _, c := range []pageCursor{
		{List: ofKeys, Page: "p", Limit: 20}, {List: ofKeys, Limit: 1, Element: 1 << 63, Index: 7}, {List: ofKeys, Limit: 200, Index: -1}, {List: ofKeys + 1, Limit: 20},
	} {
		f.Add(c.String(), 20)
	}
	for _, text := range []string{"", " ", "AAAA", "/////////////////////w==", `{"o":7,"l":1e9}`, `{"o":7,"l":5,"p":"\u0000&limit=9"}`, `{"o":7,"o":8,"l":5}`, "[]", "null"} {
		f.Add(text, 20)
		f.Add(base64.RawURLEncoding.EncodeToString([]byte(text)), 20)
	}
	f.Fuzz(func(t *testing.T, after string, first int) {
		place, err := parseListCursor(ofKeys, &after)
		switch {
		case err != nil && market.CodeOf(err) != market.CodeBadUserInput:
			t.Errorf("a list cursor: %v", err)
		case err == nil:
			if n := place.start(hashesOf(keys)); n < 0 || n > len(keys) || len(place) > maxNamed {
				t.Errorf("the cursor leads to index %d and names %d rows", n, len(place))
			}
			if _, err := parseListCursor(ofKeys+1, &after); err == nil && after != "" {
				t.Error("the cursor is also valid for another list")
			}
		}
		first = 1 + max(first, -first-1)%maxUpstreamPage
		c, err := parsePageCursor(ofKeys, &after, first, maxUpstreamPage)
		switch {
		case err != nil && market.CodeOf(err) != market.CodeBadUserInput:
			t.Errorf("a page: %v", err)
		case err == nil:
			if c.List != ofKeys || c.Limit < 1 || c.Limit > maxUpstreamPage || c.Index < 0 {
				t.Errorf("it is %+v", c)
			}
			text := c.String()
			if again, err := parsePageCursor(ofKeys, &text, first, maxUpstreamPage); err != nil || again != c {
				t.Errorf("%+v is read again as %+v, %v", c, again, err)
			}
			if _, err := parsePageCursor(ofKeys+1, &text, first, maxUpstreamPage); err == nil {
				t.Error("it is a page of another list, too")
			}
		}
	})
}
