package generic

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/upstream"
	"oddsgraph/tests/tool"
)

// refuseParameters returns a middleware that responds with a status to requests of an endpoint with one of the parameters.
func refuseParameters(endpoint string, refuse http.HandlerFunc, parameters ...string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, name := range parameters {
				if strings.HasSuffix(r.URL.Path, "/"+endpoint) && (name == "" || r.URL.Query().Has(name)) {
					refuse(w, r)
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}

// rename returns a middleware that makes market-details take a parameter under another name alone.
func rename(name, other string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return refuseParameters("market-details", badParameter, name)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if q := r.URL.Query(); strings.HasSuffix(r.URL.Path, "/market-details") && q.Has(other) {
				q.Set(name, q.Get(other))
				q.Del(other)
				r.URL.RawQuery = q.Encode()
			}
			next.ServeHTTP(w, r)
		}))
	}
}

// searchBy returns a middleware that divides the search into pages of at most 100 rows by offset. says returns what the venue says
// about further pages.
func searchBy(ignore bool, says func(from, to, all int) string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/market-search") {
				next.ServeHTTP(w, r)
				return
			}
			var rows []json.RawMessage
			for cursor := ""; len(rows) < 150; {
				query := "?limit=100"
				if cursor != "" {
					query += "&cursor=" + cursor
				}
				inner := httptest.NewRequest(http.MethodGet, r.URL.Path+query, nil)
				record := httptest.NewRecorder()
				next.ServeHTTP(record, inner)
				var page struct {
					Markets    []json.RawMessage
					NextCursor string
				}
				if err := json.Unmarshal(record.Body.Bytes(), &page); err != nil || len(page.Markets) == 0 {
					break
				}
				rows, cursor = append(rows, page.Markets...), page.NextCursor
			}
			from, _ := strconv.Atoi(r.URL.Query().Get("offset"))
			if ignore {
				from = 0
			}
			from = min(from, len(rows))
			to := min(from+100, len(rows))
			page, _ := json.Marshal(rows[from:to]) // Marshal cannot fail for valid JSON
			answer(`{"markets":`+string(page)+says(from, to, len(rows))+`}`)(w, r)
		})
	}
}

func nothing(int, int, int) string { return "" }

// described is what Probe decides about a venue of exactly the description, for which the strict demo venue stands.
const described = "market-id:marketId,market-ids:none,market-tokens:none,spreads:tokenIds,search-options:yes,search-paging:cursor,max-url:2048"

// deviations are venues with one deviation from the description, and what Probe changes in described.
var deviations = map[string]struct {
	venue  func(http.Handler) http.Handler
	change string
	loose  bool // the venue takes all parameters of the demo venue
}{
	"described":                  {func(h http.Handler) http.Handler { return h }, "", false},
	"lists of markets":           {refuseParameters("market-details", badParameter), "market-id:,market-ids:ids,market-tokens:tokenIds", true},
	"lists of ids alone":         {refuseParameters("market-details", badParameter, "tokenIds"), "market-id:,market-ids:ids", true},
	"lists of tokens alone":      {refuseParameters("market-details", answerWith(404, "application/json", `{"success":false}`), "ids"), "market-tokens:tokenIds", true},
	"lists are misread":          {refuseParameters("market-details", answer(marketJSON("1")), "ids", "tokenIds"), "", true},
	"lists fail with status 200": {refuseParameters("market-details", answer(`{"success":false,"error":"id is required"}`), "ids", "tokenIds"), "", true},
	"lists are empty":            {refuseParameters("market-details", answer(`{"markets":[]}`), "ids", "tokenIds"), "", true},
	"id":                         {rename("marketId", "id"), "market-id:id", false},
	"spreads of one token":       {refuseParameters("spreads", badParameter, "tokenIds"), "spreads:tokenId", false},
	"no spreads, 404":            {refuseParameters("spreads", answerWith(404, "application/json", `{"success":false}`), ""), "spreads:books", false},
	"no spreads, HTML":           {refuseParameters("spreads", answerWith(404, "text/html", `<h1>Not Found</h1>`), ""), "spreads:books", false},
	"no spreads, 501":            {refuseParameters("spreads", answerWith(501, "", ""), ""), "spreads:books", false},
	"spreads are empty":          {refuseParameters("spreads", answer(`{"spreads":[]}`), ""), "spreads:", false},
	"search without options":     {refuseParameters("market-search", badParameter, "sort", "order", "limit"), "search-options:no", false},
	"search by offset, total":    {searchBy(false, func(_, _, all int) string { return `,"total":` + strconv.Itoa(all) }), "search-paging:offset", false},
	"search by offset, more":     {searchBy(false, func(_, to, all int) string { return `,"hasMore":` + strconv.FormatBool(to < all) }), "search-paging:offset", false},
	"search by offset, nothing":  {searchBy(false, nothing), "search-paging:offset", false},
	"search without pages":       {searchBy(true, nothing), "search-paging:none", false},
	"search without offsets": {func(h http.Handler) http.Handler {
		return refuseParameters("market-search", badParameter, "offset")(searchBy(true, nothing)(h))
	}, "search-paging:none", false},
	"short URLs": {func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if len(r.URL.RequestURI()) > 1500 {
				answerWith(414, "text/html", "")(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}, "max-url:1024", false},
}

// admitAll implements upstream.Admit.
func admitAll(ctx context.Context, _ upstream.Endpoint, read func(context.Context, upstream.Call) error) error {
	return read(ctx, upstream.Call{})
}

// startDeviating starts a venue and returns its URL and the number of its calls.
func startDeviating(t *testing.T, loose bool, deviate func(http.Handler) http.Handler) (v *demo.Venue, url string, calls *atomic.Int32) {
	t.Helper()
	v = demo.New(demo.Config{Markets: 150, Strict: !loose, Clock: tool.NewClock(time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC))})
	t.Cleanup(v.Close)
	calls = &atomic.Int32{}
	h := deviate(v)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return v, s.URL, calls
}

// TestProbe checks what Probe decides about venues with one deviation from the description, with how many calls, and that every read
// then succeeds. Another Probe makes no call for what is decided.
func TestProbe(t *testing.T) {
	for name, test := range deviations {
		t.Run(name, func(t *testing.T) {
			v, url, calls := startDeviating(t, test.loose, test.venue)
			c := newClient(t, url, undecided)
			probes := 1
			if name == "lists are empty" || name == "lists fail with status 200" { // what lists show is unclear
				probes = maxUnclear
			}
			for i := range probes {
				calls.Store(0)
				if err := c.Probe(t.Context(), admitAll); (err == nil) != (i == probes-1) {
					t.Errorf("probe %d of %d returned the error %v", i+1, probes, err)
				}
				if n := calls.Load(); n > maxProbeCalls {
					t.Errorf("the probe made %d calls, want at most %d", n, maxProbeCalls)
				}
			}
			want, err := ParseTable(strings.Split(described, ","))
			must(t, err)
			for change := range strings.SplitSeq(test.change, ",") {
				for s := range want {
					if name, value, _ := strings.Cut(change, ":"); definitions[s].name == name {
						want[s] = value
					}
				}
			}
			assertEqual(t, c.Settings(), want.String())
			token := v.Tokens()[0]
			for _, r := range readsFor([]string{token.TokenID, v.Tokens()[2].TokenID}, token.MarketID, token.Slug, date(t, "2026-03-14"), date(t, "2026-03-14")) {
				text, left, err := r.text(t.Context(), withCredentials(t, `{"apiKey":"demo-50","secret":"demo","passphrase":"demo"}`), c)
				if err != nil || left != nil || text == "" || strings.Contains(text, "absent") || strings.Contains(text, "UPSTREAM") {
					t.Errorf("the read of %s returned %q, left out %v and the error %v", r.name, text, left, err)
				}
			}
			if before := calls.Load(); !want.lacks(probed...) {
				if must(t, c.Probe(t.Context(), admitAll)); calls.Load() != before {
					t.Error("a second probe makes calls")
				}
			}
		})
	}
}

// TestProbeDecidesNothingInAnOutage checks that failing endpoints decide no setting, and that a later probe decides it.
func TestProbeDecidesNothingInAnOutage(t *testing.T) {
	for endpoint, lacks := range map[string][]setting{
		"market-search": {settingSearchOptions, settingMarketIDs}, "market-details": {settingMarketIDs, settingMarketTokens}, "spreads": {settingSpreads}, "prices": {settingMaxURL},
	} {
		for _, status := range []int{429, 500, 503, 504} {
			var down atomic.Bool
			_, url, calls := startDeviating(t, false, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if down.Load() && strings.HasSuffix(r.URL.Path, "/"+endpoint) {
						answerWith(status, "application/json", `{"success":false}`)(w, r)
						return
					}
					next.ServeHTTP(w, r)
				})
			})
			down.Store(true)
			c := newClient(t, url, undecided)
			if err := c.Probe(t.Context(), admitAll); err == nil || calls.Load() > maxProbeCalls {
				t.Errorf("with status %d at %s, Probe returned the error %v after %d calls, want an error after at most %d", status, endpoint, err, calls.Load(), maxProbeCalls)
			}
			for _, s := range lacks {
				if c.reading(upstream.Call{}).decided(s) {
					t.Errorf("status %d at %s decides %s", status, endpoint, s)
				}
			}
			down.Store(false)
			must(t, c.Probe(t.Context(), admitAll))
			assertEqual(t, c.Settings(), described)
		}
	}
}

// TestProbeKeepsWhatIsTold checks that Probe asks for nothing that is told, and changes nothing of it.
func TestProbeKeepsWhatIsTold(t *testing.T) {
	_, url, calls := startDeviating(t, true, deviations["described"].venue)
	table, err := ParseTable(strings.Split("market-ids:none,market-id:id,"+strings.TrimPrefix(described, "market-id:marketId,market-ids:none,"), ","))
	must(t, err)
	c := newClient(t, url, func(cfg *Config) { cfg.Table = table })
	if err := c.Probe(t.Context(), admitAll); err != nil || calls.Load() > 0 || c.Settings() != table.String() || c.Undecided() {
		t.Errorf("Probe returned the error %v after %d calls and decided %s", err, calls.Load(), c.Settings())
	}
	c = newClient(t, url, func(cfg *Config) { cfg.Table = Table{settingSpreads: byBook} })
	must(t, c.Probe(t.Context(), admitAll))
	if told := c.reading(upstream.Call{}); told.value(settingSpreads) != byBook || !told.decided(settingMarketIDs) {
		t.Errorf("Probe changed spreads, or has not decided the rest: %s", c.Settings())
	}
}

// TestProbeAsksTheRateLimit checks that each call of Probe needs a permit for its own endpoint.
func TestProbeAsksTheRateLimit(t *testing.T) {
	_, url, calls := startDeviating(t, false, deviations["described"].venue)
	p := &permit{refuseFrom: 3}
	asked := map[upstream.Endpoint]bool{}
	admit := func(ctx context.Context, e upstream.Endpoint, read func(context.Context, upstream.Call) error) error {
		asked[e] = true
		return read(ctx, upstream.Call{Permit: p})
	}
	c := newClient(t, url, undecided)
	if err := c.Probe(t.Context(), admit); err == nil || calls.Load() != 2 || p.admitted != 2 {
		t.Errorf("Probe returned the error %v after %d calls, of which %d had a permit, want an error after 2", err, calls.Load(), p.admitted)
	}
	p.refuseFrom = 0
	must(t, c.Probe(t.Context(), admit))
	for _, e := range []upstream.Endpoint{upstream.EndpointSearch, upstream.EndpointMarketsByID, upstream.EndpointMarketsByToken, upstream.EndpointSpreads, upstream.EndpointPrices} {
		if !asked[e] {
			t.Errorf("no call counts at %s", e)
		}
	}
}
