package generic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

// wireFile is a request and its response of a golden file that the tests of the demo venue wrote.
type wireFile struct {
	Request        string
	Status         int
	ResponseHeader map[string]string
	Body           json.RawMessage
}

// object is a JSON object that is decoded without the client's decoders.
type object map[string]json.RawMessage

// text returns a member. If the member is a string, text returns the string without quotes, and otherwise the JSON literal. If the
// member is null, missing or an empty string, text returns "-".
func (o object) text(name string) string {
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

// timeText returns a member that is a time, in the format of showTime. If the member is not a time, timeText returns "-".
func (o object) timeText(name string) string {
	t, err := time.Parse(time.RFC3339Nano, o.text(name))
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
		t.Fatalf("the member %s is not a list of objects: %v", name, err)
	}
	return list
}

// byToken finds the row of each token in the list with the given name, and formats the row. If the list is missing, the object
// itself is the only row.
func (o object) byToken(t *testing.T, name string, tokens []string, text func(o object) string) (lines []string) {
	rows := []object{o}
	if o[name] != nil {
		rows = o.rows(t, name)
	}
	for _, id := range tokens {
		if i := slices.IndexFunc(rows, func(o object) bool { return o.text("tokenId") == id }); i >= 0 {
			lines = append(lines, text(rows[i]))
		} else {
			lines = append(lines, "absent")
		}
	}
	return lines
}

func TestClientReadsGoldenFiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "tests", "testdata", "venue", "demo", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no golden files of the demo venue (error %v)", err)
	}
	golden := map[string]wireFile{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		must(t, err)
		must(t, json.Unmarshal(b, &golden))
	}
	for name, w := range golden {
		t.Run(name, func(t *testing.T) {
			asked, err := url.Parse(w.Request)
			must(t, err)
			if w.Request == "/api/exchange/nothing" {
				t.Skip("the client does not call this endpoint")
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
				checkReadError(t, c, asked.Path, w)
				return
			}
			var body object
			must(t, json.Unmarshal(w.Body, &body))
			checkRead(t, v, c, asked, body)
			assertEqual(t, seen.driftText(), "")
		})
	}
}

// checkReadError checks the client's error for a recorded error response.
func checkReadError(t *testing.T, c *Client, path string, w wireFile) {
	want := map[int]market.Code{400: market.CodeUpstreamBadResponse, 401: market.CodeUnauthenticated, 403: market.CodeForbidden, 404: "",
		429: market.CodeRateLimited, 500: market.CodeUpstreamUnavailable, 503: market.CodeUpstreamUnavailable}
	code, known := want[w.Status]
	if !known {
		t.Fatalf("the test has no expected error code for the status %d", w.Status)
	}
	for _, r := range reads {
		if r.path() != path {
			continue
		}
		_, err := r.call(t.Context(), asUser(t), c)
		if got := market.CodeOf(err); got != code {
			t.Errorf("the read of %s returned %v, want %s", r.name, err, code)
		}
		if w.ResponseHeader["Retry-After"] == "60" && retryAfterOf(err) != string(code)+" 1m0s" {
			t.Errorf("the read of %s returned %v, want RetryAfter 1m0s", r.name, err)
		}
	}
}

// checkRead makes the read of a recorded request and compares the client's values with the recorded response.
func checkRead(t *testing.T, v *fakeVenue, c *Client, asked *url.URL, body object) {
	q, endpoint := asked.Query(), path.Base(asked.Path)
	ids := func(list, single string) []string {
		if q.Get(list) != "" {
			return strings.Split(q.Get(list), ",")
		}
		return []string{q.Get(single)}
	}
	if endpoint == "market-details" {
		checkDetails(t, c, q, ids, body)
		return
	}
	tokens := ids("tokenIds", "tokenId")
	text, _, err := readOf(readsFor(tokens, "", "", date(t, "2020-01-01"), date(t, "2030-01-01")), endpoint).text(t.Context(), asUser(t), c)
	if body.text("nextCursor") != "-" && (endpoint == "positions" || endpoint == "orders") {
		// The venue sends the recorded page for every request, so the read of all pages must fail.
		if market.CodeOf(err) != market.CodeUpstreamBadResponse {
			t.Errorf("got %v from a venue that repeats its page, want %s", err, market.CodeUpstreamBadResponse)
		}
		return
	}
	must(t, err)
	assertEqual(t, text, demoText(t, endpoint, tokens, body))
	if v.count() != 1 {
		t.Errorf("the read made %d calls, want 1", v.count())
	}
}

// demoText formats a recorded response in the format in which read.text returns the client's values.
func demoText(t *testing.T, endpoint string, tokens []string, body object) string {
	join := func(values ...string) string { return strings.Join(values, " ") }
	raw := func(value string) string { return value + "(" + value + ")" }
	var lines []string
	rows := func(key string, text func(o object) string) {
		for _, o := range body.rows(t, key) {
			lines = append(lines, text(o))
		}
	}
	page := func(total string) { lines = append(lines, "next "+demoNext(body)+" total "+body.text(total)) }
	switch endpoint {
	case "prices":
		lines = body.byToken(t, "prices", tokens, func(o object) string {
			return join(o.text("tokenId"), o.text("price"), "VENUE", o.timeText("timestamp"))
		})
	case "spreads":
		lines = body.byToken(t, "spreads", tokens, func(o object) string {
			return join(o.text("tokenId"), o.text("bestBid"), o.text("bestAsk"), o.text("spread"), o.timeText("timestamp"))
		})
	case "orderbook":
		rows("bids", func(l object) string { return l.text("size") + "@" + l.text("price") })
		bids := join(lines...)
		lines = nil
		rows("asks", func(l object) string { return l.text("size") + "@" + l.text("price") })
		return fmt.Sprintf("%s [%s] [%s] spread %s at %s epoch %s seq %s hash - depth 20", tokens[0], bids, join(lines...),
			body.text("spread"), body.timeText("timestamp"), body.text("epoch"), body.text("seq"))
	case "price-history":
		rows("history", func(o object) string { return join(o.timeText("timestamp"), o.text("price"), o.text("volume")) })
		slices.Reverse(lines)
	case "market-search":
		page("totalCount")
		rows("markets", func(o object) string { return demoMarket(t, o, true) })
	case "balance":
		return fmt.Sprintf("portfolio %s cash %s positions - total %s at %s", body.text("portfolioValue"), body.text("cashBalance"),
			body.text("totalValue"), body.timeText("lastUpdated"))
	case "positions":
		rows("positions", func(o object) string {
			return join(o.text("marketId"), o.text("tokenId"), o.text("outcome"), o.text("size"), o.text("avgPrice"), o.text("currentPrice"), o.text("unrealizedPnl"))
		})
	case "orders":
		rows("orders", func(o object) string {
			return join(o.text("orderId"), o.text("marketId"), "-", raw(o.text("side")), o.text("outcome"), o.text("price"), o.text("size"),
				o.text("filledSize"), raw(o.text("status")), o.timeText("createdAt"))
		})
	case "trades":
		page("count")
		rows("trades", func(o object) string {
			return join(o.text("tradeId"), o.text("marketId"), o.text("tokenId"), o.text("outcome"), raw(o.text("side")), o.text("price"), o.text("size"),
				o.text("fee"), o.timeText("timestamp"), o.text("transactionHash"))
		})
	case "history":
		page("count")
		rows("history", func(o object) string {
			return join(o.text("id"), raw(o.text("type")), o.timeText("timestamp"), o.text("amount"), o.text("marketId"), o.text("tokenId"), o.text("outcome"),
				o.text("side"), o.text("price"), o.text("size"), o.text("transactionHash"))
		})
	}
	return strings.Join(lines, "\n")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// demoNext returns the page token that the client makes from the recorded cursor, or "-" if there is no cursor.
func demoNext(body object) string {
	if cursor := body.text("nextCursor"); cursor != "-" {
		return "c:" + cursor
	}
	return "-"
}

// demoMarket formats a recorded market as showMarket formats a market from the client.
func demoMarket(t *testing.T, o object, summary bool) string {
	var b marketText
	var tags []string
	must(t, json.Unmarshal(o["tags"], &tags))
	b.line("market", o.text("marketId"), o.text("slug"), o.text("question"), o.text("groupItemTitle"))
	b.line("about", o.text("description"), o.text("image"), o.text("category"), showText(strings.Join(tags, ",")))
	b.line("status", o.text("status"), o.text("status"), o.text("acceptingOrders"))
	b.line("times", o.timeText("startDate"), o.timeText("endDate"), o.timeText("updatedAt"))
	b.line("figures", o.text("volume"), o.text("volume24h"), o.text("liquidity"), o.text("tickSize"), o.text("minOrderSize"))
	b.line("event", o.text("eventId"), o.text("eventSlug"), o.text("eventTitle"))
	for _, outcome := range o.rows(t, "outcomes") {
		b.line("outcome", outcome.text("tokenId"), outcome.text("outcome"), outcome.text("price"), outcome.text("winner"))
	}
	if o.text("resolution") != "-" {
		var r object
		must(t, json.Unmarshal(o["resolution"], &r))
		b.line("resolution", r.text("outcome"), r.timeText("resolvedAt"), r.text("source"))
	}
	return b.end(summary)
}

func checkDetails(t *testing.T, c *Client, q url.Values, ids func(list, single string) []string, body object) {
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
	var results []upstream.Result[*market.Market]
	var err error
	switch {
	case q.Has("slug"):
		m, e := c.MarketBySlug(t.Context(), upstream.Call{}, q.Get("slug"))
		results, err = []upstream.Result[*market.Market]{{Value: m}}, e
		find([]string{q.Get("slug")}, func(o object, slug string) bool { return o.text("slug") == slug })
	case q.Has("tokenIds"):
		results, err = c.MarketsByToken(t.Context(), upstream.Call{}, ids("tokenIds", ""))
		find(ids("tokenIds", ""), func(o object, id string) bool { return strings.Contains(string(o["outcomes"]), `"`+id+`"`) })
	default:
		results, err = c.MarketsByID(t.Context(), upstream.Call{}, ids("ids", "id"))
		find(ids("ids", "id"), func(o object, id string) bool { return o.text("marketId") == id })
	}
	must(t, err)
	assertEqual(t, showResults(results, showMarket), strings.Join(want, "\n"))
}
