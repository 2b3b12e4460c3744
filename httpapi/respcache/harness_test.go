package respcache

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/tests/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a cache with a clock that only the test advances. It counts the executions and the calls of Config.Encode.
type rig struct {
	*Cache
	clock                 *tool.Clock
	mu                    sync.Mutex
	executions, encodings int
	// dated is an argument of NewResponse.
	dated bool
}

func newRig(bytes int64) *rig {
	g := &rig{clock: tool.NewClock(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))}
	g.Cache = New(Config{Bytes: bytes, Clock: g.clock, Reading: func(ctx context.Context) context.Context { return ctx }, Encode: func(body []byte, coding string) []byte {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.encodings++
		return append([]byte(coding+":"), body...)
	}})
	return g
}

// freshHandle returns a handle that expires after d.
func (g *rig) freshHandle(d time.Duration) *reads.Handle {
	return reads.NewHandle(g.clock.Now().Add(d))
}

// executed returns a response with the recorded dependencies. Each response has a new text.
func (g *rig) executed(recorder *request.Dependencies) *Response {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.executions++
	return NewResponse(fmt.Appendf(nil, "execution %d", g.executions), nil, recorder, g.dated)
}

// ask calls Do for a key. The function record records the dependencies of the response.
func (g *rig) ask(t testing.TB, key Key, record func(ctx context.Context, r *request.Dependencies)) (body string, outcome Outcome) {
	t.Helper()
	r, outcome, err := g.Do(t.Context(), key, nil, func(ctx context.Context) *Response {
		recorder := &request.Dependencies{}
		ctx = request.With(ctx, func(r *request.Request) { r.Respond(recorder) })
		record(ctx, recorder)
		return g.executed(recorder)
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(r.Body), outcome
}

// recording returns a function that records handles.
func recording(handles ...*reads.Handle) func(context.Context, *request.Dependencies) {
	return func(_ context.Context, r *request.Dependencies) {
		for _, h := range handles {
			r.Record(h)
		}
	}
}

// recordingPersonal returns a function that reads the caller's credentials, which makes the response personal, and then records
// handles.
func recordingPersonal(handles ...*reads.Handle) func(context.Context, *request.Dependencies) {
	return func(ctx context.Context, r *request.Dependencies) {
		request.CredentialsFrom(ctx)
		recording(handles...)(ctx, r)
	}
}

// want calls Do for a key and checks the outcome.
func (g *rig) want(t testing.TB, what string, key Key, outcome Outcome) {
	t.Helper()
	if _, got := g.ask(t, key, recording()); got != outcome {
		t.Errorf("%s: the outcome is %d, want %d", what, got, outcome)
	}
}

// keyFor returns the key of an operation for an identity.
func (g *rig) keyFor(text string, identity Identity) Key {
	return Key{Operation: OperationHash([32]byte{}, text, nil, "application/json"), Identity: identity}
}

func account(t testing.TB, key string) *market.Credentials {
	t.Helper()
	c, err := market.ParseCredentials(fmt.Appendf(nil, `{"apiKey":%q,"secret":"s","passphrase":"p"}`, key))
	if err != nil {
		t.Fatal(err)
	}
	return c
}
