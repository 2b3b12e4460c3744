package e2e

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
)

// TestGraphOnStrictVenues checks responses and calls for venues that lack something that the demo venue supports.
func TestGraphOnStrictVenues(t *testing.T) {
	const details = `{"marketId":"M1","question":"Will it?","tokens":[{"tokenId":"7","outcome":"YES"},{"tokenId":"8","outcome":"NO"}]}`
	book := strictEndpoint{"tokenId depth", always(`{"bids":[{"price":0.4,"size":1}],"asks":[{"price":0.43,"size":2}],"spread":0.03}`)}
	oneMarket := strictEndpoint{"marketId", func(_ *http.Request, q url.Values) (int, string) {
		if q.Get("marketId") != "M1" {
			return http.StatusNotFound, `{"success":false,"message":"no such market"}`
		}
		return http.StatusOK, details
	}}
	for name, test := range map[string]struct {
		endpoints   map[string]strictEndpoint
		query, want string
		asked       []string
	}{
		"details take marketId alone": {
			map[string]strictEndpoint{"market-details": oneMarket},
			`{ market(marketId: "M1") { question } }`, `{"market":{"question":"Will it?"}}`,
			[]string{"market-details marketId 200"},
		},
		"spreads are missing": {
			map[string]strictEndpoint{"orderbook": book},
			`{ spreads(tokenIds: ["7"]) { bestBid bestAsk spread basis } }`, `{"spreads":[{"basis":"ORDER_BOOK","bestAsk":"0.43","bestBid":"0.4","spread":"0.03"}]}`,
			[]string{"spreads tokenId 404", "orderbook depth tokenId 200"},
		},
		"spreads fail": {
			map[string]strictEndpoint{"orderbook": book, "spreads": {"tokenId tokenIds", func(*http.Request, url.Values) (int, string) {
				return http.StatusInternalServerError, `{"success":false,"message":"out of order"}`
			}}},
			`{ token(tokenId: "7") { spread { bestBid bestAsk spread midpoint basis } } }`,
			`{"token":{"spread":{"basis":"ORDER_BOOK","bestAsk":"0.43","bestBid":"0.4","midpoint":"0.415","spread":"0.03"}}}`,
			[]string{"spreads tokenId 500", "orderbook depth tokenId 200"},
		},
		"positions refuse all other parameters": {
			map[string]strictEndpoint{"positions": {"address credentials", always(`{"positions":[]}`)}},
			`{ user(address: "` + addressOf3 + `") { positions { totalCount } } }`, `{"user":{"positions":{"totalCount":0}}}`,
			[]string{"positions address credentials 200"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			venue := newStrictStub(t, test.endpoints)
			s := start(t, "--venue-url="+venue.URL, "--venue-credentials=query", "--venue-retries=0")
			venue.mu.Lock()
			venue.asked = nil
			venue.mu.Unlock()
			wantJSON(t, "answer", s.ask(t, test.query, nil, keyOf3), test.want)
			venue.mu.Lock()
			defer venue.mu.Unlock()
			if !slices.Equal(venue.asked, test.asked) {
				t.Errorf("the venue was asked %q, want %q", venue.asked, test.asked)
			}
		})
	}
}
