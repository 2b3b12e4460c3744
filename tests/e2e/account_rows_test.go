package e2e

import (
	"slices"
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
