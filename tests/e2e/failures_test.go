package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
)

const branchesQuery = `{ user(address: "` + addressOf50 + `") {
  history(first: 1) { nodes { kind } }
  balance { cashBalance }
  orders { totalCount }
  trades(first: 1) { nodes { side } }
  positions { totalCount }
} }`

// branches are the fields of branchesQuery in sorted order. The data of each field come from its endpoint.
var branches = []struct{ field, endpoint string }{
	{"balance", "/api/user/balance"}, {"history", "/api/user/history"}, {"orders", "/api/user/orders"},
	{"positions", "/api/user/positions"}, {"trades", "/api/user/trades"},
}

func TestAFailedBranchLeavesTheOthersIntact(t *testing.T) {
	t.Parallel()
	s := start(t, "--venue-max-body=1MiB")
	intact, _ := s.query(t, branchesQuery, nil, keyOf50)
	for _, test := range []struct {
		name  string
		fault demo.Fault
		code  string
	}{
		{"500", demo.Fault{Kind: demo.FaultStatus}, "UPSTREAM_UNAVAILABLE"},
		{"503 in HTML", demo.Fault{Kind: demo.FaultStatus, Status: 503, Body: "html"}, "UPSTREAM_UNAVAILABLE"},
		{"429", demo.Fault{Kind: demo.FaultStatus, Status: 429, RetryAfter: "7"}, "RATE_LIMITED"},
		{"400", demo.Fault{Kind: demo.FaultStatus, Status: 400}, "UPSTREAM_BAD_RESPONSE"},
		{"401", demo.Fault{Kind: demo.FaultStatus, Status: 401}, "UNAUTHENTICATED"},
		{"403", demo.Fault{Kind: demo.FaultStatus, Status: 403}, "FORBIDDEN"},
		{"404", demo.Fault{Kind: demo.FaultStatus, Status: 404}, "UPSTREAM_BAD_RESPONSE"},
		{"HTML", demo.Fault{Kind: demo.FaultHTML}, "UPSTREAM_BAD_RESPONSE"},
		{"nothing", demo.Fault{Kind: demo.FaultEmpty}, "UPSTREAM_BAD_RESPONSE"},
		{"half", demo.Fault{Kind: demo.FaultTruncated}, "UPSTREAM_BAD_RESPONSE"},
		{"wrong types", demo.Fault{Kind: demo.FaultWrongTypes}, "UPSTREAM_BAD_RESPONSE"},
		{"200 with an error", demo.Fault{Kind: demo.FaultSuccessFalse}, "UPSTREAM_UNAVAILABLE"},
		{"reset", demo.Fault{Kind: demo.FaultReset}, "UPSTREAM_UNAVAILABLE"},
		{"too large", demo.Fault{Kind: demo.FaultLarge, Bytes: 2 << 20}, "UPSTREAM_BAD_RESPONSE"},
		{"redirect", demo.Fault{Kind: demo.FaultRedirect}, "UPSTREAM_BAD_RESPONSE"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, branch := range branches {
				s.expireCaches()
				test.fault.Path = branch.endpoint
				s.setFaults(t, test.fault)
				data, errors := s.query(t, branchesQuery, nil, keyOf50)
				if test.name == "404" && branch.field == "balance" {
					wantErrors(t, errors) // a 404 means that the account has no balance
				} else {
					wantErrors(t, errors, "user."+branch.field+" "+test.code)
				}
				for _, other := range branches {
					want := asJSON(at(intact, "user."+other.field))
					if other == branch {
						want = "null"
					}
					if got := asJSON(at(data, "user."+other.field)); got != want {
						t.Errorf("%s is %s while %s fails, want %s", other.field, got, branch.field, want)
					}
				}
				if len(errors) == 1 && test.code == "RATE_LIMITED" && errors[0].Extensions.RetryAfterMs != 7000 {
					t.Errorf("retryAfterMs is %d", errors[0].Extensions.RetryAfterMs)
				}
			}
		})
	}
}

func TestABranchThatHangsTimesOut(t *testing.T) {
	for name, flags := range map[string][]string{
		"of the call":    {"--venue-timeout=10s", "--request-timeout=30s"},
		"of the request": {"--venue-timeout=1m", "--request-timeout=30s"}, // the response has all values that have arrived by then
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := startPiped(t, startTime, withUnusedLimit, flags...)
				s.setFaults(t, demo.Fault{Path: "/api/user/orders", Kind: demo.FaultHang})
				data, errors := s.query(t, branchesQuery, nil, keyOf50)
				wantErrors(t, errors, "user.orders UPSTREAM_TIMEOUT")
				wantJSON(t, "positions", at(data, "user.positions"), `{"totalCount":50}`)
			})
		})
	}
}

func TestErrorsAreSorted(t *testing.T) {
	s := start(t)
	s.setFaults(t, demo.Fault{Path: "*", Kind: demo.FaultStatus})
	ids := s.openTokens(12)
	var want []string
	for _, field := range []string{"a", "b"} {
		for i := range ids {
			want = append(want, fmt.Sprintf("%s.%d.price UPSTREAM_UNAVAILABLE", field, i), fmt.Sprintf("%s.%d.spread UPSTREAM_UNAVAILABLE", field, i))
		}
	}
	want = append(want, "c.balance UPSTREAM_UNAVAILABLE", "c.portfolio UPSTREAM_UNAVAILABLE", "d UPSTREAM_UNAVAILABLE")
	const query = `query ($ids: [String!]!) {
	  d: searchMarkets { totalCount }
	  c: user(address: "` + addressOf50 + `") { portfolio { positionsValue } balance { cashBalance } }
	  b: tokens(tokenIds: $ids) { spread { spread } price { price } }
	  a: tokens(tokenIds: $ids) { price { price } spread { spread } }
	}`
	for range 5 {
		_, errors := s.query(t, query, vars{"ids": ids}, keyOf50)
		wantErrors(t, errors, want...)
	}
}

func TestAnErrorIsRememberedForItsBackoffOnly(t *testing.T) {
	s := start(t)
	ids := s.openTokens(3)
	const query = `query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { price } user(address: "` + addressOf50 + `") { balance { cashBalance } } }`
	s.setFaults(t, demo.Fault{Path: "*", Kind: demo.FaultStatus})
	data, errors := s.query(t, query, vars{"ids": ids}, keyOf50)
	wantErrors(t, errors, "tokenPrices.0 UPSTREAM_UNAVAILABLE", "tokenPrices.1 UPSTREAM_UNAVAILABLE", "tokenPrices.2 UPSTREAM_UNAVAILABLE", "user.balance UPSTREAM_UNAVAILABLE")
	wantJSON(t, "data", data, `{"tokenPrices":[null,null,null],"user":{"balance":null}}`)
	s.setFaults(t)
	wantCalls(t, s.callsDuring(func() { s.query(t, query, vars{"ids": ids}, keyOf50) }), calls{})
	s.clock.Advance(250 * time.Millisecond)
	s.ask(t, query, vars{"ids": ids}, keyOf50)
}

// TestBadElementFailsAlone checks that an unreadable element of a venue's list causes errors only for this element.
func TestBadElementFailsAlone(t *testing.T) {
	s := start(t)
	ids := s.openTokens(5)
	s.setFaults(t, demo.Fault{Path: "*", Kind: demo.FaultWrongTypes, TokenID: ids[2]})
	data, errors := s.query(t, `query ($ids: [String!]!) { tokens(tokenIds: $ids) { price { price } } tokenPrices(tokenIds: $ids) { price } spreads(tokenIds: $ids) { spread } }`, vars{"ids": ids}, anonymous)
	wantErrors(t, errors, "spreads.2 UPSTREAM_BAD_RESPONSE", "tokenPrices.2 UPSTREAM_BAD_RESPONSE", "tokens.2.price UPSTREAM_BAD_RESPONSE")
	for i := range ids {
		missing := i == 2
		for _, path := range []string{"tokens.%d.price", "tokenPrices.%d", "spreads.%d"} {
			if got := at(data, fmt.Sprintf(path, i)); (got == nil) != missing {
				t.Errorf(path+" is %s", i, asJSON(got))
			}
		}
	}
}

// TestPortfolioIsNeverSummedOverAPart checks that a sum of the portfolio is null if one of the inputs of this sum fails.
func TestPortfolioIsNeverSummedOverAPart(t *testing.T) {
	const query = `{ user(address: "` + addressOf50 + `") { portfolio { positionsValue costBasis totalValue availableCash } positions(first: 500) { nodes { size valuation { value } } } } }`
	s := start(t)
	held := s.venue.Positions(addressOf50)
	intact := s.ask(t, query, nil, keyOf50)
	for _, test := range []struct {
		name   string
		fault  demo.Fault
		null   []string
		errors []string
	}{
		{"prices", demo.Fault{Path: "/api/exchange/prices", Kind: demo.FaultStatus}, []string{"portfolio"}, []string{"user.portfolio UPSTREAM_UNAVAILABLE"}},
		{"one price", demo.Fault{Path: "/api/exchange/prices", Kind: demo.FaultWrongTypes, TokenID: held[0].TokenID}, []string{"portfolio"},
			[]string{"user.portfolio UPSTREAM_BAD_RESPONSE", "user.positions.nodes.0.valuation UPSTREAM_BAD_RESPONSE"}},
		{"markets", demo.Fault{Path: "/api/exchange/market-details", Kind: demo.FaultStatus}, []string{"portfolio"}, []string{"user.portfolio UPSTREAM_UNAVAILABLE"}},
		{"balance", demo.Fault{Path: "/api/user/balance", Kind: demo.FaultStatus}, []string{"portfolio.totalValue", "portfolio.availableCash"},
			[]string{"user.portfolio.availableCash UPSTREAM_UNAVAILABLE", "user.portfolio.totalValue UPSTREAM_UNAVAILABLE"}},
		{"orders", demo.Fault{Path: "/api/user/orders", Kind: demo.FaultStatus}, []string{"portfolio.availableCash"}, []string{"user.portfolio.availableCash UPSTREAM_UNAVAILABLE"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.expireCaches()
			s.setFaults(t, test.fault)
			data, errors := s.query(t, query, nil, keyOf50)
			if test.name == "prices" || test.name == "markets" { // without prices or markets, each valuation also fails
				errors = slices.DeleteFunc(errors, func(e graphError) bool { return strings.Contains(e.String(), "valuation") })
			}
			wantErrors(t, errors, test.errors...)
			for _, field := range []string{"portfolio", "portfolio.positionsValue", "portfolio.costBasis", "portfolio.totalValue", "portfolio.availableCash"} {
				missing := slices.ContainsFunc(test.null, func(null string) bool { return field == null || strings.HasPrefix(field, null+".") })
				got := at(data, "user."+field)
				if missing && got != nil {
					t.Errorf("%s is %s", field, asJSON(got))
				}
				if !missing && field != "portfolio" && got != at(intact, "user."+field) {
					t.Errorf("%s is %s, want %s", field, asJSON(got), asJSON(at(intact, "user."+field)))
				}
			}
			if got := pluck(data, "user.positions.nodes", "size"); !slices.Equal(got, pluck(intact, "user.positions.nodes", "size")) {
				t.Errorf("positions: %v", got)
			}
		})
	}
}

func TestStaleIsServedAndMarked(t *testing.T) {
	s := start(t)
	const query = `query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { price freshness { stale source receivedAt } } }`
	ids := s.openTokens(2)
	data := s.ask(t, query, vars{"ids": ids}, anonymous)
	wantJSON(t, "fresh", at(data, "tokenPrices.0.freshness"), `{"stale":false,"source":"REST","receivedAt":"2026-03-14T15:09:26.000Z"}`)
	s.setFaults(t, demo.Fault{Path: "*", Kind: demo.FaultStatus})
	s.clock.Advance(20 * time.Second)
	data = s.ask(t, query, vars{"ids": ids}, anonymous)
	wantJSON(t, "stale", at(data, "tokenPrices.0.freshness"), `{"stale":true,"source":"REST","receivedAt":"2026-03-14T15:09:26.000Z"}`)
	s.clock.Advance(20 * time.Second)
	_, errors := s.query(t, query, vars{"ids": ids}, anonymous)
	wantErrors(t, errors, "tokenPrices.0 UPSTREAM_UNAVAILABLE", "tokenPrices.1 UPSTREAM_UNAVAILABLE")
}

func TestServiceStatusFollowsTheVenue(t *testing.T) {
	s := start(t)
	const status = `{ serviceStatus { version demo upstreamReachable throttledUntil stream { state since lastMessageAt connections reconnects resyncs watchedTokens } } }`
	var data any
	wantCalls(t, s.callsDuring(func() { data = s.ask(t, status, nil, anonymous) }), calls{})
	wantJSON(t, "status", at(data, "serviceStatus"), `{"version":"`+app.BuildVersion()+`","demo":true,"upstreamReachable":true,"throttledUntil":null,
		"stream":{"state":"DISCONNECTED","since":"2026-03-14T15:09:26.000Z","lastMessageAt":null,"connections":0,"reconnects":0,"resyncs":0,"watchedTokens":0}}`)
	for _, test := range []struct {
		fault []demo.Fault
		want  bool
	}{
		{[]demo.Fault{{Path: "*", Kind: demo.FaultStatus, Status: http.StatusServiceUnavailable}}, false},
		{nil, true},
		{[]demo.Fault{{Path: "*", Kind: demo.FaultReset}}, true}, // the venue is reachable, because half of its response arrives before the connection breaks
		{[]demo.Fault{{Path: "*", Kind: demo.FaultStatus, Status: http.StatusTooManyRequests}}, true},
	} {
		s.expireCaches()
		s.setFaults(t, test.fault...)
		s.query(t, `{ searchMarkets { totalCount } }`, nil, anonymous)
		if got := at(s.ask(t, status, nil, anonymous), "serviceStatus.upstreamReachable"); got != test.want {
			t.Errorf("after %v: upstreamReachable is %v", test.fault, got)
		}
	}
}

// TestUnreachableVenue checks that the error for an unreachable venue does not contain the venue's address.
func TestUnreachableVenue(t *testing.T) {
	v := newStub(t, nil)
	v.Close()
	s := start(t, "--venue-url="+v.URL)
	data, errors := s.query(t, `{ market(marketId: "m") { slug } }`, nil, anonymous)
	wantErrors(t, errors, "market UPSTREAM_UNAVAILABLE")
	wantJSON(t, "data", data, `{"market":null}`)
	wantJSON(t, "status", s.ask(t, `{ serviceStatus { upstreamReachable demo } }`, nil, anonymous), `{"serviceStatus":{"upstreamReachable":false,"demo":false}}`)
	if strings.Contains(errors[0].Message, "127.0.0.1") {
		t.Errorf("the client learns where the venue is: %s", errors[0].Message)
	}
}

// TestUnreadableRows checks lists in which some rows are unreadable. The service must return the readable rows, and an error with
// the path of the list.
func TestUnreadableRows(t *testing.T) {
	s := start(t)
	token := s.openTokens(1)[0]
	for _, test := range []struct{ endpoint, field, query, rows, id string }{
		{"/api/exchange/market-search", "searchMarkets", `{ searchMarkets(first: 20) { nodes { marketId } } }`, "searchMarkets.nodes", "marketId"},
		{"/api/user/trades", "user.trades", `{ user(address: "` + addressOf50 + `") { address trades(first: 20) { nodes { id } } } }`, "user.trades.nodes", "id"},
		{"/api/user/history", "user.history", `{ user(address: "` + addressOf50 + `") { address history(first: 20) { nodes { id } } } }`, "user.history.nodes", "id"},
		{"/api/exchange/price-history", "token.history", `{ token(tokenId: "` + token + `") { tokenId history { points { timestamp } } } }`, "token.history.points", "timestamp"},
	} {
		t.Run(test.endpoint, func(t *testing.T) {
			s.expireCaches()
			all := pluck(s.ask(t, test.query, nil, keyOf50), test.rows, test.id)
			s.expireCaches()
			s.setFaults(t, demo.Fault{Path: test.endpoint, Kind: demo.FaultHalfBroken})
			data, errors := s.query(t, test.query, nil, keyOf50)
			s.setFaults(t)
			got := pluck(data, test.rows, test.id) // the page may also have readable rows that are not in the list all
			if len(got) == 0 || !slices.ContainsFunc(all, func(id string) bool { return !slices.Contains(got, id) }) {
				t.Errorf("no row is there, or none is missing: %v of %v", got, all)
			}
			if len(errors) == 0 {
				t.Fatal("the missing rows were not reported")
			}
			for _, err := range errors {
				if got, want := err.String(), test.field+" UPSTREAM_BAD_RESPONSE"; got != want {
					t.Errorf("an error is %s, want %s", got, want)
				}
			}
		})
	}
}
