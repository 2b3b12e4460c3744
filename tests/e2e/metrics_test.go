package e2e

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/internal/telemetry"
	"oddsgraph/tests/tool"
)

// TestMetricsAreTrue compares each metric with an independent count or range. Most counts come from the client, from the venue, or
// from a proxy in front of the venue.
func TestMetricsAreTrue(t *testing.T) {
	tool.CheckTier(t)
	t.Parallel() // the test mostly waits
	proxy := newSlowVenue(t)
	manifest := filepath.Join(t.TempDir(), "manifest.json")
	const trusted = `query Prices($t: [String!]!) { tokenPrices(tokenIds: $t) { price timestamp } }`
	if err := os.WriteFile(manifest, []byte(asJSON(map[string]string{"prices-1": trusted})), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := startLiveRigged(t, func(w *app.Wiring) {
		withoutRetries(w)
		w.Reads.Book.Stale, w.Reads.NotFound = time.Hour, time.Hour
	},
		"--venue-url="+proxy.URL, "--stream-url="+strings.Replace(proxy.URL, "http", "ws", 1)+demo.StreamPath,
		"--venue-public-per-minute=1000", "--venue-key-per-minute=1000", "--documents-trusted=allow", "--documents-manifest="+manifest,
		"--cache-price-fresh=1h", "--cache-book-fresh=1ms", "--cache-spread-fresh=1h", "--cache-memory=1MiB",
		"--client-connections=2", "--limit-depth=5", "--demo-still")
	s.venue, s.faults = proxy.demo, proxy.faults
	lines := telemetry.NewWriter(io.Discard, 10)
	s.MeasureLog(lines)
	for range 3 {
		_, _ = lines.Write([]byte("too long for it"))
	}
	t.Cleanup(func() { lines.Close(patience) })
	began := time.Now()
	s.waitForStream(t)
	ids := s.openTokens(30) // the test queries each token rarely, so that the service does not subscribe to the token
	operations, rejections := tally{}, map[string]float64{}
	responses := map[string]float64{}
	// ask sends a query, and counts its outcome and the verdict of the response cache. The verdict is "" if the service refuses the
	// query before it knows the type of the operation.
	ask := func(query string, variables vars, outcome, verdict string) {
		t.Helper()
		_, errors := s.query(t, query, variables, anonymous)
		if got := "ok"; len(errors) > 0 {
			if got = strings.ToLower(errors[0].Extensions.Code); got != outcome {
				t.Fatalf("%s: got the outcome %s (%s), want %s", query, got, errors[0].Message, outcome)
			}
		} else if outcome != got {
			t.Fatalf("%s: got the outcome %s, want %s", query, got, outcome)
		}
		kind := "query"
		if verdict == "" {
			kind = "unknown"
		}
		operations.add(kind, "", outcome)
		if verdict != "" {
			responses[fmt.Sprintf("verdict=%q", verdict)]++
		}
	}

	// These queries get prices from the venue, from the response cache and from the cache of prices.
	const prices = `query($t: [String!]!) { tokenPrices(tokenIds: $t) { price } }`
	const again = `query($t: [String!]!) { tokenPrices(tokenIds: $t) { tokenId price } }`
	ask(prices, vars{"t": ids[:3]}, "ok", "miss")
	ask(prices, vars{"t": ids[:3]}, "ok", "hit")
	ask(again, vars{"t": ids[:3]}, "ok", "miss")
	ask(prices, vars{"t": []string{"none"}}, "ok", "miss")
	ask(again, vars{"t": []string{"none"}}, "ok", "miss")
	s.do(t, s.request(t, asJSON(vars{"documentId": "prices-1", "variables": vars{"t": ids[9:10]}}), anonymous))
	operations.add("query", "Prices", "ok")
	responses[`verdict="miss"`]++
	// The call for this query has credentials, so it counts against a separate rate limit.
	s.ask(t, `query($a: Address!) { user(address: $a) { balance { cashBalance } } }`, vars{"a": addressOf3}, keyOf3)
	operations.add("query", "", "ok")
	responses[`verdict="miss"`]++
	// One call returns three spreads.
	ask(`query($t: [String!]!) { spreads(tokenIds: $t) { bestBid } }`, vars{"t": ids[20:23]}, "ok", "miss")
	// When a query reads a stale book, the service refreshes the book in the background. The query is executed again, because it shows
	// whether the book is stale.
	const book = `query($t: String!) { token(tokenId: $t) { orderbook { bids { price } freshness { stale } } } }`
	ask(book, vars{"t": ids[3]}, "ok", "miss")
	read := time.Now()
	eventually(t, "the book is stale", func() bool { return time.Since(read) > 20*time.Millisecond })
	ask(book, vars{"t": ids[3]}, "ok", "miss")
	eventually(t, "the book is refreshed", func() bool { return proxy.total("orderbook") == 2 })

	// Two different queries for one price share a call. Six equal queries share an execution.
	release := proxy.hold("/api/exchange/prices")
	var all sync.WaitGroup
	meanwhile := func(query string, token int) {
		all.Go(func() { s.query(t, query, vars{"t": ids[token : token+1]}, anonymous) })
		operations.add("query", "", "ok")
	}
	meanwhile(prices, 5)
	<-proxy.waiting
	meanwhile(again, 5)
	responses[`verdict="miss"`] += 2
	eventually(t, "the second query waits for the call of the first", func() bool { return s.Venue.Cache.Stats()[0].Coalesced == 1 })
	meanwhile(prices, 6)
	<-proxy.waiting
	for range 5 {
		meanwhile(prices, 6)
	}
	responses[`verdict="miss"`]++
	eventually(t, "all eight queries are executed", func() bool { return s.API.Stats().Executing == 8 })
	s.scrape(t).want("oddsgraph_operations_in_flight", 8)
	release()
	all.Wait()
	shared := 5.

	// The parser, the limits and the validation refuse these operations.
	for rule, query := range map[string]string{
		"syntax": "{", "depth": "{ events { nodes { markets { nodes { tokens { market { slug } } } } } } }",
		"repeats":        "{ serviceStatus {" + strings.Repeat(" version", 31) + " } }",
		"document_bytes": "{ serviceStatus { version } } #" + strings.Repeat(" ", 64<<10),
	} {
		outcome := "bad_user_input"
		if rule == "syntax" {
			outcome = "graphql_parse_failed"
		}
		ask(query, nil, outcome, "")
		rejections[fmt.Sprintf("rule=%q", rule)]++
	}
	ask("{ nothing }", nil, "graphql_validation_failed", "")

	// Two equal subscriptions on a socket and a third over SSE share one execution. The socket and the event stream are two
	// connections, so the service refuses a third connection.
	const changes = `subscription($t: [String!]!) { priceChanged(tokenIds: $t) { reason price { price } } }`
	token := vars{"t": ids[10:11]}
	socket := s.dial(t, anonymous)
	readers := []*events{socket.subscribe(t, changes, token), socket.subscribe(t, changes, token), s.sse(t, changes, token, anonymous)}
	received := 0.
	next := func(reason string) {
		t.Helper()
		for _, r := range readers {
			r.until(t, reason, func(v any) bool { received++; return text(v, "reason") == reason })
		}
	}
	next("INITIAL")
	// A field of this subscription fails in each event.
	partly := socket.subscribe(t, `subscription($t: [String!]!) { priceChanged(tokenIds: $t) { price { price token { orderbook(depth: 0) { spread } } } } }`, token)
	if ev := partly.next(t); ev.data == nil || len(ev.errors) != 1 || ev.errors[0].Extensions.Code != "BAD_USER_INPUT" {
		t.Fatalf("got %+v, want data and the error BAD_USER_INPUT", ev)
	}
	received++
	partly.stop()
	eventually(t, "the failing subscription has ended", func() bool { return s.API.Stats().Groups.Members == 3 })
	operations.add("subscription", "", "ok")
	r := s.request(t, asJSON(vars{"query": changes, "variables": token}), anonymous)
	r.Header.Set("Accept", "text/event-stream")
	if got := s.do(t, r); got.status != http.StatusTooManyRequests {
		t.Fatalf("a third connection got %+v, want status 429", got)
	}
	operations.add("unknown", "", "rate_limited")
	moved := 0.
	move := func() {
		t.Helper()
		moved++
		if err := s.venue.SetPrice(ids[10], demo.Price(5000+100*moved)); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		move()
		next("CHANGE")
	}
	// The stream loses a frame, and then its connection.
	s.setFaults(t, faults.Fault{On: faults.OnFrames, Kind: faults.Drop, Contains: []string{`"type":"price_update"`, ids[10]}, Count: 1})
	move()
	move()
	next("RESYNC")
	lost := float64(s.venue.Stats().Stream.Connections)
	s.venue.Restart(4003)
	next("RESYNC")
	s.waitForStream(t)
	readers[1].stop()
	eventually(t, "the second subscription has ended", func() bool { return s.API.Stats().Groups.Members == 2 })
	operations.add("subscription", "", "ok")

	// The venue sends an unreadable response, and then fails until a circuit opens.
	s.setFaults(t, faults.Fault{Path: "/api/exchange/price-history", Answer: tool.HalfBroken})
	history := func(token string) {
		s.query(t, `query($t: String!) { token(tokenId: $t) { history { points { price } } } }`, vars{"t": token}, anonymous)
	}
	history(ids[25])
	operations.add("query", "", "upstream_bad_response")
	responses[`verdict="miss"`]++
	s.setFaults(t, faults.Fault{Path: "/api/exchange/orderbook", Kind: faults.Status, Status: 500})
	for i := range 6 {
		ask(book, vars{"t": ids[12+i]}, "upstream_unavailable", "miss")
	}
	s.setFaults(t)
	failed := s.scrape(t)
	failed.want("oddsgraph_venue_reachable", 0)
	// On a slow machine, the circuit may be half-open by now.
	failed.want(`oddsgraph_venue_circuit_state{endpoint="orderbook",state="open"}`, 1-failed.samples[`oddsgraph_venue_circuit_state{endpoint="orderbook",state="half-open"}`])
	ask(`{ searchMarkets(first: 100, filter: {status: RESOLVED}) { totalCount } }`, nil, "ok", "miss") // too large for the cache

	s.Venue.Metrics.Stream().Drift("of the test") // the demo venue itself sends nothing unexpected on its stream
	calls := 0.
	eventually(t, "the metrics count all calls to the venue", func() bool {
		calls = proxy.total("")
		return s.scrape(t).sum("oddsgraph_venue_calls_total") == calls
	})
	before := s.scrape(t)
	if took := time.Since(began); took < 50*time.Second { // a minute after a call, the call no longer counts against the rate limit
		before.want("oddsgraph_budget_left", 950-calls)
	}
	before.want("oddsgraph_budget_throttled_seconds_total", 0)
	before.want("oddsgraph_budget_wait_seconds", 0)
	// The venue answers a call with 429. The service then refuses the next query without a call.
	s.setFaults(t, faults.Fault{Path: "/api/exchange/spreads", Kind: faults.Status, Status: 429, RetryAfter: "60"})
	const spread = `query($t: [String!]!) { spreads(tokenIds: $t) { bestAsk } }`
	ask(spread, vars{"t": ids[23:24]}, "rate_limited", "miss")
	ask(spread, vars{"t": ids[24:25]}, "rate_limited", "miss")
	calls++
	eventually(t, "the metrics count all calls to the venue", func() bool { return s.scrape(t).sum("oddsgraph_venue_calls_total") == calls })
	s.client.CloseIdleConnections() // the WebSocket and the event stream keep their connections
	eventually(t, "idle connections are closed", func() bool { return s.scrape(t).samples["oddsgraph_connections"] <= 2 })
	var m *scraped
	frames := map[string]float64{}
	eventually(t, "all frames are read", func() bool {
		sent := s.venue.Stats().Stream.Frames
		m = s.scrape(t)
		clear(frames)
		for kind, n := range sent {
			frames[fmt.Sprintf("type=%q", kind)] = float64(n)
		}
		frames[`type="price_update"`]-- // the lost frame
		return !slices.ContainsFunc(slices.Collect(maps.Keys(frames)), func(labels string) bool {
			return m.samples["oddsgraph_stream_frames_total{"+labels+"}"] != frames[labels]
		})
	})
	m.want("oddsgraph_connections", 2)
	m.wantAll("oddsgraph_operations_total", operations)
	m.wantAll("oddsgraph_guard_rejections_total", rejections)
	answered := map[string]float64{}
	for labels, n := range operations {
		if name, kind, _ := strings.Cut(labels, ",outcome="); !strings.Contains(kind, "subscription") {
			answered[name+","+kind[strings.Index(kind, "type="):]] += n
		}
	}
	m.wantAll("oddsgraph_operation_duration_seconds_count", answered)
	m.wantBetween(`oddsgraph_operation_duration_seconds_sum{name="",type="query"}`, 0, time.Since(began).Seconds()*answered[`name="",type="query"`])
	m.want("oddsgraph_operations_in_flight", 0)
	m.want("oddsgraph_operations_waiting", 0)
	m.want("oddsgraph_documents_compiling", 0)
	m.want("oddsgraph_documents_waiting", 0)
	m.want("oddsgraph_client_refusals_total", 1)
	m.want("oddsgraph_incoming_refusals_total", 0)
	m.want("oddsgraph_output_unread_bytes", 0)
	m.want("oddsgraph_subscription_crowded_total", 0)
	for _, transport := range []string{"http", "sse", "websocket"} {
		m.want(`oddsgraph_output_refusals_total{transport="`+transport+`"}`, 0)
	}

	// Equal queries that arrive during the execution share its response. Equal queries that arrive later hit the response cache.
	lateHits := m.samples[`oddsgraph_response_cache_requests_total{verdict="hit"}`] - responses[`verdict="hit"`]
	if lateHits < 0 || lateHits > shared-1 {
		t.Errorf("%v of %v simultaneous equal queries hit the response cache, want 0 to %v", lateHits, shared, shared-1)
	}
	responses[`verdict="hit"`] += lateHits
	responses[`verdict="coalesced"`] = shared - lateHits
	m.wantAll("oddsgraph_response_cache_requests_total", responses)
	kept := s.API.Stats().Responses
	m.wantBetween("oddsgraph_response_cache_stored_total", 1, responses[`verdict="miss"`])
	m.wantAll("oddsgraph_response_cache_removed_total", map[string]float64{`reason="invalidated"`: float64(kept.Invalidated)})
	m.want("oddsgraph_response_cache_entries", m.samples["oddsgraph_response_cache_stored_total"]-float64(kept.Invalidated))
	m.wantBetween("oddsgraph_response_cache_bytes", 1, 32<<20)

	verdicts := func(kind string, want map[string]float64) {
		t.Helper()
		for _, verdict := range []string{"hit", "stale", "miss", "not_found"} {
			m.want(fmt.Sprintf("oddsgraph_cache_requests_total{kind=%q,verdict=%q}", kind, verdict), want[verdict])
		}
	}
	m.want(`oddsgraph_cache_requests_total{kind="price",verdict="miss"}`, 3+1+1+2+1)
	m.want(`oddsgraph_cache_requests_total{kind="price",verdict="not_found"}`, 1)
	// A query above hits the cache for three prices. While the stream is down, for up to ten seconds, the service also polls the
	// subscribed price. These polls get the price from the cache, where it is stale at first.
	m.wantBetween(`oddsgraph_cache_requests_total{kind="price",verdict="hit"}`, 3, 3+20)
	m.wantBetween(`oddsgraph_cache_requests_total{kind="price",verdict="stale"}`, 0, 20)
	verdicts("spread", map[string]float64{"miss": 3 + 1 + 1})
	verdicts("book", map[string]float64{"miss": 1 + 6, "stale": 1})
	verdicts("balance", map[string]float64{"miss": 1})
	verdicts("history", map[string]float64{"miss": 1})
	verdicts("search", map[string]float64{"miss": 1})
	m.want(`oddsgraph_cache_coalesced_keys_total{kind="price"}`, 1)
	m.wantBetween(`oddsgraph_cache_late_answers_total{kind="price"}`, 0, 1) // 1 if a REST response arrived after the stream had sent a newer price
	m.want(`oddsgraph_cache_upstream_calls_total{kind="price"}`, proxy.total("prices"))
	m.want(`oddsgraph_cache_upstream_keys_total{kind="price"}`, proxy.keys["prices"])
	m.want(`oddsgraph_cache_evictions_total{kind="search"}`, 1)
	m.want(`oddsgraph_cache_evictions_total{kind="spread"}`, 0)
	m.want(`oddsgraph_cache_entries{kind="spread"}`, 3+1) // including the streamed token's spread
	m.wantBetween(`oddsgraph_cache_bytes{kind="spread"}`, 4*300, 4*1000)
	m.want(`oddsgraph_cache_entries{kind="price"}`, 3+1+1+1+1+1) // including one unknown and one streamed token

	proxy.mu.Lock()
	for call, n := range proxy.calls {
		endpoint, status, _ := strings.Cut(call, " ")
		if got := m.sum("oddsgraph_venue_calls_total", `endpoint="`+endpoint+`"`, `status="`+status+`"`); got != n {
			t.Errorf("%s: the metrics show %v calls, but the venue received %v", call, got, n)
		}
	}
	for endpoint, n := range proxy.keys {
		m.want(fmt.Sprintf("oddsgraph_venue_call_keys_sum{endpoint=%q}", endpoint), n)
	}
	books := proxy.calls["orderbook 500"] // 5, or 6 if the circuit was half-open at the last of the 6 queries
	proxy.mu.Unlock()
	m.check("oddsgraph_venue_calls_total")
	m.want(`oddsgraph_venue_calls_total{endpoint="orderbook",outcome="upstream_unavailable",status="500"}`, books)
	m.want(`oddsgraph_venue_calls_total{endpoint="spreads",outcome="rate_limited",status="429"}`, 1)
	m.want(`oddsgraph_venue_call_duration_seconds_count{endpoint="prices"}`, proxy.total("prices"))
	m.wantBetween(`oddsgraph_venue_drift_total{endpoint="price-history",what="`+driftOf(m)+`"}`, 1, 1e6)
	m.want("oddsgraph_venue_reachable", 1)
	m.want(`oddsgraph_venue_circuit_state{endpoint="prices",state="closed"}`, 1)
	m.want(`oddsgraph_venue_circuit_opened_total{endpoint="orderbook"}`, books-4)
	m.want(`oddsgraph_venue_circuit_refused_total{endpoint="orderbook"}`, 6-books)

	m.want("oddsgraph_budget_limit", 950-95) // the limit is 950 of 1000; a 429 from the venue reduces it by a tenth
	m.want("oddsgraph_budget_left", 0)
	m.wantBetween("oddsgraph_budget_wait_seconds", 1, 60)
	m.wantBetween("oddsgraph_budget_throttled_seconds_total", 1e-9, time.Since(began).Seconds())
	m.want("oddsgraph_budget_admitted_total", calls)
	m.want("oddsgraph_budget_refused_total", 1)
	m.want("oddsgraph_budget_credentials", 1)
	m.want(`oddsgraph_budget_waiting{priority="prices"}`, 0)

	m.wantAll("oddsgraph_stream_frames_total", frames)
	m.wantAll("oddsgraph_stream_disconnects_total", map[string]float64{`reason="restart"`: lost})
	m.want("oddsgraph_stream_reconnects_total", lost)
	m.want("oddsgraph_stream_connections", float64(s.venue.Stats().Stream.Connections))
	m.wantAll("oddsgraph_stream_state", map[string]float64{`state="LIVE"`: 1})
	heard := s.venue.Stats().Stream
	sum := func(of map[string]int64) (n float64) {
		for _, v := range of {
			n += float64(v)
		}
		return n
	}
	topics := sum(heard.Topics)
	m.want("oddsgraph_stream_topics", topics)
	m.want("oddsgraph_stream_accounts", 0)
	m.wantBetween("oddsgraph_stream_silence_seconds", 0, time.Since(began).Seconds())
	m.want(`oddsgraph_clock_offset_seconds{clock="venue"}`, 0)
	m.want("oddsgraph_stream_snapshots_total", sum(heard.Resyncs))
	m.want("oddsgraph_stream_refused_topics_total", 0)
	m.want("oddsgraph_stream_lag_seconds_count", float64(heard.Frames["orderbook_update"]+heard.Frames["price_update"]-heard.Subscribes["prices"]-1)) // the first price after each subscription may be old and is not counted, and a price was lost
	m.wantBetween("oddsgraph_stream_lag_seconds_sum", 0, time.Since(began).Seconds()*moved)
	m.want("oddsgraph_feed_gaps_total", 1)
	m.want("oddsgraph_feed_resyncs_total", 1+topics) // one topic after the gap, all topics after the restart
	m.want("oddsgraph_feed_topics", topics)
	m.want("oddsgraph_feed_tokens", 1)
	m.want("oddsgraph_feed_resyncing_topics", 0)
	m.wantBetween("oddsgraph_feed_conflated_total", 0, 3) // the service may merge states around the restart of the stream

	m.want("oddsgraph_subscriptions", 2)
	m.want("oddsgraph_subscription_groups", 1)
	m.want("oddsgraph_subscription_executions_total", 2)
	m.wantAll("oddsgraph_subscription_event_failures_total", map[string]float64{`code="bad_user_input"`: 1})
	m.wantBetween("oddsgraph_subscription_events_total", 1+moved+1, received)
	m.want("oddsgraph_subscription_deliveries_total", received+m.samples["oddsgraph_subscription_conflated_total"])
	m.wantBetween("oddsgraph_subscription_conflated_total", 0, 3) // a slow client may miss events that report the loss of the stream
	m.want("oddsgraph_websockets", 1)
	m.want("oddsgraph_websocket_operations", 1)
	m.want("oddsgraph_websockets_accepted_total", 1)
	m.want("oddsgraph_event_streams", 1)

	// These metrics stay 0, because no client was slow and nothing else failed. TestMetricsByName in app/ tests other values of the
	// oddsgraph_ metrics.
	for _, never := range []string{
		"oddsgraph_subscription_restarts_total", "oddsgraph_subscription_dropped_total", "oddsgraph_connections_refused_total",
		`oddsgraph_websockets_given_up_total{reason="silent"}`, `oddsgraph_websockets_given_up_total{reason="slow"}`,
		"oddsgraph_feed_dropped_total", "oddsgraph_feed_resubscribed_total", "oddsgraph_feed_spliced_total",
		"oddsgraph_log_sampled_operations_total", "oddsgraph_reload_timestamp_seconds",
	} {
		m.want(never, 0)
	}
	m.wantAll("oddsgraph_stream_drift_total", map[string]float64{`what="of_the_test"`: 1})
	m.want("oddsgraph_log_dropped_lines_total", 3)
	m.want("oddsgraph_ready", 1)
	m.want("oddsgraph_reload_successful", 1)
	m.check("oddsgraph_build_info")
	if m.sum("oddsgraph_build_info", `version="`+app.BuildVersion()+`"`) != 1 {
		t.Error("oddsgraph_build_info does not have the program's version")
	}
	sharedMetrics(t, m)
	for family, checked := range m.checked {
		if !checked && !strings.HasPrefix(family, "go_") && !strings.HasPrefix(family, "process_") {
			t.Errorf("the test compares the metric %s with nothing", family)
		}
	}
	checkQueries(t, m)
	checkReference(t, m)
	checkExposition(t, m) // last, because it skips the rest of the test if promtool is missing
}

// driftOf returns the label "what" of the only series of oddsgraph_venue_drift_total for price-history, or "" if there is none. It
// ignores the label other.
func driftOf(m *scraped) string {
	for series := range m.samples {
		if _, what, ok := strings.Cut(series, `oddsgraph_venue_drift_total{endpoint="price-history",what="`); ok && what != `other"}` {
			return strings.TrimSuffix(what, `"}`)
		}
	}
	return ""
}
