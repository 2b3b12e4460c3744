package main

import (
	"slices"
	"testing"

	"oddsgraph/internal/demo"
)

// level is a level of a book, as the graph prints it.
type level struct{ price, size string }

// ladder is a book, as a client holds it.
type ladder struct{ bids, asks []level }

func levelsOf(levels []demo.Level, depth int) []level {
	out := make([]level, 0, depth)
	for _, l := range levels[:min(depth, len(levels))] {
		out = append(out, level{plain(l.Price), plain(l.Size)})
	}
	return out
}

// bookOf returns a book of the venue, cut to a depth.
func (s *service) bookOf(t testing.TB, token string, depth int) ladder {
	t.Helper()
	b, ok := s.venue.Book(token)
	if !ok {
		t.Fatalf("no book of %s", token)
	}
	return ladder{levelsOf(b.Bids, depth), levelsOf(b.Asks, depth)}
}

func ladderOf(v any, path string) ladder {
	side := func(name string) []level {
		out := []level{}
		for _, l := range list(v, path+name) {
			out = append(out, level{text(l, "price"), text(l, "size")})
		}
		return out
	}
	return ladder{side("bids"), side("asks")}
}

func wantBook(t testing.TB, v any, path string, want ladder) {
	t.Helper()
	if got := ladderOf(v, path); !same(got, want) {
		t.Errorf("%sbook:\n got %v\nwant %v", path, got, want)
	}
}

func same(a, b ladder) bool { return slices.Equal(a.bids, b.bids) && slices.Equal(a.asks, b.asks) }
