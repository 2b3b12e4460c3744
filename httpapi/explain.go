package httpapi

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"

	"github.com/99designs/gqlgen/graphql"
)

// ExplainHeader requests an explanation of the operation in the extensions of the response. On a WebSocket, clients send a member
// with this name in the payload of connection_init, or the member explain in the extensions of an operation.
const ExplainHeader = "X-Oddsgraph-Explain"

// explanation is the member explain of extensions. Times are in milliseconds.
type explanation struct {
	Type     string `json:"type"`
	Name     string `json:"name,omitempty"`
	Document string `json:"document"`
	Cost     struct {
		Points        int64 `json:"points"`
		UpstreamCalls int   `json:"upstreamCalls"`
	} `json:"cost"`
	Elapsed float64 `json:"elapsedMs"`
	// ResponseCache is HIT, MISS or OFF: the result that the response cache would have without the explanation.
	ResponseCache string `json:"responseCache"`
	// Cache counts the keys that were read, by kind of data.
	Cache map[string]explainedReads `json:"cache"`
	// UpstreamCalls is the number of HTTP calls that the operation waited for. Other operations may have waited for the same calls.
	UpstreamCalls int              `json:"upstreamCalls"`
	Batches       []explainedBatch `json:"batches"` // the reads that made the calls
	StaleServed   uint32           `json:"staleServed"`
	TraceID       string           `json:"traceId,omitempty"`
}

// explainedReads counts the keys of one kind of data. Each key is counted once in Hits, Stale, Absent or Misses.
type explainedReads struct {
	Hits    uint32 `json:"hits"`
	Stale   uint32 `json:"stale"`
	Absent  uint32 `json:"absent"`
	Misses  uint32 `json:"misses"`
	Joined  uint32 `json:"joined"`           // misses for keys that another operation was already fetching
	Excused uint32 `json:"excused"`          // misses that got a stale value because the venue failed
	Shared  uint32 `json:"shared,omitempty"` // misses that were found in the cache of all replicas
	// From counts the same keys by the source of their values.
	From explainedSources `json:"from"`
}

// explainedSources counts keys by source: the memory of this process, the cache of all replicas, and the venue. Venue includes keys
// for which the venue sent no value.
type explainedSources struct {
	Memory uint32 `json:"memory"`
	Shared uint32 `json:"shared"`
	Venue  uint32 `json:"venue"`
}

func explainReads(r request.CacheCounts) explainedReads {
	fetched := r.Misses - min(r.Excused, r.Misses)
	shared := min(r.Shared, fetched)
	return explainedReads{
		Hits: r.Hits, Stale: r.Stale, Absent: r.Absent, Misses: r.Misses, Joined: r.Joined, Excused: r.Excused, Shared: r.Shared,
		From: explainedSources{Memory: r.Hits + r.Stale + r.Absent + r.Excused, Shared: shared, Venue: fetched - shared},
	}
}

// explainedBatch is a read of several keys from the venue.
type explainedBatch struct {
	Venue    string `json:"venue,omitempty"` // in a process with several venues
	Kind     string `json:"kind"`
	Priority string `json:"priority"`
	Keys     int    `json:"keys"`
	Own      int    `json:"own"` // keys that this operation requested
	// Outcome is ok or an error code.
	Outcome    string  `json:"outcome"`
	BudgetWait float64 `json:"budgetWaitMs"` // wait for the rate limit
	QueueWait  float64 `json:"queueWaitMs"`  // wait for earlier batches, after BudgetWait
	// Upstream is the time from the start of the first call to the end of the batch.
	Upstream float64         `json:"upstreamMs"`
	Calls    []explainedCall `json:"calls"`
}

// explainedCall is an HTTP call. Wait is the wait for the rate limit and for earlier calls.
type explainedCall struct {
	Endpoint string  `json:"endpoint"`
	Keys     int     `json:"keys"`
	Status   int     `json:"status"`
	Outcome  string  `json:"outcome"`
	Wait     float64 `json:"waitMs"`
	Elapsed  float64 `json:"elapsedMs"`
}

// explain returns the explanation of an executed operation with the given number of calls. cacheState is the result of
// responseCacheState before the execution.
func explain(log *request.Log, calls int, cacheState string) *explanation {
	out := &explanation{
		Type: log.Type(), Elapsed: milliseconds(time.Since(log.Started)), ResponseCache: cacheState,
		Cache: map[string]explainedReads{}, Batches: []explainedBatch{},
	}
	if log.Info != nil {
		out.Name, out.Document = log.Info.Name, log.Info.Document
	}
	out.Cost.Points, out.Cost.UpstreamCalls = log.Points, calls
	for k := range upstream.Kind(upstream.Kinds) {
		if r := log.Counts(k); r != (request.CacheCounts{}) {
			out.Cache[k.String()] = explainReads(r)
			out.StaleServed += r.Stale + r.Excused
		}
	}
	batches := log.Batches()
	slices.SortFunc(batches, func(a, b upstream.Batch) int { return a.Formed.Compare(b.Formed) })
	for _, b := range batches {
		out.Batches = append(out.Batches, explainBatch(b))
		out.UpstreamCalls += len(b.Calls)
	}
	if log.Span != nil {
		trace := log.Span.Context().Trace
		out.TraceID = hex.EncodeToString(trace[:])
	}
	return out
}

func explainBatch(b upstream.Batch) explainedBatch {
	out := explainedBatch{
		Venue: b.Venue, Kind: b.Kind.String(), Priority: b.Priority.String(), Keys: b.Keys, Own: b.Own, Outcome: b.Outcome,
		BudgetWait: between(b.Formed, b.Admitted), QueueWait: between(b.Admitted, b.Left), Upstream: between(b.Left, b.Ended),
		Calls: make([]explainedCall, len(b.Calls)),
	}
	for i, x := range b.Calls {
		out.Calls[i] = explainedCall{x.Endpoint, x.Keys, x.Status, x.Outcome, milliseconds(x.Waited), milliseconds(x.Elapsed)}
	}
	return out
}

// between returns the time between two instants in milliseconds. It returns 0 if one of the instants is the zero time.
func between(from, to time.Time) float64 {
	if from.IsZero() || to.IsZero() {
		return 0
	}
	return milliseconds(to.Sub(from))
}

// milliseconds returns d in milliseconds, rounded to a microsecond.
func milliseconds(d time.Duration) float64 {
	return math.Round(float64(d)/float64(time.Microsecond)) / 1000
}

// explained executes an operation and adds its explanation to the response.
func (e *engine) explained(ctx context.Context, log *request.Log, op *operation, media string) *graphql.Response {
	cacheState := e.responseCacheState(ctx, op, media)
	resp := e.execute(ctx, op)
	resp.Extensions = map[string]any{"explain": explain(log, op.calls, cacheState)}
	return resp
}

func (e *engine) responseCacheState(ctx context.Context, op *operation, media string) string {
	switch {
	case !e.cacheable(op):
		return "OFF"
	case e.responses.Contains(e.key(ctx, op, media)):
		return "HIT"
	}
	return "MISS"
}

func (e *engine) wantsExplanation(hints Hints) bool {
	return e.cfg.Explain && isTrue(hints.Get(ExplainHeader))
}

func isTrue(value string) bool { return value == "1" || strings.EqualFold(value, "true") }

// connectionHints are the Hints for all operations of a WebSocket, by header name.
type connectionHints map[string]string

var hintNames = []string{"Traceparent", ExplainHeader}

const maxHint = 512

// readHints returns the hints in the headers of a connection and in the payload of connection_init, or nil if there are none. The
// payload overrides the headers. The case of names does not matter. readHints drops hints longer than maxHint.
func readHints(before Hints, payload map[string]any) connectionHints {
	var out connectionHints
	for _, name := range hintNames {
		value := before.Get(name)
		for key, v := range payload {
			if text, ok := v.(string); ok && strings.EqualFold(key, name) {
				value = text
			}
		}
		if value != "" && len(value) <= maxHint {
			if out == nil {
				out = connectionHints{}
			}
			out[name] = value
		}
	}
	return out
}

func (h connectionHints) Get(name string) string {
	return h[http.CanonicalHeaderKey(name)]
}

// messageHints are the hints in the extensions of an operation. They override the hints of the connection. A hint that is empty,
// false or longer than maxHint overrides nothing.
type messageHints struct {
	connection  Hints
	Traceparent string `json:"traceparent"`
	Explain     bool   `json:"explain"`
}

func operationHints(connection Hints, extensions json.RawMessage) Hints {
	if extensions == nil {
		return connection
	}
	m := &messageHints{connection: connection}
	if json.Unmarshal(extensions, m) != nil { // the members have other types, so they are not hints
		return connection
	}
	return m
}

func (m *messageHints) Get(name string) string {
	var own string
	switch http.CanonicalHeaderKey(name) {
	case "Traceparent":
		own = m.Traceparent
	case ExplainHeader:
		if m.Explain {
			own = "1"
		}
	}
	if own != "" && len(own) <= maxHint {
		return own
	}
	return m.connection.Get(name)
}
