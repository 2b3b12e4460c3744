package kalshi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

// TestMarketTrades reads a page of trades of a market and of each of its tokens. The driver must leave out the rows of other
// markets and report them. If all rows belong to other markets, the read must fail.
func TestMarketTrades(t *testing.T) {
	d, s := newDriver(t, map[string]func(url.Values) (int, string){"/markets/trades": file(t, "trades.json")})
	for _, test := range []struct{ token, want string }{
		{"every", "a7d1-1 KXRAIN-1:yes SELL 4.50@0.0800, a7d1 KXRAIN-1:no BUY 4.50@0.9200, a7d0 KXRAIN-1:yes BUY 12@0.0900, a7d0-1 KXRAIN-1:no SELL 12@0.9100, "},
		{"", "a7d1 KXRAIN-1:no BUY 4.50@0.9200, a7d0 KXRAIN-1:yes BUY 12@0.0900, "},
		{"KXRAIN-1:yes", "a7d1-1 KXRAIN-1:yes SELL 4.50@0.0800, a7d0 KXRAIN-1:yes BUY 12@0.0900, "},
		{"KXRAIN-1:no", "a7d1 KXRAIN-1:no BUY 4.50@0.9200, a7d0-1 KXRAIN-1:no SELL 12@0.9100, "},
	} {
		q := queries.MarketTrades{MarketID: "KXRAIN-1", TokenID: test.token, Limit: 20, Page: `{"c":"abc"}`}
		if test.token == "every" {
			q.TokenID, q.EveryToken = "", true
		}
		p, err := d.MarketTrades(t.Context(), upstream.Call{}, q)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, x := range p.Trades {
			got += fmt.Sprintf("%s %s %s %s@%s, ", x.Key(), x.TokenID, x.Side, x.Size, x.Price)
		}
		if got != test.want || p.Next != `{"o":"2026-11-26T10:00:02Z","c":"CgsI7abcExample"}` || len(p.LeftOut) != 2 {
			t.Errorf("for the token %q, MarketTrades returns %s the next page %q and LeftOut %v; want %s", test.token, got, p.Next, p.LeftOut, test.want)
		}
	}
	if want := "/markets/trades?ticker=KXRAIN-1&limit=20&cursor=abc"; len(s.calls) != 4 || s.calls[0] != want {
		t.Errorf("the driver makes the calls %q; want 4 calls, the first %q", s.calls, want)
	}
	if p, err := d.MarketTrades(t.Context(), upstream.Call{}, queries.MarketTrades{MarketID: "KXRAIN-1", Page: `{"a":true,"c":"CgsI7abcExample"}`}); err != nil || p.Next != "" {
		t.Errorf("a repeated cursor gives the page %+v and the error %v, want no next page", p, err)
	}
	if p, err := d.MarketTrades(t.Context(), upstream.Call{}, queries.MarketTrades{MarketID: "KXHAIL-1"}); market.CodeOf(err) != market.CodeUpstreamBadResponse {
		t.Errorf("a page with trades of other markets only gives %+v and the error %v, want UPSTREAM_BAD_RESPONSE", p, err)
	}
}

// TestTradesWithoutACall checks three cases in which the driver makes no call: the market id cannot be an id of Kalshi, the token
// belongs to another market, or an argument is invalid.
func TestTradesWithoutACall(t *testing.T) {
	d, s := newDriver(t, nil)
	for _, q := range []queries.MarketTrades{{MarketID: "0xa1"}, {MarketID: "A-1", TokenID: "B-1:yes"}, {MarketID: "A-1", TokenID: "123"}} {
		if p, err := d.MarketTrades(t.Context(), upstream.Call{}, q); err != nil || len(p.Trades) != 0 || p.Next != "" {
			t.Errorf("MarketTrades(%+v) returns %+v and the error %v, want an empty page", q, p, err)
		}
	}
	for _, q := range []queries.MarketTrades{{MarketID: "A,B"}, {MarketID: "A-1", Limit: 101}, {MarketID: "A-1", Page: `{"c":"` + strings.Repeat("a", 4<<10) + `"}`},
		{MarketID: "A-1", Page: "abc"}, {MarketID: "A-1", Page: `{"o":"soon"}`}, {MarketID: "A-1", Page: `{"c":1}`}, {MarketID: "A-1", Page: `{"page":2}`}} {
		if _, err := d.MarketTrades(t.Context(), upstream.Call{}, q); market.CodeOf(err) != market.CodeBadUserInput {
			t.Errorf("MarketTrades(%+v) returns the error %v, want BAD_USER_INPUT", q, err)
		}
	}
	s.want(t)
}

// tapeOf returns a function for stub.answers. The function returns pages of trades, as the venue does: newest first, with a cursor
// if there are more trades, and only trades up to max_ts.
func tapeOf(t *testing.T, trades ...string) func(url.Values) (int, string) {
	t.Helper()
	return func(q url.Values) (int, string) {
		limit, err := strconv.Atoi(q.Get("limit"))
		if err != nil || q.Get("ticker") != "A-1" {
			t.Errorf("the parameters of a call for trades are %v, want the ticker A-1 and a limit", q)
		}
		all := slices.Clone(trades)
		if until, err := strconv.ParseInt(q.Get("max_ts"), 10, 64); err == nil {
			all = slices.DeleteFunc(all, func(trade string) bool { return timeOfTrade(t, trade).After(time.Unix(until, 0)) })
		}
		first, _ := strconv.Atoi(q.Get("cursor"))
		all = all[min(first, len(all)):]
		cursor := ""
		if len(all) > limit {
			all, cursor = all[:limit], strconv.Itoa(first+limit)
		}
		rows := make([]string, len(all))
		for i, trade := range all {
			id, at, _ := strings.Cut(trade, "@")
			rows[i] = fmt.Sprintf(`{"trade_id":%q,"ticker":"A-1","count_fp":"1.00","yes_price_dollars":"0.5000","no_price_dollars":"0.5000","taker_side":"yes","created_time":%q}`, id, at)
		}
		return http.StatusOK, `{"trades":[` + strings.Join(rows, ",") + `],"cursor":"` + cursor + `"}`
	}
}

func timeOfTrade(t *testing.T, trade string) time.Time {
	t.Helper()
	_, text, _ := strings.Cut(trade, "@")
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestArchivedTrades reads all pages of trades, with each size of a page. Every trade must appear once, newest first. According to
// reports of users, the list of trades and the archive have some trades in common.
func TestArchivedTrades(t *testing.T) {
	const (
		f = "f@2026-06-14T10:00:00.5Z"
		e = "e@2026-06-13T10:00:00.700001Z"
		d = "d@2026-06-13T10:00:00.7Z" // d and c have the same time
		c = "c@2026-06-13T10:00:00.7Z"
		b = "b@2026-06-13T10:00:00.2Z"
		a = "a@2026-03-01T00:00:00Z"
	)
	for name, test := range map[string]struct {
		list, archive []string
		want          string
	}{
		"no trade in both":             {[]string{f, e}, []string{d, c, b, a}, "fedcba"},
		"one trade in both":            {[]string{f, e}, []string{e, d, c, b, a}, "fedcba"},
		"trades of one time in both":   {[]string{f, e, d, c}, []string{d, c, b, a}, "fedcba"},
		"trades of one second in both": {[]string{f, e, d, c, b}, []string{f, e, d, c, b, a}, "fedcba"},
		"all trades in both":           {[]string{f, e, d, c, b, a}, []string{f, e, d, c, b, a}, "fedcba"},
		"the archive only":             {nil, []string{f, e, d, c, b, a}, "fedcba"},
		"the list only":                {[]string{f, e, d, c, b, a}, nil, "fedcba"},
		"no trade":                     {nil, nil, ""},
	} {
		for limit := 1; limit <= 7; limit++ {
			driver, _ := newDriver(t, map[string]func(url.Values) (int, string){"/markets/trades": tapeOf(t, test.list...), "/historical/trades": tapeOf(t, test.archive...)})
			got, page := "", ""
			for range 20 {
				p, err := driver.MarketTrades(t.Context(), upstream.Call{}, queries.MarketTrades{MarketID: "A-1", Limit: limit, Page: page})
				if err != nil {
					t.Fatalf("%s, page %q of %d: %v", name, page, limit, err)
				}
				for _, trade := range p.Trades {
					got += trade.TradeID
				}
				if page = p.Next; page == "" {
					break
				}
			}
			if got != test.want || page != "" {
				t.Errorf("%s: the pages of %d have the trades %q and then the next page %q, want %q", name, limit, got, page, test.want)
			}
		}
	}
}

// TestArchiveOfTradesFails checks that a failure of the archive is an error of its page. A response 404 of the archive is its end.
func TestArchiveOfTradesFails(t *testing.T) {
	answers := map[string]func(url.Values) (int, string){"/markets/trades": tapeOf(t, "b@2026-06-14T10:00:00Z")}
	d, _ := newDriver(t, answers)
	p, err := d.MarketTrades(t.Context(), upstream.Call{}, queries.MarketTrades{MarketID: "A-1"})
	if err != nil || len(p.Trades) != 1 {
		t.Fatalf("the page of the list is %+v and the error is %v, want one trade", p, err)
	}
	if last, err := d.MarketTrades(t.Context(), upstream.Call{}, queries.MarketTrades{MarketID: "A-1", Page: p.Next}); err != nil || len(last.Trades) > 0 || last.Next != "" {
		t.Errorf("without an archive, the last page is %+v and the error is %v, want an empty page", last, err)
	}
	answers["/historical/trades"] = status(http.StatusInternalServerError)
	if last, err := d.MarketTrades(t.Context(), upstream.Call{}, queries.MarketTrades{MarketID: "A-1", Page: p.Next}); market.CodeOf(err) != market.CodeUpstreamUnavailable {
		t.Errorf("if the archive fails, the last page is %+v and the error is %v, want UPSTREAM_UNAVAILABLE", last, err)
	}
	delete(answers, "/markets/trades")
	if first, err := d.MarketTrades(t.Context(), upstream.Call{}, queries.MarketTrades{MarketID: "A-1"}); market.CodeOf(err) != market.CodeUpstreamBadResponse {
		t.Errorf("if the list is missing, the first page is %+v and the error is %v, want UPSTREAM_BAD_RESPONSE", first, err)
	}
}
