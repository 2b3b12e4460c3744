package e2e

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/polymarket"
	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/stream"
)

// polymarketService is a service with the embedded simulator of Polymarket.
type polymarketService struct {
	*service
	sim *polymarket.Venue
}

func startPolymarket(t *testing.T, args ...string) polymarketService {
	t.Helper()
	s := start(t, append([]string{"--demo-driver=polymarket", "--venue-driver=polymarket"}, args...)...)
	return polymarketService{s, s.Demo.Polymarket}
}

// requestsDuring counts the requests, by method and path, that the simulator received while the function f ran.
func (s polymarketService) requestsDuring(f func()) map[string]int64 {
	before := s.sim.Stats().Requests
	f()
	made := s.sim.Stats().Requests
	for path, n := range before {
		if made[path] -= n; made[path] == 0 {
			delete(made, path)
		}
	}
	return made
}

// TestPortfolioOfPolymarket checks how many requests a query makes for a portfolio of 50 positions with markets and prices. A
// second query must make no request.
func TestPortfolioOfPolymarket(t *testing.T) {
	s := startPolymarket(t)
	const query = `query($address: Address!) { user(address: $address) {
			balance { positionsValue totalValue }
			positions(first: 50) { nodes { size outcome market { marketId status tokens { outcome winner } } token { tokenId price { price basis } } valuation { value basis } } }
			portfolio { positionsValue unpricedPositions }
		} }`
	var data any
	read := func() { data = s.ask(t, query, vars{"address": addressOf50}, anonymous) }
	made := s.requestsDuring(read)
	nodes := list(data, "user.positions.nodes")
	if len(nodes) != 50 {
		t.Fatalf("got %d positions, want 50", len(nodes))
	}
	closed, v2 := false, 0
	for _, n := range nodes {
		if id := text(n, "market.marketId"); v2 == 0 && len(text(n, "token.tokenId")) == 75 {
			own := s.ask(t, `query($address: Address!, $ids: [String!]) { user(address: $address) { positions(marketIds: $ids) { totalCount } } }`,
				vars{"address": addressOf50, "ids": []string{strings.TrimSuffix(id, "00")}}, anonymous)
			if v2++; fmt.Sprint(at(own, "user.positions.totalCount")) == "0" {
				t.Errorf("no position has the market %s by its id in the Gamma API", id)
			}
		}
		status := text(n, "market.status")
		closed = closed || status != "OPEN"
		if text(n, "market.marketId") == "" || status == "OPEN" && at(n, "token.price") == nil {
			t.Errorf("a position has no market, or its market is open and its token has no price: %s", asJSON(n))
		}
	}
	if v2 == 0 {
		t.Error("no position has a token of protocol V2")
	}
	maxRequests := map[string]int64{"GET /v2/positions": 1, "GET /v2/value": 1, "GET /markets/keyset": 2, "POST /midpoints": 1, "POST /last-trades-prices": 1}
	if closed {
		maxRequests["GET /markets/keyset"] = 4
		maxRequests["GET /markets/{condition}"] = 50 // one for each closed market whose result the Gamma API does not have
	}
	for _, path := range slices.Sorted(maps.Keys(made)) {
		if made[path] > maxRequests[path] {
			t.Errorf("%s: %d requests, want at most %d", path, made[path], maxRequests[path])
		}
	}
	if again := s.requestsDuring(read); len(again) > 0 { // accounts are public, so all clients share the cached data
		t.Errorf("a second query made the requests %v, want none", again)
	}
}

// openTokens returns the first token of each outcome of the demo venue's open markets.
func openTokens(sim *polymarket.Venue) (ids []string) {
	for _, tok := range sim.Engine().Tokens() {
		if tok.Status == "OPEN" {
			ids = append(ids, sim.ID(tok.TokenID))
		}
	}
	return ids
}

// TestPricesOfPolymarket checks that the prices of 500 tokens take one call for midpoints, and at most one for last trades.
func TestPricesOfPolymarket(t *testing.T) {
	s := startPolymarket(t)
	ids := openTokens(s.sim)
	ids = ids[:min(500, len(ids))]
	var errs []string
	made := s.requestsDuring(func() {
		var parts []string
		for i := 0; i < len(ids); i += 100 {
			parts = append(parts, fmt.Sprintf(`t%d: tokens(tokenIds: ["%s"]) { price { price basis } }`, i, strings.Join(ids[i:i+100], `","`)))
		}
		_, failed := s.query(t, "{ "+strings.Join(parts, "\n")+" }", nil, anonymous)
		for _, e := range failed {
			errs = append(errs, e.String()+": "+e.Message)
		}
	})
	if len(errs) > 0 || made["POST /midpoints"] != 1 || made["POST /last-trades-prices"] > 1 || len(made) > 2 {
		t.Errorf("got the requests %v and the errors %v, want one request for midpoints and at most one for last trades", made, errs)
	}
}

// TestRisingMarketsOfPolymarket sorts markets by the change of their price, which Gamma calls oneDayPriceChange and accepts as an order.
// Its lists omit a change of 0.
func TestRisingMarketsOfPolymarket(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startOverSimulator(t, "--demo-markets=60")
		const query = `query ($order: SortOrder) {
			searchMarkets(sort: PRICE_CHANGE_24H, order: $order, filter: { status: OPEN }, first: 40) { nodes { tokens { change24h } } } }`
		for order, sign := range map[string]float64{"DESC": -1, "ASC": 1} {
			var changes []float64
			for _, m := range list(s.ask(t, query, vars{"order": order}, anonymous), "searchMarkets.nodes") {
				if change, err := strconv.ParseFloat(text(m, "tokens.0.change24h"), 64); err == nil {
					changes = append(changes, sign*change)
				}
			}
			// The service computes changes from fewer points than the venue, so single markets may be out of order.
			n := len(changes)
			if n < 20 {
				t.Fatalf("%s: got the changes %v", order, changes)
			}
			if first, last := sum(changes[:n/4]), sum(changes[n-n/4:]); first+0.05 > last {
				t.Errorf("%s: got the changes %v, times %v", order, changes, sign)
			}
		}
	})
}

func sum(list []float64) (total float64) {
	for _, f := range list {
		total += f
	}
	return total
}

// TestMarketChangedOfPolymarket checks the changes of markets that nobody has read before the subscription. The outcomes of one market
// are not called Yes and No, and one market has protocol V2 and is named by the id of the Gamma API, which has two digits less. The new tick size and the resolution must arrive from the stream with their values, long before
// a poll.
func TestMarketChangedOfPolymarket(t *testing.T) {
	t.Parallel()
	const fine demo.Price = 10 // 0.001
	synctest.Test(t, func(t *testing.T) {
		s := startOverSimulator(t, "--demo-markets=60")
		s.connectInBubble(t)
		tested := map[string]bool{}
		for _, m := range s.openBinaryMarkets(60) {
			labels, state := s.Demo.Polymarket.Labels(m.tokens[0]), s.engineMarket(t, m.engineToken)
			kind, id := labels[0], m.id
			switch {
			case len(m.tokens[0]) == 75:
				kind, id = "V2", strings.TrimSuffix(m.id, "00")
			case kind != "Yes":
				kind = "teams"
			}
			if tested[kind] || state.TickSize == fine {
				continue
			}
			tested[kind] = true
			sub := s.dial(t, anonymous).subscribe(t, `subscription($ids: [String!]!) { marketChanged(marketIds: $ids) {
				reason change market { status tickSize tokens { winner } resolution { winningOutcome resolvedAt } } } }`, vars{"ids": []string{id}})
			sub.reason(t, "INITIAL")
			sub.reason(t, "RESYNC") // the stream follows the market
			change := func(kind string, err error) any {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(500 * time.Millisecond)
				synctest.Wait()
				if len(sub.came) == 0 {
					t.Fatalf("%v: the change %s did not arrive within half a second", labels, kind)
				}
				v := sub.change(t)
				wantText(t, v, "change", kind)
				return v
			}
			v := change("TICK_SIZE", s.Demo.Venue.SetTickSize(state.MarketID, fine))
			if got := text(v, "market.tickSize"); market.MustDecimal(got).Cmp(market.MustDecimal(fine.String())) != 0 {
				t.Errorf("%v: the tick size is %s, want %s", labels, got, fine)
			}
			resolvedAt := time.Now()
			v = change("RESOLVED", s.Demo.Venue.Resolve(state.MarketID, state.TokenIDs[1]))
			wantText(t, v, "market.status", "RESOLVED")
			wantText(t, v, "market.resolution.winningOutcome", labels[1])
			wantText(t, v, "market.resolution.resolvedAt", resolvedAt.UTC().Truncate(time.Second).Format("2006-01-02T15:04:05.000Z"))
			if at(v, "market.tokens.1.winner") != true || at(v, "market.tokens.0.winner") != false {
				t.Errorf("%v: got %s, want the second token as the winner", labels, asJSON(v))
			}
			time.Sleep(3 * time.Second)
			synctest.Wait()
			for len(sub.came) > 0 {
				if v := sub.value(t); text(v, "reason") == "CHANGE" {
					t.Errorf("%v: the change arrived again as %s", labels, asJSON(v))
				}
			}
		}
		if len(tested) != 3 {
			t.Errorf("tested the kinds of markets %v, want Yes, teams and V2", tested)
		}
	})
}

// engineMarket returns the market of a token from the engine that all demo venues share.
func (s *service) engineMarket(t *testing.T, token string) demo.Market {
	t.Helper()
	for _, m := range s.Demo.Venue.Markets() {
		if m.TokenIDs[0] == token {
			return m
		}
	}
	t.Fatalf("the demo venue has no market with the token %s", token)
	return demo.Market{}
}

// startOverSimulator starts a service with a simulator in a synctest bubble, over in-memory connections. The flags in args may
// select a simulator other than Polymarket's. The market moves only when the test moves it.
func startOverSimulator(t testing.TB, args ...string) *service {
	t.Helper()
	// The bubble's clock starts in the year 2000, so advance it first. The service would mistake Unix milliseconds of that year for
	// seconds.
	time.Sleep(time.Until(startTime))
	dialer := &pipeDialer{}
	args = append([]string{
		"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--demo-listen=127.0.0.1:0", "--demo-control", "--demo-still", "--log-level=debug",
		"--demo-driver=polymarket", "--venue-driver=polymarket",
	}, args...)
	var rest direct
	s := openAt(t, market.SystemClock{}, func(w *app.Wiring) {
		withUnusedLimit(w)
		w.Client.Transport, w.Stream.Dial = &rest, dialer
		w.Stream.Backoff = market.Backoff{Min: time.Second, Max: 2 * time.Second} // shortens tests that break the stream often
	}, args...)
	rest.Handler = s.Demo.HTTP.Handler
	s.callDirectly()
	dialer.pipes = s.Demo.Server.Listener.(*pipes)
	s.serveUntilEnd(t)
	return s
}

// pipeDialer opens streams over in-memory connections.
type pipeDialer struct{ pipes *pipes }

// Dial implements stream.Dialer.
func (d *pipeDialer) Dial(ctx context.Context, address string, header http.Header) (stream.Conn, error) {
	c := &pipeConn{}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (raw net.Conn, err error) {
			c.raw, err = d.pipes.dial(ctx, network, address)
			return c.raw, err
		},
	}}
	ws, _, err := websocket.Dial(ctx, address, &websocket.DialOptions{HTTPClient: client, HTTPHeader: header})
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(-1)
	c.ws = ws
	return c, nil
}

// pipeConn is a connection that a pipeDialer has opened.
type pipeConn struct {
	ws  *websocket.Conn
	raw net.Conn
}

// Read implements stream.Conn.
func (c *pipeConn) Read(ctx context.Context) ([]byte, error) {
	_, frame, err := c.ws.Read(ctx)
	if code := websocket.CloseStatus(err); code >= 0 {
		return nil, &stream.CloseError{Code: int(code)}
	}
	return frame, err
}

// Write implements stream.Conn.
func (c *pipeConn) Write(ctx context.Context, frame []byte) error {
	return c.ws.Write(ctx, websocket.MessageText, frame)
}

// Close implements stream.Conn.
func (c *pipeConn) Close(code int) error {
	if code != 0 {
		timer := time.AfterFunc(time.Second, func() { _ = c.raw.Close() })
		defer timer.Stop()
		return c.ws.Close(websocket.StatusCode(code), "")
	}
	_ = c.raw.Close()
	return c.ws.CloseNow()
}
