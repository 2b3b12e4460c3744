package respcache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
)

// answer is a result of Do.
type answer struct {
	body    string
	outcome Outcome
	err     error
}

// asker calls Do for one key from many goroutines. The test decides what an execution records and when it ends.
type asker struct {
	*rig
	key     Key
	place   Place
	running chan *execution
}

// fullPlace is a Place without room for a request that waits for another one.
type fullPlace struct{}

func (fullPlace) Join(ctx context.Context, _ any) error {
	<-ctx.Done()
	return ctx.Err()
}

// execution is a running call of the function that start passes to Do.
type execution struct {
	ctx      context.Context
	recorder *request.Dependencies
	finish   chan struct{}
	// If the test closes hang, the execution waits until its context ends, and then returns nil.
	hang chan struct{}
}

func newAsker() *asker {
	a := &asker{rig: newRig(1 << 20), running: make(chan *execution, 10)}
	a.key = a.keyFor("q", a.Identity(nil))
	return a
}

// start calls Do on a new goroutine. It returns when that goroutine waits or has ended.
func (a *asker) start(ctx context.Context) chan answer {
	out := make(chan answer, 1)
	go func() {
		r, outcome, err := a.Do(ctx, a.key, a.place, func(ctx context.Context) *Response {
			x := &execution{ctx, new(request.Dependencies), make(chan struct{}), make(chan struct{})}
			a.running <- x
			select {
			case <-x.finish:
			case <-x.hang:
				<-ctx.Done()
				return nil
			case <-ctx.Done():
				return NewResponse(fmt.Appendf(nil, "cut: %v", context.Cause(ctx)), nil, nil, false)
			}
			return a.executed(x.recorder)
		})
		if err != nil {
			out <- answer{"", outcome, err}
			return
		}
		out <- answer{string(r.Body), outcome, nil}
	}()
	synctest.Wait()
	return out
}

func wantAnswer(t *testing.T, who string, got chan answer, want answer) {
	t.Helper()
	if a := <-got; a.body != want.body || a.outcome != want.outcome || !errors.Is(a.err, want.err) {
		t.Errorf("%s got %+v, want %+v", who, a, want)
	}
}

func TestEqualRequestsAreExecutedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker()
		first := a.start(t.Context())
		others := []chan answer{a.start(t.Context()), a.start(t.Context()), a.start(t.Context())}
		x := <-a.running
		x.recorder.Record(a.freshHandle(time.Second))
		close(x.finish)
		wantAnswer(t, "the first", first, answer{"execution 1", Executed, nil})
		for _, o := range others {
			wantAnswer(t, "another", o, answer{"execution 1", Shared, nil})
		}
		wantAnswer(t, "a later caller", a.start(t.Context()), answer{"execution 1", Hit, nil})
		if s := a.Stats(); s.Misses != 1 || s.Coalesced != 3 || s.Hits != 1 || s.Stored != 1 {
			t.Errorf("the counters are %+v, want 1 miss, 3 coalesced, 1 hit and 1 stored", s)
		}
	})
}

// TestResponseBeforeAPlace checks that a caller without a place gets the response as soon as the execution has ended.
func TestResponseBeforeAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker()
		a.place = fullPlace{}
		first := a.start(t.Context())
		second := a.start(t.Context())
		x := <-a.running
		x.recorder.Record(a.freshHandle(time.Second))
		close(x.finish)
		wantAnswer(t, "the first caller", first, answer{"execution 1", Executed, nil})
		wantAnswer(t, "the caller without a place", second, answer{"execution 1", Shared, nil})
	})
}

// TestInvalidResponsesAreNotShared checks that only the first caller gets a response that is invalid at the end of its execution.
// The callers that waited must share one new execution.
func TestInvalidResponsesAreNotShared(t *testing.T) {
	for name, spoil := range map[string]func(a *asker, r *request.Dependencies){
		"a value changes":  func(a *asker, r *request.Dependencies) { h := a.freshHandle(time.Second); r.Record(h); h.Invalidate() },
		"a read fails":     func(_ *asker, r *request.Dependencies) { r.Record(nil) },
		"a value is stale": func(a *asker, r *request.Dependencies) { r.Record(a.freshHandle(0)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAsker()
				first := a.start(t.Context())
				x := <-a.running
				late := []chan answer{a.start(t.Context()), a.start(t.Context()), a.start(t.Context())}
				spoil(a, x.recorder)
				close(x.finish)
				wantAnswer(t, "the caller that executed", first, answer{"execution 1", Executed, nil})
				synctest.Wait()
				x = <-a.running // all callers that waited share this execution
				spoil(a, x.recorder)
				close(x.finish)
				synctest.Wait()
				executed := 0
				for _, l := range late {
					got := <-l
					if got.body != "execution 2" || got.err != nil {
						t.Errorf("a later caller got %+v", got)
					}
					if got.outcome == Executed {
						executed++
					}
				}
				if executed != 1 || a.executions != 2 || a.Stats().Stored != 0 {
					t.Errorf("%d of the callers that waited executed, there were %d executions and %d stored responses; want 1, 2 and 0", executed, a.executions, a.Stats().Stored)
				}
			})
		})
	}
}

func TestFirstCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker()
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		first := a.start(ctx)
		other, cancelOther := context.WithCancelCause(t.Context())
		second, third := a.start(t.Context()), a.start(other)
		x := <-a.running
		cancel(gone)
		cancelOther(gone)
		wantAnswer(t, "a caller that waited and left", third, answer{"", Shared, gone})
		wantAnswer(t, "the first", first, answer{"", Executed, gone})
		if x.ctx.Err() != nil {
			t.Error("the execution ended with its first caller")
		}
		x.recorder.Record(a.freshHandle(time.Second))
		close(x.finish)
		wantAnswer(t, "the caller that stayed", second, answer{"execution 1", Shared, nil})
		wantAnswer(t, "a later caller", a.start(t.Context()), answer{"execution 1", Hit, nil})
	})
}

func TestExecutionEndsWithoutCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker()
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		first, second := a.start(ctx), a.start(ctx)
		x := <-a.running
		cancel(gone)
		synctest.Wait() // the last caller to leave gets the response of the cancelled execution
		if !errors.Is(context.Cause(x.ctx), gone) {
			t.Errorf("the context of the execution has the cause %v, want %v", context.Cause(x.ctx), gone)
		}
		last, other := <-first, <-second
		if last.err != nil {
			last, other = other, last
		}
		if last.body != "cut: gone" || !errors.Is(other.err, gone) {
			t.Errorf("the last caller got %+v and the other caller %+v, want the cut response and the error gone", last, other)
		}
		third := a.start(t.Context())
		close((<-a.running).finish)
		wantAnswer(t, "a later caller", third, answer{"execution 1", Executed, nil})
	})
}

// TestDeadlineEndsOnlyItsCaller checks that callers with more time do not get a response that is incomplete because of the first
// caller's deadline. A caller with less time than the first must get a timeout at its own deadline.
func TestDeadlineEndsOnlyItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first := a.start(short)
		long, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		second, third := a.start(long), a.start(long)
		if d, ok := (<-a.running).ctx.Deadline(); !ok || time.Until(d) > time.Second {
			t.Error("the execution does not have the deadline of its first caller")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		wantAnswer(t, "the first", first, answer{"cut: context deadline exceeded", Executed, nil})
		close((<-a.running).finish)
		synctest.Wait()
		for _, c := range []chan answer{second, third} {
			if got := <-c; got.body != "execution 1" || got.err != nil {
				t.Errorf("a caller with more time got %+v", got)
			}
		}
		short, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a.clock.Advance(time.Hour)
		fourth, fifth := a.start(long), a.start(short)
		x := <-a.running
		time.Sleep(time.Second)
		wantAnswer(t, "a caller with less time", fifth, answer{"", Shared, context.DeadlineExceeded})
		close(x.finish)
		wantAnswer(t, "a caller with more time", fourth, answer{"execution 2", Executed, nil})
	})
}

// TestCallersOutOfTime checks when a caller with little time left gets a response that is incomplete because of the first caller's
// deadline.
func TestCallersOutOfTime(t *testing.T) {
	cut := answer{"cut: context deadline exceeded", Shared, nil}
	for _, test := range []struct {
		name string
		// has is the timeout of the second caller. The first caller has a timeout of one second.
		has    time.Duration
		forget bool // calls Forget during the execution
		// again is true if the cache must execute again for the second caller.
		again bool
		want  answer
	}{
		{"less left than it has waited", 1999 * time.Millisecond, false, false, cut},
		{"more left than it has waited", 2001 * time.Millisecond, false, true, cut},
		{"a deadline just before the deadline of the first caller", 999 * time.Millisecond, false, false, cut},
		{"Forget was called", 1999 * time.Millisecond, true, true, answer{"", Executed, context.DeadlineExceeded}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAsker()
				within := func(d time.Duration) chan answer {
					ctx, cancel := context.WithTimeout(t.Context(), d)
					t.Cleanup(cancel)
					return a.start(ctx)
				}
				first := within(time.Second)
				<-a.running
				last := within(test.has)
				if test.forget {
					a.Forget(nil)
				}
				time.Sleep(time.Second)
				wantAnswer(t, "the first", first, answer{cut.body, Executed, nil})
				synctest.Wait()
				if again := len(a.running) > 0; again != test.again {
					t.Errorf("the cache executed again for the second caller: %t, want %t", again, test.again)
				}
				if test.again {
					close((<-a.running).hang)
				}
				wantAnswer(t, "the caller out of time", last, test.want)
			})
		})
	}
}

// TestCutResponsesAreNotShared checks that a caller does not get a response that is incomplete because of another caller's
// deadline, even if both callers arrived before the execution began. Which caller executes is random. So the test repeats until the
// caller with the least time executes.
func TestCutResponsesAreNotShared(t *testing.T) {
	for i := range 1000 {
		done := false
		synctest.Test(t, func(t *testing.T) {
			a := newAsker()
			first := a.start(t.Context())
			x := <-a.running
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var late, other chan answer
			if i%2 == 0 {
				late, other = a.start(short), a.start(t.Context())
			} else {
				other, late = a.start(t.Context()), a.start(short)
			}
			x.recorder.Record(nil)
			close(x.finish)
			<-first
			x = <-a.running
			synctest.Wait()
			if _, done = x.ctx.Deadline(); !done {
				close(x.finish)
				<-late
				<-other
				return
			}
			time.Sleep(time.Second)
			wantAnswer(t, "the caller that executed", late, answer{"cut: context deadline exceeded", Executed, nil})
			close((<-a.running).finish)
			wantAnswer(t, "the caller with more time", other, answer{"execution 2", Executed, nil})
		})
		if done {
			return
		}
	}
	t.Error("the caller with the least time never executed")
}

func TestAPanicIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker()
		running, fail := make(chan struct{}), make(chan struct{})
		first := make(chan error, 1)
		go func() {
			_, _, err := a.Do(t.Context(), a.key, nil, func(context.Context) *Response {
				close(running)
				<-fail
				panic("no")
			})
			first <- err
		}()
		<-running
		second := a.start(t.Context())
		close(fail)
		for _, err := range []error{<-first, (<-second).err} {
			if err == nil || !strings.Contains(err.Error(), "panic: no") {
				t.Errorf("the error is %v, want one that contains panic: no", err)
			}
		}
		third := a.start(t.Context())
		close((<-a.running).finish)
		wantAnswer(t, "a later caller", third, answer{"execution 1", Executed, nil})
	})
}

type span byte

func (s span) Context() upstream.TraceContext { return upstream.TraceContext{Span: [8]byte{byte(s)}} }

// TestSpansOfSharingCallers checks that the log of an execution lists the trace spans of all callers that have a span. In the log
// of a later caller, ServedBy must be the span of the first caller.
func TestSpansOfSharingCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsker()
		journals := make([]*request.Log, 4)
		var answers []chan answer
		for i := range journals {
			journals[i] = &request.Log{}
			if i != 1 { // like a caller whose trace is not sampled
				journals[i].Span = span(i + 1)
			}
			answers = append(answers, a.start(request.WithLog(t.Context(), journals[i])))
		}
		x := <-a.running
		if got := fmt.Sprint(request.From(x.ctx).Log.Spans()); got != "[1 3 4]" {
			t.Errorf("the log of the execution lists the spans %s, want [1 3 4]", got)
		}
		if by := journals[3].ServedBy(); by != span(1) || journals[0].ServedBy() != nil {
			t.Errorf("ServedBy of the last caller is %v and of the first caller %v, want %v and nil", by, journals[0].ServedBy(), span(1))
		}
		close(x.finish)
		for _, c := range answers {
			<-c
		}
	})
}
