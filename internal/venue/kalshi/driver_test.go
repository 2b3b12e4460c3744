package kalshi

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/tests/tool"
)

// stub is a transport that records the calls, and the rest.Observer that records the drift. The function in answers for the path of a call returns the response. The text of a
// call with a valid signature ends with " signed".
type stub struct {
	mu      sync.Mutex
	answers map[string]func(url.Values) (status int, body string)
	calls   []string
	drift   []string
}

// Call implements rest.Observer.
func (s *stub) Call(upstream.HTTPCall, error) {}

// Drift implements rest.Observer.
func (s *stub) Drift(endpoint, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drift = append(s.drift, endpoint+": "+what)
}

// RoundTrip implements http.RoundTripper.
func (s *stub) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/trade-api/v2")
	call := strings.TrimSuffix(path+"?"+r.URL.RawQuery, "?")
	if hasSignature(r) {
		call += " signed"
	}
	s.calls = append(s.calls, call)
	status, body := http.StatusNotFound, `{"error":{"code":"not_found","message":"not found"}}`
	if answer := s.answers[path]; answer != nil {
		status, body = answer(r.URL.Query())
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

// hasSignature reports whether a call has a valid signature of testKey. The signature covers the time, the method and the whole
// path.
func hasSignature(r *http.Request) bool {
	signature, err := base64.StdEncoding.DecodeString(r.Header.Get(headerSignature))
	digest := sha256.Sum256([]byte(r.Header.Get(headerTimestamp) + r.Method + r.URL.Path))
	return err == nil && r.Header.Get(headerKey) == "id" &&
		rsa.VerifyPSS(&newPrivate().PublicKey, crypto.SHA256, digest[:], signature, &rsa.PSSOptions{SaltLength: sha256.Size}) == nil
}

// want compares the recorded calls with want.
func (s *stub) want(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(s.calls, want) {
		t.Errorf("the driver makes the calls %q; want %q", s.calls, want)
	}
}

// file returns a function for stub.answers. The function returns a file of testdata as the body.
func file(t *testing.T, name string) func(url.Values) (int, string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return func(url.Values) (int, string) { return http.StatusOK, string(b) }
}

func text(body string) func(url.Values) (int, string) {
	return func(url.Values) (int, string) { return http.StatusOK, body }
}

// newDriver returns a driver, and the stub that is its transport.
func newDriver(t *testing.T, answers map[string]func(url.Values) (int, string)) (*Driver, *stub) {
	t.Helper()
	s := &stub{answers: answers}
	d, err := New(rest.Config{Transport: s, Observer: s, Clock: tool.NewClock(start), Retries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d, s
}

// newSigningDriver is like newDriver. The driver has a key.
func newSigningDriver(t *testing.T, answers map[string]func(url.Values) (int, string)) (*Driver, *stub) {
	t.Helper()
	d, s := newDriver(t, answers)
	d.key = testKey()
	return d, s
}

// testKey returns a key that simulators with testKeys know.
func testKey() *Key { return &Key{secret: &secret{"id", newPrivate()}} }

// TestUnknownIDs checks that the driver makes no call for ids that cannot be ids of Kalshi tokens or markets. An id that is invalid
// for every venue must get an error.
func TestUnknownIDs(t *testing.T) {
	d, s := newDriver(t, nil)
	ctx := context.Background()
	prices, err := d.Prices(ctx, upstream.Call{}, []string{"71321045679252212594626385532706912750332728571942532289631379312455583992563", "a-1:yes"})
	books, err4 := d.Books(ctx, upstream.Call{}, []queries.Book{{TokenID: "..:yes"}, {TokenID: ".:no"}})
	event, err5 := d.Event(ctx, upstream.Call{}, market.EventRef{EventID: ".."})
	if err4 != nil || err5 != nil || books[0].Value != nil || books[1].Value != nil || event != nil || len(s.calls) > 0 {
		t.Errorf("ids that lead elsewhere in a path have the books %v, the event %v, the errors %v and %v, the calls %q; want nothing", books, event, err4, err5, s.calls)
	}
	markets, err2 := d.MarketsByID(ctx, upstream.Call{}, []string{"0xabc", "A B"})
	m, err3 := d.MarketBySlug(ctx, upstream.Call{}, "Rain-In-Lisbon")
	if err != nil || err2 != nil || err3 != nil || prices[0].Value != nil || prices[1].Value != nil || markets[0].Value != nil || m != nil || len(s.calls) > 0 {
		t.Errorf("the errors are %v, %v and %v, the prices %v, the markets %v and %v, the calls %q; want no error, no value and no call", err, err2, err3, prices, markets, m, s.calls)
	}
	if prices, _ := d.Prices(ctx, upstream.Call{}, []string{"A,B:yes"}); market.CodeOf(prices[0].Err) != market.CodeBadUserInput {
		t.Errorf("the price of an id with a comma has the error %v, want BAD_USER_INPUT", prices[0].Err)
	}
}

// TestArchivedMarkets checks that the driver reads a market from the archive if the list of markets lacks the market.
func TestArchivedMarkets(t *testing.T) {
	d, s := newDriver(t, map[string]func(url.Values) (int, string){
		"/markets":            text(`{"markets":[{"ticker":"A-1","status":"active"}]}`),
		"/historical/markets": text(`{"markets":[{"ticker":"A-0","status":"finalized","result":"yes","settlement_value_dollars":"1.0000"}]}`),
	})
	got, err := d.MarketsByToken(context.Background(), upstream.Call{}, []string{"A-0:no", "A-1:yes", "A-0:yes", "A-9:yes"})
	if err != nil {
		t.Fatal(err)
	}
	if w := got[0].Value.Winner(); w == nil || w.TokenID != "A-0:yes" || got[1].Value.MarketID != "A-1" || got[2].Value.MarketID != "A-0" || got[3].Value != nil {
		t.Errorf("MarketsByToken returns %+v", got)
	}
	s.want(t, "/markets?tickers=A-0,A-1,A-9&limit=3", "/historical/markets?tickers=A-0,A-9&limit=2")
}

func TestPriceHistories(t *testing.T) {
	candles := file(t, "candlesticks.json")
	d, s := newDriver(t, map[string]func(url.Values) (int, string){
		"/markets/candlesticks": func(q url.Values) (int, string) {
			if q.Get("market_tickers") == "A-9" {
				return http.StatusOK, `{"markets":[]}`
			}
			return candles(q)
		},
		"/historical/markets/KXRAINLIS-25NOV30-T2.5/candlesticks": file(t, "candlesticks_historical.json"),
	})
	day, err := market.ParseDate("2026-11-26")
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.PriceHistories(context.Background(), upstream.Call{}, []queries.PriceHistory{
		{TokenID: "KXRAINLIS-26NOV30-T2.5:no", From: day, To: day + 1}, {TokenID: "KXRAINLIS-25NOV30-T2.5:yes", From: day, To: day + 1},
		{TokenID: "KXRAINLIS-26NOV30-T2.5:yes", From: day, To: day + 1}, {TokenID: "A-1:yes", From: day + 1, To: day},
		{TokenID: "A-9:yes", From: day, To: day + 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	if h := got[0].Value; len(h.Points) != 2 || h.Points[0].Price.String() != "0.5550" || len(h.LeftOut) != 1 {
		t.Errorf("the history of NO is %+v", h)
	}
	if h := got[2].Value; h.Points[0].Price.String() != "0.4450" || h.Points[0].Volume.String() != "31.50" {
		t.Errorf("the history of YES is %+v", h)
	}
	if h := got[1].Value; h == nil || len(h.Points) != 1 || h.Points[0].Price.String() != "0.2050" {
		t.Errorf("the archived history is %+v", h)
	}
	if market.CodeOf(got[3].Err) != market.CodeBadUserInput || got[4].Value != nil || got[4].Err != nil {
		t.Errorf("a history of no days has the error %v, want BAD_USER_INPUT; a history of an unknown market is %+v, want no value", got[3].Err, got[4])
	}
	span := "start_ts=1795651201&end_ts=1795824000&period_interval=60"
	slices.Sort(s.calls) // some calls are concurrent
	s.want(t, "/historical/markets/A-9/candlesticks?"+span, "/historical/markets/KXRAINLIS-25NOV30-T2.5/candlesticks?"+span,
		"/markets/candlesticks?market_tickers=A-9&"+span, "/markets/candlesticks?market_tickers=KXRAINLIS-26NOV30-T2.5,KXRAINLIS-25NOV30-T2.5&"+span)
}

func TestEvent(t *testing.T) {
	d, s := newDriver(t, map[string]func(url.Values) (int, string){
		"/events/KXRAINLIS-26NOV30": file(t, "event.json"), "/series/KXRAINLIS": file(t, "series.json"), "/events/KXOTHER": file(t, "event.json"),
	})
	for _, ref := range []market.EventRef{{EventID: "KXRAINLIS-26NOV30"}, {EventSlug: "kxrainlis-26nov30"}} {
		e, err := d.Event(context.Background(), upstream.Call{}, ref)
		if err != nil || len(e.Markets) != 2 || len(e.LeftOut) != 1 || e.Markets[0].Category != "Climate and Weather" || e.Exclusive == nil || *e.Exclusive {
			t.Errorf("Event(%+v) returns %+v and the error %v", ref, e, err)
		}
	}
	if e, err := d.Event(context.Background(), upstream.Call{}, market.EventRef{EventID: "KXABSENT"}); e != nil || err != nil {
		t.Errorf("Event of an unknown id returns %+v and the error %v, want nothing", e, err)
	}
	if e, err := d.Event(context.Background(), upstream.Call{}, market.EventRef{EventID: "KXOTHER"}); market.CodeOf(err) != market.CodeUpstreamBadResponse {
		t.Errorf("if the response has another event, Event returns %+v and the error %v, want UPSTREAM_BAD_RESPONSE", e, err)
	}
	want := []string{"/events/KXRAINLIS-26NOV30?with_nested_markets=true", "/series/KXRAINLIS", "/historical/markets?event_ticker=KXRAINLIS-26NOV30&limit=1000"}
	if !slices.Equal(s.calls[:3], want) {
		t.Errorf("the first calls are %q; want %q", s.calls, want)
	}
}

// TestArchivedEvent checks an event whose markets are partly or all in the archive. As documented, the event itself lacks archived
// markets. If the response of the archive is not a complete list, LeftOut has an error. If the event has no other markets either,
// the read must fail.
func TestArchivedEvent(t *testing.T) {
	const archived = `{"ticker":"A-0","event_ticker":"A","status":"finalized"}`
	for _, test := range []struct{ listed, archive, want string }{
		{"", `{"markets":[` + archived + `],"cursor":""}`, "A-0 Climate and Weather, "},
		{"", `{"markets":[]}`, ""},
		{"", `{"rows":[]}`, "UPSTREAM_BAD_RESPONSE"},
		{"", `{"markets":[` + archived + `],"cursor":"a"}`, "UPSTREAM_BAD_RESPONSE"},
		{`{"ticker":"A-1","status":"active"}`, `{"markets":[` + archived + `],"cursor":""}`, "A-1 Climate and Weather, A-0 Climate and Weather, "},
		{`{"ticker":"A-0","status":"finalized"}`, `{"markets":[` + archived + `],"cursor":""}`, "A-0 Climate and Weather, "},
		{`{"ticker":"A-1","status":"active"}`, `{"markets":[{"ticker":"A-0"}],"cursor":""}`, "A-1 Climate and Weather, 1 left out"},
		{`{"ticker":"A-1","status":"active"}`, `{"rows":[]}`, "A-1 Climate and Weather, 1 left out"},
		{`{"ticker":"A-1","status":"active"}`, `{"error":"no"}`, "A-1 Climate and Weather, 1 left out"},
		{`{"ticker":"A-1","status":"active"}`, `{"error":{"code":"429"}}`, "RATE_LIMITED"},
	} {
		d, _ := newDriver(t, map[string]func(url.Values) (int, string){
			"/events/A":           text(`{"event":{"event_ticker":"A","series_ticker":"S","title":"T","markets":[` + test.listed + `]}}`),
			"/series/S":           file(t, "series.json"),
			"/historical/markets": text(test.archive),
		})
		e, err := d.Event(t.Context(), upstream.Call{}, market.EventRef{EventID: "A"})
		got := string(market.CodeOf(err))
		if err == nil {
			for _, m := range e.Markets {
				got += m.MarketID + " " + m.Category + ", "
			}
			if len(e.LeftOut) > 0 {
				got += fmt.Sprint(len(e.LeftOut), " left out")
			}
		}
		if got != test.want {
			t.Errorf("with the markets %s and the archive %s, Event returns %q, want %q; the error is %v", test.listed, test.archive, got, test.want, err)
		}
	}
}

// TestArchiveOfMarkets reads all pages of a list of markets. After the last page of the list, the pages of the archive must follow.
// Markets that are in both must appear once. If the search asks for a state that archived markets do not have, the list ends
// without the archive.
func TestArchiveOfMarkets(t *testing.T) {
	row := func(ticker, status string) string {
		return `{"ticker":"` + ticker + `","status":"` + status + `","close_time":"2026-01-02T00:00:00Z"}`
	}
	answers := map[string]func(url.Values) (int, string){
		"/markets": func(q url.Values) (int, string) {
			switch {
			case q.Get("tickers") != "":
				return http.StatusOK, `{"markets":[` + row("A-1", "finalized") + `]}`
			case q.Get("cursor") == "":
				return http.StatusOK, `{"markets":[` + row("A-2", "active") + `],"cursor":"m2"}`
			}
			return http.StatusOK, `{"markets":[` + row("A-1", "finalized") + `],"cursor":""}`
		},
		"/historical/markets": func(q url.Values) (int, string) {
			if q.Get("cursor") == "" {
				return http.StatusOK, `{"markets":[` + row("A-1", "finalized") + "," + row("A-0", "finalized") + `],"cursor":"h2"}`
			}
			return http.StatusOK, `{"markets":[],"cursor":""}`
		},
	}
	resolved := []market.Status{market.StatusResolved}
	const archive = "/historical/markets?mve_filter=exclude&limit=20"
	for _, test := range []struct {
		q     queries.Search
		want  string
		calls []string
	}{
		{queries.Search{}, "A-2 A-1 A-0 ", []string{
			"/markets?mve_filter=exclude&limit=20", "/markets?mve_filter=exclude&limit=20&cursor=m2", archive, "/markets?tickers=A-1,A-0&limit=2", archive + "&cursor=h2",
		}},
		{queries.Search{Status: resolved, EndsBefore: queries.At(start)}, "A-1 A-0 ", []string{
			"/markets?max_close_ts=1795687200&mve_filter=exclude&limit=20", "/markets?max_close_ts=1795687200&mve_filter=exclude&limit=20&cursor=m2",
			archive, "/markets?tickers=A-1,A-0&limit=2", archive + "&cursor=h2",
		}},
		{queries.Search{EndsAfter: queries.At(start)}, "", []string{
			"/markets?min_close_ts=1795687200&mve_filter=exclude&limit=20", "/markets?min_close_ts=1795687200&mve_filter=exclude&limit=20&cursor=m2", archive, archive + "&cursor=h2",
		}},
		{queries.Search{Status: []market.Status{market.StatusOpen}}, "A-2 ", []string{
			"/markets?status=open&mve_filter=exclude&limit=20", "/markets?status=open&mve_filter=exclude&limit=20&cursor=m2",
		}},
	} {
		d, s := newDriver(t, answers)
		got := ""
		for q := test.q; ; {
			page, err := d.Search(t.Context(), upstream.Call{}, q)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page.Markets {
				got += m.MarketID + " "
			}
			if q.Page = page.Next; q.Page == "" {
				break
			}
		}
		if got != test.want {
			t.Errorf("the pages of Search(%+v) have the markets %q, want %q", test.q, got, test.want)
		}
		s.want(t, test.calls...)
	}
	delete(answers, "/historical/markets")
	d, _ := newDriver(t, answers)
	if page, err := d.Search(t.Context(), upstream.Call{}, queries.Search{Page: `{"a":true}`}); market.CodeOf(err) != market.CodeUpstreamBadResponse {
		t.Errorf("without an archive, Search returns %+v and the error %v, want UPSTREAM_BAD_RESPONSE", page, err)
	}
}

// TestUnreadableCursor checks that a page whose cursor cannot be read is no last page.
func TestUnreadableCursor(t *testing.T) {
	for _, cursor := range []string{`{"value":"m2"}`, `7`, `false`, `"` + strings.Repeat("m", 1025) + `"`} {
		d, _ := newDriver(t, map[string]func(url.Values) (int, string){"/markets": text(`{"markets":[],"cursor":` + cursor + `}`)})
		if page, err := d.Search(t.Context(), upstream.Call{}, queries.Search{Status: []market.Status{market.StatusOpen}}); market.CodeOf(err) != market.CodeUpstreamBadResponse {
			t.Errorf("with the cursor %.20s, Search returns %+v and the error %v, want UPSTREAM_BAD_RESPONSE", cursor, page, err)
		}
	}
}

// TestArchivedEventsOfSearch checks that a list of events has the events whose markets are all archived, if archived markets can
// match the search. Such an event is not whole.
func TestArchivedEventsOfSearch(t *testing.T) {
	list := `{"events":[
		{"event_ticker":"A","title":"Rain","category":"Weather","markets":[]},
		{"event_ticker":"B","title":"Snow","category":"Weather","markets":[{"ticker":"B-1","status":"finalized","close_time":"2026-01-02T00:00:00Z","rules_primary":"Snow."}]},
		{"event_ticker":"C","title":"Hail","category":"Weather","markets":[{"ticker":"C-1"}]},
		{"event_ticker":"D","title":"Wind","category":"Sports"},{"title":"Fog"},
		{"event_ticker":"E","title":"Frost","category":"Sports","markets":[{"ticker":"E-1","status":"active"},{"ticker":"E-2","status":"active"},{"ticker":"E-3"}]}],"cursor":"n"}`
	d, s := newDriver(t, map[string]func(url.Values) (int, string){"/events": text(list)})
	for _, test := range []struct {
		q    queries.Search
		want string
	}{
		{queries.Search{}, "A false; B true B-1/Snow/Weather/summary; D false; E true E-1/Frost/Sports/summary E-2/Frost/Sports/summary; left out row 5, row 1"},
		{queries.Search{Status: []market.Status{market.StatusResolved}, Category: "weather"}, "A false; B true B-1/Snow/Weather/summary; left out row 5, row 1"},
		{queries.Search{Status: []market.Status{market.StatusOpen}}, "E true E-1/Frost/Sports/summary E-2/Frost/Sports/summary; left out row 5, row 1"},
		{queries.Search{EndsBefore: queries.At(start)}, "B true B-1/Snow/Weather/summary; left out row 5, row 1, row 3"},
		{queries.Search{EndsAfter: queries.At(start)}, "left out row 5, row 1, row 3"},
	} {
		page, err := d.SearchEvents(t.Context(), upstream.Call{}, test.q)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, e := range page.Events {
			got += fmt.Sprint(e.EventID, " ", e.Whole)
			for _, m := range e.Matches {
				got += fmt.Sprintf(" %s/%s/%s", m.MarketID, m.EventTitle, m.Category)
				if m.Summary && m.Description == "" {
					got += "/summary"
				}
			}
			got += "; "
		}
		// The market of event C cannot be read, so it may match. LeftOut of event E is in the event.
		if got += "left out " + rowsOf(page.LeftOut); got != test.want || page.Next != "n" {
			t.Errorf("SearchEvents(%+v) returns the events %q and the next page %q, want %q and n", test.q, got, page.Next, test.want)
		}
	}
	s.calls = s.calls[:2]
	categories, err := d.Categories(t.Context(), upstream.Call{})
	if want := []queries.Category{{Name: "Sports", OpenMarkets: 2}}; err != nil || !slices.Equal(categories.List, want) {
		t.Errorf("the categories are %+v and the error is %v, want %+v", categories, err, want)
	}
	s.want(t, "/events?with_nested_markets=true&limit=50", "/events?status=settled&with_nested_markets=true&limit=50",
		"/events?status=open&with_nested_markets=true&limit=200", "/events?status=open&with_nested_markets=true&limit=200&cursor=n")
}

// rowsOf returns the places of rows that are left out.
func rowsOf(leftOut market.LeftOut) string {
	var rows []string
	for _, err := range leftOut {
		place, _, _ := strings.Cut(err.Error(), " of the venue's answer")
		rows = append(rows, strings.TrimPrefix(place, string(market.CodeUpstreamBadResponse)+": "))
	}
	return strings.Join(rows, ", ")
}

func TestSearches(t *testing.T) {
	d, s := newDriver(t, map[string]func(url.Values) (int, string){
		"/markets": file(t, "markets.json"),
	})
	at := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	in := func(states ...market.Status) []market.Status { return states }
	const all = "30-T2.5 22-T2.5 SHARE-26Q3 29-T2.5 21-T2.5; left out row 6"
	for _, test := range []struct {
		q          queries.Search
		call, want string
	}{
		{queries.Search{}, "?mve_filter=exclude&limit=20", all + ", next {\"c\":\"CgsI7abcExample\"}"},
		{queries.Search{Status: in(market.StatusOpen), Limit: 50, Page: `{"c":"abc"}`}, "?status=open&mve_filter=exclude&limit=50&cursor=abc", "30-T2.5 29-T2.5; left out row 6, next {\"c\":\"CgsI7abcExample\"}"},
		{queries.Search{Status: in(market.StatusUpcoming)}, "?status=unopened&mve_filter=exclude&limit=20", "; left out row 6, next {\"c\":\"CgsI7abcExample\"}"},
		{queries.Search{Status: in(market.StatusClosed)}, "?status=closed&mve_filter=exclude&limit=20", "; left out row 6, next {\"c\":\"CgsI7abcExample\"}"},
		{queries.Search{Status: in(market.StatusResolved)}, "?status=settled&mve_filter=exclude&limit=20", "22-T2.5 SHARE-26Q3; left out row 6, next {\"c\":\"CgsI7abcExample\"}"},
		{queries.Search{Status: in(market.StatusOpen), EndsAfter: queries.At(at), Limit: 5}, "?min_close_ts=1795564800&mve_filter=exclude&limit=5", "30-T2.5; left out row 6, next {\"c\":\"CgsI7abcExample\"}"},
		{queries.Search{EndsBefore: queries.At(time.Time{}), Limit: 5}, "?max_close_ts=1&mve_filter=exclude&limit=5", "; left out row 6, next {\"c\":\"CgsI7abcExample\"}"},
		{queries.Search{Status: in(market.StatusOpen), Page: `{"c":"CgsI7abcExample"}`}, "?status=open&mve_filter=exclude&limit=20&cursor=CgsI7abcExample", "30-T2.5 29-T2.5; left out row 6, next "},
	} {
		s.calls = nil
		page, err := d.Search(context.Background(), upstream.Call{}, test.q)
		if err != nil {
			t.Errorf("Search(%+v) returns the error %v", test.q, err)
			continue
		}
		var ids []string
		for _, m := range page.Markets {
			ids = append(ids, strings.TrimPrefix(strings.TrimPrefix(m.MarketID, "KXRAINLIS-26NOV"), "KX"))
		}
		got := strings.Join(ids, " ") + "; left out " + rowsOf(page.LeftOut) + ", next " + page.Next
		if got != test.want || test.call != "" && !slices.Equal(s.calls, []string{"/markets" + test.call}) {
			t.Errorf("Search(%+v) makes the calls %q and returns %q, want %q and %q", test.q, s.calls, got, test.call, test.want)
		}
	}
	for _, q := range []queries.Search{{Page: "x"}} {
		if _, err := d.Search(t.Context(), upstream.Call{}, q); market.CodeOf(err) != market.CodeBadUserInput {
			t.Errorf("Search(%+v) returns the error %v, want BAD_USER_INPUT", q, err)
		}
	}
}

// TestUnsupported checks that reads that Kalshi does not support return UNSUPPORTED without a call.
func TestUnsupported(t *testing.T) {
	d, s := newDriver(t, nil)
	ctx := context.Background()
	for _, q := range []queries.Search{
		{Text: "rain"}, {Category: "Weather"}, {Tag: "Rain"}, {Sort: queries.SortVolume}, {Status: []market.Status{market.StatusOpen, market.StatusClosed}},
		{Status: []market.Status{market.StatusCancelled}}, {Sort: queries.SortLiquidity},
	} {
		if _, err := d.Search(ctx, upstream.Call{}, q); market.CodeOf(err) != market.CodeUnsupported || !strings.Contains(err.Error(), "Kalshi") {
			t.Errorf("Search(%+v) returns the error %v, want UNSUPPORTED", q, err)
		}
	}
	const address = market.Address("0x1111111111111111111111111111111111111111")
	_, e1 := d.Balance(ctx, upstream.Call{}, address)
	_, e2 := d.Positions(ctx, upstream.Call{}, address)
	_, e3 := d.Orders(ctx, upstream.Call{}, address)
	_, e4 := d.Trades(ctx, upstream.Call{}, address, queries.Trades{})
	_, e5 := d.History(ctx, upstream.Call{}, address, queries.History{})
	for i, err := range []error{e1, e2, e3, e4, e5} {
		if market.CodeOf(err) != market.CodeUnsupported {
			t.Errorf("read %d of account data returns the error %v, want UNSUPPORTED", i, err)
		}
	}
	for e := range upstream.Endpoint(upstream.Endpoints) {
		if (d.Can(e) == nil) == e.User() {
			t.Errorf("Can(%s) is %v", e, d.Can(e))
		}
	}
	s.want(t)
}
