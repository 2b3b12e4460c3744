package generic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
)

// wireFile is a golden file that the tests of the demo venue wrote. It contains a request and its response.
type wireFile struct {
	Request        string
	Status         int
	ResponseHeader map[string]string
	Body           json.RawMessage
}

// object is a JSON object that is decoded without the client's decoders.
type object map[string]json.RawMessage

// at returns a string member without quotes, and another member as its JSON literal. If the member is null, missing or an empty
// string, at returns "-".
func (o object) at(name string) string {
	s := strings.Trim(string(o[name]), `"`)
	if s == "" || s == "null" {
		return "-"
	}
	var text string
	if o[name][0] == '"' && json.Unmarshal(o[name], &text) == nil {
		return text
	}
	return s
}

// when returns a member that is a time, in the format of showTime. If the member is not a time, when returns "-".
func (o object) when(name string) string {
	t, err := time.Parse(time.RFC3339Nano, o.at(name))
	if err != nil {
		return "-"
	}
	return showTime(t.UTC())
}

// rows returns a member that is a list of objects.
func (o object) rows(t *testing.T, name string) []object {
	t.Helper()
	var list []object
	if err := json.Unmarshal(o[name], &list); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return list
}

func TestDemoVenue(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "tests", "testdata", "venue", "demo", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(file)
			must(t, err)
			var w wireFile
			must(t, json.Unmarshal(b, &w))
			asked, err := url.Parse(w.Request)
			must(t, err)
			if w.Request == "/api/exchange/nothing" {
				t.Skip("not an endpoint of the client's")
			}
			seen := &recordingObserver{}
			v := newVenue(t, map[string]http.HandlerFunc{asked.Path: func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", "application/json")
				for k, value := range w.ResponseHeader {
					rw.Header().Set(k, value)
				}
				rw.WriteHeader(w.Status)
				_, _ = rw.Write(w.Body)
			}})
			c := v.client(t, func(cfg *Config) { cfg.Observer = seen })
			if w.Status != 200 {
				demoError(t, c, asked.Path, w)
				return
			}
			var body object
			must(t, json.Unmarshal(w.Body, &body))
			demoRead(t, v, c, name, asked, body)
			assertEqual(t, seen.driftText(), "")
		})
	}
}

// demoError checks the client's error for a recorded error response.
func demoError(t *testing.T, c *Client, path string, w wireFile) {
	want := map[int]market.Code{400: market.CodeUpstreamBadResponse, 401: market.CodeUnauthenticated, 403: market.CodeForbidden, 404: "",
		429: market.CodeRateLimited, 500: market.CodeUpstreamUnavailable, 503: market.CodeUpstreamUnavailable}
	code, known := want[w.Status]
	if !known {
		t.Fatalf("no expectation for status %d", w.Status)
	}
	for _, r := range reads {
		if r.path() != path {
			continue
		}
		_, err := r.call(asUser(t), c)
		if got := market.CodeOf(err); got != code {
			t.Errorf("%s: got %v, want %s", r.name, err, code)
		}
		if w.ResponseHeader["Retry-After"] == "60" && retryAfterOf(err) != string(code)+" 1m0s" {
			t.Errorf("%s: %v has no Retry-After", r.name, err)
		}
	}
}

// demoRead makes the read of a recorded request and compares the client's values with the recorded response.
func demoRead(t *testing.T, v *fakeVenue, c *Client, name string, asked *url.URL, body object) {
	ctx, q := asUser(t), asked.Query()
	ids := func(list, single string) []string {
		if q.Get(list) != "" {
			return strings.Split(q.Get(list), ",")
		}
		return []string{q.Get(single)}
	}
	byToken := func(key string, want func(o object) string) string {
		rows := []object{body}
		if body[key] != nil {
			rows = body.rows(t, key)
		}
		var lines []string
		for _, id := range ids("tokenIds", "tokenId") {
			line := "absent"
			for _, o := range rows {
				if o.at("tokenId") == id {
					line = want(o)
				}
			}
			lines = append(lines, line)
		}
		return strings.Join(lines, "\n")
	}
	switch e := strings.TrimPrefix(asked.Path, "/api/"); e {
	case "exchange/prices":
		results, err := c.Prices(ctx, ids("tokenIds", "tokenId"))
		must(t, err)
		assertEqual(t, showResults(results, showPrice), byToken("prices", func(o object) string {
			return strings.Join([]string{o.at("tokenId"), o.at("price"), "VENUE", o.when("timestamp")}, " ")
		}))
	case "exchange/spreads":
		results, err := c.Spreads(ctx, ids("tokenIds", "tokenId"))
		must(t, err)
		assertEqual(t, showResults(results, showSpread), byToken("spreads", func(o object) string {
			return strings.Join([]string{o.at("tokenId"), o.at("bestBid"), o.at("bestAsk"), o.at("spread"), o.when("timestamp")}, " ")
		}))
	case "exchange/orderbook":
		b, err := c.Book(ctx, q.Get("tokenId"), 200)
		must(t, err)
		side := func(key string) string {
			var s []string
			for _, l := range body.rows(t, key) {
				s = append(s, l.at("size")+"@"+l.at("price"))
			}
			return "[" + strings.Join(s, " ") + "]"
		}
		assertEqual(t, showBook(b), fmt.Sprintf("%s %s %s spread %s at %s epoch %s seq %s hash - depth 200", q.Get("tokenId"), side("bids"), side("asks"),
			body.at("spread"), body.when("timestamp"), body.at("epoch"), body.at("seq")))
	case "exchange/price-history":
		h, err := c.PriceHistory(ctx, q.Get("tokenId"), date(t, "2020-01-01"), date(t, "2030-01-01"))
		must(t, err)
		var want []string
		for _, o := range body.rows(t, "history") {
			want = append([]string{o.when("timestamp") + " " + o.at("price") + " " + o.at("volume")}, want...)
		}
		assertEqual(t, showHistory(h), strings.Join(want, "\n"))
	case "exchange/market-details":
		demoDetails(t, c, q, ids, body)
	case "exchange/market-search":
		demoSearch(t, v, c, name, q, body)
	case "user/balance":
		b, err := c.Balance(ctx, wallet)
		must(t, err)
		assertEqual(t, showBalance(b), fmt.Sprintf("portfolio %s cash %s positions - total %s at %s", body.at("portfolioValue"), body.at("cashBalance"),
			body.at("totalValue"), body.when("lastUpdated")))
	case "user/positions", "user/orders":
		demoWhole(t, v, c, strings.TrimPrefix(e, "user/"), body)
	case "user/trades":
		page, err := c.Trades(ctx, wallet, queries.Trades{})
		must(t, err)
		want := []string{"next " + demoNext(body) + " total -"}
		for _, o := range body.rows(t, "trades") {
			want = append(want, strings.Join([]string{o.at("tradeId"), o.at("marketId"), o.at("tokenId"), o.at("outcome"), o.at("side") + "(" + o.at("side") + ")",
				o.at("price"), o.at("size"), o.at("fee"), o.when("timestamp"), o.at("transactionHash")}, " "))
		}
		page.Total = nil
		assertEqual(t, showTrades(page), strings.Join(want, "\n"))
	case "user/history":
		page, err := c.History(ctx, wallet, queries.History{})
		must(t, err)
		want := []string{"next " + demoNext(body) + " total -"}
		for _, o := range body.rows(t, "history") {
			want = append(want, strings.Join([]string{o.at("id"), o.at("type") + "(" + o.at("type") + ")", o.when("timestamp"), o.at("amount"), o.at("marketId"),
				o.at("tokenId"), o.at("outcome"), o.at("side"), o.at("price"), o.at("size"), o.at("transactionHash")}, " "))
		}
		page.Total = nil
		assertEqual(t, showRecords(page), strings.Join(want, "\n"))
	default:
		t.Fatalf("no test reads %s", asked.Path)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// demoNext returns the page token that the client makes from the recorded cursor, or "-" if there is no cursor.
func demoNext(body object) string {
	if cursor := body.at("nextCursor"); cursor != "-" {
		return "c:" + cursor
	}
	return "-"
}

// demoMarket formats a recorded market as showMarket formats a market from the client.
func demoMarket(t *testing.T, o object, summary bool) string {
	var b marketText
	var tags []string
	must(t, json.Unmarshal(o["tags"], &tags))
	b.line("market", o.at("marketId"), o.at("slug"), o.at("question"), o.at("groupItemTitle"))
	b.line("about", o.at("description"), o.at("image"), o.at("category"), showText(strings.Join(tags, ",")))
	b.line("status", o.at("status"), o.at("status"), o.at("acceptingOrders"))
	b.line("times", o.when("startDate"), o.when("endDate"), o.when("updatedAt"))
	b.line("figures", o.at("volume"), o.at("volume24h"), o.at("liquidity"), o.at("tickSize"), o.at("minOrderSize"))
	b.line("event", o.at("eventId"), o.at("eventSlug"), o.at("eventTitle"))
	for _, outcome := range o.rows(t, "outcomes") {
		b.line("outcome", outcome.at("tokenId"), outcome.at("outcome"), outcome.at("price"), outcome.at("winner"))
	}
	if o.at("resolution") != "-" {
		var r object
		must(t, json.Unmarshal(o["resolution"], &r))
		b.line("resolution", r.at("outcome"), r.when("resolvedAt"), r.at("source"))
	}
	return b.end(summary)
}

func demoDetails(t *testing.T, c *Client, q url.Values, ids func(list, single string) []string, body object) {
	rows := []object{body}
	if body["markets"] != nil {
		rows = body.rows(t, "markets")
	}
	var want []string
	find := func(keys []string, has func(o object, key string) bool) {
		for _, key := range keys {
			line := "absent"
			for _, o := range rows {
				if has(o, key) {
					line = demoMarket(t, o, false)
				}
			}
			want = append(want, line)
		}
	}
	var results []market.Result[*market.Market]
	var err error
	switch {
	case q.Has("slug"):
		m, e := c.MarketBySlug(t.Context(), q.Get("slug"))
		results, err = []market.Result[*market.Market]{{Value: m}}, e
		find([]string{q.Get("slug")}, func(o object, slug string) bool { return o.at("slug") == slug })
	case q.Has("tokenIds"):
		results, err = c.MarketsByToken(t.Context(), ids("tokenIds", ""))
		find(ids("tokenIds", ""), func(o object, id string) bool { return strings.Contains(string(o["outcomes"]), `"`+id+`"`) })
	default:
		results, err = c.MarketsByID(t.Context(), ids("ids", "id"))
		find(ids("ids", "id"), func(o object, id string) bool { return o.at("marketId") == id })
	}
	must(t, err)
	assertEqual(t, showResults(results, showMarket), strings.Join(want, "\n"))
}

func demoSearch(t *testing.T, v *fakeVenue, c *Client, name string, q url.Values, body object) {
	page, err := c.Search(t.Context(), queries.Search{EventID: q.Get("eventId"), Category: q.Get("category"), Tag: q.Get("tag")})
	must(t, err)
	assertEqual(t, showNext(page.Next)+" "+showTotal(page.Total), demoNext(body)+" "+body.at("totalCount"))
	var got, want []string
	for _, o := range body.rows(t, "markets") {
		want = append(want, demoMarket(t, o, true))
	}
	for _, m := range page.Markets {
		got = append(got, showMarket(m))
	}
	assertEqual(t, strings.Join(got, "\n"), strings.Join(want, "\n"))
	if v.count() != 1 {
		t.Errorf("%d calls", v.count())
	}
}

// demoWhole reads all pages of a recorded list. The venue sends the recorded page for every request, so the read must fail if the
// recorded page has a cursor.
func demoWhole(t *testing.T, _ *fakeVenue, c *Client, name string, body object) {
	var got, want []string
	for _, o := range body.rows(t, name) {
		if name == "positions" {
			want = append(want, strings.Join([]string{o.at("marketId"), o.at("tokenId"), o.at("outcome"), o.at("size"), o.at("avgPrice"), o.at("currentPrice"), o.at("unrealizedPnl")}, " "))
			continue
		}
		want = append(want, strings.Join([]string{o.at("orderId"), o.at("marketId"), "-", o.at("side") + "(" + o.at("side") + ")", o.at("outcome"), o.at("price"), o.at("size"),
			o.at("filledSize"), o.at("status") + "(" + o.at("status") + ")", o.when("createdAt")}, " "))
	}
	var err error
	if name == "positions" {
		var list []market.Position
		list, err = c.Positions(asUser(t), wallet)
		got = append(got, showPositions(list))
	} else {
		var list []market.Order
		list, err = c.Orders(asUser(t), wallet)
		got = append(got, showOrders(list))
	}
	if body.at("nextCursor") != "-" {
		if market.CodeOf(err) != market.CodeUpstreamBadResponse {
			t.Errorf("got %v of a venue that repeats its page", err)
		}
		return
	}
	must(t, err)
	assertEqual(t, strings.Join(got, "\n"), strings.Join(want, "\n"))
}
