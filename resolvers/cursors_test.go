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
	return newKeyHashes(len(keys), func(i int) uint64 { return keyHash(keys[i]) })
}

// testList is the list hash in the cursors of these tests.
const testList = 7

func numberedKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("key ", i)
	}
	return keys
}

// startAfter returns the index in keys of the first element after the cursor.
func startAfter(t *testing.T, keys []string, cursor string) int {
	t.Helper()
	p, err := parseListCursor(testList, &cursor)
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
			t.Errorf("keyHash(%q) = %x, want %x", key, keyHash(key), h.Sum64())
		}
	}
}

// TestListCursorsAfterRemovals checks that the next page skips no element if elements were removed, or added at the end. The next
// page may repeat elements only if the cursor's element and the elements just before it were removed.
func TestListCursorsAfterRemovals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		keys := numberedKeys(1 + r.IntN(40))
		element := r.IntN(len(keys))
		cursor := listCursor(testList, hashesOf(keys), element)
		removed := map[string]bool{}
		for range r.IntN(len(keys)) {
			removed[keys[r.IntN(len(keys))]] = true
		}
		var remaining []string
		for _, k := range keys {
			if !removed[k] {
				remaining = append(remaining, k)
			}
		}
		remaining = append(remaining, numberedKeys(60)[50:50+r.IntN(10)]...)
		from := startAfter(t, remaining, cursor)
		nextPage := remaining[from:]
		for _, k := range keys[element+1:] {
			if !removed[k] && !slices.Contains(nextPage, k) {
				t.Fatalf("with %d elements, the cursor of element %d and the removed elements %v, the next page skips %q", len(keys), element, removed, k)
			}
		}
		neighbourRemains := slices.ContainsFunc(keys[max(0, element-adjacentHashes+1):element+1], func(k string) bool { return !removed[k] })
		for _, k := range keys[:element+1] {
			if neighbourRemains && !removed[k] && slices.Contains(nextPage, k) {
				t.Fatalf("with %d elements, the cursor of element %d and the removed elements %v, the next page repeats %q", len(keys), element, removed, k)
			}
		}
	}
}

func TestListCursors(t *testing.T) {
	keys := numberedKeys(20)
	for i := range keys {
		if got := startAfter(t, keys, listCursor(testList, hashesOf(keys), i)); got != i+1 {
			t.Errorf("the page after element %d begins at index %d, want %d", i, got, i+1)
		}
	}
	many := numberedKeys(10_000)
	if cursor := listCursor(testList, hashesOf(many), len(many)-1); len(cursor) > 250 || startAfter(t, many, cursor) != len(many) || startAfter(t, many[:7000], cursor) < 1800 {
		t.Errorf("the cursor has %d characters, want at most 250; the next page begins at %d of 10000, and at %d after 3000 removals", len(cursor), startAfter(t, many, cursor), startAfter(t, many[:7000], cursor))
	}
	if got := startAfter(t, nil, listCursor(testList, hashesOf(keys), 19)); got != 0 {
		t.Errorf("in an empty list, the next page begins at index %d, want 0", got)
	}
	for _, none := range []*string{nil, new(string)} {
		if p, err := parseListCursor(testList, none); err != nil || p.start(hashesOf(keys)) != 0 {
			t.Errorf("without a cursor, the position is %v with the error %v, want the beginning of the list", p, err)
		}
	}
	encode := base64.RawURLEncoding.EncodeToString
	cursorBytes := func(rest ...byte) []byte { return append(binary.BigEndian.AppendUint64(nil, testList), rest...) }
	for name, bad := range map[string]string{
		"not base64": "*", "half a hash": encode(cursorBytes(1, 2, 3, 4)), "no hash": encode(cursorBytes()), "too many hashes": encode(cursorBytes(make([]byte, 8*(maxHashes+1))...)),
		"page cursor": pageCursor{List: testList, Limit: 5}.String(), "another list": listCursor(testList+1, hashesOf(keys), 3),
	} {
		if _, err := parseListCursor(testList, &bad); market.CodeOf(err) != market.CodeBadUserInput {
			t.Errorf("parseListCursor of the cursor %q returned %v, want %s", name, err, market.CodeBadUserInput)
		}
	}
}

// pagedVenue is a venue that sends rows in pages. If byOffset is set, the name of a page is the offset of the page. Otherwise, the
// name is the row before the page.
type pagedVenue struct {
	rows     []string
	byOffset bool
	// drop reports whether the pages omit a row. If drop is nil, the pages omit no row.
	drop  func(string) bool
	calls int
}

func (p *pagedVenue) read(page string, limit int) (venuePage[string], error) {
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

func (p *pagedVenue) page(t *testing.T, first int, after *string) page[string] {
	t.Helper()
	out, err := readPages(t.Context(), p.read, func(s *string) string { return *s }, testList, first, after)
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
				p := &pagedVenue{rows: numberedKeys(n), byOffset: byOffset}
				var got []string
				var after *string
				for pages := 1; ; pages++ {
					p.calls = 0
					out := p.page(t, first, after)
					if p.calls != 1 {
						t.Errorf("with %d rows on pages of %d, page %d took %d calls, want 1", n, first, pages, p.calls)
					}
					for i := range out.items { // continue after each item of the page
						if from := len(got) + i + 1; from < n {
							c := out.cursor(i)
							if next := p.page(t, first, &c); len(next.items) == 0 || next.items[0] != p.rows[from] {
								t.Fatalf("with %d rows on pages of %d, the page after row %d is %v, want it to begin with %q", n, first, from-1, next.items, p.rows[from])
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
					t.Errorf("with %d rows on pages of %d, the pages contain %v", n, first, got)
				}
			}
		}
	}
}

// TestVenuePagesOfFewMatches checks that a page of a connection reads at most maxPages pages of the venue, even if few rows match.
// Every page must have an EndCursor if there is a next page.
func TestVenuePagesOfFewMatches(t *testing.T) {
	all := numberedKeys(300)
	keep := []string{all[3], all[77], all[78], all[150], all[299]}
	p := &pagedVenue{rows: all, drop: func(s string) bool { return !slices.Contains(keep, s) }}
	var got []string
	var after *string
	for pages := 1; ; pages++ {
		p.calls = 0
		out := p.page(t, 10, after)
		if p.calls > maxPages || pages > 10 {
			t.Fatalf("page %d took %d calls, want at most %d calls and 10 pages", pages, p.calls, maxPages)
		}
		got = append(got, out.items...)
		if !out.info.HasNextPage {
			break
		}
		if after = out.info.EndCursor; after == nil {
			t.Fatal("HasNextPage is true, but EndCursor is nil")
		}
	}
	if !slices.Equal(got, keep) {
		t.Errorf("the pages contain %v, want %v", got, keep)
	}
}

// TestPageCursorOfRemovedRow removes the row that a cursor names. The next page must begin at the former index of this row.
func TestPageCursorOfRemovedRow(t *testing.T) {
	p := &pagedVenue{rows: numberedKeys(30), byOffset: true}
	out := p.page(t, 10, nil)
	cursor := out.cursor(4)
	p.rows = slices.Delete(slices.Clone(p.rows), 4, 5)
	if next := p.page(t, 3, &cursor); !slices.Equal(next.items, []string{"key 5", "key 6", "key 7"}) {
		t.Errorf("the page after the removed row is %v, want the keys 5 to 7", next.items)
	}
}

func TestBadPageCursors(t *testing.T) {
	encode := base64.RawURLEncoding.EncodeToString
	for _, bad := range []string{
		"*", encode([]byte("{")), encode([]byte("[]")), encode([]byte(`{"o":7,"l":0}`)), encode([]byte(`{"o":7,"l":101}`)), encode([]byte(`{"o":7,"l":5,"i":-1}`)),
		encode([]byte(`{"o":7,"l":"5"}`)), encode([]byte(`{"l":5}`)), pageCursor{List: 8, Limit: 5}.String(), listCursor(testList, hashesOf(numberedKeys(5)), 3),
	} {
		if _, err := parsePageCursor(testList, &bad, 10, 100); market.CodeOf(err) != market.CodeBadUserInput {
			t.Errorf("parsePageCursor(%q) returned %v, want %s", bad, err, market.CodeBadUserInput)
		}
	}
}
