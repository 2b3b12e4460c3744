package polymarket_test

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

const account = market.Address("0x00000000000000000000000000000000000000aa")

// dataPage returns a page of the Data API.
func dataPage(rows []any, next string) answer {
	var cursor any
	if next != "" {
		cursor = next
	}
	return ok(map[string]any{"data": rows, "pagination": map[string]any{"has_more": next != "", "next_cursor": cursor}})
}

func position(n int) any {
	return map[string]any{"condition_id": fmt.Sprintf("0xa%d", n), "token_id": strconv.Itoa(n), "outcome": "Yes", "current_size": 0.5, "avg_price": 0.25}
}

func TestPositionsAreReadToTheEnd(t *testing.T) {
	reads := 0
	d, s, _ := open(t, answers{"GET /v2/positions": func(q url.Values, _ []byte) answer {
		check(t, q.Get("user")+" "+q.Get("limit"), string(account)+" 500")
		// Without a least size, the venue leaves out positions of less than 0.1 shares, and without include_archived those in archived
		// markets (docs.polymarket.com, parameters of /v2/positions).
		check(t, q.Get("filter_type")+" "+q.Get("filter_amount")+" "+q.Get("include_archived"), "TOKENS 0.000001 true")
		switch q.Get("cursor") {
		case "":
			reads++
			return dataPage([]any{position(1), position(2)}, "p2")
		case "p2":
			if reads == 1 { // during the first read, position 2 moves to the second page
				return dataPage([]any{position(2)}, "")
			}
			return dataPage([]any{position(3)}, "")
		}
		return answer{status: 400, body: `{"error":"invalid cursor"}`}
	}})
	list, err := d.Positions(context.Background(), upstream.Call{}, account)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range list {
		got = append(got, p.TokenID+" "+p.Size.String())
	}
	check(t, got, []string{"1 0.5", "2 0.5", "3 0.5"})
	check(t, len(s.calls), 4)
}

func TestABadPositionFailsTheList(t *testing.T) {
	d, _, _ := open(t, answers{"GET /v2/positions": func(url.Values, []byte) answer {
		return dataPage([]any{position(1), map[string]any{"condition_id": "0xa2", "token_id": "2"}}, "")
	}})
	list, err := d.Positions(t.Context(), upstream.Call{}, account)
	if list != nil || market.CodeOf(err) != market.CodeUpstreamBadResponse {
		t.Errorf("Positions returns %+v and the error %v, want UPSTREAM_BAD_RESPONSE", list, err)
	}
}

func TestTradesHaveDifferentKeysOnAllPages(t *testing.T) {
	trade := map[string]any{"side": "BUY", "token_id": "1", "condition_id": "0xa1", "size": 2, "price": 0.5, "timestamp": 1900000000, "outcome": "Yes", "transaction_hash": "0xt"}
	d, s, _ := open(t, answers{"GET /v2/trades": func(q url.Values, _ []byte) answer {
		if q.Get("cursor") == "" {
			return dataPage([]any{trade, trade}, "p/2")
		}
		return dataPage([]any{trade}, "")
	}})
	q, seen := queries.Trades{MarketID: "0xa1", From: queries.At(time.Unix(1899999999, 5e8)), Limit: 2}, map[string]bool{}
	for range 2 {
		p, err := d.Trades(t.Context(), upstream.Call{}, account, q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Trades {
			seen[p.Trades[i].Key()] = true
		}
		q.Page = p.Next
	}
	check(t, len(seen), 3)
	check(t, q.Page, "")
	check(t, s.calls[1], "GET /v2/trades user="+string(account)+"&condition=0xa1&taker_only=false&filter_type=TOKENS&filter_amount=0.000001&start=1899999999&limit=2&cursor=p%2F2")
	p, err := d.Trades(t.Context(), upstream.Call{}, account, queries.Trades{To: queries.At(time.Time{})}) // up to 0001-01-01
	if err != nil || len(p.Trades) != 0 {
		t.Errorf("Trades up to 0001-01-01 returns %+v and the error %v, want no trades", p, err)
	}
	check(t, s.calls[2], "GET /v2/trades user="+string(account)+"&taker_only=false&filter_type=TOKENS&filter_amount=0.000001&start=1&end=1&limit=100")
	if _, err := d.Trades(t.Context(), upstream.Call{}, account, queries.Trades{Page: "x"}); market.CodeOf(err) != market.CodeBadUserInput {
		t.Errorf("Trades with an invalid page returns the error %v, want BAD_USER_INPUT", err)
	}
}

func TestHistoryAsksForTypes(t *testing.T) {
	d, s, _ := open(t, answers{"GET /v2/activity": func(url.Values, []byte) answer {
		return dataPage([]any{
			map[string]any{"type": "YIELD", "timestamp": 1900000001, "usdc_size": 1}, map[string]any{"type": "MIGRATION", "timestamp": 1900000000},
			map[string]any{"type": "AIRDROP", "timestamp": 1900000000},
		}, "")
	}})
	for _, c := range []struct {
		kinds []market.HistoryKind
		types string
		rows  int
	}{
		{nil, "", 3},
		{[]market.HistoryKind{market.HistoryReward, market.HistoryTransfer}, "REWARD,YIELD,MAKER_REBATE,TAKER_REBATE,REFERRAL_REWARD,TIP", 1},
		{[]market.HistoryKind{market.HistoryUnknown}, "", 1},
		{[]market.HistoryKind{market.HistoryConversion}, "CONVERSION,MIGRATION", 1},
		{[]market.HistoryKind{market.HistoryFee}, "no call", 0},
	} {
		s.calls = nil
		p, err := d.History(t.Context(), upstream.Call{}, account, queries.History{Kinds: c.kinds})
		if err != nil {
			t.Fatal(err)
		}
		types := "no call"
		if len(s.calls) > 0 {
			u, _ := url.Parse("/?" + s.calls[0][len("GET /v2/activity "):])
			types = u.Query().Get("type")
			check(t, u.Query().Get("exclude_deposits_withdrawals")+u.Query().Get("start"), "false1")
		}
		check(t, fmt.Sprint(types, " ", len(p.Records)), fmt.Sprint(c.types, " ", c.rows))
	}
}

func TestBalanceAndOrders(t *testing.T) {
	d, s, _ := open(t, answers{"GET /v2/value": func(url.Values, []byte) answer {
		return ok(map[string]any{"data": map[string]any{"proxy_wallet": account, "value": 12.5}})
	}})
	b, err := d.Balance(t.Context(), upstream.Call{}, account)
	if err != nil || b.PositionsValue.String() != "12.5" || b.CashBalance != nil || b.TotalValue != nil {
		t.Errorf("Balance returns %+v and the error %v, want only the value of the positions, 12.5", b, err)
	}
	_, err = d.Orders(t.Context(), upstream.Call{}, account)
	check(t, market.CodeOf(err), market.CodeUnsupported)
	check(t, len(s.calls), 1)
	check(t, s.hosts, map[string]bool{"data-api.polymarket.com": true})
}

// publicTrade returns a row of /v2/trades.
func publicTrade(condition string, token int, transaction string) map[string]any {
	return map[string]any{
		"proxy_wallet": account, "side": "BUY", "token_id": fmt.Sprint(token), "condition_id": condition, "size": 2, "price": 0.5,
		"timestamp": 1900000000, "outcome": "Yes", "outcome_index": 999, "transaction_hash": transaction,
	}
}

// TestMarketTrades reads two pages of trades of a market, and two pages of trades of a token. Equal rows must have different keys.
func TestMarketTrades(t *testing.T) {
	d, s, _ := open(t, answers{"GET /v2/trades": func(q url.Values, _ []byte) answer {
		if q.Get("cursor") == "" {
			return dataPage([]any{publicTrade("0xa1", 1, "0xt"), publicTrade("0xA1", 2, "0xt"), publicTrade("0xa1", 1, "0xt")}, "p/2")
		}
		return dataPage([]any{publicTrade("0xa1", 1, "0xt"), publicTrade("0xa1", 1, "")}, "")
	}})
	for _, test := range []struct {
		token  string
		rows   int
		limits [2]int
	}{{"", 5, [2]int{3, 3}}, {"1", 4, [2]int{6, 6}}} {
		s.calls = nil
		q, keys, ids := queries.MarketTrades{MarketID: "0xa1", TokenID: test.token, Limit: 3}, map[string]bool{}, 0
		for range 2 {
			p, err := d.MarketTrades(t.Context(), upstream.Call{}, q)
			if err != nil {
				t.Fatal(err)
			}
			for i := range p.Trades {
				keys[p.Trades[i].Key()] = true
				if p.Trades[i].TradeID != "" {
					ids++
				}
			}
			q.Page = p.Next
		}
		check(t, q.Page, "")
		check(t, len(keys), test.rows)
		check(t, ids, test.rows-1) // a row without a transaction has no id
		// Without a least size, the venue leaves out trades of less than 0.01 shares (docs.polymarket.com, parameters of /v2/trades).
		start := "GET /v2/trades condition=0xa1&taker_only=true&filter_type=TOKENS&filter_amount=0.000001&start=1&limit="
		check(t, s.calls, []string{fmt.Sprint(start, test.limits[0]), fmt.Sprint(start, test.limits[1], "&cursor=p%2F2")})
	}
}

// TestTradesOfAnotherMarket checks that the driver leaves out rows of another market, because the venue may ignore the filter. If
// all rows belong to another market, the read must fail.
func TestTradesOfAnotherMarket(t *testing.T) {
	rows := []any{publicTrade("0xb2", 3, "0x1"), publicTrade("0xa1", 1, "0x2")}
	d, _, _ := open(t, answers{"GET /v2/trades": func(url.Values, []byte) answer { return dataPage(rows, "") }})
	p, err := d.MarketTrades(t.Context(), upstream.Call{}, queries.MarketTrades{MarketID: "0xa1", Limit: 10})
	if err != nil || len(p.Trades) != 1 || p.Trades[0].MarketID != "0xa1" || len(p.LeftOut) != 1 {
		t.Errorf("MarketTrades returns %+v and the error %v, want one trade and one row in LeftOut", p, err)
	}
	rows = rows[:1]
	if p, err := d.MarketTrades(t.Context(), upstream.Call{}, queries.MarketTrades{MarketID: "0xa1", Limit: 10}); market.CodeOf(err) != market.CodeUpstreamBadResponse {
		t.Errorf("a page with trades of another market only gives %+v and the error %v, want UPSTREAM_BAD_RESPONSE", p, err)
	}
}

func TestTradesWithoutACall(t *testing.T) {
	d, s, _ := open(t, nil)
	if p, err := d.MarketTrades(t.Context(), upstream.Call{}, queries.MarketTrades{MarketID: "KXRAIN-1", Limit: 10}); err != nil || len(p.Trades) != 0 || p.Next != "" {
		t.Errorf("MarketTrades of an id that is no condition id returns %+v and the error %v, want an empty page", p, err)
	}
	for _, q := range []queries.MarketTrades{{MarketID: "0xa1", Page: "x"}, {MarketID: "0xa1", Limit: 101}, {MarketID: "0xa1", TokenID: "1", Limit: 101}, {MarketID: "a,b"}} {
		if _, err := d.MarketTrades(t.Context(), upstream.Call{}, q); market.CodeOf(err) != market.CodeBadUserInput {
			t.Errorf("MarketTrades of %+v returns the error %v, want BAD_USER_INPUT", q, err)
		}
	}
	check(t, len(s.calls), 0)
}
