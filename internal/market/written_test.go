package market

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// ladder returns a book of n levels a side that keeps what it was written as.
func ladder(n int) *Book {
	b := &Book{Depth: n, Written: new(Written)}
	for i := range n {
		b.Bids = append(b.Bids, Level{NewDecimal(int64(500-i), -3), NewDecimal(int64(i), 0)})
		b.Asks = append(b.Asks, Level{NewDecimal(int64(501+i), -3), NewDecimal(int64(i), 0)})
	}
	return b
}

// kept counts texts and bytes, those of the selections included.
func (w *Written) kept() (texts, bytes int) {
	for s := w.last.Load(); s != nil; s = s.before {
		texts, bytes = texts+1, bytes+len(s.text)+len(s.selection)
	}
	return texts, bytes
}

func TestWritten(t *testing.T) {
	b := ladder(20)
	cut, w := b.Cut(5), b.Written
	if cut.Written != w {
		t.Fatal("a book that is cut keeps its own")
	}
	w.Keep(b.Bids, "s", []byte("bids"))
	w.Keep(b.Asks, "s", []byte("asks"))
	if n, _ := w.kept(); n != 0 {
		t.Errorf("%d texts are kept of a book that was read once", n)
	}
	text := []byte("bids")
	w.Keep(b.Bids, "s", text)
	copy(text, "xxxx")
	w.Keep(b.Asks, "s", []byte("asks"))
	w.Keep(cut.Bids, "s", []byte("five"))
	w.Keep(b.Bids, "t", []byte("other"))
	for _, test := range []struct {
		levels          []Level
		selection, want string
	}{
		{b.Bids, "s", "bids"}, {b.Asks, "s", "asks"}, {b.Cut(5).Bids, "s", "five"}, {b.Bids, "t", "other"},
		{b.Cut(20).Bids, "s", "bids"}, {cut.Asks, "s", ""}, {b.Cut(6).Bids, "s", ""}, {b.Bids[1:], "s", ""}, {b.Asks, "t", ""}, {b.Bids, "st", ""},
		{b.Bids, "", ""}, {nil, "s", ""}, {append([]Level(nil), b.Bids...), "s", ""},
	} {
		if got := w.Find(test.levels, test.selection); got != test.want {
			t.Errorf("%d levels are %q for %q, want %q", len(test.levels), got, test.selection, test.want)
		}
	}
	other := ladder(20).Written
	for range 5 {
		other.Keep(b.Bids, "", []byte("who knows"))
		other.Keep(nil, "s", []byte("[]"))
	}
	if n, _ := other.kept(); n != 0 {
		t.Errorf("%d texts are kept of nothing, or for selections that do not tell", n)
	}
	var none *Written
	none.Keep(b.Bids, "s", []byte("bids"))
	if got := none.Find(b.Bids, "s"); got != "" {
		t.Errorf("nothing finds %q", got)
	}
}

// TestWrittenIsBounded has a book read at all depths and for many selections, with keys as long as clients like.
func TestWrittenIsBounded(t *testing.T) {
	for name, size := range map[string]int{"small": 10, "large": 7000, "too large": maxWrittenBytes} {
		for _, key := range []int{1, 3000, maxWrittenBytes + 1} {
			b := ladder(20)
			for range 3 {
				for n := range 30 {
					selection := fmt.Sprint(n, strings.Repeat("k", key))
					for _, side := range [][]Level{b.Bids, b.Asks, b.Cut(1 + n/2).Bids, nil} {
						b.Written.Keep(side, selection, make([]byte, size))
						b.Written.Keep(side, "", make([]byte, size))
					}
				}
			}
			texts, bytes := b.Written.kept()
			if texts > 4 || bytes > 16<<10 {
				t.Errorf("%s texts, keys of %d: %d are kept, %d bytes", name, key, texts, bytes)
			}
			if size == 10 && key == 1 && texts != 4 {
				t.Errorf("%d small texts are kept", texts)
			}
		}
	}
	b := ladder(20)
	for range 10 {
		b.Written.Keep(b.Bids, "s", []byte("bids"))
	}
	if n, _ := b.Written.kept(); n != 1 {
		t.Errorf("one text is kept %d times", n)
	}
}

// TestWrittenAtOnce reads one book on many goroutines, each with selections of its own and others.
func TestWrittenAtOnce(t *testing.T) {
	for range 50 {
		b := ladder(20)
		var g sync.WaitGroup
		for n := range 8 {
			g.Go(func() {
				for i := range 40 {
					depth, selection := 5+15*(i%2), fmt.Sprint((n+i)/2%3)
					cut := b.Cut(depth)
					for side, levels := range [][]Level{cut.Bids, cut.Asks} {
						want := fmt.Sprint(side, depth, selection)
						if got := b.Written.Find(levels, selection); got != "" && got != want {
							t.Errorf("%q is found for %q", got, want)
						}
						b.Written.Keep(levels, selection, []byte(want))
					}
				}
			})
		}
		g.Wait()
		if n, _ := b.Written.kept(); n != maxWritten {
			t.Errorf("%d texts are kept", n)
		}
	}
}
