package e2e

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
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

// bookAt is the book that a client has after an event of orderbookChanged. sequence is the event's sequence number.
type bookAt struct {
	sequence string
	book     ladder
}

// replay applies the events of an orderbookChanged subscription as a client does. It checks each event and its sequence numbers.
type replay struct {
	depth int
	last  bookAt
	sent  bool
	// hurried is true if the client may be too slow to get all events. A RESYNC event then replaces the missed events.
	hurried                bool
	resyncs, stale, deltas int
}

func (r *replay) take(t testing.TB, v any) bookAt {
	t.Helper()
	reason := text(v, "reason")
	switch {
	case !r.sent:
		if reason != "INITIAL" || at(v, "previousSequence") != nil {
			t.Errorf("the first event is %s", asJSON(v))
		}
	case r.hurried && reason == "RESYNC":
	case text(v, "previousSequence") != r.last.sequence:
		t.Errorf("depth %d: previousSequence is %s, the last event's is %s", r.depth, text(v, "previousSequence"), r.last.sequence)
	}
	r.sent = true
	next := bookAt{sequence: text(v, "sequence")}
	if text(v, "kind") == "SNAPSHOT" {
		next.book = ladderOf(v, "")
	} else {
		r.deltas++
		changes := ladderOf(v, "")
		next.book = ladder{applied(r.last.book.bids, changes.bids, -1), applied(r.last.book.asks, changes.asks, 1)}
	}
	switch reason {
	case "RESYNC":
		r.resyncs++
		if text(v, "kind") != "SNAPSHOT" {
			t.Errorf("a RESYNC is no SNAPSHOT: %s", asJSON(v))
		}
	case "FRESHNESS":
		r.stale++
	}
	if whole := ladderOf(v, "book."); !same(next.book, whole) {
		t.Errorf("depth %d at %s: replayed\n     %v\nbook %v", r.depth, next.sequence, next.book, whole)
	}
	if len(next.book.bids) > r.depth || len(next.book.asks) > r.depth {
		t.Errorf("more than %d levels in %v", r.depth, next.book)
	}
	r.last = next
	return next
}

// applied returns a side of a book after the given changes. order is 1 to sort the levels by rising price, and -1 to sort them by
// falling price.
func applied(side, changes []level, order int) []level {
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

// sparedTokens returns two open tokens that the demo venue never closes by itself.
func (s *service) sparedTokens() []string {
	var ids []string
	for _, p := range s.venue.Positions(addressOf3) {
		for _, t := range s.venue.Tokens() {
			if t.TokenID == p.TokenID && t.Status == "OPEN" {
				ids = append(ids, t.TokenID)
			}
		}
	}
	return ids[:2]
}

// TestReplayedBooksEqualTheVenuesBooks checks replayed order books under faults, such as lost frames and new epochs. After each
// event, the client's book must equal the venue's book with the same sequence number.
func TestReplayedBooksEqualTheVenuesBooks(t *testing.T) {
	t.Parallel()
	s := startLive(t)
	s.streaming(t)
	ids := s.sparedTokens()
	k := s.dial(t, anonymous)
	type follower struct {
		id   string
		subs *events
		*replay
	}
	var all []follower
	for _, id := range ids {
		for _, depth := range []int{3, 20} {
			f := follower{id, k.subscribe(t, subBook, vars{"id": id, "depth": depth, "deltas": true}), &replay{depth: depth}}
			f.take(t, f.subs.value(t))
			all = append(all, f)
		}
	}

	// history has the books of each token that the venue had during the test. The key of a book is its epoch, a space and its
	// sequence number.
	history := map[string]map[string]demo.Book{ids[0]: {}, ids[1]: {}}
	record := func() {
		for _, id := range ids {
			b, _ := s.venue.Book(id)
			history[id][fmt.Sprintf("%s %d", s.venue.Epoch(), b.Seq)] = b
		}
	}
	known := func(f follower, b bookAt) {
		t.Helper()
		sequence := strings.Map(func(r rune) rune {
			if r == ':' || r == '-' || r == '/' || r == '.' {
				return ' '
			}
			return r
		}, b.sequence)
		book, ok := history[f.id][sequence]
		if !ok {
			t.Fatalf("an event of the state %q, which the venue never had", b.sequence)
		}
		if want := (ladder{levelsOf(book.Bids, f.depth), levelsOf(book.Asks, f.depth)}); !same(b.book, want) {
			t.Errorf("depth %d at %s:\n got %v\nwant %v", f.depth, b.sequence, b.book, want)
		}
	}
	record()
	move := func(n int) {
		for range n {
			s.venue.Step()
			record()
			for _, id := range ids {
				before := s.bookOf(t, id, 3)
				for to := range demo.Price(10) { // until one of the three best levels of a side has changed
					q, _ := s.venue.Quote(id)
					if err := s.venue.SetPrice(id, (q.Price/100+2+to)%80*100+1000); err != nil {
						t.Fatal(err)
					}
					record()
					if !same(before, s.bookOf(t, id, 3)) {
						break
					}
				}
			}
		}
	}
	// settle reads events until each client holds the venue's current book.
	settle := func() {
		t.Helper()
		for _, f := range all {
			for {
				b, _ := s.venue.Book(f.id)
				if want := (ladder{levelsOf(b.Bids, f.depth), levelsOf(b.Asks, f.depth)}); same(f.last.book, want) && strings.HasSuffix(f.last.sequence, fmt.Sprint(b.Seq)) {
					break
				}
				if v, ok := f.subs.try(t); ok {
					known(f, f.take(t, v))
					continue
				}
				t.Fatalf("depth %d of %s: left at %s with\n%v\nwhile the venue is at %d with\n%v\nFeed: %+v", f.depth, f.id, f.last.sequence, f.last.book,
					b.Seq, ladder{levelsOf(b.Bids, f.depth), levelsOf(b.Asks, f.depth)}, s.App.Live.Feed.Stats())
			}
		}
	}

	rounds := []struct {
		name  string
		fault demo.Fault
		// resync is true if the fault makes the service send a RESYNC event.
		resync bool
	}{
		{"nothing", demo.Fault{}, false},
		{"drop", demo.Fault{Kind: demo.FaultDrop, Frame: "orderbook_update", Count: 4}, true},
		{"duplicate", demo.Fault{Kind: demo.FaultDuplicate, Frame: "orderbook_update", Count: 10}, false},
		{"reorder", demo.Fault{Kind: demo.FaultReorder, Frame: "orderbook_update", Count: 2}, true},
		{"garbage", demo.Fault{Kind: demo.FaultGarbage, Frame: "orderbook_update", Count: 2}, true},
		{"unknown type", demo.Fault{Kind: demo.FaultUnknownType, Frame: "orderbook_update", Count: 5}, false},
		{"skipped number", demo.Fault{Kind: demo.FaultSkip, Channel: "orderbook", TokenID: ids[0], Count: 2}, true},
		{"slow reader", demo.Fault{Kind: demo.FaultClose, Code: demo.CloseSlow, Frame: "orderbook_update", Count: 1}, true},
		{"new epoch", demo.Fault{Kind: demo.FaultNewEpoch, Frame: "orderbook_update", Count: 1}, true},
		{"nothing again", demo.Fault{}, false},
	}
	for _, round := range rounds {
		before := all[0].resyncs
		for range 30 { // wait for the events of each step, so that the service rarely merges changes
			move(1)
			settle()
		}
		if round.fault.Kind != "" {
			round.fault.Path = demo.StreamPath
			s.setFaults(t, round.fault)
		}
		move(15)
		s.setFaults(t)
		record() // in the round "new epoch", the epoch and the sequence numbers are new
		move(5)
		settle()
		// settle may return before the RESYNC event, because the client may already have the current book from REST. Read events
		// until the RESYNC event comes.
		for round.resync && all[0].resyncs == before {
			v, ok := all[0].subs.try(t)
			if !ok {
				break
			}
			known(all[0], all[0].take(t, v))
		}
		if got := all[0].resyncs > before; got != round.resync {
			t.Errorf("%s: resynced is %t, want %t", round.name, got, round.resync)
		}
		t.Logf("%s: %d deltas, %d resyncs, %d stale", round.name, all[0].deltas, all[0].resyncs, all[0].stale)
	}
	for _, f := range all {
		if f.deltas < 200 {
			t.Errorf("depth %d: only %d events were a DELTA", f.depth, f.deltas)
		}
	}
}
