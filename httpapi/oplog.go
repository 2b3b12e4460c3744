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
	"oddsgraph/internal/request"
	"oddsgraph/loaders"
)

// The names of the transports in logs and metrics.
const (
	transportHTTP      = "http"
	transportEvents    = "sse"
	transportWebSocket = "websocket"
)

// The results of the response cache in logs and metrics.
const (
	verdictHit    = "hit"
	verdictShared = "shared"
	verdictMiss   = "miss"
	verdictBypass = "bypass"
)

// maxName bounds an operation's name in the log, in bytes.
const maxName = 64

// Observer observes operations. Its functions may be nil. They are called concurrently and must not block.
type Observer struct {
	// Began is called at the start of an operation. hints contain the client's trace context. trusted reports whether a trusted
	// proxy sent the request.
	Began func(log *request.Log, hints Hints, trusted bool)
	// EventFailed is called for an event with errors if the subscription continues. codes are the different codes of the errors.
	// It is called once for an event, even if several subscribers get the event.
	EventFailed func(codes []string)
	// Ended is called for a subscription at its end, and for every other operation right before its response is sent. The observer may
	// keep the log after the call. But reads that are still running may then write to the log.
	Ended func(ctx context.Context, log *request.Log)
}

// Hints are the client's trace context (W3C Trace Context) and its request for an explanation. Get returns the value of a header,
// or "".
type Hints interface{ Get(name string) string }

func (e *engine) newLog(ctx context.Context, transport string, hints Hints) *request.Log {
	id := identityFrom(ctx)
	log := &request.Log{Operation: request.Operation{Transport: transport, Caller: id.callerKind(), Started: time.Now()}}
	log.Explained = e.wantsExplanation(hints)
	if began := e.cfg.Observer.Began; began != nil {
		// No proxy checks the messages of a WebSocket, so their trace context is never trusted.
		began(log, hints, id.proxied && transport != transportWebSocket)
	}
	return log
}

// setOutcome writes the result of an operation to its log. The parameter ctx is the context of the client's request or connection.
// It shows whether the client has left.
func (e *engine) setOutcome(ctx context.Context, log *request.Log, errs gqlerror.List) {
	log.Elapsed = time.Since(log.Started)
	if len(errs) == 0 {
		log.Outcome = request.OutcomeOK
		return
	}
	if clientLeft(ctx) {
		log.Outcome = request.OutcomeCancelled
		return
	}
	if log.Rule = limits.Rule(errs[0]); errors.Is(errs[0], loaders.ErrTooManyCalls) {
		log.Rule = limits.RuleCalls
	}
	log.Codes = codesIn(errs)
	log.Outcome = log.Codes[0]
}

// codesIn returns the different codes of errors.
func codesIn(errs gqlerror.List) (codes []string) {
	for _, err := range errs {
		if code := codeOf(err); !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	return codes
}

// clientLeft reports whether ctx ended because the client closed its connection, and not because of a deadline or an error of
// the service.
func clientLeft(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, context.Canceled) && market.CodeOf(cause) == market.CodeInternal
}

// report stores the size of the response in the log of an operation, and passes the log to the observer. A panic of the observer
// does not affect the client.
func (e *engine) report(ctx context.Context, log *request.Log, bytes int) {
	defer e.catch(ctx, func(*graphql.Response) {})
	log.Bytes = int64(bytes)
	if ended := e.cfg.Observer.Ended; ended != nil {
		ended(ctx, log)
	}
}

func operationInfo(doc *document, op *ast.OperationDefinition) *request.OperationInfo {
	return &request.OperationInfo{Type: string(op.Operation), Name: op.Name[:min(len(op.Name), maxName)], Document: hex.EncodeToString(doc.hash[:])}
}

func (id identity) callerKind() string {
	switch {
	case id.account != nil:
		return "account"
	case id.credentials != nil:
		return "credentials"
	}
	return "anonymous"
}
