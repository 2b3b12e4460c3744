package httpapi

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"oddsgraph/internal/market/reqctx"

	"github.com/99designs/gqlgen/graphql"
)

// ExplainHeader asks for the way of an operation in the extensions of its response, where that is allowed. WebSockets ask by
// a member of that name in connection_init, or by explain in the extensions of an operation.
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
	// ResponseCache is what would have been, had it been asked: HIT, MISS or OFF. An operation that is explained is executed.
	ResponseCache string `json:"responseCache"`
	// Cache says by kind what became of the keys that were read.
	Cache map[string]explainedReads `json:"cache"`
	// UpstreamCalls are the HTTP calls that the operation has waited for, in Batches, which others may have shared.
	UpstreamCalls int              `json:"upstreamCalls"`
	Batches       []explainedBatch `json:"batches"`
	// StaleServed counts the values that are past their time.
	StaleServed uint32 `json:"staleServed"`
	TraceID     string `json:"traceId,omitempty"`
}

// explainedReads are keys of one kind: hits, stale, absent and misses are all of them, joined and excused are misses that
// were under way for others already, and that were answered by stale values since the venue failed.
type explainedReads struct {
	Hits    uint32 `json:"hits"`
	Stale   uint32 `json:"stale"`
	Absent  uint32 `json:"absent"`
	Misses  uint32 `json:"misses"`
	Joined  uint32 `json:"joined"`
	Excused uint32 `json:"excused"`
}

// explainedBatch is a read of the venue. Keys may be others' too, Own are those of the operation.
type explainedBatch struct {
	Kind     string `json:"kind"`
	Priority string `json:"priority"`
	Keys     int    `json:"keys"`
	Own      int    `json:"own"`
	// Outcome is ok or an error's code.
	Outcome string `json:"outcome"`
	// BudgetWait is how long the budget held it back, QueueWait how long those before it did after that.
	BudgetWait float64 `json:"budgetWaitMs"`
	QueueWait  float64 `json:"queueWaitMs"`
	// Upstream is the time from when it left to its end.
	Upstream float64         `json:"upstreamMs"`
	Calls    []explainedCall `json:"calls"`
}

// explainedCall is an HTTP call. Wait is how long the budget or the calls before it held it back.
type explainedCall struct {
	Endpoint string  `json:"endpoint"`
	Keys     int     `json:"keys"`
	Status   int     `json:"status"`
	Outcome  string  `json:"outcome"`
	Wait     float64 `json:"waitMs"`
	Elapsed  float64 `json:"elapsedMs"`
}

// explain returns what is known of an operation that was executed and took so many calls. kept is what the cache of responses would have said.
func explain(j *reqctx.Log, calls int, kept string) *explanation {
	out := &explanation{
		Type: j.Type(), Elapsed: milliseconds(time.Since(j.Started)), ResponseCache: kept,
		Cache: map[string]explainedReads{}, Batches: []explainedBatch{},
	}
	if j.Info != nil {
		out.Name, out.Document = j.Info.Name, j.Info.Document
	}
	out.Cost.Points, out.Cost.UpstreamCalls = j.Points, calls
	for k := range reqctx.Kind(reqctx.Kinds) {
		if r := j.Counts(k); r != (reqctx.CacheCounts{}) {
			out.Cache[k.String()] = explainedReads(r)
			out.StaleServed += r.Stale + r.Excused
		}
	}
	batches := j.Batches()
	slices.SortFunc(batches, func(a, b reqctx.Batch) int { return a.Formed.Compare(b.Formed) })
	for _, b := range batches {
		out.Batches = append(out.Batches, explainBatch(b))
		out.UpstreamCalls += len(b.Calls)
	}
	if j.Span != nil {
		trace := j.Span.Context().Trace
		out.TraceID = hex.EncodeToString(trace[:])
	}
	return out
}

func explainBatch(b reqctx.Batch) explainedBatch {
	out := explainedBatch{
		Kind: b.Kind.String(), Priority: b.Priority.String(), Keys: b.Keys, Own: b.Own, Outcome: b.Outcome,
		BudgetWait: between(b.Formed, b.Admitted), QueueWait: between(b.Admitted, b.Left), Upstream: between(b.Left, b.Ended),
		Calls: make([]explainedCall, len(b.Calls)),
	}
	for i, x := range b.Calls {
		out.Calls[i] = explainedCall{x.Endpoint, x.Keys, x.Status, x.Outcome, milliseconds(x.Waited), milliseconds(x.Elapsed)}
	}
	return out
}

// between returns the time between two instants, 0 where one of them did not come.
func between(from, to time.Time) float64 {
	if from.IsZero() || to.IsZero() {
		return 0
	}
	return milliseconds(to.Sub(from))
}

// milliseconds are exact to the microsecond.
func milliseconds(d time.Duration) float64 {
	return math.Round(float64(d)/float64(time.Microsecond)) / 1000
}

// explained executes an operation and adds its explanation to the response.
func (e *engine) explained(ctx context.Context, j *reqctx.Log, op *operation, media string) *graphql.Response {
	kept := e.wouldSay(ctx, op, media)
	resp := e.execute(ctx, op)
	extensions := maps.Clone(resp.Extensions)
	if extensions == nil {
		extensions = map[string]any{}
	}
	extensions["explain"] = explain(j, op.calls, kept)
	resp.Extensions = extensions
	return resp
}

// wouldSay returns what the cache of responses would say of an operation now.
func (e *engine) wouldSay(ctx context.Context, op *operation, media string) string {
	switch {
	case !e.keeps(op):
		return "OFF"
	case e.responses.Contains(e.key(ctx, op, media)):
		return "HIT"
	}
	return "MISS"
}

// asksForExplanation reports whether a request wants to know the way of its operation, and may.
func (e *engine) asksForExplanation(said Said) bool {
	return e.cfg.Explain && yes(said.Get(ExplainHeader))
}

func yes(value string) bool { return value == "1" || strings.EqualFold(value, "true") }

// introduction is what the client of a WebSocket says of all its operations, by the names of headers.
type introduction map[string]string

// introduced are the headers that an introduction may hold.
var introduced = []string{"Traceparent", ExplainHeader}

// maxSaid bounds the length of such a value.
const maxSaid = 512

// introduce returns what is said by the headers of a connection and the payload of its connection_init, whose names are
// compared without case; nil where that is nothing.
func introduce(before Said, payload map[string]any) introduction {
	var out introduction
	for _, name := range introduced {
		value := before.Get(name)
		for key, v := range payload {
			if text, ok := v.(string); ok && strings.EqualFold(key, name) {
				value = text
			}
		}
		if value != "" && len(value) <= maxSaid {
			if out == nil {
				out = introduction{}
			}
			out[name] = value
		}
	}
	return out
}

// Get implements Said.
func (i introduction) Get(name string) string {
	return i[http.CanonicalHeaderKey(name)]
}

// message is what the extensions of an operation on a WebSocket say of it beside what its introduction does.
type message struct {
	introduction Said
	Traceparent  string `json:"traceparent"`
	Explain      bool   `json:"explain"`
}

// saidBy returns what is said of an operation by its extensions and by the introduction of its connection.
func saidBy(introduction Said, extensions json.RawMessage) Said {
	if extensions == nil {
		return introduction
	}
	m := &message{introduction: introduction}
	if json.Unmarshal(extensions, m) != nil { // they are for something else
		return introduction
	}
	return m
}

// Get implements Said.
func (m *message) Get(name string) string {
	var own string
	switch http.CanonicalHeaderKey(name) {
	case "Traceparent":
		own = m.Traceparent
	case ExplainHeader:
		if m.Explain {
			own = "1"
		}
	}
	if own != "" && len(own) <= maxSaid {
		return own
	}
	return m.introduction.Get(name)
}
