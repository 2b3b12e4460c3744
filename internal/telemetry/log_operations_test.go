package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
)

// journal returns the log of an operation that has ended with the given outcome.
func journal(outcome string) *request.Log {
	j := &request.Log{Operation: request.Operation{
		Transport: "http", Caller: "anonymous", Outcome: outcome, Elapsed: time.Millisecond, Points: 12, Bytes: 345, Status: 200, Response: "miss",
		Info: &request.OperationInfo{Type: "query", Name: "Board", Document: "00ff"},
	}}
	request.WithLog(context.Background(), j) // without this call, j does not count reads
	j.CountReads(upstream.KindPrice, request.CacheCounts{Hits: 3, Misses: 2, Joined: 1})
	j.CountReads(upstream.KindBook, request.CacheCounts{Hits: 4, Stale: 1})
	j.NoteBatch(upstream.Batch{Serial: 1, Calls: make([]upstream.HTTPCall, 2)})
	return j
}

// TestOneLineForEachOperation checks the log line of an operation in both formats.
func TestOneLineForEachOperation(t *testing.T) {
	var to bytes.Buffer
	ctx := WithRequestID(t.Context(), "abc")
	NewOperations(NewLogger(&to, slog.LevelInfo, "json"), 100).Ended(ctx, journal("ok"))
	var got map[string]any
	if err := json.Unmarshal(to.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, &to)
	}
	delete(got, "time")
	want := `map[bytes:345 caller:anonymous calls:2 cost:12 document:00ff elapsed:1e+06 hits:7 joined:1 level:INFO misses:2 msg:operation name:Board outcome:ok request_id:abc response:miss stale:1 status:200 transport:http type:query]`
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
	to.Reset()
	j := journal("UPSTREAM_TIMEOUT")
	j.Codes = []string{"UPSTREAM_TIMEOUT", "RATE_LIMITED"}
	NewOperations(NewLogger(&to, slog.LevelInfo, "text"), 100).Ended(ctx, j)
	for _, part := range []string{"level=WARN msg=operation type=query name=Board", "outcome=UPSTREAM_TIMEOUT codes=UPSTREAM_TIMEOUT,RATE_LIMITED elapsed=1ms", "request_id=abc\n"} {
		if !strings.Contains(to.String(), part) {
			t.Errorf("%q is not in %s", part, &to)
		}
	}
}

// TestSuccessesAreSampledAndFailuresAreNot checks that every failed and every cancelled operation is logged. Of the successful
// operations above the limit, only a sample must be logged.
func TestSuccessesAreSampledAndFailuresAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to bytes.Buffer
		o := NewOperations(NewLogger(&to, slog.LevelInfo, "text"), 10)
		lines := func(outcome string, n int) (all, samples int) {
			to.Reset()
			for range n {
				o.Ended(t.Context(), journal(outcome))
			}
			return strings.Count(to.String(), "\n"), strings.Count(to.String(), "one_of=100")
		}
		if all, samples := lines("ok", 510); all != 15 || samples != 5 || o.Sampled() != 495 {
			t.Errorf("510 successes with a limit of 10: got %d lines, %d of them with one_of=100, and %d operations without a line; want 15, 5 and 495", all, samples, o.Sampled())
		}
		if all, samples := lines("BAD_USER_INPUT", 500); all != 500 || samples != 0 {
			t.Errorf("500 failures: got %d lines, %d of them with one_of=100; want 500 and 0", all, samples)
		}
		if all, _ := lines(request.OutcomeCancelled, 50); all != 50 {
			t.Errorf("50 cancelled operations: got %d lines, want 50", all)
		}
		time.Sleep(time.Second)
		if all, samples := lines("ok", 10); all != 10 || samples != 0 {
			t.Errorf("10 successes in the next second: got %d lines, %d of them with one_of=100; want 10 and 0", all, samples)
		}
	})
}

// TestSuccessesLeaveRoomForFailures checks that the buffer of the log has space for failures after many successes.
func TestSuccessesLeaveRoomForFailures(t *testing.T) {
	to := newBlockedWriter()
	w := NewWriter(to, 100_000)
	o := NewOperations(NewLogger(w, slog.LevelInfo, "text"), 1_000_000)
	for range 1000 {
		o.Ended(t.Context(), journal("ok"))
	}
	if w.Dropped() != 0 || o.Sampled() == 0 {
		t.Fatalf("after 1,000 successes: got %d dropped lines and %d operations without a line, want 0 and more than 0", w.Dropped(), o.Sampled())
	}
	for range 100 {
		o.Ended(t.Context(), journal("UPSTREAM_TIMEOUT"))
	}
	if w.Dropped() != 0 {
		t.Errorf("the lines of %d of 100 failures were dropped", w.Dropped())
	}
	close(to.release)
	w.Close(time.Minute)
	if n := strings.Count(to.String(), "UPSTREAM_TIMEOUT"); n != 100 {
		t.Errorf("the log has the lines of %d of 100 failures", n)
	}
}

// TestARequestIsLoggedOnce checks that an HTTP request with an operation has only the log line of the operation. The request that
// opens a WebSocket must have its own line next to the lines of its operations.
func TestARequestIsLoggedOnce(t *testing.T) {
	var to bytes.Buffer
	log := NewLogger(&to, slog.LevelInfo, "text")
	o := NewOperations(log, 100)
	h := Requests(log, 100, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		j := journal("ok")
		switch r.URL.Path {
		case "/graphql":
			o.Ended(r.Context(), j)
		case "/socket":
			j.Transport = "websocket"
			o.Ended(r.Context(), j)
		}
	}))
	for path, want := range map[string]string{"/graphql": "operation", "/healthz": "request", "/socket": "operation,request"} {
		to.Reset()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil))
		var got []string
		for line := range strings.Lines(to.String()) {
			_, line, _ = strings.Cut(line, "msg=")
			line, _, _ = strings.Cut(line, " ")
			got = append(got, line)
		}
		if strings.Join(got, ",") != want {
			t.Errorf("POST %s: got the lines %v, want %s", path, got, want)
		}
	}
}

// TestALineAllocatesLittle checks that a log line costs at most three allocations.
func TestALineAllocatesLittle(t *testing.T) {
	o := NewOperations(NewLogger(io.Discard, slog.LevelInfo, "json"), 1_000_000_000)
	ctx, j := WithRequestID(context.Background(), "abc"), journal("ok")
	if n := testing.AllocsPerRun(1000, func() { o.Ended(ctx, j) }); n > 3 {
		t.Errorf("a log line costs %.1f allocations, want at most 3", n)
	}
}

// TestRequestsLeaveRoomForFailures checks that only a sample of the successful requests above the limit is logged, and that the
// buffer of the log has space for failed requests.
func TestRequestsLeaveRoomForFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to bytes.Buffer
		status := http.StatusOK
		page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		ask := func(h http.Handler, n int) {
			for range n {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil))
			}
		}
		h := Requests(NewLogger(&to, slog.LevelInfo, "text"), 10, page)
		ask(h, 210)
		if lines, samples := strings.Count(to.String(), "\n"), strings.Count(to.String(), "one_of=100"); lines != 12 || samples != 2 {
			t.Errorf("210 successful requests with a limit of 10: got %d lines, %d of them with one_of=100; want 12 and 2", lines, samples)
		}
		status = http.StatusServiceUnavailable
		if ask(h, 20); strings.Count(to.String(), "status=503") != 20 {
			t.Errorf("%d of 20 failed requests have a log line", strings.Count(to.String(), "status=503"))
		}

		held := newBlockedWriter()
		w := NewWriter(held, 20_000)
		h = Requests(NewLogger(w, slog.LevelInfo, "text"), 1_000_000, page)
		status = http.StatusOK
		ask(h, 1000)
		status = http.StatusServiceUnavailable
		if ask(h, 10); w.Dropped() != 0 {
			t.Errorf("got %d dropped lines, want none", w.Dropped())
		}
		close(held.release)
		w.Close(time.Minute)
		if n := strings.Count(held.String(), "status=503"); n != 10 {
			t.Errorf("the log has the lines of %d of 10 failed requests", n)
		}
	})
}
