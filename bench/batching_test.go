package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oddsgraph/internal/demo"
)

// This file measures how much time a server adds to the venue's own time for a portfolio that is not cached. A portfolio takes two
// levels of calls: one call for the positions, then concurrent calls for their markets and prices. The venue's own time is the time
// that directCalls takes for the same calls. directCalls runs before each query, so that a busy machine slows down both
// measurements.

// call is a call that the venue received. The venue sets end after it has sent the response, so end may still be zero when the
// client has the response.
type call struct {
	path       string
	keys       int // number of requested ids
	start, end time.Time
}

// watchedVenue is a demo venue that records the time of each call.
type watchedVenue struct {
	url string

	mu    sync.Mutex
	calls []*call
}

// newWatchedVenue returns a venue that delays each response by the latency.
func newWatchedVenue(t testing.TB, latency time.Duration) *watchedVenue {
	w := &watchedVenue{}
	venue := demo.New(demo.Config{Latency: latency})
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		c := &call{path: r.URL.Path, keys: 1, start: time.Now()}
		if ids := r.URL.Query().Get("tokenIds") + r.URL.Query().Get("ids"); ids != "" {
			c.keys += strings.Count(ids, ",")
		}
		w.mu.Lock()
		w.calls = append(w.calls, c)
		w.mu.Unlock()
		venue.ServeHTTP(rw, r)
		w.mu.Lock()
		c.end = time.Now()
		w.mu.Unlock()
	}))
	t.Cleanup(s.Close)
	w.url = s.URL
	return w
}

// take removes the recorded calls and returns them in order of arrival.
func (w *watchedVenue) take() []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := make([]call, len(w.calls))
	for i, c := range w.calls {
		calls[i] = *c
	}
	w.calls = nil
	slices.SortFunc(calls, func(a, b call) int { return a.start.Compare(b.start) })
	return calls
}

// directCalls makes the calls for a portfolio without a server, with at most 40 ids in each call. It returns how long the calls
// took.
func directCalls(ctx context.Context, base string) (time.Duration, error) {
	get := func(path string, query url.Values) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path+"?"+query.Encode(), nil)
		if err != nil {
			return nil, err
		}
		return fetch(req)
	}
	start := time.Now()
	b, err := get("/api/user/positions", url.Values{"address": {holder}, "credentials": {`{"apiKey":"demo-50","secret":"demo","passphrase":"demo"}`}})
	if err != nil {
		return 0, err
	}
	var in struct {
		Positions []struct{ MarketID, TokenID string }
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return 0, err
	}
	var markets, tokens []string
	for _, p := range in.Positions {
		markets, tokens = append(markets, p.MarketID), append(tokens, p.TokenID)
	}
	slices.Sort(markets)
	var wg sync.WaitGroup
	var errs [4]error
	n := 0
	send := func(path, parameter string, ids []string) {
		calls := (len(ids) + 39) / 40
		for part := range slices.Chunk(ids, (len(ids)+calls-1)/calls) {
			failed := &errs[n]
			n++
			wg.Go(func() { _, *failed = get(path, url.Values{parameter: {strings.Join(part, ",")}}) })
		}
	}
	send("/api/exchange/market-details", "ids", slices.Compact(markets))
	send("/api/exchange/prices", "tokenIds", tokens)
	wg.Wait()
	return time.Since(start), errors.Join(errs[:]...)
}

// trial is a measurement of one portfolio that is not cached.
type trial struct {
	// direct is the time of the direct calls, and server is the time of the query.
	direct, server time.Duration
	// gap is the time from the end of the first call to the start of the last call of the second level, if the server makes the calls.
	// directGap is the same time for the direct calls.
	gap, directGap time.Duration
}

// added returns how much time the server added to the venue's own time.
func (t trial) added() time.Duration { return t.server - t.direct }

// try makes the direct calls, then sends the query to a server. If callsAllowed is not 0, the server must make at most callsAllowed
// calls with at most 101 identifiers in all.
func (w *watchedVenue) try(ctx context.Context, server, question string, callsAllowed int) (t trial, err error) {
	if t.direct, err = directCalls(ctx, w.url); err != nil {
		return t, err
	}
	t.directGap = callGap(w.take())
	start := time.Now()
	answer, err := post(ctx, server, []byte(question), holderCredentials)
	t.server = time.Since(start)
	if err != nil {
		return t, err
	}
	var data struct {
		User struct {
			Positions struct {
				Nodes []struct {
					Market struct{ Question string }
					Token  struct{ Price struct{ Price string } }
				}
			}
		}
	}
	if err := readData(answer, &data); err != nil {
		return t, err
	}
	if n := len(data.User.Positions.Nodes); n != 50 {
		return t, fmt.Errorf("the portfolio has %d positions, want 50", n)
	}
	for _, p := range data.User.Positions.Nodes {
		if p.Market.Question == "" || p.Token.Price.Price == "" {
			return t, errors.New("a position has no question or no price")
		}
	}
	calls := w.take()
	keys := 0
	for _, c := range calls {
		keys += c.keys
	}
	t.gap = callGap(calls)
	if len(calls) < 3 || calls[0].path != "/api/user/positions" || callsAllowed > 0 && (len(calls) > callsAllowed || keys > 101) {
		return t, errors.New("the server did not make the calls of a portfolio that is not cached, or made too many calls: " + describe(calls))
	}
	return t, nil
}

// callGap returns the time from the end of the first call to the start of the last call.
func callGap(calls []call) time.Duration {
	if len(calls) == 0 {
		return 0
	}
	return calls[len(calls)-1].start.Sub(calls[0].end)
}

func describe(calls []call) string {
	var b strings.Builder
	for _, c := range calls {
		b.WriteString("\n" + c.path + " at " + c.start.Sub(calls[0].start).String())
	}
	return b.String()
}

// coldPortfolioFlags are the flags that switch off oddsgraph's rate limits and its caching of prices, markets and accounts.
var coldPortfolioFlags = []string{
	"--log-level=warn", "--venue-public-per-minute=0", "--venue-key-per-minute=0",
	"--cache-price-fresh=0s", "--cache-price-stale=0s", "--cache-market-fresh=0s", "--cache-market-stale=0s", "--cache-user-fresh=0s",
}

func startOddsgraph(t testing.TB, venueURL string) *server {
	program, err := shared.oddsgraph(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := shared.start(t.Context(), graphServer, program, "--listen", append(coldPortfolioFlags, "--venue-url="+venueURL)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

var portfolioQuestion = string(portfolio(holder, "").body)

// TestBatchingAddsLittle checks that the server adds at most a quarter to the venue's own time. Here the venue's own time is about
// 40 ms, because two calls of 20 ms follow each other. A dataloader that waits 16 ms, which is the default, would add two fifths of
// the venue's own time. Only the fastest runs are compared, because a busy machine can only make a run slower.
func TestBatchingAddsLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("this test builds and runs the server")
	}
	venue := newWatchedVenue(t, 20*time.Millisecond)
	s := startOddsgraph(t, venue.url)
	const minRuns, maxRuns = 15, 60
	fastest := trial{time.Hour, time.Hour, time.Hour, time.Hour}
	fastEnough := func() bool { return fastest.added() <= fastest.direct/4 }
	for n := 0; n < minRuns || n < maxRuns && !fastEnough(); n++ {
		r, err := venue.try(t.Context(), s.url()+"/graphql", portfolioQuestion, 5)
		if err != nil {
			t.Fatal(err)
		}
		fastest = trial{min(fastest.direct, r.direct), min(fastest.server, r.server), min(fastest.gap, r.gap), min(fastest.directGap, r.directGap)}
	}
	t.Logf("fastest runs: %v for the direct calls, %v for the server; between the levels the venue waited %v for the server, and %v for the direct calls",
		fastest.direct, fastest.server, fastest.gap, fastest.directGap)
	if !fastEnough() {
		t.Errorf("the server adds %v to the venue's own time of %v, want at most a quarter", fastest.added(), fastest.direct)
	}
}

// BenchmarkColdPortfolio measures how much time servers add to the venue's own time for a portfolio that is not cached. These
// metrics are medians in milliseconds:
//
//	added-ms/op     how much longer the whole query takes than the direct calls
//	batching-ms/op  the time from the end of the first call to the start of the last call, minus the same time for the direct calls
//	upstream-ms/op  the time of the direct calls
//	empty-ms/op     the time of the query { __typename }, which needs no call, after a pause as long as the direct calls
//
// cpu-ns/op, allocs/op and B/op are the usage of the server's process. ns/op is the time of the whole query.
func BenchmarkColdPortfolio(b *testing.B) {
	for _, latency := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond} {
		name := "latency=" + latency.String() + "/"
		b.Run(name+"oddsgraph", func(b *testing.B) {
			venue := newWatchedVenue(b, latency)
			benchmarkCold(b, venue, startOddsgraph(b, venue.url), 5)
		})
		for _, wait := range []string{"16ms", "1ms"} {
			b.Run(name+"plain-"+wait, func(b *testing.B) {
				program, err := shared.plain(b.Context())
				if errors.Is(err, errNotGenerated) {
					b.Skip(err)
				}
				if err != nil {
					b.Fatal(err)
				}
				venue := newWatchedVenue(b, latency)
				s, err := shared.start(b.Context(), plainServer, program, "-listen", "-venue-url="+venue.url, "-wait="+wait)
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(s.stop)
				benchmarkCold(b, venue, s, 0)
			})
		}
	}
}

func benchmarkCold(b *testing.B, venue *watchedVenue, s *server, callsAllowed int) {
	var added, batching, direct, empty []float64
	milliseconds := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	for range 5 { // open the connections and compile the document
		if _, err := venue.try(b.Context(), s.url()+"/graphql", portfolioQuestion, callsAllowed); err != nil {
			b.Fatal(err)
		}
	}
	before, err := s.usage(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var elapsed time.Duration
	for b.Loop() {
		r, err := venue.try(b.Context(), s.url()+"/graphql", portfolioQuestion, callsAllowed)
		if err != nil {
			b.Fatal(err)
		}
		elapsed += r.server
		added = append(added, milliseconds(r.added()))
		batching = append(batching, milliseconds(r.gap-r.directGap))
		direct = append(direct, milliseconds(r.direct))
		time.Sleep(r.direct)
		start := time.Now()
		if _, err := post(b.Context(), s.url()+"/graphql", []byte(`{"query":"{ __typename }"}`), ""); err != nil {
			b.Fatal(err)
		}
		empty = append(empty, milliseconds(time.Since(start)))
	}
	after, err := s.usage(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	n := float64(len(added))
	b.ReportMetric(median(added), "added-ms/op")
	b.ReportMetric(median(batching), "batching-ms/op")
	b.ReportMetric(median(direct), "upstream-ms/op")
	b.ReportMetric(median(empty), "empty-ms/op")
	b.ReportMetric(float64(elapsed)/n, "ns/op")
	b.ReportMetric(float64(after.CPU-before.CPU)/n, "cpu-ns/op")
	b.ReportMetric(float64(after.Allocs-before.Allocs)/n, "allocs/op")
	b.ReportMetric(float64(after.Bytes-before.Bytes)/n, "B/op")
}
