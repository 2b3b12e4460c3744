package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/demo/polymarket"
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

// TestPricesOfPolymarket checks that the prices of 500 tokens take one call for midpoints, and at most one for last trades.
func TestPricesOfPolymarket(t *testing.T) {
	s := startPolymarket(t)
	var ids []string
	for _, id := range s.sim.TokenIDs() {
		if len(ids) < 500 {
			ids = append(ids, id)
		}
	}
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
