package app

import (
	"maps"
	"slices"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/httpapi"
	"oddsgraph/httpapi/limits"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/cache"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/fleet"
	"oddsgraph/internal/ratelimit"
	"oddsgraph/internal/telemetry"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/stream"
)

// registerMetrics adds the metrics of the connections, the API and the venue. All parts must be open.
func (s *App) registerMetrics() {
	if s.Metrics == nil {
		return
	}
	s.Metrics.ExpectOperations(limits.Rules)
	telemetry.Register(s.Metrics, func() *App { return s }, processFamilies...)
	telemetry.Register(s.Metrics, s.bounded.Stats, connectionFamilies...)
	telemetry.Register(s.Metrics, s.API.Stats, apiFamilies...)
	for _, u := range s.Venues {
		u.registerMetrics()
	}
}

// registerMetrics adds the metrics of the cache, venue, rate limit, replicas, feed and stream. It omits the metrics of the rate
// limit, the replicas or the stream if the service does not use that part.
func (u *unit) registerMetrics() {
	u.Metrics.Expect(u.expected())
	telemetry.Register(u.Metrics, u.Cache.Stats, cacheFamilies...)
	telemetry.Register(u.Metrics, func() venueState { return venueState{u.health.reach.ok(), u.Client.Circuits()} }, venueFamilies...)
	telemetry.Register(u.Metrics, func() *clocks { return u.health.clocks }, clockFamily)
	if u.budget != nil {
		telemetry.Register(u.Metrics, func() rateLimitState { return rateLimitState{u.budget.Status(), u.clock.Now()} }, rateLimitFamilies...)
	}
	if u.fleet != nil {
		telemetry.Register(u.Metrics, u.sharedState, sharedFamilies...)
		telemetry.Register(u.Metrics, u.Cache.Stats, sharedCacheFamilies...)
	}
	telemetry.Register(u.Metrics, u.Live.Feed.Stats, feedFamilies...)
	if u.Live.Client != nil {
		telemetry.Register(u.Metrics, func() streamState {
			return streamState{u.Live.Status().State, u.Live.Client.Stats(), u.clock.Now()}
		}, streamFamilies...)
	}
}

// expected returns the label values of the venue's metrics.
func (u *unit) expected() (e telemetry.Expected) {
	for endpoint := range upstream.Endpoint(upstream.Endpoints) {
		if u.Client.Can(endpoint) == nil {
			e.Endpoints = append(e.Endpoints, endpoint.String())
		}
	}
	if u.Live.Client != nil {
		e.Disconnects = stream.Reasons
	}
	if u.fleet != nil {
		e.Commands, e.Results = fleet.Commands, fleet.Results
	}
	return e
}

var processFamilies = []telemetry.Family[*App]{
	boolGauge("oddsgraph_ready", "1 while this process may get requests, 0 while it starts or stops.", func(s *App) bool { return s.state() == nil }),
	boolGauge("oddsgraph_reload_successful", "0 if the last reload failed or a file with accounts, documents or questions is invalid, else 1.", func(s *App) bool {
		_, failed := s.reloads.last()
		return !failed && s.Files.valid()
	}),
	gauge("oddsgraph_reload_timestamp_seconds", "Time of the last reload on SIGHUP in seconds of Unix time; 0 before the first one.", func(s *App) int64 {
		if at, _ := s.reloads.last(); !at.IsZero() {
			return at.Unix()
		}
		return 0
	}),
}

var connectionFamilies = []telemetry.Family[quota.ConnectionStats]{
	gauge("oddsgraph_connections", "TCP connections of clients that are open now.", func(s quota.ConnectionStats) int { return s.Open }),
	counter("oddsgraph_connections_refused_total", "TCP connections that were closed at once because too many were open.", func(s quota.ConnectionStats) uint64 { return s.Refused }),
}

// MeasureLog adds the metrics of the lines that the log has omitted. lines is the writer of the log.
func (s *App) MeasureLog(lines *telemetry.Writer) {
	if s.Metrics != nil {
		telemetry.Register(s.Metrics, func() logState { return logState{lines.Dropped(), s.events.Sampled()} }, logFamilies...)
	}
}

func counter[S any](name, help string, value func(S) uint64) telemetry.Family[S] {
	return telemetry.Family[S]{Kind: telemetry.Counter, Name: name, Help: help, Read: telemetry.Single(func(s S) float64 { return float64(value(s)) })}
}

func gauge[S any, N int | int64 | float64](name, help string, value func(S) N) telemetry.Family[S] {
	return telemetry.Family[S]{Kind: telemetry.Gauge, Name: name, Help: help, Read: telemetry.Single(func(s S) float64 { return float64(value(s)) })}
}

func boolGauge[S any](name, help string, holds func(S) bool) telemetry.Family[S] {
	return gauge(name, help, func(s S) int {
		if holds(s) {
			return 1
		}
		return 0
	})
}

// oneOf samples a series for each element of values. The sample is 1 for the element that equals current, and 0 for all other
// elements. The label values of a series are the given labels, followed by the element.
func oneOf[V ~string](sample func(float64, ...string), current V, values []V, labels ...string) {
	for _, v := range values {
		value := 0.
		if v == current {
			value = 1
		}
		sample(value, append(labels[:len(labels):len(labels)], string(v))...)
	}
}

type apiStats = httpapi.Stats

var apiFamilies = []telemetry.Family[apiStats]{
	gauge("oddsgraph_operations_in_flight", "GraphQL operations that are running.", func(s apiStats) int { return s.Executing }),
	gauge("oddsgraph_operations_waiting", "GraphQL operations that wait to be executed.", func(s apiStats) int { return s.Waiting }),
	gauge("oddsgraph_documents_compiling", "Unknown documents that are being parsed, validated and compiled.", func(s apiStats) int { return s.Compiling }),
	gauge("oddsgraph_documents_waiting", "Unknown documents that wait to be compiled.", func(s apiStats) int { return s.CompilingLater }),
	counter("oddsgraph_client_refusals_total", "Connections, operations and subscriptions that were refused because their account or client address had reached its limit.", func(s apiStats) uint64 { return s.Refused }),
	counter("oddsgraph_incoming_refusals_total", "Request bodies and WebSocket messages that were refused because the memory that clients share was used up.", func(s apiStats) uint64 { return s.Crowded }),
	gauge("oddsgraph_output_unread_bytes", "Bytes of responses and events that clients have not read yet, without the first 16 KiB of each response or event.", func(s apiStats) int { return s.Output }),
	{Kind: telemetry.Counter, Name: "oddsgraph_output_refusals_total", Help: "Responses that were refused, and WebSockets and event streams that were ended, because their client left too much unread.", Labels: []string{"transport"},
		Read: func(s apiStats, sample func(float64, ...string)) {
			for _, transport := range slices.Sorted(maps.Keys(s.Unread)) {
				sample(float64(s.Unread[transport]), transport)
			}
		}},

	gauge("oddsgraph_subscriptions", "Subscriptions of clients that are open now.", func(s apiStats) int { return s.Groups.Members }),
	gauge("oddsgraph_subscription_groups", "Subscriptions that are running. Equal subscriptions share one execution and count once.", func(s apiStats) int { return s.Groups.Groups }),
	counter("oddsgraph_subscription_executions_total", "Executions of subscriptions that were started. Equal subscriptions share one execution.", func(s apiStats) uint64 { return s.Groups.Executions }),
	counter("oddsgraph_subscription_events_total", "Events of subscriptions. An event that equal subscriptions share counts once.", func(s apiStats) uint64 { return s.Groups.Events }),
	counter("oddsgraph_subscription_deliveries_total", "Events that were queued for a client, counted once for each subscription.", func(s apiStats) uint64 { return s.Groups.Deliveries }),
	counter("oddsgraph_subscription_conflated_total", "Queued events that were replaced by a newer event before a slow client had read them.", func(s apiStats) uint64 { return s.Groups.Conflated }),
	counter("oddsgraph_subscription_restarts_total", "Subscriptions that were restarted with the whole state, because too many differences were queued for a slow client.", func(s apiStats) uint64 { return s.Groups.Lost }),
	counter("oddsgraph_subscription_crowded_total", "Events that were not queued because the client's unread output used too much memory. The subscription was restarted or ended.", func(s apiStats) uint64 { return s.Groups.Crowded }),
	counter("oddsgraph_subscription_dropped_total", "Subscriptions that were ended because too much was queued for a slow client.", func(s apiStats) uint64 { return s.Groups.Dropped }),

	gauge("oddsgraph_event_streams", "Server-Sent Events responses that are open now.", func(s apiStats) int { return s.Streams }),
	gauge("oddsgraph_websockets", "WebSockets that are open now.", func(s apiStats) int { return s.Sockets.Sockets }),
	gauge("oddsgraph_websocket_operations", "Operations that are open on WebSockets now.", func(s apiStats) int { return s.Sockets.Operations }),
	counter("oddsgraph_websockets_accepted_total", "WebSockets that were opened.", func(s apiStats) uint64 { return s.Sockets.Accepted }),
	{Kind: telemetry.Counter, Name: "oddsgraph_websockets_given_up_total", Help: "WebSockets that were closed because the client sent nothing (silent) or did not read (slow).", Labels: []string{"reason"},
		Read: func(s apiStats, sample func(float64, ...string)) {
			sample(float64(s.Sockets.Silent), "silent")
			sample(float64(s.Sockets.Slow), "slow")
		}},

	{Kind: telemetry.Counter, Name: "oddsgraph_response_cache_requests_total", Help: "Queries whose responses may be cached, by result: the response was cached (hit), came from an equal query that was already running (coalesced), or had to be computed (miss).", Labels: []string{"verdict"},
		Read: func(s apiStats, sample func(float64, ...string)) {
			sample(float64(s.Responses.Hits), "hit")
			sample(float64(s.Responses.Coalesced), "coalesced")
			sample(float64(s.Responses.Misses), "miss")
		}},
	counter("oddsgraph_response_cache_stored_total", "Responses that were stored.", func(s apiStats) uint64 { return s.Responses.Stored }),
	{Kind: telemetry.Counter, Name: "oddsgraph_response_cache_removed_total", Help: "Responses that were removed from the cache because their data changed (invalidated) or to make room (evicted).", Labels: []string{"reason"},
		Read: func(s apiStats, sample func(float64, ...string)) {
			sample(float64(s.Responses.Invalidated), "invalidated")
			sample(float64(s.Responses.Evicted), "evicted")
		}},
	gauge("oddsgraph_response_cache_entries", "Cached responses.", func(s apiStats) int { return s.Responses.Entries }),
	gauge("oddsgraph_response_cache_bytes", "Size of the cached responses in bytes.", func(s apiStats) int64 { return s.Responses.Bytes }),
}

// ofKinds adds the label kind to a metric, and a series for each kind of cached data.
func ofKinds[N int | uint64](family telemetry.Family[[]cache.Stats], value func(cache.Stats) N) telemetry.Family[[]cache.Stats] {
	family.Labels = []string{"kind"}
	family.Read = func(all []cache.Stats, sample func(float64, ...string)) {
		for _, s := range all {
			sample(float64(value(s)), s.Kind)
		}
	}
	return family
}

type cacheFamily = telemetry.Family[[]cache.Stats]

var cacheFamilies = []cacheFamily{
	{Kind: telemetry.Counter, Name: "oddsgraph_cache_requests_total", Help: "Keys looked up in the cache, by result; not_found means that the cache remembers that the venue does not know the key.", Labels: []string{"kind", "verdict"},
		Read: func(all []cache.Stats, sample func(float64, ...string)) {
			for _, s := range all {
				sample(float64(s.Hits), s.Kind, "hit")
				sample(float64(s.Stale), s.Kind, "stale")
				sample(float64(s.Misses), s.Kind, "miss")
				sample(float64(s.NotFound), s.Kind, "not_found")
			}
		}},
	ofKinds(cacheFamily{Kind: telemetry.Counter, Name: "oddsgraph_cache_late_answers_total", Help: "Responses of the venue that contradicted a streamed value or were older."}, func(s cache.Stats) uint64 { return s.Late }),
	ofKinds(cacheFamily{Kind: telemetry.Counter, Name: "oddsgraph_cache_coalesced_keys_total", Help: "Keys that joined a call to the venue that was already queued or in flight."}, func(s cache.Stats) uint64 { return s.Coalesced }),
	ofKinds(cacheFamily{Kind: telemetry.Counter, Name: "oddsgraph_cache_upstream_calls_total", Help: "Calls to the venue that the cache made."}, func(s cache.Stats) uint64 { return s.Calls }),
	ofKinds(cacheFamily{Kind: telemetry.Counter, Name: "oddsgraph_cache_upstream_keys_total", Help: "Keys that the cache requested from the venue."}, func(s cache.Stats) uint64 { return s.Keys }),
	ofKinds(cacheFamily{Kind: telemetry.Counter, Name: "oddsgraph_cache_evictions_total", Help: "Entries that were removed from the cache before they expired, to make room."}, func(s cache.Stats) uint64 { return s.Evictions }),
	ofKinds(cacheFamily{Kind: telemetry.Gauge, Name: "oddsgraph_cache_entries", Help: "Entries in the cache, including keys that the venue does not know."}, func(s cache.Stats) int { return s.Entries }),
	ofKinds(cacheFamily{Kind: telemetry.Gauge, Name: "oddsgraph_cache_bytes", Help: "Estimated size of the entries in the cache in bytes."}, func(s cache.Stats) int { return s.Bytes }),
}

type venueState struct {
	reachable bool
	circuits  []rest.Circuit
}

var venueFamilies = []telemetry.Family[venueState]{
	boolGauge("oddsgraph_venue_reachable", "1 while the venue answers, 0 after three failed calls in a row.", func(s venueState) bool { return s.reachable }),
	{Kind: telemetry.Gauge, Name: "oddsgraph_venue_circuit_state", Help: "State of the circuit breaker of an endpoint: 1 for the present state, 0 for the other states.", Labels: []string{"endpoint", "state"},
		Read: func(s venueState, sample func(float64, ...string)) {
			for _, c := range s.circuits {
				oneOf(sample, c.State, []rest.CircuitState{rest.CircuitClosed, rest.CircuitHalfOpen, rest.CircuitOpen}, c.Endpoint)
			}
		}},
	{Kind: telemetry.Counter, Name: "oddsgraph_venue_circuit_opened_total", Help: "How often the circuit breaker of an endpoint has opened.", Labels: []string{"endpoint"},
		Read: func(s venueState, sample func(float64, ...string)) {
			for _, c := range s.circuits {
				sample(float64(c.Opened), c.Endpoint)
			}
		}},
	{Kind: telemetry.Counter, Name: "oddsgraph_venue_circuit_refused_total", Help: "Calls that the circuit breaker of an endpoint refused.", Labels: []string{"endpoint"},
		Read: func(s venueState, sample func(float64, ...string)) {
			for _, c := range s.circuits {
				sample(float64(c.Refused), c.Endpoint)
			}
		}},
}

var clockFamily = telemetry.Family[*clocks]{
	Kind: telemetry.Gauge, Name: "oddsgraph_clock_offset_seconds", Help: "Least time by which another clock is ahead of the clock of this host, negative if it is behind.", Labels: []string{"clock"},
	Read: func(c *clocks, sample func(float64, ...string)) { c.offsets(sample) },
}

type rateLimitState struct {
	ratelimit.Status
	now time.Time
}

var rateLimitFamilies = []telemetry.Family[rateLimitState]{
	gauge("oddsgraph_budget_limit", "Public calls to the venue that are allowed in any 60 seconds.", func(s rateLimitState) int { return s.Limit }),
	gauge("oddsgraph_budget_left", "Public calls to the venue that the rate limit still allows now.", func(s rateLimitState) int { return s.Left }),
	gauge("oddsgraph_budget_wait_seconds", "Time until the next public call to the venue can be sent.", func(s rateLimitState) float64 {
		return max(s.ThrottledUntil.Sub(s.now), 0).Seconds()
	}),
	{Kind: telemetry.Counter, Name: "oddsgraph_budget_throttled_seconds_total", Help: "Total time during which no public calls were sent because the venue had answered 429.",
		Read: telemetry.Single(func(s rateLimitState) float64 { return s.Throttled.Seconds() })},
	{Kind: telemetry.Gauge, Name: "oddsgraph_budget_waiting", Help: "Calls to the venue that wait for the rate limit, by priority.", Labels: []string{"priority"},
		Read: func(s rateLimitState, sample func(float64, ...string)) {
			for p, n := range s.Waiting {
				sample(float64(n), upstream.Priority(p).String())
			}
		}},
	counter("oddsgraph_budget_admitted_total", "Calls to the venue that were admitted, with credentials or without.", func(s rateLimitState) uint64 { return s.Admitted }),
	counter("oddsgraph_budget_refused_total", "Calls to the venue that the rate limit refused.", func(s rateLimitState) uint64 { return s.Refused }),
	gauge("oddsgraph_budget_credentials", "Credentials that have a separate rate limit.", func(s rateLimitState) int { return s.Scopes }),
}

var feedFamilies = []telemetry.Family[feed.Stats]{
	counter("oddsgraph_feed_gaps_total", "Gaps in the sequence numbers of a topic's messages.", func(s feed.Stats) uint64 { return s.Gaps }),
	counter("oddsgraph_feed_resyncs_total", "Snapshots that replaced the state of a topic after a gap or an outage.", func(s feed.Stats) uint64 { return s.Resyncs }),
	counter("oddsgraph_feed_spliced_total", "Books that were read over REST and continued with the changes of the stream, because the stream sent no snapshot.", func(s feed.Stats) uint64 { return s.Spliced }),
	counter("oddsgraph_feed_conflated_total", "States that were replaced by a newer state before a subscription had read them.", func(s feed.Stats) uint64 { return s.Conflated }),
	counter("oddsgraph_feed_dropped_total", "Trades and market changes that were lost because the queue of a slow subscription was full.", func(s feed.Stats) uint64 { return s.Dropped }),
	counter("oddsgraph_feed_resubscribed_total", "Subscriptions that were sent again because neither a snapshot nor a confirmation arrived in time.", func(s feed.Stats) uint64 { return s.Resubscribed }),
	gauge("oddsgraph_feed_topics", "Topics that the feed follows.", func(s feed.Stats) int { return s.Topics }),
	gauge("oddsgraph_feed_tokens", "Tokens that the feed follows.", func(s feed.Stats) int { return s.Tokens }),
	gauge("oddsgraph_feed_resyncing_topics", "Topics that wait for a snapshot.", func(s feed.Stats) int { return s.Resyncing }),
}

type streamState struct {
	state model.StreamState
	stream.Stats
	now time.Time
}

var streamFamilies = []telemetry.Family[streamState]{
	{Kind: telemetry.Gauge, Name: "oddsgraph_stream_state", Help: "State of the venue's stream: 1 for the present state, 0 for the other states.", Labels: []string{"state"},
		Read: func(s streamState, sample func(float64, ...string)) {
			oneOf(sample, s.state, model.AllStreamState)
		}},
	gauge("oddsgraph_stream_connections", "Connections of the venue's stream that are open now.", func(s streamState) int { return s.Connections }),
	gauge("oddsgraph_stream_topics", "Topics that are subscribed on the venue's stream.", func(s streamState) int { return s.Topics }),
	gauge("oddsgraph_stream_accounts", "Topics of accounts that are subscribed on the venue's stream. oddsgraph_stream_topics includes them.", func(s streamState) int { return s.Identities }),
	gauge("oddsgraph_stream_silence_seconds", "Time since the last frame from the venue's stream; 0 before the first frame.", func(s streamState) float64 {
		if s.LastMessageAt.IsZero() {
			return 0
		}
		return max(s.now.Sub(s.LastMessageAt), 0).Seconds()
	}),
	counter("oddsgraph_stream_reconnects_total", "Connections of the venue's stream that were lost and opened again.", func(s streamState) uint64 { return s.Reconnects }),
	counter("oddsgraph_stream_snapshots_total", "Snapshots that were requested from the venue's stream.", func(s streamState) uint64 { return s.Resyncs }),
	counter("oddsgraph_stream_refused_topics_total", "Topics that the venue's stream refused.", func(s streamState) uint64 { return s.Refused }),
}

type logState struct{ dropped, sampled uint64 }

var logFamilies = []telemetry.Family[logState]{
	counter("oddsgraph_log_dropped_lines_total", "Lines of the log that were lost because the log's buffer was full or a write failed.", func(s logState) uint64 { return s.dropped }),
	counter("oddsgraph_log_sampled_operations_total", "Successful operations without a line in the log, because there were too many of them.", func(s logState) uint64 { return s.sampled }),
}
