package httpapi

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/httpapi/limits"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/loaders"
)

// The transports, as journals name them.
const (
	transportHTTP      = "http"
	transportEvents    = "sse"
	transportWebSocket = "websocket"
)

// The verdicts of the cache of responses.
const (
	verdictHit    = "hit"
	verdictShared = "shared"
	verdictMiss   = "miss"
	verdictBypass = "bypass"
)

// maxName is how much of an operation's name is noted.
const maxName = 64

// Observer is told what becomes of operations. Its methods are called by many at once and must not block.
type Observer interface {
	// Began is called for an operation before anything is known of it. said is what the client says of its own trace; trusted
	// reports that a trusted proxy sent it.
	Began(j *reqctx.Log, said Said, trusted bool)
	// EventFailed is told of an event of a subscription that goes on although parts of it failed, by which codes, each once: of
	// what is executed, however many share it.
	EventFailed(codes []string)
	// Ended is told of every operation when its response was made, right before it is sent, and of a subscription when it is
	// over. The journal is the observer's then, but for what is read still.
	Ended(ctx context.Context, j *reqctx.Log)
}

// Said is what a client says of an operation beside what it asks: of its own trace, by the names of W3C's headers, and whether
// it wants to know more, by ours; empty for what it does not say.
type Said interface{ Get(name string) string }

// begin begins to note an operation.
func (e *engine) begin(ctx context.Context, transport string, said Said) *reqctx.Log {
	id := identityFrom(ctx)
	j := &reqctx.Log{Operation: reqctx.Operation{Transport: transport, Caller: id.kind(), Started: time.Now()}}
	j.Explained = e.asksForExplanation(said)
	if e.cfg.Observer != nil {
		e.cfg.Observer.Began(j, said, id.proxied && transport != transportWebSocket) // messages pass proxies unread
	}
	return j
}

// noting returns a context whose reads are noted in j, if anybody wants to know.
func (e *engine) noting(ctx context.Context, j *reqctx.Log) context.Context {
	if e.cfg.Observer == nil && !j.Explained {
		return ctx
	}
	return reqctx.WithLog(ctx, j)
}

// made notes that the response of an operation was made. ctx is that of whoever waits for it.
func (e *engine) made(ctx context.Context, j *reqctx.Log, errs gqlerror.List) {
	j.Elapsed = time.Since(j.Started)
	if len(errs) == 0 {
		j.Outcome = reqctx.OutcomeOK
		return
	}
	if gone(ctx) {
		j.Outcome = reqctx.OutcomeCancelled
		return
	}
	if j.Rule = limits.Rule(errs[0]); errors.Is(errs[0], loaders.ErrTooManyCalls) {
		j.Rule = limits.RuleCalls
	}
	j.Codes = codesIn(errs)
	j.Outcome = j.Codes[0]
}

// codesIn returns the codes of errors, each once.
func codesIn(errs gqlerror.List) (codes []string) {
	for _, err := range errs {
		if code := codeOf(err); !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	return codes
}

// gone reports whether a client has left, rather than that its time is over or that it was turned away.
func gone(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, context.Canceled) && market.CodeOf(cause) == market.CodeInternal
}

// end tells of an operation whose response is about to be sent in so many bytes. A panic of who is told takes nothing from the
// client.
func (e *engine) end(ctx context.Context, j *reqctx.Log, bytes int) {
	defer e.catch(ctx, func(*graphql.Response) {})
	j.Bytes = int64(bytes)
	if e.cfg.Observer != nil {
		e.cfg.Observer.Ended(ctx, j)
	}
}

// asked says what an operation of a document is.
func asked(doc *document, op *ast.OperationDefinition) *reqctx.OperationInfo {
	return &reqctx.OperationInfo{Type: string(op.Operation), Name: op.Name[:min(len(op.Name), maxName)], Document: hex.EncodeToString(doc.hash[:])}
}

// kind says by what a client is known.
func (id identity) kind() string {
	switch {
	case id.account != nil:
		return "account"
	case id.credentials != nil:
		return "credentials"
	}
	return "anonymous"
}

// saidKey is that of what the client of a connection says of all its operations.
type saidKey struct{}

// unsaid is what a client says that says nothing.
type unsaid struct{}

// Get implements Said.
func (unsaid) Get(string) string { return "" }

// saidFrom returns what the client of a connection has said of all its operations.
func saidFrom(ctx context.Context) Said {
	if said, ok := ctx.Value(saidKey{}).(Said); ok {
		return said
	}
	return unsaid{}
}
