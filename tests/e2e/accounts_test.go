package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestAccountDataMatchTheVenue(t *testing.T) {
	s := start(t)
	const account = "address=" + addressOf50 + "&limit=100"
	data := s.ask(t, `{ user(address: "`+addressOf50+`") {
	  id address
	  balance { portfolioValue cashBalance positionsValue totalValue freshness { asOf source stale } }
	  positions(first: 100) { nodes { address marketId tokenId outcome outcomeKind } }
	  orders { nodes { orderId marketId tokenId side sideRaw outcome outcomeKind price size filledSize remainingSize status statusRaw createdAt market { marketId } token { tokenId outcome } } }
	  trades(first: 100) { nodes { tradeId marketId tokenId outcome side sideRaw price size fee timestamp transactionHash market { marketId } token { tokenId } } }
	  history(first: 100) { nodes { id kind kindRaw timestamp amount marketId tokenId outcome side price size transactionHash market { marketId } } }
	} }`, nil, keyOf50)
	compare := func(what string, got, venue any, texts map[string]string, numbers ...string) {
		t.Helper()
		for field, name := range texts {
			if g, want := asJSON(at(got, field)), asJSON(at(venue, name)); g != want {
				t.Errorf("%s: %s is %s, want %s", what, field, g, want)
			}
		}
		for _, field := range numbers {
			wantNumber(t, what+": "+field, at(got, field), number(t, at(venue, field)))
		}
	}
	rows := func(path, name, field string) (got, venue []any) {
		got, venue = list(data, "user."+field+".nodes"), list(s.raw(t, path, account, keyOf50), name)
		if len(got) != len(venue) || len(got) == 0 {
			t.Fatalf("the response has %d %s and the venue has %d, want equal numbers above 0", len(got), field, len(venue))
		}
		return got, venue
	}
	balance := s.raw(t, "/api/user/balance", account, keyOf50)
	compare("balance", at(data, "user.balance"), balance, map[string]string{"freshness.asOf": "lastUpdated"}, "portfolioValue", "cashBalance", "positionsValue", "totalValue")

	got, venue := rows("/api/user/positions", "positions", "positions")
	for i := range got {
		compare("position", got[i], venue[i], map[string]string{"marketId": "marketId", "tokenId": "tokenId", "outcome": "outcome"})
	}
	got, venue = rows("/api/user/orders", "orders", "orders")
	partlyFilled := false
	for i := range got {
		compare("order", got[i], venue[i], map[string]string{"orderId": "orderId", "marketId": "marketId", "market.marketId": "marketId", "side": "side", "sideRaw": "side",
			"outcome": "outcome", "status": "status", "statusRaw": "status", "createdAt": "createdAt"}, "price", "size", "filledSize")
		wantNumber(t, "remainingSize", at(got[i], "remainingSize"), sub(number(t, at(venue[i], "size")), number(t, at(venue[i], "filledSize"))))
		partlyFilled = partlyFilled || text(got[i], "status") == "PARTIALLY_FILLED"
		// The venue identifies an order's token only by market and outcome.
		if at(got[i], "tokenId") != nil || text(got[i], "token.outcome") != text(venue[i], "outcome") {
			t.Errorf("order %d has the tokenId %v and the token %s, want no tokenId and the outcome %s", i, at(got[i], "tokenId"), asJSON(at(got[i], "token")), text(venue[i], "outcome"))
		}
	}
	if !partlyFilled {
		t.Error("no order is partly filled")
	}
	got, venue = rows("/api/user/trades", "trades", "trades")
	for i := range got {
		compare("trade", got[i], venue[i], map[string]string{"tradeId": "tradeId", "marketId": "marketId", "market.marketId": "marketId", "tokenId": "tokenId", "token.tokenId": "tokenId",
			"outcome": "outcome", "side": "side", "sideRaw": "side", "timestamp": "timestamp", "transactionHash": "transactionHash"}, "price", "size", "fee")
	}
	got, venue = rows("/api/user/history", "history", "history")
	kinds := map[string]bool{}
	for i := range got {
		kinds[text(got[i], "kind")] = true
		compare("history", got[i], venue[i], map[string]string{"kind": "type", "kindRaw": "type", "timestamp": "timestamp", "marketId": "marketId", "market.marketId": "marketId",
			"tokenId": "tokenId", "outcome": "outcome", "side": "side", "transactionHash": "transactionHash"}, "amount", "price", "size")
	}
	if len(kinds) < 3 {
		t.Errorf("the history has only the kinds %v, want at least 3 kinds", kinds)
	}
}

func TestFiltersOfRecords(t *testing.T) {
	s := start(t)
	trades := list(s.raw(t, "/api/user/trades", "limit=500&address="+addressOf50, keyOf50), "trades")
	records := list(s.raw(t, "/api/user/history", "limit=500&address="+addressOf50, keyOf50), "history")
	orders := list(s.raw(t, "/api/user/orders", "address="+addressOf50, keyOf50), "orders")
	marketID := text(trades[4], "marketId")
	from, to := text(trades[60], "timestamp"), text(trades[20], "timestamp")
	within := func(v any) bool { return text(v, "timestamp") >= from && text(v, "timestamp") <= to }
	for _, test := range []struct {
		field, arguments, idField, venueField string
		rows                                  []any
		keep                                  func(v any) bool
	}{
		{"trades", `first: 100, marketId: "` + marketID + `"`, "tradeId", "tradeId", trades, func(v any) bool { return text(v, "marketId") == marketID }},
		{"trades", `first: 100, from: "` + from + `", to: "` + to + `"`, "tradeId", "tradeId", trades, within},
		{"trades", `first: 100, marketId: "none"`, "tradeId", "tradeId", trades, func(any) bool { return false }},
		{"history", `first: 100, from: "` + from + `", to: "` + to + `"`, "transactionHash", "transactionHash", records, within},
		{"history", `first: 100, kinds: [DEPOSIT, REDEEM, WITHDRAWAL]`, "transactionHash", "transactionHash", records, func(v any) bool {
			return slices.Contains([]string{"DEPOSIT", "REDEEM", "WITHDRAWAL"}, text(v, "type"))
		}},
		{"history", `first: 100, kinds: REWARD, from: "2025-01-01T00:00:00Z"`, "transactionHash", "transactionHash", records, func(v any) bool { return text(v, "type") == "REWARD" }},
		{"orders", `side: BUY`, "orderId", "orderId", orders, func(v any) bool { return text(v, "side") == "BUY" }},
		{"orders", `side: UNKNOWN`, "orderId", "orderId", orders, func(any) bool { return false }},
		{"orders", `marketIds: ["` + text(orders[2], "marketId") + `", "none"]`, "orderId", "orderId", orders, func(v any) bool { return text(v, "marketId") == text(orders[2], "marketId") }},
	} {
		var want []string
		for _, r := range test.rows {
			if test.keep(r) {
				want = append(want, text(r, test.venueField))
			}
		}
		data := s.ask(t, `{ user(address: "`+addressOf50+`") { `+test.field+`(`+test.arguments+`) { nodes { `+test.idField+` } } } }`, nil, keyOf50)
		if got := pluck(data, "user."+test.field+".nodes", test.idField); !slices.Equal(got, want) {
			t.Errorf("%s(%s): got %v\nwant %v", test.field, test.arguments, got, want)
		}
	}
}

// TestRepeatedRows checks lists in which the venue sends a row twice, also at the end of a page and the beginning of the next one.
// Each row appears once. If two rows with the same id differ, both appear, with different ids. The ids of clients do not depend on
// the page size.
func TestRepeatedRows(t *testing.T) {
	row := func(id, side string) object {
		return object{"id": id, "tradeId": id, "orderId": id, "type": "TRADE", "timestamp": 1764000000, "marketId": "M1", "tokenId": "T1", "outcome": "YES", "side": side, "price": "0.5", "size": "1",
			"filledSize": "0", "status": "OPEN"}
	}
	rows := []object{row("1", "BUY"), row("1", "BUY"), row("2", "BUY"), row("2", "SELL"), row("2", "BUY"), row("3", "BUY"), row("3", "BUY")}
	page := func(name string, rows []object) func(q url.Values) (int, any) {
		return func(q url.Values) (int, any) {
			limit, err := strconv.Atoi(q.Get("limit"))
			if err != nil {
				limit = len(rows)
			}
			offset, _ := strconv.Atoi(q.Get("offset"))
			offset = min(offset, len(rows))
			return http.StatusOK, object{name: rows[offset:min(offset+limit, len(rows))], "count": len(rows)}
		}
	}
	v := newStub(t, map[string]func(q url.Values) (int, any){"history": page("history", rows), "trades": page("trades", rows), "orders": page("orders", rows)})
	s := start(t, "--venue-url="+v.URL)
	for field, want := range map[string]string{
		"history": "[BUY BUY SELL BUY]", "trades": "[BUY BUY SELL BUY]", "orders": "[BUY BUY BUY]", // the list of orders ignores the side
	} {
		var whole []string
		for first := 7; first > 0; first-- {
			var sides, ids []string
			s.pages(t, `query ($after: String) { user(address: "`+addressOfAny+`") { `+field+`(first: `+strconv.Itoa(first)+`, after: $after) { nodes { id side }`+pageFields+`} } }`,
				"user."+field, nil, keyOfAny, func(page any) {
					if sides, ids = append(sides, pluck(page, "nodes", "side")...), append(ids, pluck(page, "nodes", "id")...); len(ids) > len(rows) {
						t.Fatalf("%s in pages of %d does not end: %v", field, first, ids)
					}
				})
			if whole == nil {
				whole = ids
			}
			if fmt.Sprint(sides) != want || !slices.Equal(ids, whole) {
				t.Errorf("%s in pages of %d: got the sides %v with the ids %v, want %s with the ids %v", field, first, sides, ids, want, whole)
			}
		}
		distinct := slices.Clone(whole)
		if slices.Sort(distinct); len(slices.Compact(distinct)) != len(whole) {
			t.Errorf("%s: two rows have the same id: %v", field, whole)
		}
	}
}

// TestMarketOnTwoPages checks a search in which a market moves to the next page of the venue while the service reads the pages for one
// page of its connection. The market must appear once.
func TestMarketOnTwoPages(t *testing.T) {
	market := func(id string) object {
		return object{"marketId": id, "question": "?", "status": "OPEN", "tokens": []object{{"tokenId": "T" + id, "outcome": "YES"}}}
	}
	v := newStub(t, map[string]func(q url.Values) (int, any){"market-search": func(q url.Values) (int, any) {
		if q.Get("cursor") == "" {
			return http.StatusOK, object{"markets": []object{market("A"), market("B")}, "nextCursor": "2"}
		}
		return http.StatusOK, object{"markets": []object{market("B"), market("C")}, "nextCursor": nil}
	}})
	s := start(t, "--venue-url="+v.URL)
	found := s.ask(t, `{ searchMarkets(first: 4) { nodes { marketId } pageInfo { hasNextPage } } }`, nil, anonymous)
	if got := fmt.Sprint(pluck(found, "searchMarkets.nodes", "marketId"), at(found, "searchMarkets.pageInfo.hasNextPage")); got != "[A B C] false" {
		t.Errorf("got the markets and the next page %s, want [A B C] false", got)
	}
}

// TestIndistinguishableRows checks lists whose rows have no id from the venue, and in which some rows are equal. Each row must
// appear once, with a unique id that does not depend on the page size.
func TestIndistinguishableRows(t *testing.T) {
	fill := func(price, size string) object {
		return object{"timestamp": 1764000000, "marketId": "M1", "tokenId": "T1", "outcome": "YES", "side": "BUY", "price": price, "size": size, "transactionHash": "0xabc"}
	}
	history := []object{fill("0.50", "10"), fill("0.51", "11"), fill("0.52", "12"), fill("0.53", "13")}
	trades := []object{fill("0.50", "10"), fill("0.51", "10"), fill("0.50", "10"), fill("0.5", "10.0")}
	page := func(rows []object, count bool) func(q url.Values) (int, any) {
		return func(q url.Values) (int, any) {
			limit, err := strconv.Atoi(q.Get("limit"))
			if err != nil {
				limit = len(rows)
			}
			offset, _ := strconv.Atoi(q.Get("offset"))
			offset = min(offset, len(rows))
			answer := object{"trades": rows[offset:min(offset+limit, len(rows))]}
			if count {
				answer["count"] = len(rows)
			}
			return http.StatusOK, answer
		}
	}
	for _, count := range []bool{true, false} {
		v := newStub(t, map[string]func(q url.Values) (int, any){
			"history": page(history, count), "trades": page(trades, count),
			"positions": func(url.Values) (int, any) {
				return http.StatusOK, `{"positions":[{"marketId":"M1","tokenId":"T1","outcome":"YES","size":10,"avgPrice":0.4},
					{"marketId":"M1","tokenId":"T1","outcome":"YES","size":12,"avgPrice":0.6},
					{"marketId":"M1","tokenId":"T1","outcome":"YES","size":12,"avgPrice":0.6},
					{"marketId":"M1","tokenId":"T1","outcome":"YES","size":13,"avgPrice":0.6}]}`
			},
		})
		s := start(t, "--venue-url="+v.URL)
		for field, want := range map[string]string{"history": "[10 11 12 13]", "trades": "[10 10 10 10.0]", "positions": "[10 12 12 13]"} {
			var whole []string
			for first := 5; first > 0; first-- {
				var sizes, ids []string
				s.pages(t, `query ($after: String) { user(address: "`+addressOfAny+`") { `+field+`(first: `+strconv.Itoa(first)+`, after: $after) { nodes { id size }`+pageFields+`} } }`,
					"user."+field, nil, keyOfAny, func(page any) {
						sizes, ids = append(sizes, pluck(page, "nodes", "size")...), append(ids, pluck(page, "nodes", "id")...)
					})
				if whole == nil {
					whole = ids
				}
				if fmt.Sprint(sizes) != want || !slices.Equal(ids, whole) {
					t.Errorf("%s in pages of %d (the venue sends a count: %t): got the sizes %v with the ids\n%v, want %s with the ids\n%v", field, first, count, sizes, ids, want, whole)
				}
			}
			if slices.Sort(whole); len(slices.Compact(whole)) != 4 {
				t.Errorf("%s: some rows have the same id", field)
			}
		}
		held := at(s.ask(t, `{ user(address: "`+addressOfAny+`") { positions { nodes { id size } } } }`, nil, keyOfAny), "user.positions")
		data := s.ask(t, `query ($ids: [ID!]!) { nodes(ids: $ids) { id ... on Position { size } } }`, vars{"ids": pluck(held, "nodes", "id")}, keyOfAny)
		wantJSON(t, "positions that are read by their ids", at(data, "nodes"), asJSON(at(held, "nodes")))
	}
}

// TestPublicAccounts checks that every client may read every account if the driver declares accounts public. All clients must share
// the cached data.
func TestPublicAccounts(t *testing.T) {
	s := start(t, "--demo-driver=polymarket", "--venue-driver=polymarket")
	const query = `{ user(address: "` + addressOf50 + `") { positions(first: 1) { totalCount } balance { positionsValue } } }`
	first := s.ask(t, query, nil, anonymous)
	if fmt.Sprint(at(first, "user.positions.totalCount")) != "50" || text(first, "user.balance.positionsValue") == "" {
		t.Fatalf("got %s, want 50 positions and a balance", asJSON(first))
	}
	before := s.Venue.Cache.Stats()
	for _, caller := range []string{anonymous, credentials("demo-2"), credentials("anything")} {
		if got := s.ask(t, query, nil, caller); asJSON(got) != asJSON(first) {
			t.Errorf("the client with the credentials %q got %s, want %s", caller, asJSON(got), asJSON(first))
		}
	}
	for i, kind := range s.Venue.Cache.Stats() {
		if kind.Calls != before[i].Calls {
			t.Errorf("kind %s: the service made %d calls for cached accounts, want none", kind.Kind, kind.Calls-before[i].Calls)
		}
	}
	s.sse(t, subPortfolio, vars{"a": addressOf50}, anonymous).reason(t, "INITIAL")
}

// TestUnsupportedOrders checks a venue that serves no orders. Queries and subscriptions of orders must get the error UNSUPPORTED,
// and the service must make no call.
func TestUnsupportedOrders(t *testing.T) {
	s := start(t, "--demo-driver=polymarket", "--venue-driver=polymarket")
	for range 2 {
		data, errs := s.query(t, `{ user(address: "`+addressOf50+`") { orders { totalCount } } }`, nil, anonymous)
		if len(errs) != 1 || errs[0].Extensions.Code != "UNSUPPORTED" || !strings.Contains(errs[0].Message, "Polymarket") {
			t.Errorf("got %s and the errors %+v, want one UNSUPPORTED that names Polymarket", asJSON(data), errs)
		}
	}
	if ev := s.sse(t, subOrders, vars{"a": addressOf50}, anonymous).next(t); len(ev.errors) != 1 || ev.errors[0].Extensions.Code != "UNSUPPORTED" {
		t.Errorf("got the event %+v, want one error UNSUPPORTED", ev)
	}
	for _, kind := range s.Venue.Cache.Stats() {
		if kind.Calls != 0 {
			t.Errorf("kind %s: the service made %d calls, want none", kind.Kind, kind.Calls)
		}
	}
}

// TestUnsupportedCash checks a venue that serves balances without cash. Cash must get the error UNSUPPORTED, and other fields of
// the balance must have values. For sums that include cash, the service must read neither the balance nor the orders.
func TestUnsupportedCash(t *testing.T) {
	s := start(t, "--demo-driver=polymarket", "--venue-driver=polymarket")
	const user = `user(address: "` + addressOf50 + `")`
	data, errs := s.query(t, `{ `+user+` { portfolio { positionsValue totalValue availableCash } } }`, nil, anonymous)
	if len(errs) != 2 || errs[0].Extensions.Code != "UNSUPPORTED" || !strings.Contains(errs[1].Message, "blockchain") || text(data, "user.portfolio.positionsValue") == "" {
		t.Errorf("got %s and the errors %+v, want positionsValue and two errors UNSUPPORTED", asJSON(data), errs)
	}
	for _, kind := range s.Venue.Cache.Stats() {
		if (kind.Kind == "balance" || kind.Kind == "orders") && kind.Calls != 0 {
			t.Errorf("kind %s: the service made %d calls, want none", kind.Kind, kind.Calls)
		}
	}
	data, errs = s.query(t, `{ `+user+` { balance { cashBalance positionsValue } } }`, nil, anonymous)
	if len(errs) != 1 || errs[0].Extensions.Code != "UNSUPPORTED" || text(data, "user.balance.positionsValue") == "" {
		t.Errorf("got %s and the errors %+v, want positionsValue and one error UNSUPPORTED", asJSON(data), errs)
	}
	const subscription = `subscription($a: Address!) { balanceChanged(address: $a) { balance { cashBalance positionsValue } } }`
	ev := s.sse(t, subscription, vars{"a": addressOf50}, anonymous).next(t)
	if len(ev.errors) != 1 || ev.errors[0].Extensions.Code != "UNSUPPORTED" || text(ev.data, "balanceChanged.balance.positionsValue") == "" {
		t.Errorf("got the event %+v, want positionsValue and one error UNSUPPORTED", ev)
	}
}

// TestPublicAccountsAreDeclared checks that the command "config check" accepts --venue-credentials=public only if the driver
// declares accounts public.
func TestPublicAccountsAreDeclared(t *testing.T) {
	for driver, want := range map[string]string{"generic": "does not declare accounts public", "polymarket": ""} {
		err := run(t.Context(), []string{"config", "check", "--venue-driver=" + driver, "--venue-credentials=public"}, nil, io.Discard, io.Discard)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("driver %s: got the error %v, want %q (empty: no error)", driver, err, want)
		}
	}
}

// TestStatusOfVenue checks that serviceStatus has the name of the driver and lists the data that the venue does not serve.
func TestStatusOfVenue(t *testing.T) {
	for driver, unsupported := range map[string]string{
		"generic": `["market-trades"]`, "polymarket": `["orders","cash"]`, "kalshi": `["balance","positions","orders","trades","history"]`,
	} {
		s := start(t, "--demo-driver="+driver, "--venue-driver="+driver)
		got := asJSON(s.ask(t, `{ serviceStatus { venue { driver unsupported } } }`, nil, anonymous))
		if want := fmt.Sprintf(`{"serviceStatus":{"venue":{"driver":%q,"unsupported":%s}}}`, driver, unsupported); got != want {
			t.Errorf("driver %s: got %s, want %s", driver, got, want)
		}
	}
}

// TestCurrency checks the currency that the service reports for each driver, with and without --venue-currency.
func TestCurrency(t *testing.T) {
	t.Parallel()
	v := newStub(t, nil)
	for _, c := range []struct {
		want  any
		flags []string
	}{
		{"USD", nil},
		{"EUR", []string{"--venue-currency=EUR"}},
		{"USDC", []string{"--venue-driver=polymarket", "--demo-driver=polymarket"}},
		{"USD", []string{"--venue-driver=kalshi", "--demo-driver=kalshi", "--demo-control=false"}},
		{nil, []string{"--venue-url=" + v.URL}},
		{"MANA", []string{"--venue-url=" + v.URL, "--venue-currency=MANA"}},
		{"USDC", []string{"--venue-driver=polymarket", "--venue-url=" + v.URL}},
	} {
		s := start(t, append(c.flags, "--demo-markets=20")...)
		if got := at(s.ask(t, `{ serviceStatus { currency } }`, nil, anonymous), "serviceStatus.currency"); got != c.want {
			t.Errorf("%q: got %v, want %v", c.flags, got, c.want)
		}
	}
}
