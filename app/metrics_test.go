package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"oddsgraph/httpapi"
	"oddsgraph/httpapi/fanout"
	"oddsgraph/httpapi/graphqlws"
	"oddsgraph/httpapi/quota"
	"oddsgraph/httpapi/respcache"
	"oddsgraph/internal/cache"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/fleet"
	"oddsgraph/internal/ratelimit"
	"oddsgraph/internal/telemetry"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/stream"
)

// TestMetricsByName checks that each value appears under the name of its metric.
func TestMetricsByName(t *testing.T) {
	m := telemetry.NewMetrics("")
	telemetry.Register(m, func() httpapi.Stats {
		return httpapi.Stats{
			Executing: 1, Waiting: 2, Compiling: 91, CompilingLater: 92, Streams: 3, Refused: 4, Crowded: 83, Output: 86, Unread: map[string]uint64{"http": 87, "sse": 88, "websocket": 89},
			Groups:    fanout.Stats{Groups: 5, Members: 6, Executions: 7, Events: 8, Deliveries: 9, Conflated: 10, Lost: 11, Dropped: 12, Crowded: 90},
			Sockets:   graphqlws.Stats{Sockets: 13, Operations: 14, Accepted: 15, Silent: 16, Slow: 17},
			Responses: respcache.Stats{Hits: 18, Misses: 19, Coalesced: 20, Stored: 21, Invalidated: 22, Evicted: 23, Entries: 24, Bytes: 25},
		}
	}, apiFamilies...)
	telemetry.Register(m, func() feed.Stats {
		return feed.Stats{Gaps: 31, Resyncs: 32, Spliced: 33, Conflated: 34, Dropped: 35, Resubscribed: 36, Topics: 37, Tokens: 38, Resyncing: 39}
	}, feedFamilies...)
	telemetry.Register(m, func() streamState {
		return streamState{"RESYNCING", stream.Stats{LastMessageAt: time.Unix(41, 5e8), Connections: 42, Topics: 43, Identities: 44, Reconnects: 45, Resyncs: 46, Refused: 47}, time.Unix(160, 0)}
	}, streamFamilies...)
	telemetry.Register(m, func() []cache.Stats {
		return []cache.Stats{{Kind: "price", Hits: 51, Stale: 52, Misses: 53, NotFound: 54, Coalesced: 55, Late: 93, Calls: 56, Keys: 57, Evictions: 58, Entries: 59, Bytes: 60}}
	}, cacheFamilies...)
	now := time.Unix(1000, 0)
	telemetry.Register(m, func() rateLimitState {
		return rateLimitState{ratelimit.Status{
			Limit: 61, Left: 62, ThrottledUntil: now.Add(63 * time.Second), Throttled: 64 * time.Second, Waiting: [upstream.Priorities]int{65}, Scopes: 66, Admitted: 67, Refused: 68,
		}, now}
	}, rateLimitFamilies...)
	telemetry.Register(m, func() venueState {
		return venueState{true, []rest.Circuit{{Endpoint: "prices", State: rest.CircuitHalfOpen, Opened: 71, Refused: 72}}}
	}, venueFamilies...)
	shared := fleet.Stats{Connected: true, Opened: 101, Replicas: 102, Granted: 103, Refused: 104, Unanswered: 105, Hold: now.Add(106 * time.Second)}
	telemetry.Register(m, func() sharedState {
		return sharedState{shared, &ratelimit.SharedStatus{Left: 107, Part: 208, PartUsed: 100}, now, 109}
	}, sharedFamilies...)
	telemetry.Register(m, func() []cache.Stats {
		return []cache.Stats{{Kind: "balance"}, {Kind: "price", Shared: &cache.SharedStats{Hits: 110, Misses: 111, Found: 112, Ours: 113, Theirs: 114, Arrived: 115, Overdue: 116}}}
	}, sharedCacheFamilies...)
	telemetry.Register(m, func() logState { return logState{81, 82} }, logFamilies...)
	telemetry.Register(m, func() quota.ConnectionStats { return quota.ConnectionStats{Open: 84, Refused: 85} }, connectionFamilies...)

	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	body := w.Body.String()
	if strings.Contains(body, `oddsgraph_shared_cache_waits_total{kind="balance"`) {
		t.Error("the metrics of the shared cache include balances, which it does not store")
	}
	for series, want := range map[string]float64{
		"oddsgraph_operations_in_flight": 1, "oddsgraph_operations_waiting": 2, "oddsgraph_documents_compiling": 91, "oddsgraph_documents_waiting": 92, "oddsgraph_event_streams": 3, "oddsgraph_client_refusals_total": 4,
		"oddsgraph_incoming_refusals_total": 83, "oddsgraph_output_unread_bytes": 86, `oddsgraph_output_refusals_total{transport="http"}`: 87,
		`oddsgraph_output_refusals_total{transport="sse"}`: 88, `oddsgraph_output_refusals_total{transport="websocket"}`: 89, "oddsgraph_subscription_crowded_total": 90,
		"oddsgraph_subscription_groups": 5, "oddsgraph_subscriptions": 6, "oddsgraph_subscription_executions_total": 7, "oddsgraph_subscription_events_total": 8,
		"oddsgraph_subscription_deliveries_total": 9, "oddsgraph_subscription_conflated_total": 10, "oddsgraph_subscription_restarts_total": 11,
		"oddsgraph_subscription_dropped_total": 12, "oddsgraph_websockets": 13, "oddsgraph_websocket_operations": 14, "oddsgraph_websockets_accepted_total": 15,
		`oddsgraph_websockets_given_up_total{reason="silent"}`: 16, `oddsgraph_websockets_given_up_total{reason="slow"}`: 17,
		`oddsgraph_response_cache_requests_total{verdict="hit"}`: 18, `oddsgraph_response_cache_requests_total{verdict="miss"}`: 19,
		`oddsgraph_response_cache_requests_total{verdict="coalesced"}`: 20, "oddsgraph_response_cache_stored_total": 21,
		`oddsgraph_response_cache_removed_total{reason="invalidated"}`: 22, `oddsgraph_response_cache_removed_total{reason="evicted"}`: 23,
		"oddsgraph_response_cache_entries": 24, "oddsgraph_response_cache_bytes": 25,

		"oddsgraph_feed_gaps_total": 31, "oddsgraph_feed_resyncs_total": 32, "oddsgraph_feed_spliced_total": 33, "oddsgraph_feed_conflated_total": 34,
		"oddsgraph_feed_dropped_total": 35, "oddsgraph_feed_resubscribed_total": 36, "oddsgraph_feed_topics": 37, "oddsgraph_feed_tokens": 38, "oddsgraph_feed_resyncing_topics": 39,

		`oddsgraph_stream_state{state="RESYNCING"}`: 1, `oddsgraph_stream_state{state="LIVE"}`: 0, "oddsgraph_stream_silence_seconds": 118.5,
		"oddsgraph_stream_connections": 42, "oddsgraph_stream_topics": 43, "oddsgraph_stream_accounts": 44, "oddsgraph_stream_reconnects_total": 45,
		"oddsgraph_stream_snapshots_total": 46, "oddsgraph_stream_refused_topics_total": 47,

		`oddsgraph_cache_requests_total{kind="price",verdict="hit"}`: 51, `oddsgraph_cache_requests_total{kind="price",verdict="stale"}`: 52,
		`oddsgraph_cache_requests_total{kind="price",verdict="miss"}`: 53, `oddsgraph_cache_requests_total{kind="price",verdict="not_found"}`: 54,
		`oddsgraph_cache_coalesced_keys_total{kind="price"}`: 55, `oddsgraph_cache_late_answers_total{kind="price"}`: 93, `oddsgraph_cache_upstream_calls_total{kind="price"}`: 56,
		`oddsgraph_cache_upstream_keys_total{kind="price"}`: 57, `oddsgraph_cache_evictions_total{kind="price"}`: 58, `oddsgraph_cache_entries{kind="price"}`: 59,
		`oddsgraph_cache_bytes{kind="price"}`: 60,

		"oddsgraph_budget_limit": 61, "oddsgraph_budget_left": 62, "oddsgraph_budget_wait_seconds": 63, "oddsgraph_budget_throttled_seconds_total": 64,
		`oddsgraph_budget_waiting{priority="` + upstream.Priority(0).String() + `"}`: 65, "oddsgraph_budget_credentials": 66, "oddsgraph_budget_admitted_total": 67,
		"oddsgraph_budget_refused_total": 68,

		"oddsgraph_venue_reachable": 1, `oddsgraph_venue_circuit_state{endpoint="prices",state="half-open"}`: 1, `oddsgraph_venue_circuit_state{endpoint="prices",state="open"}`: 0,
		`oddsgraph_venue_circuit_opened_total{endpoint="prices"}`: 71, `oddsgraph_venue_circuit_refused_total{endpoint="prices"}`: 72,

		"oddsgraph_shared_connected": 1, "oddsgraph_shared_disconnects_total": 101, "oddsgraph_shared_replicas": 102, "oddsgraph_shared_replicas_max": 109,
		`oddsgraph_shared_grants_total{result="granted"}`: 103, `oddsgraph_shared_grants_total{result="refused"}`: 104,
		`oddsgraph_shared_grants_total{result="unanswered"}`: 105, "oddsgraph_shared_hold_seconds": 106, "oddsgraph_shared_grants_left": 107,
		"oddsgraph_shared_reserve_left":                                     108,
		`oddsgraph_shared_cache_requests_total{kind="price",verdict="hit"}`: 110, `oddsgraph_shared_cache_requests_total{kind="price",verdict="miss"}`: 111,
		`oddsgraph_shared_cache_claims_total{kind="price",result="found"}`: 112, `oddsgraph_shared_cache_claims_total{kind="price",result="ours"}`: 113,
		`oddsgraph_shared_cache_claims_total{kind="price",result="theirs"}`: 114, `oddsgraph_shared_cache_waits_total{kind="price",result="arrived"}`: 115,
		`oddsgraph_shared_cache_waits_total{kind="price",result="overdue"}`: 116,

		"oddsgraph_log_dropped_lines_total": 81, "oddsgraph_log_sampled_operations_total": 82,
		"oddsgraph_connections": 84, "oddsgraph_connections_refused_total": 85,
	} {
		if line := fmt.Sprintf("\n%s %v\n", series, want); !strings.Contains(body, line) {
			t.Errorf("the metrics have no line %q", line)
		}
	}
}
