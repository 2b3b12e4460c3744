//go:build unix

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/app"
	"oddsgraph/internal/market"
	"oddsgraph/tests/tool"
)

// process is a service that reads a venue and can be killed. ended is closed when it has ended.
type process struct {
	*service
	ended <-chan struct{}
	kill  func(*testing.T)
}

// runningVenue is a limitedVenue with a server, or in memory. start starts a service that uses the venue, with default flags. All
// that the service has read stays within its stale time.
type runningVenue struct {
	*limitedVenue
	start func(*testing.T) process
}

// serveLimitedVenue serves a venue to programs.
func serveLimitedVenue(t *testing.T, retryAfter bool) *runningVenue {
	v := newLimitedVenue(retryAfter)
	server := httptest.NewServer(v)
	t.Cleanup(func() {
		v.venue.Close()
		server.Close()
	})
	return &runningVenue{v, func(t *testing.T) process {
		p := runProgram(t, "--venue-url="+server.URL)
		return process{p.service, p.ended, p.kill}
	}}
}

// limitedVenueInBubble returns a venue for services in the same synctest bubble, which call it in memory. Each call takes 20 ms.
func limitedVenueInBubble(t *testing.T, retryAfter bool) *runningVenue {
	v := newLimitedVenue(retryAfter)
	t.Cleanup(v.venue.Close)
	slow := &direct{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(20 * time.Millisecond)
		v.ServeHTTP(w, r)
	})}
	return &runningVenue{v, func(t *testing.T) process {
		s := openAt(t, market.SystemClock{}, func(w *app.Wiring) {
			w.Client.Transport, w.Stream.Dial, w.Fresh, w.Client.Table = slow, noStream{}, false, nil
		}, "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--venue-url=http://venue.test")
		s.callDirectly()
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if err := s.Serve(ctx); err != nil {
				t.Errorf("the service ended with the error: %v", err)
			}
		}()
		kill := func(*testing.T) {
			stop()
			<-ended
		}
		t.Cleanup(func() { kill(t) })
		return process{s, ended, kill}
	}}
}

const bookOf = `query ($id: String!) { token(tokenId: $id) { orderbook(depth: 1) { sequence freshness { stale } } } }`

// code returns the code of the first error of a query, "" if there is none, and "gone" if there was no response.
func (s *service) code(query string, variables vars) (code string, data any) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out graphResult
	if err := s.post(ctx, query, variables, anonymous, &out); err != nil {
		return "gone", nil
	}
	for _, e := range out.Errors {
		return e.Extensions.Code, nil
	}
	return "", out.Data
}

// startLoad starts clients that request books that nobody has requested before, until the returned function is called or the
// program has ended.
func (v *runningVenue) startLoad(p process, clients int) (stop func()) {
	var all sync.WaitGroup
	stopped := make(chan struct{})
	for range clients {
		all.Go(func() {
			for {
				id := v.books[int(v.next.Add(1))%len(v.books)]
				wait := time.Millisecond
				if code, _ := p.code(bookOf, vars{"id": id}); code != "" {
					wait = time.Second
				}
				select {
				case <-stopped:
					return
				case <-p.ended:
					return
				case <-time.After(wait):
				}
			}
		})
	}
	return sync.OnceFunc(func() { close(stopped); all.Wait() })
}

// kill sends SIGKILL to the program and waits for its end.
func (p *program) kill(t *testing.T) {
	t.Helper()
	if err := p.process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.ended
}

// TestFirstMinute checks that a new process answers 45 queries that need a call each within two seconds, and makes almost all calls
// of the venue's limit in its first minute.
func TestFirstMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := limitedVenueInBubble(t, false)
		p := v.start(t)
		began := time.Now()
		var all sync.WaitGroup
		for _, id := range v.books[:45] {
			all.Go(func() {
				if code, _ := p.code(bookOf, vars{"id": id}); code != "" {
					t.Errorf("a query in the first second got the error %s", code)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("45 queries took %v, want at most two seconds:%s", took, v.log(began))
		} else {
			t.Logf("45 queries took %v", took)
		}
		v.next.Store(45)
		stop := v.startLoad(p, 8)
		time.Sleep(time.Until(began.Add(67 * time.Second)))
		p.kill(t)
		stop()
		accepted, refused := v.count(began, began.Add(time.Minute))
		most, _ := v.most()
		t.Logf("%d calls in the first minute, %d refused, at most %d in any minute", accepted, refused, most)
		if accepted < 90 || refused > 0 || most > venueLimit {
			t.Errorf("got %d calls in the first minute, %d of them refused, and %d in the worst minute; want at least 90, none and at most %d:%s",
				accepted+refused, refused, most, venueLimit, v.log(began))
		}
	})
}

// board reads what a page shows: prices, books and a market. Each value has a name.
const board = `query ($prices: [String!]!, $books: [String!]!) {
	prices: tokenPrices(tokenIds: $prices) { freshness { stale } }
	books: tokens(tokenIds: $books) { orderbook(depth: 1) { freshness { stale } } market { freshness { stale } } }
}`

// watchBoard polls a board until the returned function is called or the program has ended. The function returns the time of the
// first response without errors, or the zero time, and the error codes of later responses.
func (v *runningVenue) watchBoard(p process) (result func() (complete time.Time, lost []string)) {
	var complete time.Time
	var lost []string
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			n := len(v.books)
			code, _ := p.code(board, vars{"prices": v.books[n-20:], "books": v.books[n-3:]})
			switch {
			case code == "" && complete.IsZero():
				complete = time.Now()
			case code != "" && code != "gone" && !complete.IsZero():
				lost = append(lost, code)
			}
			select {
			case <-stopped:
				return
			case <-p.ended:
				return
			case <-time.After(250 * time.Millisecond):
			}
		}
	}()
	return func() (time.Time, []string) {
		select {
		case <-stopped:
		default:
			close(stopped)
		}
		<-done
		return complete, lost
	}
}

// TestStartAtFullUse starts a process after another process has made 95 calls in the last minute, half of them in a burst.
func TestStartAtFullUse(t *testing.T) {
	for _, retryAfter := range []bool{true, false} {
		t.Run(fmt.Sprintf("Retry-After %t", retryAfter), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := limitedVenueInBubble(t, retryAfter)
				for i := range 95 { // every second call was made ten seconds ago, the others were spread over the minute
					ago := time.Duration(95-i) * time.Minute / 95
					if i%2 == 0 {
						ago = 10 * time.Second
					}
					v.admit("/earlier", time.Now().Add(-ago), false)
				}
				v.wantRestarts(t, time.Now(), 1, time.Minute)
			})
		})
	}
}

// TestKilledAtFullUse kills a process that uses the venue's whole limit, and starts it again: once, or five times in a minute.
func TestKilledAtFullUse(t *testing.T) {
	tool.NightlyTier(t)
	for _, retryAfter := range []bool{true, false} {
		for _, starts := range []int{1, 5} {
			t.Run(fmt.Sprintf("Retry-After %t, %d starts", retryAfter, starts), func(t *testing.T) {
				t.Parallel()
				v := serveLimitedVenue(t, retryAfter)
				p := v.start(t)
				began := time.Now()
				stop := v.startLoad(p, 8)
				time.Sleep(70 * time.Second)
				p.kill(t)
				stop()
				v.wantRestarts(t, began, starts, 90*time.Second)
			})
		}
	}
}

// wantRestarts starts a program several times, each start 12 seconds after the start before. The last program runs for the given time.
// began is the time from which the log of calls counts.
func (v *runningVenue) wantRestarts(t *testing.T, began time.Time, starts int, runs time.Duration) {
	t.Helper()
	var p process
	var stop func()
	var result func() (time.Time, []string)
	var last time.Time
	for i := range starts {
		started := time.Now()
		if i > 0 {
			time.Sleep(12 * time.Second)
			p.kill(t)
			stop()
			v.wantStart(t, last, time.Now(), result)
			started = time.Now()
		}
		p, last = v.start(t), started
		stop, result = v.startLoad(p, 8), v.watchBoard(p)
	}
	time.Sleep(time.Until(last.Add(runs)))
	p.kill(t)
	stop()
	complete := v.wantStart(t, last, time.Now(), result)
	if after := complete.Sub(last); complete.IsZero() || after > time.Minute {
		t.Errorf("everything was fresh again after %v, want at most a minute", after)
	} else {
		t.Logf("everything was fresh again after %v", after)
	}
	_, refused := v.most()
	t.Logf("at most %d refusals in a minute:%s", refused, v.log(began))
	if refused > 30 {
		t.Errorf("the venue refused %d calls in a minute, want at most 30", refused)
	}
}

// wantStart checks the calls and the board of a process that ran in a period. It returns the time at which the board was complete.
func (v *runningVenue) wantStart(t *testing.T, from, to time.Time, result func() (time.Time, []string)) time.Time {
	t.Helper()
	accepted, refused := v.count(from, to)
	complete, lost := result()
	t.Logf("a process made %d calls, and %d more were refused", accepted, refused)
	if refused > 6 {
		t.Errorf("the venue refused %d calls of a process, want at most 6", refused)
	}
	if len(lost) > 0 {
		t.Errorf("clients got the errors %v for values that the process had read before", lost)
	}
	return complete
}
