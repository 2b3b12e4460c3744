package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"oddsgraph/app"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/tests/tool"
)

const branchesQuery = `{ user(address: "` + addressOf50 + `") {
  history(first: 1) { nodes { kind } }
  balance { cashBalance }
  orders { totalCount }
  trades(first: 1) { nodes { side } }
  positions { totalCount }
} }`

// TestPortfolioSumsNeedAllInputs checks that a sum of the portfolio is null if one of the inputs of this sum fails.
func TestPortfolioSumsNeedAllInputs(t *testing.T) {
	const query = `{ user(address: "` + addressOf50 + `") { portfolio { positionsValue costBasis totalValue availableCash } positions(first: 500) { nodes { size valuation { value } } } } }`
	s := start(t)
	held := s.venue.Positions(addressOf50)
	intact := s.ask(t, query, nil, keyOf50)
	for _, test := range []struct {
		name   string
		fault  faults.Fault
		null   []string
		errors []string
	}{
		{"prices", faults.Fault{Path: "/api/exchange/prices", Kind: faults.Status}, []string{"portfolio"}, []string{"user.portfolio UPSTREAM_UNAVAILABLE"}},
		{"one price", faults.Fault{Path: "/api/exchange/prices", Kind: faults.JSON, Contains: []string{held[0].TokenID}}, []string{"portfolio"},
			[]string{"user.portfolio UPSTREAM_BAD_RESPONSE", "user.positions.nodes.0.valuation UPSTREAM_BAD_RESPONSE"}},
		{"markets", faults.Fault{Path: "/api/exchange/market-details", Kind: faults.Status}, []string{"portfolio"}, []string{"user.portfolio UPSTREAM_UNAVAILABLE"}},
		{"balance", faults.Fault{Path: "/api/user/balance", Kind: faults.Status}, []string{"portfolio.totalValue", "portfolio.availableCash"},
			[]string{"user.portfolio.availableCash UPSTREAM_UNAVAILABLE", "user.portfolio.totalValue UPSTREAM_UNAVAILABLE"}},
		{"orders", faults.Fault{Path: "/api/user/orders", Kind: faults.Status}, []string{"portfolio.availableCash"}, []string{"user.portfolio.availableCash UPSTREAM_UNAVAILABLE"}},
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
					t.Errorf("%s is %s, want null", field, asJSON(got))
				}
				if !missing && field != "portfolio" && got != at(intact, "user."+field) {
					t.Errorf("%s is %s, want %s", field, asJSON(got), asJSON(at(intact, "user."+field)))
				}
			}
			if got := pluck(data, "user.positions.nodes", "size"); !slices.Equal(got, pluck(intact, "user.positions.nodes", "size")) {
				t.Errorf("the sizes of the positions are %v, want %v", got, pluck(intact, "user.positions.nodes", "size"))
			}
		})
	}
}

// TestFailedBooksAreErrors checks a venue without an endpoint for spreads, whose best prices come from order books. The first read
// of the service needs two books, and one of them fails. The spread and the valuation of its token have an error, and so have the
// sums of the portfolio, for every basis that needs the best prices. The other token is not affected.
func TestFailedBooksAreErrors(t *testing.T) {
	level := func(price string) []object { return []object{{"price": price, "size": "1"}} }
	good := object{"bids": level("0.40"), "asks": level("0.44")}
	for name, bad := range map[string]struct {
		status int
		body   any
		code   string
	}{
		"status 500":    {http.StatusInternalServerError, object{"error": "no"}, "UPSTREAM_UNAVAILABLE"},
		"negative size": {http.StatusOK, object{"bids": []object{{"price": "0.4", "size": "-1"}}, "asks": []object{}}, "UPSTREAM_BAD_RESPONSE"},
	} {
		for _, failing := range []string{"t1", "t2"} {
			for field, arguments := range map[string]string{
				"default": "", "MIDPOINT": "(basis: MIDPOINT)", "BEST_BID": "(basis: BEST_BID)", "BEST_ASK": "(basis: BEST_ASK)", "spreads": "", "spread": "",
			} {
				t.Run(name+" of "+failing+" "+field, func(t *testing.T) {
					v := newStub(t, map[string]func(q url.Values) (int, any){
						"positions": func(url.Values) (int, any) {
							return http.StatusOK, object{"totalCount": 2, "positions": []object{
								{"marketId": "m1", "tokenId": "t1", "outcome": "Yes", "size": "10", "avgPrice": "0.1", "currentPrice": "0.9"},
								{"marketId": "m2", "tokenId": "t2", "outcome": "Yes", "size": "10", "avgPrice": "0.1", "currentPrice": "0.9"},
							}}
						},
						"balance": func(url.Values) (int, any) { return http.StatusOK, object{"cashBalance": "5"} },
						"prices":  pick("prices", "tokenIds", "tokenId", nil),
						"market-details": pick("markets", "ids", "id", map[string]object{
							"m1": {"marketId": "m1", "status": "OPEN", "outcomes": []object{{"tokenId": "t1", "outcome": "Yes"}, {"tokenId": "n1", "outcome": "No"}}},
							"m2": {"marketId": "m2", "status": "OPEN", "outcomes": []object{{"tokenId": "t2", "outcome": "Yes"}, {"tokenId": "n2", "outcome": "No"}}},
						}),
						"orderbook": func(q url.Values) (int, any) {
							if q.Get("tokenId") == failing {
								return bad.status, bad.body
							}
							return http.StatusOK, good
						},
					})
					s := startRigged(t, startTime, withoutRetries, "--venue-url="+v.URL)
					lost := int(failing[1] - '1') // the index of the token
					switch field {
					case "spreads":
						data, errors := s.query(t, `{ spreads(tokenIds: ["t1", "t2"]) { bestBid basis } }`, nil, keyOfAny)
						want := []string{`{"basis":"ORDER_BOOK","bestBid":"0.40"}`, `{"basis":"ORDER_BOOK","bestBid":"0.40"}`}
						want[lost] = "null"
						wantJSON(t, "spreads", at(data, "spreads"), "["+want[0]+","+want[1]+"]")
						wantErrors(t, errors, fmt.Sprint("spreads.", lost, " ", bad.code))
					case "spread":
						data, errors := s.query(t, `{ t1: token(tokenId: "t1") { spread { bestAsk } } t2: token(tokenId: "t2") { spread { bestAsk } } }`, nil, keyOfAny)
						for _, id := range []string{"t1", "t2"} {
							want := `{"bestAsk":"0.44"}`
							if id == failing {
								want = "null"
							}
							wantJSON(t, "the spread of "+id, at(data, id+".spread"), want)
						}
						wantErrors(t, errors, failing+".spread "+bad.code)
					default:
						data, errors := s.query(t, `{ user(address: "`+addressOfAny+`") { portfolio`+arguments+` { positionsValue totalValue } positions { nodes { valuation`+arguments+` { value } } } } }`, nil, keyOfAny)
						want := []string{`{"valuation":{"value":"4.2"}}`, `{"valuation":{"value":"4.2"}}`}
						if value := map[string]string{"BEST_BID": "4", "BEST_ASK": "4.4"}[field]; value != "" {
							want = []string{`{"valuation":{"value":"` + value + `"}}`, `{"valuation":{"value":"` + value + `"}}`}
						}
						want[lost] = `{"valuation":null}`
						wantJSON(t, "user", at(data, "user"), `{"portfolio":null,"positions":{"nodes":[`+want[0]+`,`+want[1]+`]}}`)
						wantErrors(t, errors, "user.portfolio "+bad.code, fmt.Sprint("user.positions.nodes.", lost, ".valuation ", bad.code))
					}
				})
			}
		}
	}
}

func TestServiceStatusFollowsTheVenue(t *testing.T) {
	s := start(t)
	const status = `{ serviceStatus { version demo upstreamReachable throttledUntil stream { state since lastMessageAt connections reconnects resyncs watchedTokens } } }`
	var data any
	wantCalls(t, s.callsDuring(func() { data = s.ask(t, status, nil, anonymous) }), calls{})
	wantJSON(t, "status", at(data, "serviceStatus"), `{"version":"`+app.BuildVersion()+`","demo":true,"upstreamReachable":true,"throttledUntil":null,
		"stream":{"state":"DISCONNECTED","since":"2026-03-14T15:09:26.000Z","lastMessageAt":null,"connections":0,"reconnects":0,"resyncs":0,"watchedTokens":0}}`)
	for _, test := range []struct {
		fault []faults.Fault
		want  bool
	}{
		{[]faults.Fault{{Kind: faults.Status, Status: http.StatusServiceUnavailable}}, false},
		{nil, true},
		{[]faults.Fault{{Kind: faults.Reset}}, true}, // the venue is reachable, because half of its response arrives before the connection breaks
		{[]faults.Fault{{Kind: faults.Status, Status: http.StatusTooManyRequests}}, true},
	} {
		s.expireCaches()
		s.setFaults(t, test.fault...)
		s.query(t, `{ searchMarkets { totalCount } }`, nil, anonymous)
		if got := at(s.ask(t, status, nil, anonymous), "serviceStatus.upstreamReachable"); got != test.want {
			t.Errorf("after %v: upstreamReachable is %v, want %t", test.fault, got, test.want)
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
		t.Errorf("the error contains the address of the venue: %s", errors[0].Message)
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
			s.setFaults(t, faults.Fault{Path: test.endpoint, Answer: tool.HalfBroken})
			data, errors := s.query(t, test.query, nil, keyOf50)
			s.setFaults(t)
			got := pluck(data, test.rows, test.id) // the page may also have readable rows that the page without faults does not have
			if len(got) == 0 || !slices.ContainsFunc(all, func(id string) bool { return !slices.Contains(got, id) }) {
				t.Errorf("got the rows %v, want some but not all of %v", got, all)
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
