package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
)

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
