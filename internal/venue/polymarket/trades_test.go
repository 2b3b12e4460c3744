package polymarket_test

import (
	"fmt"
	"net/url"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

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
