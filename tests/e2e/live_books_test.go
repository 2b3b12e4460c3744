package e2e

import (
	"math/big"
	"slices"
	"testing"

	"oddsgraph/internal/demo"
)

// level is a level of an order book, with the price and the size as the service formats them.
type level struct{ price, size string }

// ladder holds the two sides of an order book. The best level of a side comes first.
type ladder struct{ bids, asks []level }

func levelsOf(levels []demo.Level, depth int) []level {
	out := make([]level, 0, depth)
	for _, l := range levels[:min(depth, len(levels))] {
		out = append(out, level{plain(l.Price), plain(l.Size)})
	}
	return out
}

// bookOf returns the venue's book of a token, with at most depth levels on each side.
func (s *service) bookOf(t testing.TB, token string, depth int) ladder {
	t.Helper()
	b, ok := s.venue.Book(token)
	if !ok {
		t.Fatalf("the venue has no book of the token %s", token)
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
	if got := ladderOf(v, path); !equalLadders(got, want) {
		t.Errorf("book at the path %q:\n got %v\nwant %v", path, got, want)
	}
}

func equalLadders(a, b ladder) bool {
	return slices.Equal(a.bids, b.bids) && slices.Equal(a.asks, b.asks)
}

// replay applies the events of an orderbookChanged subscription as a client does. It checks each event and its sequence numbers.
type replay struct {
	depth int
	// sequence and book are those of the last event. begun is true after the first event.
	sequence string
	book     ladder
	begun    bool
	// hurried is true if the client may be too slow to get all events. A RESYNC event then replaces the missed events.
	hurried bool
	deltas  int
}

func (r *replay) take(t testing.TB, v any) {
	t.Helper()
	reason := text(v, "reason")
	switch {
	case !r.begun:
		if reason != "INITIAL" || at(v, "previousSequence") != nil {
			t.Errorf("the first event is %s, want the reason INITIAL and no previousSequence", asJSON(v))
		}
	case r.hurried && reason == "RESYNC":
	case text(v, "previousSequence") != r.sequence:
		t.Errorf("depth %d: previousSequence is %s, want the last event's sequence %s", r.depth, text(v, "previousSequence"), r.sequence)
	}
	r.begun, r.sequence = true, text(v, "sequence")
	if changes := ladderOf(v, ""); text(v, "kind") == "SNAPSHOT" {
		r.book = changes
	} else {
		r.deltas++
		r.book = ladder{applyLevels(r.book.bids, changes.bids, -1), applyLevels(r.book.asks, changes.asks, 1)}
	}
	if reason == "RESYNC" && text(v, "kind") != "SNAPSHOT" {
		t.Errorf("a RESYNC event is not a SNAPSHOT: %s", asJSON(v))
	}
	if whole := ladderOf(v, "book."); !equalLadders(r.book, whole) {
		t.Errorf("depth %d, sequence %s:\nreplayed book     %v\nbook of the event %v", r.depth, r.sequence, r.book, whole)
	}
	if len(r.book.bids) > r.depth || len(r.book.asks) > r.depth {
		t.Errorf("the replayed book has more than %d levels: %v", r.depth, r.book)
	}
}

// applyLevels returns a side of a book after the given changes. order is 1 to sort the levels by rising price, and -1 to sort them
// by falling price.
func applyLevels(side, changes []level, order int) []level {
	next := slices.Clone(side)
	for _, c := range changes {
		i := slices.IndexFunc(next, func(l level) bool { return l.price == c.price })
		switch {
		case c.size == "0" && i >= 0:
			next = slices.Delete(next, i, i+1)
		case c.size == "0":
		case i >= 0:
			next[i] = c
		default:
			next = append(next, c)
		}
	}
	slices.SortFunc(next, func(a, b level) int { return order * rat(a.price).Cmp(rat(b.price)) })
	return next
}

func rat(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic(s)
	}
	return r
}
