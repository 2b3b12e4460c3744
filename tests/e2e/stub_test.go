package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// stub is a venue whose responses the test defines.
type stub struct {
	*httptest.Server
	mu     sync.Mutex
	counts calls
}

// newStub starts a stub. The parameter answers maps the last segment of a path to a function that returns the status and the body.
// Other paths get status 404. If the body is not a string, the stub encodes it as JSON.
func newStub(t *testing.T, answers map[string]func(q url.Values) (int, any)) *stub {
	s := &stub{counts: calls{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, q := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:], r.URL.Query()
		keys := 1
		for _, list := range []string{"tokenIds", "ids"} {
			if q.Get(list) != "" {
				keys = strings.Count(q.Get(list), ",") + 1
			}
		}
		s.mu.Lock()
		s.counts[name] = [2]int64{s.counts[name][0] + 1, s.counts[name][1] + int64(keys)}
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[name]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"success":false,"error":"no such thing"}`))
			return
		}
		status, body := answer(q)
		w.WriteHeader(status)
		if text, ok := body.(string); ok {
			_, _ = w.Write([]byte(text))
			return
		}
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(s.Close)
	return s
}

// asked returns the calls that the stub has received since the previous call of asked.
func (s *stub) asked() calls {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := s.counts
	s.counts = calls{}
	return counts
}

type object = map[string]any

// pick returns a function for newStub that returns the requested rows. single is the URL parameter for one key, and list is the URL
// parameter for several keys. For several keys, the response has the rows in the given member.
func pick(member, list, single string, rows map[string]object) func(q url.Values) (int, any) {
	return func(q url.Values) (int, any) {
		if id := q.Get(single); id != "" {
			if row, ok := rows[id]; ok {
				return http.StatusOK, row
			}
			return http.StatusNotFound, object{"success": false, "error": "unknown"}
		}
		found := []object{}
		for id := range strings.SplitSeq(q.Get(list), ",") {
			if row, ok := rows[id]; ok {
				found = append(found, row)
			}
		}
		return http.StatusOK, object{member: found}
	}
}

// TestPositionsWithoutTokens checks that the service finds the tokens of positions and orders that name only a market and an
// outcome. If two tokens of the market have the outcome, the position must have no token.
func TestPositionsWithoutTokens(t *testing.T) {
	market := func(id, status string, outcomes ...object) object {
		return object{"marketId": id, "question": "Q " + id, "status": status, "outcomes": outcomes}
	}
	outcome := func(token, label string, winner any) object {
		return object{"tokenId": token, "outcome": label, "winner": winner}
	}
	markets := map[string]object{
		"m1": market("m1", "OPEN", outcome("t1y", "Yes", nil), outcome("t1n", "No", nil)),
		"m2": market("m2", "OPEN", outcome("t2a", "Team Ångström", nil), outcome("t2b", "Team B", nil), outcome("t2c", "Team C", nil)),
		"m3": market("m3", "RESOLVED", outcome("t3y", "YES", true), outcome("t3n", "NO", false)),
		"m4": market("m4", "OPEN", outcome("t4a", "Same", nil), outcome("t4b", "SAME", nil)),
		"m5": market("m5", "PAUSED", outcome("t5y", "YES", nil), outcome("t5n", "NO", nil)),
	}
	position := func(market, outcome, size string, avg, current any) object {
		return object{"marketId": market, "outcome": outcome, "size": json.Number(size), "avgPrice": avg, "currentPrice": current}
	}
	n := func(s string) json.Number { return json.Number(s) }
	v := newStub(t, map[string]func(q url.Values) (int, any){
		"positions": func(url.Values) (int, any) {
			return http.StatusOK, object{"totalCount": 10, "positions": []object{
				position("m1", "YES", "10", n("0.5"), n("0.1")),       // the venue has a price
				position("m1", "no", "20.50", n("0.30"), n("0.2")),    // the venue has only the best bid and ask
				position("m2", "TEAM ÅNGSTRÖM", "3", nil, n("0.3")),   // the venue has only a best bid
				position("m2", "Team B", "4", n("0.25"), n("0.40")),   // only the position has a price
				position("m2", "team c", "5", n("0"), nil),            // there is no price
				position("m3", "Yes", "6", n("0.9"), n("0.5")),        // the outcome has won
				position("m3", "No", "7", n("0.8"), n("0.5")),         // the outcome has lost
				position("m4", "same", "8", n("0.1"), n("0.6")),       // two tokens have this outcome
				position("gone", "YES", "9", n("0.2"), n("0.7")),      // the market is unknown
				position("m5", "YES", "1", n("0.000"), n("0.123456")), // the cost is 0, and the market's status is unknown
			}}
		},
		"orders": func(url.Values) (int, any) {
			return http.StatusOK, object{"orders": []object{
				{"orderId": "o1", "marketId": "m1", "side": "buy", "outcome": "yes", "price": n("0.40"), "size": n("10"), "filledSize": n("2.5"), "status": "live"},
				{"orderId": "o2", "marketId": "m2", "side": "SHORT", "outcome": "Team B", "price": "0.2", "size": "4", "filledSize": "5", "status": "WAITING"},
			}}
		},
		"balance": func(url.Values) (int, any) {
			return http.StatusOK, object{"portfolioValue": n("100.10"), "cashBalance": "25.5"}
		},
		"market-details": pick("markets", "ids", "id", markets),
		"prices": pick("prices", "tokenIds", "tokenId", map[string]object{
			"t1y": {"tokenId": "t1y", "price": n("0.6100000000000000001")}, "t5y": {"tokenId": "t5y", "price": n("0.7")},
		}),
		"spreads": pick("spreads", "tokenIds", "tokenId", map[string]object{
			"t1n": {"tokenId": "t1n", "bestBid": n("0.30"), "bestAsk": n("0.35")}, "t2a": {"tokenId": "t2a", "bestBid": n("0.2"), "bestAsk": nil},
		}),
	})
	s := start(t, "--venue-url="+v.URL+"/prefix/")
	data := s.ask(t, `{ user(address: "`+addressOfAny+`") {
	  balance { portfolioValue cashBalance positionsValue totalValue }
	  positions { totalCount nodes {
	    marketId tokenId outcome outcomeKind size avgPrice costBasis redeemable market { question status statusRaw } token { tokenId price { price } }
	    valuation { price basis value unrealizedPnl unrealizedPnlPercent }
	  } }
	  orders { nodes { tokenId token { tokenId } side sideRaw status statusRaw remainingSize outcomeKind createdAt } }
	  portfolio { positionsValue costBasis unrealizedPnl totalValue availableCash unpricedPositions uncostedPositions }
	} }`, nil, keyOfAny)
	wantJSON(t, "balance", at(data, "user.balance"), `{"portfolioValue":"100.10","cashBalance":"25.5","positionsValue":null,"totalValue":"125.6"}`)
	// Columns: token, redeemable, price, basis, value, profit, percent.
	want := []string{
		"t1y false 0.6100000000000000001 VENUE 6.100000000000000001 1.100000000000000001 22",
		"t1n false 0.325 MIDPOINT 6.6625 0.5125 8.333333",
		"t2a false 0.2 BEST_BID 0.6 <nil> <nil>",
		"t2b false 0.40 POSITION 1.6 0.6 60",
		"t2c false <nil>",
		"t3y true 1 SETTLEMENT 6 0.6 11.111111",
		"t3n false 0 SETTLEMENT 0 -5.6 -100",
		"<nil> false 0.6 POSITION 4.8 4 500",
		"<nil> <nil> 0.7 POSITION 6.3 4.5 250",
		"t5y <nil> 0.7 VENUE 0.7 0.7 <nil>",
	}
	nodes := list(data, "user.positions.nodes")
	if len(nodes) != len(want) {
		t.Fatalf("got %d positions, want %d", len(nodes), len(want))
	}
	for i, p := range nodes {
		got := fmt.Sprint(at(p, "token.tokenId"), " ", at(p, "redeemable"), " ")
		if val := at(p, "valuation"); val == nil {
			got += "<nil>"
		} else {
			got += fmt.Sprint(at(val, "price"), " ", at(val, "basis"), " ", at(val, "value"), " ", at(val, "unrealizedPnl"), " ", at(val, "unrealizedPnlPercent"))
		}
		if got != want[i] {
			t.Errorf("position %d:\n got %s\nwant %s", i, got, want[i])
		}
		if at(p, "tokenId") != nil {
			t.Errorf("position %d has the tokenId %v, want null, because the venue sent none", i, at(p, "tokenId"))
		}
	}
	wantJSON(t, "a market with an unknown status", at(nodes[9], "market"), `{"question":"Q m5","status":"UNKNOWN","statusRaw":"PAUSED"}`)
	wantJSON(t, "an unknown market", at(nodes[8], "market"), `null`)
	wantJSON(t, "the kind of an outcome other than yes and no", nodes[2].(object)["outcomeKind"], `"OTHER"`)
	wantJSON(t, "orders", at(data, "user.orders.nodes"), `[
	  {"tokenId":null,"token":{"tokenId":"t1y"},"side":"BUY","sideRaw":"buy","status":"PARTIALLY_FILLED","statusRaw":"live","remainingSize":"7.5","outcomeKind":"YES","createdAt":null},
	  {"tokenId":null,"token":{"tokenId":"t2b"},"side":"UNKNOWN","sideRaw":"SHORT","status":"UNKNOWN","statusRaw":"WAITING","remainingSize":"0","outcomeKind":"OTHER","createdAt":null}]`)
	wantJSON(t, "portfolio", at(data, "user.portfolio"), `{"positionsValue":"32.762500000000000001","costBasis":"25.75","unrealizedPnl":"6.412500000000000001",
	  "totalValue":"58.262500000000000001","availableCash":"22.5","unpricedPositions":1,"uncostedPositions":1}`)
	got := v.asked()
	if got["market-details"][1] != 6 || got["prices"][1] != 8 || got["spreads"][1] != 4 || got["positions"][0] != 1 || got["balance"][0] != 1 || got["orders"][0] != 1 {
		t.Errorf("got the calls %v, want 6 markets, 8 prices, 4 spreads, and one call each for positions, balance and orders", got)
	}
	s.ask(t, `{ user(address: "`+addressOfAny+`") { positions { nodes { valuation { price } token { price { price } } } } } }`, nil, keyOfAny)
	if got := v.asked(); len(got) > 0 {
		t.Errorf("a second query made the calls %v, want none", got)
	}
}

// TestPricesOfUnnamedTokensAreReadTogether checks that the service reads prices in batches if the venue's positions have no token
// ids.
func TestPricesOfUnnamedTokensAreReadTogether(t *testing.T) {
	markets, prices, spreads, positions := map[string]object{}, map[string]object{}, map[string]object{}, []object{}
	for i := range 40 {
		m, token := fmt.Sprintf("m%d", i), fmt.Sprintf("t%d", i)
		markets[m] = object{"marketId": m, "status": "OPEN", "outcomes": []object{{"tokenId": token, "outcome": "Yes"}, {"tokenId": token + "n", "outcome": "No"}}}
		prices[token] = object{"tokenId": token, "price": 0.5}
		spreads[token] = object{"tokenId": token, "bestBid": 0.3, "bestAsk": 0.4}
		positions = append(positions, object{"marketId": m, "outcome": "YES", "size": 1})
	}
	for _, query := range []string{
		`{ user(address: "ADDRESS") { positions(first: 40) { nodes { token { price { price } } } } } }`,
		`{ user(address: "ADDRESS") { positions(first: 40) { nodes { valuation(basis: VENUE) { price } } } } }`,
		`{ user(address: "ADDRESS") { ...U } } fragment U on User { positions(first: 40) { edges { node { token { ...P } market { question } } } } } fragment P on Token { price { price } }`,
		`{ user(address: "ADDRESS") { portfolio(basis: VENUE) { positionsValue } } }`,
	} {
		v := newStub(t, map[string]func(q url.Values) (int, any){
			"positions": func(url.Values) (int, any) {
				return http.StatusOK, object{"totalCount": len(positions), "positions": positions}
			},
			"market-details": pick("markets", "ids", "id", markets), "prices": pick("prices", "tokenIds", "tokenId", prices),
		})
		s := start(t, "--venue-url="+v.URL)
		s.ask(t, strings.Replace(query, "ADDRESS", addressOfAny, 1), nil, keyOfAny)
		wantCalls(t, v.asked(), calls{"positions": {1, 1}, "market-details": {1, 40}, "prices": {1, 40}})
	}
	// If the venue has no prices, the service reads the best bids and asks, also in batches.
	v := newStub(t, map[string]func(q url.Values) (int, any){
		"positions": func(url.Values) (int, any) {
			return http.StatusOK, object{"totalCount": len(positions), "positions": positions}
		},
		"market-details": pick("markets", "ids", "id", markets), "prices": pick("prices", "tokenIds", "tokenId", nil),
		"spreads": pick("spreads", "tokenIds", "tokenId", spreads),
	})
	s := start(t, "--venue-url="+v.URL)
	data := s.ask(t, `{ user(address: "`+addressOfAny+`") { positions(first: 40) { nodes { valuation { price basis } } } } }`, nil, keyOfAny)
	wantJSON(t, "valuation", at(data, "user.positions.nodes.39.valuation"), `{"price":"0.35","basis":"MIDPOINT"}`)
	got := v.asked()
	if got["prices"][1] != 40 || got["spreads"][1] != 40 || got["spreads"][0] > 3 {
		t.Errorf("got the calls %v, want 40 prices, and 40 spreads in at most 3 calls", got)
	}
}

// TestPricesOfTwoSides checks the prices of a venue that sends bid and ask instead of a price. The price must be the midpoint, or
// the only side that the venue sends.
func TestPricesOfTwoSides(t *testing.T) {
	v := newStub(t, map[string]func(q url.Values) (int, any){
		"prices": func(url.Values) (int, any) {
			return http.StatusOK, `{"both":{"BUY":0.4,"SELL":0.3},"bid":{"SELL":"0.3"},"ask":{"BUY":0.4}}`
		},
		"positions": func(url.Values) (int, any) {
			return http.StatusOK, `{"positions":[{"marketId":"m","tokenId":"both","outcome":"YES","size":2},{"marketId":"m","tokenId":"bid","outcome":"NO","size":2}]}`
		},
		"market-details": func(url.Values) (int, any) { return http.StatusOK, `{"markets":[]}` },
	})
	s := start(t, "--venue-url="+v.URL)
	data := s.ask(t, `{ tokenPrices(tokenIds: ["both", "bid", "ask", "none"]) { price basis timestamp freshness { asOf } }
	  user(address: "`+addressOfAny+`") { positions { nodes { best: valuation { price basis } venue: valuation(basis: VENUE) { price } } } } }`, nil, keyOfAny)
	wantJSON(t, "prices", at(data, "tokenPrices"), `[{"price":"0.35","basis":"MIDPOINT","timestamp":null,"freshness":{"asOf":null}},
	  {"price":"0.3","basis":"BEST_BID","timestamp":null,"freshness":{"asOf":null}},{"price":"0.4","basis":"BEST_ASK","timestamp":null,"freshness":{"asOf":null}},null]`)
	wantJSON(t, "positions", at(data, "user.positions.nodes"), `[{"best":{"price":"0.35","basis":"MIDPOINT"},"venue":null},{"best":{"price":"0.3","basis":"BEST_BID"},"venue":null}]`)
}

// TestTradesByOffset checks lists of a venue that supports only limit and offset, and sends rows without ids. Each row must appear
// once, in order, and with its own id.
func TestTradesByOffset(t *testing.T) {
	var rows []object
	for i := range 23 {
		rows = append(rows, object{"market_id": "m", "outcome": "Yes", "side": "buy", "price": "0.5", "size": strconv.Itoa(i + 1), "timestamp": 1700000000 - i, "type": map[bool]string{true: "AIRDROP", false: "trade"}[i == 3]})
	}
	page := func(name string) func(q url.Values) (int, any) {
		return func(q url.Values) (int, any) {
			limit, err := strconv.Atoi(q.Get("limit"))
			if err != nil {
				limit = 8
			}
			offset, _ := strconv.Atoi(q.Get("offset"))
			offset = min(offset, len(rows))
			return http.StatusOK, object{name: rows[offset:min(offset+limit, len(rows))], "count": len(rows), "offset": offset}
		}
	}
	v := newStub(t, map[string]func(q url.Values) (int, any){"trades": page("trades"), "history": page("history")})
	s := start(t, "--venue-url="+v.URL)
	for field, more := range map[string]string{"trades": "tradeId tokenId fee transactionHash", "history": "kind kindRaw amount"} {
		var sizes, ids []string
		s.pages(t, `query ($after: String) { user(address: "`+addressOfAny+`") { `+field+`(first: 5, after: $after) { nodes { id size side timestamp `+more+` }`+pageFields+`} } }`,
			"user."+field, nil, keyOfAny, func(page any) {
				sizes, ids = append(sizes, pluck(page, "nodes", "size")...), append(ids, pluck(page, "nodes", "id")...)
				if total := fmt.Sprint(at(page, "totalCount")); total != "23" {
					t.Errorf("totalCount is %s, want 23", total)
				}
				for _, n := range list(page, "nodes") {
					if field == "history" && text(n, "size") == "4" && (text(n, "kind") != "UNKNOWN" || text(n, "kindRaw") != "AIRDROP") {
						t.Errorf("got the row %s, want the kind UNKNOWN and the kindRaw AIRDROP", asJSON(n))
					}
					if field == "trades" && (at(n, "tradeId") != nil || at(n, "fee") != nil || text(n, "side") != "BUY") {
						t.Errorf("got the row %s, want a purchase without tradeId and fee", asJSON(n))
					}
				}
			})
		for i := range rows {
			if i >= len(sizes) || sizes[i] != strconv.Itoa(i+1) {
				t.Fatalf("%s: the sizes are %v, want 1 to 23", field, sizes)
			}
		}
		slices.Sort(ids)
		if len(slices.Compact(ids)) != 23 {
			t.Errorf("%s: the 23 rows have the ids %v, want 23 different ids", field, ids)
		}
	}
}

// TestAVenueThatEchoesCredentials checks that credentials in a venue's error messages, in several encodings, reach neither the
// response nor the log.
func TestAVenueThatEchoesCredentials(t *testing.T) {
	const canary = "canary&=+ü"
	echo := func(q url.Values) (int, any) {
		return http.StatusBadRequest, object{"success": false, "error": "bad credentials " + q.Get("credentials") + " " + url.QueryEscape(q.Get("credentials")) + " " + canary}
	}
	v := newStub(t, map[string]func(q url.Values) (int, any){"balance": echo, "positions": echo, "orders": echo, "trades": echo, "history": echo})
	s := start(t, "--venue-url="+v.URL)
	resp := s.do(t, s.request(t, fmt.Sprintf(`{"query":%q}`, branchesQuery), credentials(canary, "note", canary)))
	if !strings.Contains(resp.body, "the venue refused the request (orders)") {
		t.Errorf("got %s, want an error for orders", resp.body)
	}
	for _, text := range []string{resp.body, s.log.String()} {
		if strings.Contains(text, "canary") {
			t.Errorf("the response or the log contains the credentials: %s", text)
		}
	}
	if !strings.Contains(s.log.String(), "bad credentials [redacted]") {
		t.Errorf("the log is %s; want the venue's message with redacted credentials", s.log)
	}
}

// TestWinnersThatListsLeaveOut checks that the service reads a winner from the market's details if search results omit the winner.
func TestWinnersThatListsLeaveOut(t *testing.T) {
	v := newStub(t, map[string]func(q url.Values) (int, any){
		"market-search": func(url.Values) (int, any) {
			return http.StatusOK, `{"markets":[{"marketId":"m","status":"RESOLVED","outcomes":[{"tokenId":"y","outcome":"YES"},{"tokenId":"n","outcome":"NO"}]}],"nextCursor":null}`
		},
		"market-details": func(url.Values) (int, any) {
			return http.StatusOK, `{"markets":[{"marketId":"m","status":"RESOLVED","description":"d","outcomes":[{"tokenId":"y","outcome":"YES"},{"tokenId":"n","outcome":"NO"}],"resolution":{"outcome":"no"}}]}`
		},
	})
	s := start(t, "--venue-url="+v.URL)
	data := s.ask(t, `{ searchMarkets { nodes { tokens { tokenId winner } resolution { winningOutcome winningToken { tokenId } resolvedAt source } } } }`, nil, anonymous)
	wantJSON(t, "market", at(data, "searchMarkets.nodes.0"), `{"tokens":[{"tokenId":"y","winner":false},{"tokenId":"n","winner":true}],
	  "resolution":{"winningOutcome":"no","winningToken":{"tokenId":"n"},"resolvedAt":null,"source":null}}`)
	wantCalls(t, v.asked(), calls{"market-search": {1, 1}, "market-details": {1, 1}})
}
