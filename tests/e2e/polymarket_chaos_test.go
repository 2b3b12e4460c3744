package e2e

import (
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/internal/demo/polymarket"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
	"oddsgraph/tests/tool"
)

// pace is the time between two steps of the simulated market.
const pace = 150 * time.Millisecond

// bestPrices are the best bid and the best ask of a book. A field is empty if its side has no orders.
type bestPrices struct{ bid, ask string }

func topOf(b demo.Book) (top bestPrices) {
	if len(b.Bids) > 0 {
		top.bid = b.Bids[0].Price.String()
	}
	if len(b.Asks) > 0 {
		top.ask = b.Asks[0].Price.String()
	}
	return top
}

func publishedTop(b *market.Book) (top bestPrices) {
	if bid := b.BestBid(); bid != nil {
		top.bid = bid.String()
	}
	if ask := b.BestAsk(); ask != nil {
		top.ask = ask.String()
	}
	return top
}

// bookWitness compares the books of the service's feed with the books of the simulator.
type bookWitness struct {
	t   *testing.T
	sim *polymarket.Venue
	// tops maps a token and a time in Unix milliseconds to the best prices of the token's book.
	tops map[string]map[int64]bestPrices
	// publishedCount counts the published books. wrongCount counts those with wrong best prices, and unknownCount counts those with
	// a timestamp that no book of the simulator had.
	publishedCount, wrongCount, unknownCount int
}

// note records the current state of the books. A book must change at most once between two calls of note.
func (w *bookWitness) note(ids []string) {
	for _, id := range ids {
		b, _ := w.sim.Book(id)
		if w.tops[id] == nil {
			w.tops[id] = map[int64]bestPrices{}
		}
		w.tops[id][b.At.UnixMilli()] = topOf(b)
	}
}

// check reads the topics that have changed. It compares the best prices of each live book with the prices that note
// recorded for the same time.
func (w *bookWitness) check(r *feed.Reader) {
	select {
	case <-r.Changed():
	default:
		return
	}
	for _, watch := range r.Take() {
		s, err := watch.State()
		if err != nil {
			w.t.Fatalf("the book of token %.8s has the error %v", watch.Topic().ID, err)
		}
		if !s.Live || s.Book == nil {
			continue
		}
		w.publishedCount++
		want, ok := w.tops[watch.Topic().ID][s.Book.Timestamp.UnixMilli()]
		if got := publishedTop(s.Book); !ok {
			w.unknownCount++
		} else if got != want {
			if w.wrongCount++; w.wrongCount < 10 {
				w.t.Errorf("the book of token %.8s at %v has the best prices %v, want %v", watch.Topic().ID, s.Book.Timestamp, got, want)
			}
		}
	}
}

// differing returns the watched tokens whose book is not live, or differs from the simulator's current book. If withLevels is
// false, differing compares only the best prices.
func (w *bookWitness) differing(watches []*feed.Watch, withLevels bool) (ids []string) {
	for _, watch := range watches {
		id := watch.Topic().ID
		now, _ := w.sim.Book(id)
		s, err := watch.State()
		if err != nil || !s.Live || s.Book == nil || publishedTop(s.Book) != topOf(now) ||
			withLevels && (!sameLevels(s.Book.Bids.Levels(), now.Bids) || !sameLevels(s.Book.Asks.Levels(), now.Asks)) {
			ids = append(ids, id)
		}
	}
	return ids
}

// sameLevels compares the best levels of a side, at most queries.MaxBookDepth / 2. Deeper levels may be missing. When a change
// removes a level, the service does not know which level follows the last level of its book.
func sameLevels(got []market.Level, want []demo.Level) bool {
	const maxCompared = queries.MaxBookDepth / 2
	got, want = got[:min(len(got), maxCompared)], want[:min(len(want), maxCompared)]
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		if got[i].Price.String() != want[i].Price.String() || got[i].Size.String() != want[i].Size.String() {
			return false
		}
	}
	return true
}

// TestPolymarketChaos checks 501 books while 2 % of the frames are lost, streams freeze silently and connections break. No
// published book may have a wrong best price. Within a minute of a freeze, 98 % of the books must have the venue's best prices. After
// the last fault, all books must equal the venue's books.
func TestPolymarketChaos(t *testing.T) {
	tool.CheckTier(t)
	t.Parallel()
	if tool.Unraced(t) { // the race detector makes the test five times slower
		return
	}
	synctest.Test(t, func(t *testing.T) {
		s := startOverSimulator(t, "--demo-markets=600")
		sim := s.Demo.Polymarket
		ids := openTokens(sim)[:501]
		w := &bookWitness{t: t, sim: sim, tops: map[string]map[int64]bestPrices{}}
		w.note(ids)
		r := s.Venue.Live.Feed.NewReader("reader")
		defer r.Close()
		var watches []*feed.Watch
		for _, id := range ids {
			watch, err := r.Watch(messages.Topic{Channel: messages.ChannelOrderbook, ID: id}, nil)
			if err != nil {
				t.Fatal(err)
			}
			watches = append(watches, watch)
		}
		run := func(d time.Duration) {
			for range int(d / pace) {
				sim.Engine().Step()
				w.note(ids)
				synctest.Wait()
				w.check(r)
				time.Sleep(pace)
				synctest.Wait()
				w.check(r)
			}
		}
		run(5 * time.Second)
		if differing := w.differing(watches, true); len(differing) > 0 {
			t.Fatalf("%d of %d books differ from the simulator's books before any fault", len(differing), len(ids))
		}
		// A list is the answer to a subscription, which is never lost.
		data := []string{`"event_type"`}
		lost := faults.Fault{On: faults.OnFrames, Contains: data, Probability: 0.02, Frames: func(frame []byte) [][]byte {
			if frame[0] == '[' {
				return [][]byte{frame}
			}
			return nil
		}}
		s.setFaults(t, lost)
		for round := 0; w.publishedCount < 20_000; round++ {
			if round > 60 {
				t.Fatalf("the service published only %d books in %d rounds, want 20000", w.publishedCount, round)
			}
			switch round % 3 {
			case 0:
				s.setFaults(t, faults.Fault{On: faults.OnFrames, Kind: faults.Freeze, Contains: data}) // the streams still answer PING
				run(pace)
				s.setFaults(t, lost)
				run(time.Minute)                                                            // two comparisons: the first may find too few frozen books to blame the socket
				if differing := w.differing(watches, false); len(differing) > len(ids)/50 { // the last change of a book may be in a lost frame
					t.Errorf("%d books are not live or have wrong best prices a minute after a freeze, want at most %d", len(differing), len(ids)/50)
				}
			case 1:
				s.faults.CloseStreams(0)
				run(10 * time.Second)
			default:
				run(10 * time.Second)
			}
		}
		s.setFaults(t)
		run(65 * time.Second) // the service compares all books with REST twice in this time
		if differing := w.differing(watches, true); len(differing) > 0 {
			t.Errorf("%d of %d books differ from the simulator's books after the last fault", len(differing), len(ids))
		}
		t.Logf("%d books were published, %d with wrong best prices, %d with an unknown timestamp", w.publishedCount, w.wrongCount, w.unknownCount)
		if w.wrongCount > 0 || w.unknownCount > w.publishedCount/100 {
			t.Errorf("%d books published: %d have wrong best prices, %d have a timestamp that no book of the simulator had", w.publishedCount, w.wrongCount, w.unknownCount)
		}
	})
}
