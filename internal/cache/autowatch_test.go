package cache

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/ratelimit"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
)

// streamer is a Streamer that records the tokens passed to AutoWatch.
type streamer struct {
	mu     sync.Mutex
	tokens []string
}

func (s *streamer) AutoWatch(_ messages.Channel, tokens []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = append(s.tokens, tokens...)
}

func (s *streamer) takeTokens() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.tokens
	s.tokens = nil
	return out
}

// TestStreamServesMisses checks that a cache miss passes the token to AutoWatch if the rate limit has no calls left. The read must
// return the first value that arrives, from REST or from the stream.
func TestStreamServesMisses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := &testVenue{}, &streamer{}
		c, b := openLimited(t, v, ratelimit.Config{})
		c.SetStreamer(s)
		c.names.learn(&market.Market{MarketID: "m", Outcomes: []market.Outcome{{TokenID: "yes"}, {TokenID: "no"}}})
		if mustRead(t, c.Prices(), "yes"); len(s.takeTokens()) != 0 {
			t.Error("got a watch with a full budget, want none")
		}
		spend(t, b, 0)
		waiting := fetch(callerContext(t, "a", 2*time.Minute), c, "no", "junk")
		if got := s.takeTokens(); !slices.Equal(got, []string{"no"}) {
			t.Fatalf("got watches %v, want [no]", got)
		}
		books := make(chan *market.Book, 3)
		for _, d := range []int{20, 50, 200} {
			go func() {
				r, err := readOne(callerContext(t, "a", 2*time.Minute), c.Books(), queries.Book{TokenID: "yes", Depth: d})
				if err != nil || r.Source != market.SourceStream || r.Stale {
					t.Errorf("got %+v, %v; want a fresh value of the stream", r, err)
				}
				books <- r.Value
			}()
		}
		synctest.Wait()
		if got := s.takeTokens(); !slices.Equal(got, []string{"yes", "yes", "yes"}) {
			t.Fatalf("got watches %v, want [yes yes yes]", got)
		}
		if n := b.Status().Waiting; n[upstream.PriorityBooks] != 3 || n[upstream.PriorityPrices] != 1 {
			t.Fatalf("got waiting calls %v, want 3 for books and 1 for prices", n)
		}

		session := &reads.Session{}
		now := reads.Meta{ReceivedAt: time.Now(), Source: market.SourceStream}
		c.StreamBook(session, &market.Book{TokenID: "yes", Depth: 200}, now)
		for range 3 {
			synctest.Wait()
			if len(books) == 0 {
				t.Fatal("a book has arrived, but no reader got it")
			}
			<-books
		}
		c.StreamPrice(session, &market.Price{TokenID: "no"}, now)
		wantPending(t, waiting) // the price of junk is still missing
		if n := b.Status().Waiting; n[upstream.PriorityBooks] != 0 || n[upstream.PriorityPrices] != 1 {
			t.Errorf("got waiting calls %v, want 1 for prices", n)
		}
		time.Sleep(window)
		r := receive(t, waiting)
		if r[0].Value.Source != market.SourceStream || r[1].Value.Source != market.SourceREST {
			t.Errorf("got %+v, want a price of the stream and one of REST", r)
		}
		calls := v.calls()
		if len(calls) != 2 || !slices.Equal(calls[1].keys, []string{"junk"}) {
			t.Errorf("got %+v, want a second call of junk", calls)
		}

		// A streamed price ends the wait of the only caller, so the cache cancels the running REST call.
		v.blocked = make(chan struct{})
		time.Sleep(window)
		late := fetch(callerContext(t, "a", time.Minute), c, "slow")
		c.StreamPrice(session, &market.Price{TokenID: "slow"}, now)
		wantPrices(t, receive(t, late), "slow")
		if synctest.Wait(); v.calls()[2].ctx.Err() == nil {
			t.Error("the call was not cancelled, although the stream has sent the price")
		}
		session.End(time.Now())
		wantIdle(t, c.prices.routes[0])
		wantIdle(t, c.books.routes[0])
	})
}

// TestOnlyKnownTokensAreWatched checks that the cache passes a token to AutoWatch only if an earlier response of the venue
// contained the token. Background reads must never call AutoWatch.
func TestOnlyKnownTokensAreWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := &testVenue{unknown: map[string]bool{"none": true, "never": true}}, &streamer{}
		c, b := openLimited(t, v, ratelimit.Config{})
		c.SetStreamer(s)
		mustRead(t, c.Prices(), "priced")
		mustRead(t, c.Prices(), "none")
		mustRead(t, c.Books(), queries.Book{TokenID: "booked", Depth: 20})
		mustRead(t, c.Spreads(), "spread")
		spend(t, b, 0)
		time.Sleep(40 * time.Second) // all entries are past their stale time
		tokens := []string{"priced", "none", "booked", "spread", "never"}
		readAll(request.WithoutPoll(callerContext(t, "a", time.Second)), c.Prices(), tokens...)
		if got := s.takeTokens(); len(got) != 0 {
			t.Errorf("got watches %v, want none", got)
		}
		readAll(callerContext(t, "a", time.Second), c.Spreads(), tokens...)
		if got := s.takeTokens(); !slices.Equal(got, []string{"priced", "booked"}) {
			t.Errorf("got watches %v, want priced and booked; the spread is served stale", got)
		}
	})
}
