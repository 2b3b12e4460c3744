package polymarket_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

// read returns a function that makes a read of the driver. readOf is for the reads of an account.
func read[A, T any](method func(context.Context, upstream.Call, A) (T, error), of A) func() error {
	return func() error { _, err := method(context.Background(), upstream.Call{}, of); return err }
}

func readOf[A, T any](method func(context.Context, upstream.Call, market.Address, A) (T, error), q A) func() error {
	return func() error { _, err := method(context.Background(), upstream.Call{}, account, q); return err }
}

// TestRequests checks the whole URL of each request, with its parameters in order.
func TestRequests(t *testing.T) {
	empty := func(url.Values, []byte) answer {
		return answer{status: 200, body: `{"markets":[],"events":[],"data":[]}`}
	}
	d, s, _ := open(t, answers{
		"GET /markets/keyset": empty, "GET /events/keyset": empty, "GET /public-search": empty, "GET /v2/trades": empty, "GET /v2/activity": empty, "GET /v2/positions": empty,
		"GET /tags/slug/crypto-prices": func(url.Values, []byte) answer { return answer{status: 200, body: `{"id":"9","slug":"crypto-prices"}`} },
		"GET /v2/value":                func(url.Values, []byte) answer { return answer{status: 200, body: `{"data":null}`} },
	})
	at := time.Date(2030, 5, 1, 2, 3, 4, 5e8, time.UTC)
	user := "user=" + string(account)
	const byVolume = "order=volume24hr&ascending=false"
	const whole = "&filter_type=TOKENS&filter_amount=0.000001"
	open, closed := []market.Status{market.StatusOpen}, []market.Status{market.StatusResolved}
	for _, test := range []struct {
		call func() error
		want []string
	}{
		{read(d.Search, queries.Search{Status: open}), []string{"GET /markets/keyset closed=false&" + byVolume + "&include_tag=true&limit=20"}},
		{read(d.Search, queries.Search{Status: closed, Sort: queries.SortEndsAt, Direction: queries.Ascending, Limit: 7, EndsAfter: queries.At(at), EndsBefore: queries.At(at.Add(time.Hour))}), []string{"GET /markets/keyset closed=true&order=endDate&ascending=true&include_tag=true&end_date_min=2030-05-01T02%3A03%3A04Z&end_date_max=2030-05-01T03%3A03%3A04Z&limit=7"}},
		{read(d.Search, queries.Search{Status: open, Tag: "Crypto Prices", Sort: queries.SortVolume, Page: `[{"c":"C","s":3},{"e":true}]`}), []string{"GET /tags/slug/crypto-prices", "GET /markets/keyset closed=false&order=volumeNum&ascending=false&tag_id=9&include_tag=true&limit=23&after_cursor=C"}},
		{read(d.Search, queries.Search{Status: open, Sort: queries.SortLiquidity}), []string{"GET /markets/keyset closed=false&order=liquidityNum&ascending=false&include_tag=true&limit=20"}},
		{read(d.Search, queries.Search{Text: "a b", Status: open}), []string{"GET /public-search q=a+b&limit_per_type=10&page=1&search_tags=false&search_profiles=false&events_status=active"}},
		{read(d.Search, queries.Search{Text: "a", Page: "2"}), []string{"GET /public-search q=a&limit_per_type=10&page=2&search_tags=false&search_profiles=false&keep_closed_markets=1"}},
		{read(d.SearchEvents, queries.Search{Text: "a", Status: open}), []string{"GET /public-search q=a&limit_per_type=50&page=1&search_tags=false&search_profiles=false&events_status=active"}},
		{read(d.SearchEvents, queries.Search{}), []string{"GET /events/keyset closed=false&" + byVolume + "&limit=50"}},
		{read(d.SearchEvents, queries.Search{Status: closed, Sort: queries.SortLiquidity, Direction: queries.Ascending, Tag: "crypto-prices", EndsAfter: queries.At(at), EndsBefore: queries.At(at), Page: `{"x":true,"c":"C"}`}), []string{"GET /events/keyset closed=true&order=liquidity&ascending=true&tag_id=9&end_date_min=2030-05-01T02%3A03%3A04Z&end_date_max=2030-05-01T02%3A03%3A04Z&limit=50&after_cursor=C"}},
		{read(d.Event, market.EventRef{EventID: "5", EventSlug: "s"}), []string{"GET /events/keyset id=5&closed=false&limit=1", "GET /events/keyset id=5&closed=true&limit=1"}},
		{read(d.Event, market.EventRef{EventSlug: "s"}), []string{"GET /events/keyset slug=s&closed=false&limit=1", "GET /events/keyset slug=s&closed=true&limit=1"}},
		{read(d.Event, market.EventRef{EventID: "x"}), []string{}},
		{read(d.MarketsByID, []string{"0xa1", "0xa2"}), []string{"GET /markets/keyset condition_ids=0xa1&condition_ids=0xa2&closed=false&limit=2&include_tag=true", "GET /markets/keyset condition_ids=0xa1&condition_ids=0xa2&closed=true&limit=2&include_tag=true"}},
		{read(d.MarketsByToken, []string{"7"}), []string{"GET /markets/keyset clob_token_ids=7&closed=false&limit=1&include_tag=true", "GET /markets/keyset clob_token_ids=7&closed=true&limit=1&include_tag=true"}},
		{read(d.MarketBySlug, "s"), []string{"GET /markets/keyset slug=s&closed=false&limit=1&include_tag=true", "GET /markets/keyset slug=s&closed=true&limit=1&include_tag=true"}},
		{read(d.Positions, account), []string{"GET /v2/positions " + user + whole + "&include_archived=true&limit=500"}},
		{read(d.Balance, account), []string{"GET /v2/value " + user}},
		{readOf(d.Trades, queries.Trades{MarketID: "0xa1", From: queries.At(at), To: queries.At(at), Limit: 3}), []string{"GET /v2/trades " + user + "&condition=0xa1&taker_only=false" + whole + "&start=1903831384&end=1903831384&limit=3"}},
		{readOf(d.Trades, queries.Trades{From: queries.At(time.Unix(-5, 0))}), []string{"GET /v2/trades " + user + "&taker_only=false" + whole + "&start=1&limit=100"}},
		{readOf(d.Trades, queries.Trades{MarketID: "KXRAIN"}), []string{}},
		{readOf(d.History, queries.History{Kinds: []market.HistoryKind{market.HistoryRedeem, market.HistoryMerge}, To: queries.At(at)}), []string{"GET /v2/activity " + user + "&type=REDEEM,MERGE&exclude_deposits_withdrawals=false&start=1&end=1903831384&limit=100"}},
		{read(d.MarketTrades, queries.MarketTrades{MarketID: "0xa1", TokenID: "1", Limit: 60}), []string{"GET /v2/trades condition=0xa1&taker_only=true" + whole + "&start=1&limit=100"}},
	} {
		s.calls = []string{}
		if err := test.call(); err != nil {
			t.Errorf("%v: the error %v", test.want, err)
		}
		check(t, strings.Join(s.calls, "\n"), strings.Join(test.want, "\n"))
	}
}

// TestRowsOfARange checks that the driver leaves out rows that Polymarket should have left out: of another market, of another kind or
// outside the range of times.
func TestRowsOfARange(t *testing.T) {
	row := func(condition, kind string, at int) any {
		return map[string]any{"type": kind, "condition_id": condition, "token_id": fmt.Sprint(at), "size": 1, "price": 0.5, "side": "BUY", "timestamp": 1900000000 + at}
	}
	rows := []any{row("0xa1", "TRADE", 1), row("0xA1", "SPLIT", 2), row("0xa2", "TRADE", 3), row("0xa1", "TRADE", 4), map[string]any{"type": "TRADE"}}
	d, _, _ := open(t, answers{
		"GET /v2/trades": func(url.Values, []byte) answer { return dataPage(rows, "") }, "GET /v2/activity": func(url.Values, []byte) answer { return dataPage(rows, "") },
	})
	from, to := time.Unix(1900000002, 0), time.Unix(1900000003, 5e8)
	trades, err := d.Trades(t.Context(), upstream.Call{}, account, queries.Trades{})
	if err != nil || len(trades.LeftOut) != 1 {
		t.Fatalf("Trades returns %+v and the error %v, want one row left out", trades, err)
	}
	tokens := func(list []market.Trade) (out []string) {
		for _, trade := range list {
			out = append(out, trade.TokenID)
		}
		return out
	}
	check(t, tokens(trades.Trades), "[1 2 3 4]")
	trades, err = d.Trades(t.Context(), upstream.Call{}, account, queries.Trades{From: queries.At(from), To: queries.At(to)})
	check(t, fmt.Sprint(tokens(trades.Trades), err), "[2 3] <nil>")
	trades, err = d.Trades(t.Context(), upstream.Call{}, account, queries.Trades{MarketID: "0xa1"})
	check(t, fmt.Sprint(tokens(trades.Trades), err), "[1 2 4] <nil>")
	for _, test := range []struct {
		q    queries.History
		want string
	}{
		{queries.History{}, "1 2 3 4"}, {queries.History{From: queries.At(from)}, "2 3 4"}, {queries.History{To: queries.At(to)}, "1 2 3"},
		{queries.History{Kinds: []market.HistoryKind{market.HistorySplit}}, "2"}, {queries.History{Kinds: []market.HistoryKind{market.HistoryTrade}, From: queries.At(from)}, "3 4"},
	} {
		page, err := d.History(t.Context(), upstream.Call{}, account, test.q)
		if err != nil || len(page.LeftOut) != 1 {
			t.Fatalf("History of %+v returns %+v and the error %v, want one row left out", test.q, page, err)
		}
		var got []string
		for _, h := range page.Records {
			got = append(got, h.TokenID)
		}
		check(t, strings.Join(got, " "), test.want)
	}
	rows = rows[4:]
	_, err1 := d.Trades(t.Context(), upstream.Call{}, account, queries.Trades{})
	_, err2 := d.History(t.Context(), upstream.Call{}, account, queries.History{})
	check(t, []market.Code{market.CodeOf(err1), market.CodeOf(err2)}, []market.Code{market.CodeUpstreamBadResponse, market.CodeUpstreamBadResponse})
	_, err1 = d.Trades(t.Context(), upstream.Call{}, account, queries.Trades{Limit: 101})
	_, err2 = d.History(t.Context(), upstream.Call{}, account, queries.History{Limit: -1})
	check(t, []market.Code{market.CodeOf(err1), market.CodeOf(err2)}, []market.Code{market.CodeBadUserInput, market.CodeBadUserInput})
	_, err1 = d.Trades(t.Context(), upstream.Call{}, account, queries.Trades{MarketID: "a,b"})
	check(t, market.CodeOf(err1), market.CodeBadUserInput)
}

// TestWhatTheDriverCan checks the numbers and the codes by which the service plans its calls.
func TestWhatTheDriverCan(t *testing.T) {
	d, s, _ := open(t, nil)
	for e := range upstream.Endpoints {
		e := upstream.Endpoint(e)
		want := 1
		switch e {
		case upstream.EndpointPrices, upstream.EndpointSpreads, upstream.EndpointBook:
			want = 500
		case upstream.EndpointPriceHistory:
			want = 20
		case upstream.EndpointMarketsByID, upstream.EndpointMarketsByToken:
			want = 40
		}
		if got := d.MaxKeys(e); got != want || d.Cost(e, want, 0) != 1 || d.Cost(e, want+1, 0) != 2 {
			t.Errorf("a call to %s has at most %d ids and costs %d and %d calls for %d and %d ids, want %d", e, got, d.Cost(e, want, 0), d.Cost(e, want+1, 0), want, want+1, want)
		}
		code := market.Code("")
		if err := d.Can(e); err != nil {
			code = market.CodeOf(err)
		}
		if (e == upstream.EndpointOrders) != (code == market.CodeUnsupported) {
			t.Errorf("Can of %s has the code %q", e, code)
		}
	}
	if err := d.CanReadCash(); market.CodeOf(err) != market.CodeUnsupported || !strings.Contains(err.Error(), "(balance)") {
		t.Errorf("CanReadCash returns %v, want UNSUPPORTED", err)
	}
	check(t, len(s.calls), 0)
}

// TestErrorsOfLookups checks the codes of failed lookups, and that a 404 of a list of several ids is no absence.
func TestErrorsOfLookups(t *testing.T) {
	status := 0
	d, _, c := open(t, answers{
		"GET /markets/keyset": func(url.Values, []byte) answer { return answer{status: status, body: `{"error":"x"}`} },
		"POST /midpoints":     func(url.Values, []byte) answer { return answer{status: status, body: `{"error":"x"}`} },
		"GET /events/keyset":  func(url.Values, []byte) answer { return answer{status: status, body: `{"error":"x"}`} },
		"GET /v2/value":       func(url.Values, []byte) answer { return answer{status: status, body: `{"error":"x"}`} },
		"GET /v2/positions":   func(url.Values, []byte) answer { return answer{status: status, body: `{"error":"x"}`} },
		"GET /public-search":  func(url.Values, []byte) answer { return answer{status: status, body: `{"error":"x"}`} },
	})
	for status = range map[int]bool{404: true, 400: true} {
		c.Advance(time.Hour)
		want := map[int]string{404: "absent", 400: "UPSTREAM_BAD_RESPONSE"}[status]
		show := func(missing bool, err error) string {
			if err != nil {
				return string(market.CodeOf(err))
			}
			return map[bool]string{true: "absent", false: "present"}[missing]
		}
		prices, err := d.Prices(t.Context(), upstream.Call{}, []string{"1"})
		check(t, show(prices[0].Value == nil && prices[0].Err == nil, err), want)
		m, err := d.MarketBySlug(t.Context(), upstream.Call{}, "s")
		check(t, show(m == nil, err), want)
		e, err := d.Event(t.Context(), upstream.Call{}, market.EventRef{EventID: "5"})
		check(t, show(e == nil, err), want)
		b, err := d.Balance(t.Context(), upstream.Call{}, account)
		check(t, show(b == nil, err), want)
		_, err = d.Positions(t.Context(), upstream.Call{}, account)
		check(t, market.CodeOf(err), market.CodeUpstreamBadResponse)
		for _, q := range []queries.Search{{}, {Text: "a"}} {
			_, err1 := d.Search(t.Context(), upstream.Call{}, q)
			_, err2 := d.SearchEvents(t.Context(), upstream.Call{}, q)
			check(t, slices.Compact([]market.Code{market.CodeOf(err1), market.CodeOf(err2)}), []market.Code{market.CodeUpstreamBadResponse})
		}
	}
}

// TestPagesOfFoundEvents checks the result of a search for events by text, and the rows that a list of markets leaves out.
func TestPagesOfFoundEvents(t *testing.T) {
	d, s, _ := open(t, answers{
		"GET /public-search": func(q url.Values, _ []byte) answer {
			return ok(map[string]any{"events": []any{event(1)}, "pagination": map[string]any{"hasMore": q.Get("page") == "1"}})
		},
		"GET /markets/keyset": func(url.Values, []byte) answer {
			return ok(map[string]any{"markets": []any{gammaMarket(1, false, nil), map[string]any{"id": "7"}, gammaMarket(2, false, nil)}})
		},
	})
	first, err := d.SearchEvents(t.Context(), upstream.Call{}, queries.Search{Text: "a"})
	if err != nil || len(first.Events) != 1 || first.Events[0].EventID != "1" || first.Next != "2" {
		t.Fatalf("SearchEvents returns %+v and the error %v, want the event 1 and the next page 2", first, err)
	}
	last, err := d.SearchEvents(t.Context(), upstream.Call{}, queries.Search{Text: "a", Page: first.Next})
	if err != nil || len(last.Events) != 1 || last.Next != "" {
		t.Errorf("SearchEvents returns %+v and the error %v, want the last page", last, err)
	}
	list, err := d.Search(t.Context(), upstream.Call{}, queries.Search{Status: []market.Status{market.StatusOpen}})
	if err != nil || len(list.Markets) != 2 || len(list.LeftOut) != 1 {
		t.Fatalf("Search returns %+v and the error %v, want two markets and one row left out", list, err)
	}
	check(t, s.drift, []string{"market-search: bad row"})
	check(t, list.LeftOut[0], "UPSTREAM_BAD_RESPONSE: row 2 of the venue's answer could not be read and is left out (market-search): question is missing")
}
