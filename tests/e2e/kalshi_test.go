package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/drivers"
)

// startKalshi starts the service with the driver of Kalshi and the simulator of Kalshi.
func startKalshi(t *testing.T, args ...string) *service {
	t.Helper()
	unlimited := func(w *app.Wiring) { w.Unlimited = true } // the rate limiter would block, because the clock stands still
	return startRigged(t, startTime, unlimited,
		append([]string{"--venue-driver=kalshi", "--demo-driver=kalshi", "--demo-control=false", "--demo-markets=120"}, args...)...)
}

// kalshiCalls returns two counts of calls to the simulator, by path: all calls, and the calls since an earlier count. The parameter
// before is this earlier count.
func kalshiCalls(t *testing.T, a *app.App, before map[string]int64) (calls, newCalls map[string]int64) {
	t.Helper()
	calls = a.Demo.Kalshi.Stats().Requests
	newCalls = map[string]int64{}
	for path, n := range calls {
		if n > before[path] {
			newCalls[path] = n - before[path]
		}
	}
	return calls, newCalls
}

// TestKalshiTokenBucketDelaysBooks checks that the service delays its calls for order books, so that Kalshi refuses none of them.
// Kalshi limits calls by a token bucket. A call costs tokens for each book that it requests.
func TestKalshiTokenBucketDelaysBooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startOverSimulator(t, "--venue-driver=kalshi", "--demo-driver=kalshi", "--demo-markets=120", "--demo-stream=false")
		var ids []string
		for _, ticker := range s.Demo.Kalshi.Tickers()[:80] {
			ids = append(ids, ticker+":yes")
		}
		begin := time.Now()
		_, errors := s.query(t, `query($ids: [String!]!) { tokens(tokenIds: $ids) { orderbook(depth: 1) { bids { price } } } }`, vars{"ids": ids}, anonymous)
		if took := time.Since(begin); len(errors) > 0 || took < 3*time.Second || took > 12*time.Second { // the 80 books cost 800 tokens, and the bucket holds 200
			for _, e := range errors[:min(len(errors), 2)] {
				t.Log(e.Message)
			}
			t.Errorf("80 books took %v with %d errors, want 3 s to 12 s without errors", took, len(errors))
		}
	})
}

// TestKalshiBooks checks the calls for eight order books: one for each market, with and without the operator's key.
func TestKalshiBooks(t *testing.T) {
	for name, key := range map[string]func(*drivers.APIKey){"key": func(*drivers.APIKey) {}, "no key": func(k *drivers.APIKey) { *k = drivers.APIKey{} }} {
		t.Run(name, func(t *testing.T) {
			unlimited := func(w *app.Wiring) {
				w.Unlimited = true // the rate limiter would block, because the clock stands still
				key(&w.Client.Key)
			}
			s := startRigged(t, startTime, unlimited, "--venue-driver=kalshi", "--demo-driver=kalshi", "--demo-control=false", "--demo-markets=120", "--demo-stream=false")
			var ids []string
			for _, ticker := range s.Demo.Kalshi.Tickers()[:8] {
				ids = append(ids, ticker+":yes")
			}
			before, _ := kalshiCalls(t, s.App, nil)
			data := s.ask(t, `query($ids: [String!]!) { tokens(tokenIds: $ids) { orderbook(depth: 1) { bids { price } } } }`, vars{"ids": ids}, anonymous)
			for i := range ids {
				if len(list(data, fmt.Sprintf("tokens.%d.orderbook.bids", i))) == 0 {
					t.Errorf("got the books %s, want eight books with bids", asJSON(data))
					break
				}
			}
			if _, made := kalshiCalls(t, s.App, before); !maps.Equal(made, map[string]int64{"/markets/{ticker}/orderbook": int64(len(ids))}) {
				t.Errorf("got the calls %v, want a call for each of the %d books", made, len(ids))
			}
		})
	}
}

// TestKalshiUnsupported checks fields whose data Kalshi does not serve. These fields must be null with the error code UNSUPPORTED,
// and the service must make no call.
func TestKalshiUnsupported(t *testing.T) {
	s := startKalshi(t)
	before, _ := kalshiCalls(t, s.App, nil)
	credentials := base64.StdEncoding.EncodeToString([]byte(`{"apiKey":"a","secret":"b","address":"0x1111111111111111111111111111111111111111"}`))
	for query, path := range map[string]string{
		`{ searchMarkets(query: "rain") { __typename } }`:                                              "searchMarkets",
		`{ searchMarkets(sort: VOLUME) { __typename } }`:                                               "searchMarkets",
		`{ user(address: "0x1111111111111111111111111111111111111111") { positions { __typename } } }`: "user.positions",
		`{ user(address: "0x1111111111111111111111111111111111111111") { orders { __typename } } }`:    "user.orders",
		`{ user(address: "0x1111111111111111111111111111111111111111") { balance { cashBalance } } }`:  "user.balance",
		`{ user(address: "0x1111111111111111111111111111111111111111") { history { __typename } } }`:   "user.history",
	} {
		data, errors := s.query(t, query, nil, credentials)
		if at(data, path) != nil || len(errors) != 1 || errors[0].Extensions.Code != "UNSUPPORTED" || !strings.Contains(errors[0].Message, "Kalshi") {
			t.Errorf("%s: got data %v and errors %v, want null and UNSUPPORTED", query, data, errors)
		}
	}
	if _, calls := kalshiCalls(t, s.App, before); len(calls) > 0 {
		t.Errorf("the queries caused the calls %v, want none", calls)
	}
}

// TestKalshiStream checks a market's two order books after the stream has lost frames. Both books must equal the venue's books.
func TestKalshiStream(t *testing.T) {
	s := startLive(t, "--venue-driver=kalshi", "--demo-driver=kalshi", "--demo-control=false", "--demo-markets=60")
	s.waitForStream(t)
	sim, engine := s.Demo.Kalshi, s.Demo.Venue
	ticker := sim.Tickers()[0]
	demoToken := sim.DemoID(ticker + ":yes")
	k := s.dial(t, anonymous)
	followers := map[string]*replay{}
	subs := map[string]*events{}
	for _, id := range []string{ticker + ":yes", ticker + ":no"} {
		subs[id], followers[id] = k.subscribe(t, subBook, vars{"id": id, "depth": 20, "deltas": true}), &replay{depth: 20, hurried: true}
		followers[id].take(t, subs[id].value(t))
	}
	prices := k.subscribe(t, subPrices, vars{"ids": []string{ticker + ":no"}})
	if v := prices.value(t); text(v, "reason") != "INITIAL" {
		t.Errorf("the first event of the prices is %s, want the reason INITIAL", asJSON(v))
	}
	settle := func() {
		t.Helper()
		b, _ := engine.Book(demoToken)
		opposite := demo.Book{Bids: oppositeLevels(b.Asks), Asks: oppositeLevels(b.Bids)}
		for id, want := range map[string]ladder{
			ticker + ":yes": {levelsOf(b.Bids, 20), levelsOf(b.Asks, 20)}, ticker + ":no": {levelsOf(opposite.Bids, 20), levelsOf(opposite.Asks, 20)},
		} {
			for f := followers[id]; !equalLadders(trimZeros(f.book), want); {
				v, ok := subs[id].try(t)
				if !ok {
					t.Fatalf("the book of %s stays at %v, want %v", id, f.book, want)
				}
				f.take(t, v)
			}
		}
	}
	settle()
	for round := range 8 {
		s.setFaults(t, faults.Fault{On: faults.OnFrames, Kind: faults.Drop, Contains: []string{`"type":"orderbook_delta"`}, Probability: 0.3, Seed: uint64(round)})
		for range 5 {
			engine.Step()
			if err := engine.SetPrice(demoToken, demo.Price(3000+400*round)); err != nil {
				t.Fatal(err)
			}
		}
		s.setFaults(t)
		if err := engine.SetPrice(demoToken, demo.Price(3100+400*round)); err != nil {
			t.Fatal(err)
		}
		settle()
	}
	if f := followers[ticker+":yes"]; f.deltas == 0 {
		t.Errorf("no event was a DELTA")
	}
}

// trimZeros returns a book without the trailing zeros of its numbers.
func trimZeros(b ladder) ladder {
	cut := func(levels []level) []level {
		out := make([]level, len(levels))
		for i, l := range levels {
			out[i] = level{market.MustDecimal(l.price).Reduce().String(), market.MustDecimal(l.size).Reduce().String()}
		}
		return out
	}
	return ladder{cut(b.bids), cut(b.asks)}
}

// oppositeLevels converts levels of one token to levels of the market's other token. A bid for one token at the price p is an ask
// for the other token at the price 1 − p.
func oppositeLevels(levels []demo.Level) []demo.Level {
	out := make([]demo.Level, len(levels))
	for i, l := range levels {
		out[i] = demo.Level{Price: 10_000 - l.Price, Size: l.Size}
	}
	return out
}

// TestKalshiEventOfMarket checks the title and the category of a market's event. Kalshi sends a market without them. They must be
// there if the query selects a field that makes the service read the event, in any order of the fields, and also if the event is
// cached. Otherwise they are null, and the service makes no call for them.
func TestKalshiEventOfMarket(t *testing.T) {
	s := startKalshi(t)
	ticker := s.Demo.Kalshi.Tickers()[0]
	id := text(s.ask(t, `query($id: String!) { market(marketId: $id) { event { eventId } } }`, vars{"id": ticker}, anonymous), "market.event.eventId")
	before, _ := kalshiCalls(t, s.App, nil)
	query := func(fields string) any {
		t.Helper()
		return at(s.ask(t, `query($ids: [String!]!) { markets(marketIds: $ids) { event { `+fields+` } } }`, vars{"ids": []string{ticker}}, anonymous), "markets.0.event")
	}
	wantJSON(t, "an event without a read", query("title category"), `{"title":null,"category":null}`)
	if _, calls := kalshiCalls(t, s.App, before); len(calls) > 0 {
		t.Errorf("the title and the category caused the calls %v, want none", calls)
	}
	title, category := "", ""
	for _, fields := range []string{"title category exclusive", "exclusive category title", "title category markets { totalCount }"} {
		for _, state := range []string{"before", "after"} {
			e := query(fields + " " + state + ": eventId") // the alias makes the query new, so the whole response is not cached
			if title == "" {
				want := at(s.ask(t, `query($id: String!) { event(eventId: $id) { title category } }`, vars{"id": id}, anonymous), "event")
				if title, category = text(want, "title"), text(want, "category"); title == "" || category == "" {
					t.Fatalf("the event is %s, want a title and a category", asJSON(want))
				}
			}
			if text(e, "title") != title || text(e, "category") != category {
				t.Errorf("%s the event is cached, the fields %s of the market's event are %s; want the title %q and the category %q", state, fields, asJSON(e), title, category)
			}
		}
		s.expireCaches()
	}
}

// boardSubscription returns a subscription of the board, with the fragment that it uses.
func boardSubscription(t *testing.T, name string) string {
	t.Helper()
	all := read(t, "web/live/operations.graphql")
	part := func(pattern string) string { return regexp.MustCompile(`(?ms)^` + pattern + `\b.*?^}`).FindString(all) }
	query := part("subscription " + name)
	if query == "" {
		t.Fatalf("the board has no subscription %s", name)
	}
	if strings.Contains(query, "...Freshness") {
		query += "\n" + part("fragment Freshness")
	}
	return query
}

// connectInBubble makes sockets of the test reach the service over in-memory connections.
func (s *service) connectInBubble(t testing.TB) {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return s.Server.Listener.(*pipes).dial(ctx, network, address)
	}}
	s.client = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
}

// quietMarket is an open market with two tokens.
type quietMarket struct {
	// engineToken is the id of the first token in the engine that all demo venues share. The other ids are those of the venue.
	engineToken string
	id          string
	tokens      []string
}

func (s *service) openBinaryMarkets(n int) (markets []quietMarket) {
	venueID := s.simulatedID
	if s.Demo.Polymarket == nil && s.Demo.Kalshi == nil {
		venueID = func(id string) string { return id }
	}
	for _, m := range s.Demo.Venue.Markets() {
		if m.Status == "OPEN" && m.Binary && len(markets) < n {
			markets = append(markets, quietMarket{m.TokenIDs[0], venueID(m.MarketID), []string{venueID(m.TokenIDs[0]), venueID(m.TokenIDs[1])}})
		}
	}
	return markets
}

// pages are open market pages of the board.
type pages struct {
	s *service
	t *testing.T
	// subs maps a market and the name of a subscription to the subscription.
	subs map[quietPage]*events
}

type quietPage struct{ market, name string }

func (s *service) openPages(t *testing.T, markets []quietMarket) *pages {
	p := &pages{s: s, t: t, subs: make(map[quietPage]*events)}
	for _, m := range markets {
		k := s.dial(t, anonymous)
		for name, variables := range map[string]vars{
			"Prices": {"tokenIds": m.tokens}, "Market": {"marketId": m.id}, "Book": {"tokenId": m.tokens[0], "depth": 10},
			"Trades": {"tokenId": m.tokens[0]}, "StreamStatus": {},
		} {
			e := k.subscribe(t, boardSubscription(t, name), variables)
			e.name = fmt.Sprintf("%s of the market %s", name, m.id)
			p.subs[quietPage{m.id, name}] = e
		}
	}
	return p
}

// drain takes all events that have arrived. It returns the number of subscriptions without any. An event must not end its
// subscription. The only expected error is that a token has no price, because its book lacks one side.
func (p *pages) drain(oneSided map[string]bool) (silent int) {
	synctest.Wait()
	for page, sub := range p.subs {
		if len(sub.came) == 0 {
			silent++
		}
		for len(sub.came) > 0 {
			ev := <-sub.came
			priceless := page.name == "Prices" && oneSided[page.market] && len(ev.errors) == 1 && strings.Contains(ev.errors[0].Message, "has no price at present")
			if ev.ended || len(ev.errors) > 0 && !priceless {
				p.t.Errorf("%s: got %+v, want a value", sub.name, ev)
			}
		}
	}
	return silent
}

// TestQuietMarkets opens 50 market pages of the board, each on its own socket, at a venue where nothing happens for ten minutes. The
// venue sends what its kind of venue sends after a subscription. Of trades and markets, that is nothing. Every subscription must get
// its first event, the service must close no connection to the venue and send no subscription again, and the pages must show what
// happens afterwards.
func TestQuietMarkets(t *testing.T) {
	const sockets, within, quiet = 50, 15 * time.Second, 10 * time.Minute
	for _, driver := range []string{"generic", "polymarket", "kalshi"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := startOverSimulator(t, "--demo-driver="+driver, "--venue-driver="+driver, "--demo-markets=120", "--log-level=info")
				if driver == "generic" { // a venue that sends only books after a subscription
					s.setFaults(t, faults.Fault{On: faults.OnFrames, Kind: faults.Drop, Contains: []string{`"type":"price_update"`}},
						faults.Fault{On: faults.OnFrames, Kind: faults.Drop, Contains: []string{`"type":"trades_snapshot"`}})
				}
				s.connectInBubble(t)
				markets, oneSided := s.openBinaryMarkets(sockets), map[string]bool{}
				for _, m := range markets {
					b, _ := s.Demo.Venue.Book(m.engineToken)
					if s.Demo.Polymarket != nil { // its simulator empties sides of its own copies of the books
						b, _ = s.Demo.Polymarket.Book(m.tokens[0])
					}
					oneSided[m.id] = len(b.Bids) == 0 || len(b.Asks) == 0
				}
				p := s.openPages(t, markets)
				if len(p.subs) != 5*sockets {
					t.Fatalf("opened %d subscriptions, want %d", len(p.subs), 5*sockets)
				}
				time.Sleep(within)
				if silent := p.drain(oneSided); silent > 0 {
					t.Errorf("%d subscriptions got no event within %v", silent, within)
				}
				before := s.Venue.Live.Feed.Stats().Resubscribed
				time.Sleep(quiet)
				p.drain(oneSided)
				stream, feed := s.Venue.Live.Client.Stats(), s.Venue.Live.Feed.Stats()
				if stream.Reconnects > 0 || stream.State != "LIVE" || feed.Resubscribed > before {
					t.Errorf("the stream is %s after %d reconnects, and %d subscriptions were sent again; want LIVE and none", stream.State, stream.Reconnects, feed.Resubscribed-before)
				}
				p.wantLife(markets[slices.IndexFunc(markets, func(m quietMarket) bool { return !oneSided[m.id] })])
			})
		})
	}
}

// wantLife trades a token of a market and moves its price, and waits for the events.
func (p *pages) wantLife(m quietMarket) {
	if p.s.Demo.Kalshi == nil && p.s.Demo.Polymarket == nil {
		p.s.setFaults(p.t)
	}
	if err := p.s.Demo.Venue.Trade(addressOf2000, m.engineToken, demo.Buy, 100); err != nil {
		p.t.Fatal(err)
	}
	p.subs[quietPage{m.id, "Trades"}].until(p.t, "the trade", func(v any) bool { return text(v, "reason") == "CHANGE" && len(list(v, "trades")) == 1 })
	q, _ := p.s.Demo.Venue.Quote(m.engineToken)
	if err := p.s.Demo.Venue.SetPrice(m.engineToken, q.Price+300); err != nil {
		p.t.Fatal(err)
	}
	p.subs[quietPage{m.id, "Prices"}].until(p.t, "a price of the stream", func(v any) bool {
		return text(v, "price.freshness.source") == "STREAM" && at(v, "price.freshness.stale") == false
	})
}
