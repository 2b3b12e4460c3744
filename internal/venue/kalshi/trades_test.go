package kalshi

import (
	"fmt"
	"net/url"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/venue/wire"
)

func TestTradeRows(t *testing.T) {
	rows(t, "trades.golden", document(t, "trades.json").Member("trades").Elements(), func(r *wire.Row) any { return readTrade(r) }).compare()
}

// TestMarketTrades reads a page of trades of a market and of each of its tokens. The driver must leave out the rows of other
// markets and report them. If all rows belong to other markets, the read must fail.
func TestMarketTrades(t *testing.T) {
	d, s := newDriver(t, map[string]func(url.Values) (int, string){"/markets/trades": file(t, "trades.json")})
	for _, test := range []struct{ token, want string }{
		{"", "a7d1 KXRAIN-1:no BUY 4.50@0.9200, a7d0 KXRAIN-1:yes BUY 12@0.0900, "},
		{"KXRAIN-1:yes", "a7d1-1 KXRAIN-1:yes SELL 4.50@0.0800, a7d0 KXRAIN-1:yes BUY 12@0.0900, "},
		{"KXRAIN-1:no", "a7d1 KXRAIN-1:no BUY 4.50@0.9200, a7d0-1 KXRAIN-1:no SELL 12@0.9100, "},
	} {
		p, err := d.MarketTrades(t.Context(), queries.MarketTrades{MarketID: "KXRAIN-1", TokenID: test.token, Limit: 20, Page: "abc"})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, x := range p.Trades {
			got += fmt.Sprintf("%s %s %s %s@%s, ", x.Key(), x.TokenID, x.Side, x.Size, x.Price)
		}
		if got != test.want || p.Next != "CgsI7abcExample" || len(p.LeftOut) != 2 {
			t.Errorf("for the token %q, MarketTrades returns %s the next page %q and LeftOut %v; want %s", test.token, got, p.Next, p.LeftOut, test.want)
		}
	}
	if want := "/markets/trades?ticker=KXRAIN-1&limit=20&cursor=abc"; len(s.calls) != 3 || s.calls[0] != want {
		t.Errorf("the driver makes the calls %q; want 3 calls, the first %q", s.calls, want)
	}
	if p, err := d.MarketTrades(t.Context(), queries.MarketTrades{MarketID: "KXRAIN-1", Page: "CgsI7abcExample"}); err != nil || p.Next != "" {
		t.Errorf("a repeated cursor gives the page %+v and the error %v, want no next page", p, err)
	}
	if p, err := d.MarketTrades(t.Context(), queries.MarketTrades{MarketID: "KXHAIL-1"}); market.CodeOf(err) != market.CodeUpstreamBadResponse {
		t.Errorf("a page with trades of other markets only gives %+v and the error %v, want UPSTREAM_BAD_RESPONSE", p, err)
	}
}

// TestTradesWithoutACall checks three cases in which the driver makes no call: the market id cannot be an id of Kalshi, the token
// belongs to another market, or an argument is invalid.
func TestTradesWithoutACall(t *testing.T) {
	d, s := newDriver(t, nil)
	for _, q := range []queries.MarketTrades{{MarketID: "0xa1"}, {MarketID: "A-1", TokenID: "B-1:yes"}, {MarketID: "A-1", TokenID: "123"}} {
		if p, err := d.MarketTrades(t.Context(), q); err != nil || len(p.Trades) != 0 || p.Next != "" {
			t.Errorf("MarketTrades(%+v) returns %+v and the error %v, want an empty page", q, p, err)
		}
	}
	for _, q := range []queries.MarketTrades{{MarketID: "A,B"}, {MarketID: "A-1", Limit: 101}, {MarketID: "A-1", Page: string(make([]byte, maxCursor+1))}} {
		if _, err := d.MarketTrades(t.Context(), q); market.CodeOf(err) != market.CodeBadUserInput {
			t.Errorf("MarketTrades(%+v) returns the error %v, want BAD_USER_INPUT", q, err)
		}
	}
	s.want(t)
}
