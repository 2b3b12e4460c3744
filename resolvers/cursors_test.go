package resolvers

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"

	"oddsgraph/internal/market"
)

func hashesOf(keys []string) *keyHashes {
	return newKeyHashes(len(keys), func(i int) string { return keys[i] })
}

// ofKeys is the list hash in the cursors of these tests.
const ofKeys = 7

func numbered(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("key ", i)
	}
	return keys
}

func behind(t *testing.T, keys []string, cursor string) int {
	t.Helper()
	p, err := parseListCursor(ofKeys, &cursor)
	if err != nil {
		t.Fatal(err)
	}
	return p.start(hashesOf(keys))
}

// TestKeyHash checks that keyHash is FNV-1a. The function must not change, because clients keep cursors across releases.
func TestKeyHash(t *testing.T) {
	for _, key := range []string{"", "a", "key 1", "ümläut\n\x00\xff"} {
		h := fnv.New64a()
		_, _ = h.Write([]byte(key))
		if keyHash(key) != h.Sum64() {
			t.Errorf("%q has the hash %x", key, keyHash(key))
		}
	}
}

// TestACursorFindsItsPlaceAgain checks that the next page skips no element if elements were removed, or added at the end. The next
// page may repeat elements only if the cursor's element and the elements just before it were removed.
func TestACursorFindsItsPlaceAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		keys := numbered(1 + r.IntN(40))
		at := r.IntN(len(keys))
		cursor := listCursor(ofKeys, hashesOf(keys), at)
		gone := map[string]bool{}
		for range r.IntN(len(keys)) {
			gone[keys[r.IntN(len(keys))]] = true
		}
		var left []string
		for _, k := range keys {
			if !gone[k] {
				left = append(left, k)
			}
		}
		left = append(left, numbered(60)[50:50+r.IntN(10)]...)
		from := behind(t, left, cursor)
		shown := left[from:]
		for _, k := range keys[at+1:] {
			if !gone[k] && !slices.Contains(shown, k) {
				t.Fatalf("%d elements, cursor at %d, gone %v: %q is skipped", len(keys), at, gone, k)
			}
		}
		anchored := slices.ContainsFunc(keys[max(0, at-near+1):at+1], func(k string) bool { return !gone[k] })
		for _, k := range keys[:at+1] {
			if anchored && !gone[k] && slices.Contains(shown, k) {
				t.Fatalf("%d elements, cursor at %d, gone %v: %q is repeated", len(keys), at, gone, k)
			}
		}
	}
}

func TestPlaces(t *testing.T) {
	keys := numbered(20)
	for i := range keys {
		if got := behind(t, keys, listCursor(ofKeys, hashesOf(keys), i)); got != i+1 {
			t.Errorf("behind element %d is %d", i, got)
		}
	}
	many := numbered(10_000)
	if cursor := listCursor(ofKeys, hashesOf(many), len(many)-1); len(cursor) > 250 || behind(t, many, cursor) != len(many) || behind(t, many[:7000], cursor) < 1800 {
		t.Errorf("a cursor of %d characters goes on at %d, at %d when the last 3000 have gone", len(cursor), behind(t, many, cursor), behind(t, many[:7000], cursor))
	}
	if got := behind(t, nil, listCursor(ofKeys, hashesOf(keys), 19)); got != 0 {
		t.Errorf("in an empty list: %d", got)
	}
	for _, none := range []*string{nil, new(string)} {
		if p, err := parseListCursor(ofKeys, none); err != nil || p.start(hashesOf(keys)) != 0 {
			t.Errorf("no cursor: %v, %v", p, err)
		}
	}
	encode := base64.RawURLEncoding.EncodeToString
	of := func(rest ...byte) []byte { return append(binary.BigEndian.AppendUint64(nil, ofKeys), rest...) }
	for name, bad := range map[string]string{
		"not base64": "*", "half a hash": encode(of(1, 2, 3, 4)), "no element": encode(of()), "too many": encode(of(make([]byte, 8*(maxNamed+1))...)),
		"a page's": pageCursor{List: ofKeys, Limit: 5}.String(), "another list's": listCursor(ofKeys+1, hashesOf(keys), 3),
	} {
		if _, err := parseListCursor(ofKeys, &bad); market.CodeOf(err) != market.CodeBadUserInput {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// paged is a venue that sends rows in pages. The name of a page is its offset if byOffset is set. Otherwise the name is the row
// before the page.
type paged struct {
	rows     []string
	byOffset bool
	// drop reports whether the pages omit a row. If drop is nil, the pages omit no row.
	drop  func(string) bool
	calls int
}

func (p *paged) read(page string, limit int) (venuePage[string], error) {
	p.calls++
	from := 0
	if page != "" && p.byOffset {
		_, _ = fmt.Sscan(page, &from)
	} else if page != "" {
		from = slices.Index(p.rows, page) + 1
	}
	to := min(from+limit, len(p.rows))
	var out venuePage[string]
	for _, row := range p.rows[min(from, to):to] {
		if p.drop == nil || !p.drop(row) {
			out.rows = append(out.rows, row)
		}
	}
	if to < len(p.rows) {
		if out.next = p.rows[to-1]; p.byOffset {
			out.next = fmt.Sprint(to)
		}
	}
	return out, nil
}

func (p *paged) page(t *testing.T, first int, after *string) page[string] {
	t.Helper()
	out, err := readPages(t.Context(), p.read, func(s *string) string { return *s }, ofKeys, first, after)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestVenuePages checks that a paged list can be continued after each of its elements, with several page sizes. Each page of the
// connection must take one call.
func TestVenuePages(t *testing.T) {
	for _, byOffset := range []bool{false, true} {
		for _, n := range []int{0, 1, 9, 10, 11, 30} {
			for _, first := range []int{1, 4, 10} {
				p := &paged{rows: numbered(n), byOffset: byOffset}
				var got []string
				var after *string
				for pages := 1; ; pages++ {
					p.calls = 0
					out := p.page(t, first, after)
					if p.calls != 1 {
						t.Errorf("%d rows by %d: page %d took %d calls", n, first, pages, p.calls)
					}
					for i := range out.items { // continue after each item of the page
						if from := len(got) + i + 1; from < n {
							c := out.cursor(i)
							if next := p.page(t, first, &c); len(next.items) == 0 || next.items[0] != p.rows[from] {
								t.Fatalf("%d rows by %d: behind row %d comes %v", n, first, from-1, next.items)
							}
						}
					}
					got = append(got, out.items...)
					if !out.info.HasNextPage {
						break
					}
					after = out.info.EndCursor
				}
				if !slices.Equal(got, p.rows) {
					t.Errorf("%d rows by %d: %v", n, first, got)
				}
			}
		}
	}
}

// TestVenuePagesOfFewMatches checks that a page of a connection reads at most maxPages pages of the venue, even if few rows match.
// Every page must have an EndCursor if there is a next page.
func TestVenuePagesOfFewMatches(t *testing.T) {
	all := numbered(300)
	keep := []string{all[3], all[77], all[78], all[150], all[299]}
	p := &paged{rows: all, drop: func(s string) bool { return !slices.Contains(keep, s) }}
	var got []string
	var after *string
	for pages := 1; ; pages++ {
		p.calls = 0
		out := p.page(t, 10, after)
		if p.calls > maxPages || pages > 10 {
			t.Fatalf("page %d took %d calls", pages, p.calls)
		}
		got = append(got, out.items...)
		if !out.info.HasNextPage {
			break
		}
		if after = out.info.EndCursor; after == nil {
			t.Fatal("a next page without a cursor to it")
		}
	}
	if !slices.Equal(got, keep) {
		t.Errorf("got %v", got)
	}
}

// TestARowThatCursorsNameMayGo removes the row that a cursor names. The next page must begin at the former index of this row.
func TestARowThatCursorsNameMayGo(t *testing.T) {
	p := &paged{rows: numbered(30), byOffset: true}
	out := p.page(t, 10, nil)
	cursor := out.cursor(4)
	p.rows = slices.Delete(slices.Clone(p.rows), 4, 5)
	if next := p.page(t, 3, &cursor); !slices.Equal(next.items, []string{"key 5", "key 6", "key 7"}) {
		t.Errorf("behind the row that has gone come %v", next.items)
	}
}

func TestBadPageCursors(t *testing.T) {
	encode := base64.RawURLEncoding.EncodeToString
	for _, bad := range []string{
		"*", encode([]byte("{")), encode([]byte("[]")), encode([]byte(`{"o":7,"l":0}`)), encode([]byte(`{"o":7,"l":101}`)), encode([]byte(`{"o":7,"l":5,"i":-1}`)),
		encode([]byte(`{"o":7,"l":"5"}`)), encode([]byte(`{"l":5}`)), pageCursor{List: 8, Limit: 5}.String(), listCursor(ofKeys, hashesOf(numbered(5)), 3),
	} {
		if _, err := parsePageCursor(ofKeys, &bad, 10, 100); market.CodeOf(err) != market.CodeBadUserInput {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
