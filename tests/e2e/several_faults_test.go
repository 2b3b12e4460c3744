package e2e

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/tests/tool"
)

// afterCaches is a time after which the service serves no cached value.
const afterCaches = 3 * time.Hour

// firstVenue asks a service for all that wholeQuery reads of the first venue.
type firstVenue struct {
	*service
	variables vars
}

func newFirstVenue(s *service, a *simulated) firstVenue {
	s.venue = a.engine
	ids := s.openTokens(3)
	return firstVenue{s, vars{"ids": ids, "id": ids[0], "market": s.openMarkets(1)[0], "a": addressOf3, "day": time.Now().AddDate(0, 0, -13).Format(time.DateOnly)}}
}

// measure returns the data of wholeQuery with a cold and a warm cache, and both times.
func (f firstVenue) measure(t *testing.T) (answers string, took [2]time.Duration) {
	t.Helper()
	for i := range took {
		began := time.Now()
		data := f.ask(t, wholeQuery, f.variables, keyOf3)
		took[i] = time.Since(began)
		answers += valuesAt(data, "prices") + valuesAt(data, "spreads") + valuesAt(data, "book") + valuesAt(data, "chart") +
			valuesAt(data, "search") + valuesAt(data, "details") + valuesAt(data, "user") + "\n"
	}
	return answers, took
}

const mixedQuery = `query ($ids: [String!]!, $market: String!) {
  tokens(tokenIds: $ids) { tokenId price { price } spread { bestBid } orderbook(depth: 1) { bids { price } } market { marketId } }
  market(by: { marketId: $market }) { question description }
}`

// load asks for a token of the first venue, which is cached soon, and for changing tokens and markets of the further one, until stop is
// called. It notes the codes of errors.
func load(t *testing.T, s *service, a, b *simulated) (failed *sync.Map, stop func()) {
	failed, ended := &sync.Map{}, make(chan struct{})
	var running sync.WaitGroup
	own := a.id(a.engine.Tokens()[20].TokenID)
	others, markets := b.engine.Tokens(), b.engine.Markets()
	var n atomic.Int64
	for range 3 {
		running.Go(func() {
			for {
				i := int(n.Add(1))
				ids := []string{own, "b:" + b.id(others[i%len(others)].TokenID), "b:" + b.id(others[(i+7)%len(others)].TokenID)}
				_, errors := s.query(t, mixedQuery, vars{"ids": ids, "market": "b:" + b.id(markets[i%len(markets)].MarketID)}, anonymous)
				for _, e := range errors {
					failed.Store(e.Extensions.Code, true)
				}
				select {
				case <-ended:
					return
				case <-time.After(5 * time.Millisecond):
				}
			}
		})
	}
	stop = sync.OnceFunc(func() { close(ended); running.Wait() })
	t.Cleanup(stop)
	return failed, stop
}

// TestFaultsOfAnotherVenue checks that no fault of a further venue changes an answer or a time of the first one, also under load.
func TestFaultsOfAnotherVenue(t *testing.T) {
	tool.CheckTier(t)
	t.Parallel()
	for _, driver := range []string{"generic", "kalshi", "polymarket"} {
		t.Run(driver, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := simulate(t, "generic", demo.Config{Markets: 60, Latency: 20 * time.Millisecond}, nil)
				b := simulate(t, driver, demo.Config{Markets: 60, Latency: 20 * time.Millisecond}, nil)
				f := newFirstVenue(readSeveral(t, a, b, func(w *app.Wiring) { w.Stream.URL = "" }, "--request-timeout=10s"), a)
				want, least := f.measure(t)
				for i := range callFaults {
					row := &callFaults[i]
					if row.large && driver != "generic" {
						continue // slow, and no business of a driver
					}
					time.Sleep(afterCaches)
					b.set(t, row.faultFor(&lane{service: &service{clock: tool.NewClock(time.Now())}, otherURL: "http://elsewhere.invalid/"}, &branch{}))
					failed, stop := load(t, f.service, a, b)
					time.Sleep(200 * time.Millisecond)
					got, took := f.measure(t)
					if stop(); got != want {
						t.Errorf("%s: the first venue's data are\n%s\nwant\n%s", row.name, got, want)
					}
					if took[0] > least[0] || took[1] > least[1] {
						t.Errorf("%s: the first venue took %v, want at most %v", row.name, took, least)
					}
					if _, ok := failed.Load(row.code); !ok {
						t.Errorf("%s: no query of the load failed with %s", row.name, row.code)
					}
					b.set(t)
				}
			})
		})
	}
}

// TestHungQueriesOfAnotherVenue checks that operations that wait for a hung further venue take no place of the others, not even when they
// also ask the first one, and not from operations that ask two others.
func TestHungQueriesOfAnotherVenue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := simulate(t, "generic", demo.Config{Markets: 60, Latency: 20 * time.Millisecond}, nil)
		b, c := simulate(t, "generic", demo.Config{Markets: 60}, nil), simulate(t, "generic", demo.Config{Markets: 60, Latency: 30 * time.Millisecond}, nil)
		f := newFirstVenue(readVenues(t, map[string]*simulated{"": a, "b": b, "c": c}, nil, "--request-timeout=10s"), a)
		tokens, markets := a.engine.Tokens(), b.engine.Markets()
		others := func() (data string, took time.Duration) {
			began := time.Now()
			ids := []string{tokens[1].TokenID, "c:" + tokens[2].TokenID}
			return valuesAt(f.ask(t, mixedQuery, vars{"ids": ids, "market": "c:" + markets[1].MarketID}, anonymous), "tokens"), time.Since(began)
		}
		want, least := f.measure(t)
		wantOthers, leastOthers := others()
		time.Sleep(afterCaches)
		b.set(t, faults.Fault{Kind: faults.Delay})
		var hung sync.WaitGroup
		var answered atomic.Int64
		for i := range 600 {
			hung.Go(func() {
				ids := []string{tokens[20+i%40].TokenID, fmt.Sprint("b:", i)} // hung calls ask for any id
				f.query(t, mixedQuery, vars{"ids": ids, "market": "b:" + markets[i%40].MarketID}, anonymous)
				answered.Add(1)
			})
		}
		time.Sleep(100 * time.Millisecond)
		got, took := f.measure(t)
		if got != want || took[0] > least[0] || took[1] > least[1] {
			t.Errorf("the first venue took %v, want at most %v, and its data are\n%s\nwant\n%s", took, least, got, want)
		}
		if got, took := others(); got != wantOthers || took > leastOthers {
			t.Errorf("two other venues took %v, want at most %v, and their data are\n%s\nwant\n%s", took, leastOthers, got, wantOthers)
		}
		if n := answered.Load(); n > 0 {
			t.Errorf("%d queries to the hung venue have been answered meanwhile", n)
		}
		hung.Wait()
	})
}
