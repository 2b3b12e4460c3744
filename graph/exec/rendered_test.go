package exec

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"oddsgraph/internal/market"
)

// ladder returns a book with n levels on each side. The book caches the JSON of its levels.
func ladder(n int) *market.Book {
	var bids, asks []market.Level
	for i := range n {
		bids = append(bids, market.Level{Price: market.NewDecimal(int64(500-i), -3), Size: market.NewDecimal(int64(i), 0)})
		asks = append(asks, market.Level{Price: market.NewDecimal(int64(501+i), -3), Size: market.NewDecimal(int64(i), 0)})
	}
	return &market.Book{Depth: n, Bids: market.NewSide(bids), Asks: market.NewSide(asks), Rendered: new(market.Rendered)}
}

// cachedTexts returns the number of the cached texts of a book, and the total size in bytes of these texts and their selections.
func cachedTexts(r *market.Rendered) (texts, bytes int) {
	for s := lastRendered(r); s != nil; s = s.previous {
		texts, bytes = texts+1, bytes+len(s.text)+len(s.selection)
	}
	return texts, bytes
}

func TestRendered(t *testing.T) {
	b := ladder(20)
	cut, w := b.Cut(5), b.Rendered
	if cut.Rendered != w {
		t.Fatal("a book with fewer levels does not share the cache")
	}
	KeepRendered(w, b.Bids.Levels(), "s", []byte("bids"))
	KeepRendered(w, b.Asks.Levels(), "s", []byte("asks"))
	if n, _ := cachedTexts(w); n != 0 {
		t.Errorf("%d texts are cached of a book that was read once, want none", n)
	}
	text := []byte("bids")
	KeepRendered(w, b.Bids.Levels(), "s", text)
	copy(text, "xxxx")
	KeepRendered(w, b.Asks.Levels(), "s", []byte("asks"))
	KeepRendered(w, cut.Bids.Levels(), "s", []byte("five"))
	KeepRendered(w, b.Bids.Levels(), "t", []byte("other"))
	for _, test := range []struct {
		levels          []market.Level
		selection, want string
	}{
		{b.Bids.Levels(), "s", "bids"}, {b.Asks.Levels(), "s", "asks"}, {b.Cut(5).Bids.Levels(), "s", "five"}, {b.Bids.Levels(), "t", "other"},
		{b.Cut(20).Bids.Levels(), "s", "bids"}, {cut.Asks.Levels(), "s", ""}, {b.Cut(6).Bids.Levels(), "s", ""}, {b.Bids.Levels()[1:], "s", ""}, {b.Asks.Levels(), "t", ""}, {b.Bids.Levels(), "st", ""},
		{b.Bids.Levels(), "", ""}, {nil, "s", ""}, {append([]market.Level(nil), b.Bids.Levels()...), "s", ""},
	} {
		if got := FindRendered(w, test.levels, test.selection); got != test.want {
			t.Errorf("the cached text of %d levels for the selection %q is %q, want %q", len(test.levels), test.selection, got, test.want)
		}
	}
	other := ladder(20).Rendered
	for range 5 {
		KeepRendered(other, b.Bids.Levels(), "", []byte("who knows"))
		KeepRendered(other, nil, "s", []byte("[]"))
	}
	if n, _ := cachedTexts(other); n != 0 {
		t.Errorf("%d texts are cached without levels or for the empty selection, want none", n)
	}
	var none *market.Rendered
	KeepRendered(none, b.Bids.Levels(), "s", []byte("bids"))
	if got := FindRendered(none, b.Bids.Levels(), "s"); got != "" {
		t.Errorf("FindRendered without a cache returned %q, want no text", got)
	}
}

// maxBytes is market.RenderedBytes of the deepest book.
const maxBytes = 16 << 10

// TestRenderedIsBounded checks that the cached texts of a book stay within their limits for many depths and selections.
func TestRenderedIsBounded(t *testing.T) {
	for name, size := range map[string]int{"small": 10, "large": 7000, "too large": maxBytes} {
		for _, key := range []int{1, 3000, maxBytes + 1} {
			b := ladder(20)
			for range 3 {
				for n := range 30 {
					selection := fmt.Sprint(n, strings.Repeat("k", key))
					for _, side := range [][]market.Level{b.Bids.Levels(), b.Asks.Levels(), b.Cut(1 + n/2).Bids.Levels(), nil} {
						KeepRendered(b.Rendered, side, selection, make([]byte, size))
						KeepRendered(b.Rendered, side, "", make([]byte, size))
					}
				}
			}
			texts, bytes := cachedTexts(b.Rendered)
			if texts > 4 || bytes > 16<<10 {
				t.Errorf("with %s texts and selections of %d bytes, %d texts of %d bytes are cached", name, key, texts, bytes)
			}
			if size == 10 && key == 1 && texts != 4 {
				t.Errorf("%d small texts are cached, want 4", texts)
			}
		}
	}
	b := ladder(20)
	for range 10 {
		KeepRendered(b.Rendered, b.Bids.Levels(), "s", []byte("bids"))
	}
	if n, _ := cachedTexts(b.Rendered); n != 1 {
		t.Errorf("an equal text is cached %d times, want once", n)
	}
}

// TestRenderedConcurrently checks that many goroutines can find and store texts of one book, with equal and different selections.
func TestRenderedConcurrently(t *testing.T) {
	for range 50 {
		b := ladder(20)
		var g sync.WaitGroup
		for n := range 8 {
			g.Go(func() {
				for i := range 40 {
					depth, selection := 5+15*(i%2), fmt.Sprint((n+i)/2%3)
					cut := b.Cut(depth)
					for side, levels := range [][]market.Level{cut.Bids.Levels(), cut.Asks.Levels()} {
						want := fmt.Sprint(side, depth, selection)
						if got := FindRendered(b.Rendered, levels, selection); got != "" && got != want {
							t.Errorf("the cached text is %q, want %q", got, want)
						}
						KeepRendered(b.Rendered, levels, selection, []byte(want))
					}
				}
			})
		}
		g.Wait()
		if n, _ := cachedTexts(b.Rendered); n != maxRendered {
			t.Errorf("%d texts are cached, want %d", n, maxRendered)
		}
	}
}
