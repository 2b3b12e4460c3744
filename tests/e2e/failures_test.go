package e2e

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/internal/market"
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

// limitedVenue accepts a hundred calls in any minute and refuses the others with 429. Its responses have no rate-limit headers. It
// records all calls.
type limitedVenue struct {
	venue *demo.Venue
	// retryAfter is true if the refusals say how long to wait.
	retryAfter bool
	// books are the ids of all tokens of open markets. next is the number of books that startLoad has requested.
	books []string
	next  atomic.Int64
	// closed maps the paths of endpoints that refuse all calls to the value of Retry-After.
	closed map[string]string

	mu    sync.Mutex
	calls []venueCall
}

// venueCall is a call that a limitedVenue has received.
type venueCall struct {
	at      time.Time
	path    string
	refused bool
}

// venueLimit is the number of calls that a limitedVenue accepts in any minute.
const venueLimit = 100

func newLimitedVenue(retryAfter bool) *limitedVenue {
	v := &limitedVenue{venue: demo.New(demo.Config{}), retryAfter: retryAfter}
	for _, token := range v.venue.Tokens() {
		if token.Status == "OPEN" {
			v.books = append(v.books, token.TokenID)
		}
	}
	return v
}

// ServeHTTP implements http.Handler.
func (v *limitedVenue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	retryAfter, closed := v.closed[r.URL.Path]
	wait := v.admit(r.URL.Path, time.Now(), closed)
	if wait == 0 && !closed {
		v.venue.ServeHTTP(w, r)
		return
	}
	if !closed && v.retryAfter {
		retryAfter = strconv.Itoa(int(math.Ceil(wait.Seconds())))
	}
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(http.StatusTooManyRequests)
}

// admit records a call. If the limit is used up, admit returns the time until the venue accepts another call.
func (v *limitedVenue) admit(path string, now time.Time, closed bool) (wait time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var accepted []time.Time
	for _, c := range v.calls {
		if !c.refused && now.Sub(c.at) < time.Minute {
			accepted = append(accepted, c.at)
		}
	}
	slices.SortFunc(accepted, time.Time.Compare)
	if len(accepted) >= venueLimit {
		wait = accepted[len(accepted)-venueLimit].Add(time.Minute).Sub(now)
	}
	v.calls = append(v.calls, venueCall{now, path, closed || wait > 0})
	return wait
}

// count returns the numbers of calls that the venue has accepted and refused in a period.
func (v *limitedVenue) count(from, to time.Time) (accepted, refused int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, c := range v.calls {
		switch {
		case c.at.Before(from) || !c.at.Before(to):
		case c.refused:
			refused++
		default:
			accepted++
		}
	}
	return accepted, refused
}

// most returns the greatest numbers of all calls and of refused calls in any minute.
func (v *limitedVenue) most() (calls, refused int) {
	v.mu.Lock()
	starts := slices.Clone(v.calls)
	v.mu.Unlock()
	for _, c := range starts {
		a, r := v.count(c.at, c.at.Add(time.Minute))
		calls, refused = max(calls, a+r), max(refused, r)
	}
	return calls, refused
}

// log returns the calls with their times since the given time, one second of calls on each line.
func (v *limitedVenue) log(since time.Time) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var b strings.Builder
	second := math.Inf(-1)
	for _, c := range v.calls {
		at := c.at.Sub(since)
		if s := math.Floor(at.Seconds()); s != second {
			second = s
			fmt.Fprintf(&b, "\n%6.1fs", at.Seconds())
		}
		mark := "."
		if c.refused {
			mark = "X(" + c.path[strings.LastIndexByte(c.path, '/')+1:] + ")"
		}
		b.WriteString(" " + mark)
	}
	return b.String()
}

// TestRefusedEndpoint checks that an endpoint that refuses all calls for a day pauses the other endpoints for at most a minute, and
// does so only once.
func TestRefusedEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newLimitedVenue(true)
		defer v.venue.Close()
		v.closed = map[string]string{"/api/exchange/orderbook": "86400"}
		s := openAt(t, market.SystemClock{}, func(w *app.Wiring) {
			w.Fresh, w.Client.Transport, w.Stream.Dial = false, &direct{v}, noStream{}
		}, "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--venue-url=http://venue.example", "--request-timeout=5s", "--cache-price-fresh=3s", "--cache-search-fresh=3s")
		s.callDirectly()
		s.serveUntilEnd(t)
		began := time.Now()
		queries := map[string]string{
			"prices": `query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { freshness { stale } } }`,
			"search": `{ searchMarkets(first: 5) { nodes { freshness { stale } } } }`,
		}
		fresh := map[string]time.Time{} // the time of the last fresh response
		for time.Since(began) < 16*time.Minute {
			s.query(t, `query ($ids: [String!]!) { tokens(tokenIds: $ids) { orderbook { sequence } } }`, vars{"ids": v.books[:1]}, anonymous)
			for name, query := range queries {
				data, errs := s.query(t, query, vars{"ids": v.books[:2]}, anonymous)
				if len(errs) == 0 && !strings.Contains(asJSON(data), `"stale":true`) {
					fresh[name] = time.Now()
				}
				if at := time.Since(began); at > time.Minute+10*time.Second && (len(errs) > 0 || time.Since(fresh[name]) > 20*time.Second) {
					t.Fatalf("after %v, %s got the errors %v and was last fresh after %v:%s", at, name, errs, fresh[name].Sub(began), v.log(began))
				}
			}
			time.Sleep(time.Second)
		}
		if _, refused := v.count(began, time.Now()); refused > 4 {
			t.Errorf("%d calls were refused in 16 minutes, want at most 4, because a pause is at least five minutes long:%s", refused, v.log(began))
		}
	})
}
