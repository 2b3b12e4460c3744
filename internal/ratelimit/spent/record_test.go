package spent

import (
	"bytes"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"oddsgraph/internal/market"
	"oddsgraph/internal/ratelimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// process is a Record, its log, and the arguments that it has passed to inherit. The fields allowance and until contain the
// arguments of the last call. The field spent contains the lists of all calls in one list.
type process struct {
	*Record
	log bytes.Buffer

	mu        sync.Mutex
	inherits  int // number of calls of inherit
	allowance ratelimit.Allowance
	spent     []ratelimit.Spent
	until     time.Time
}

func newRecord(dir string, limit int) *Record {
	return New(Config{Dir: dir, Venue: "https://user:pw@venue.example/base/?token=s3cret", Limit: limit, Cold: 75 * time.Second, Clock: market.SystemClock{}})
}

// start opens a record as a new process does.
func start(t *testing.T, dir string, limit int) *process {
	t.Helper()
	return startAt(t, dir, limit, market.SystemClock{})
}

func startAt(t *testing.T, dir string, limit int, clock market.Clock) *process {
	t.Helper()
	p := &process{Record: newRecord(dir, limit)}
	p.cfg.Clock, p.cfg.Log, p.started = clock, slog.New(slog.NewTextHandler(&p.log, nil)), clock.Now()
	p.Open(func(s ratelimit.Allowance, spent []ratelimit.Spent, until time.Time) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.inherits++
		p.allowance, p.until = s, until
		p.spent = append(p.spent, spent...)
	})
	return p
}

// kill ends the process like SIGKILL: nothing is written, and the locks are released.
func (p *process) kill() {
	close(p.stop)
	p.running.Wait()
	if p.file != nil {
		_ = p.file.Close()
	}
}

// lastInherit returns the number of calls of inherit, and the argument until of the last call.
func (p *process) lastInherit() (times int, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inherits, p.until
}

// want checks the latest allowance, and the number of inherited calls that are still in the window.
func (p *process) want(t *testing.T, allowance ratelimit.Allowance, calls int) {
	t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := 0
	for _, s := range p.spent {
		if s.At.Add(time.Minute).After(time.Now()) {
			sum += s.Calls
		}
	}
	if p.inherits == 0 || p.allowance != allowance || sum != calls {
		t.Errorf("after %d calls of inherit: got allowance %d with %d calls, want %d with %d\n%s", p.inherits, p.allowance, sum, allowance, calls, &p.log)
	}
}

// makeWhole runs a process until the file contains all calls of the last minute.
func makeWhole(t *testing.T, dir string, limit int) {
	t.Helper()
	p := start(t, dir, limit)
	time.Sleep(80 * time.Second)
	p.Close()
}

// TestKilled checks that the next process after a kill inherits each call of the killed process. The next process may also inherit
// calls that were never made, but fewer than a hundredth of the limit.
func TestKilled(t *testing.T) {
	for _, limit := range []int{100, 1000, 100_000} {
		for _, calls := range []int{0, 1, 7, 60} {
			for _, ended := range []int{0, calls / 2, calls} {
				synctest.Test(t, func(t *testing.T) {
					dir := t.TempDir()
					makeWhole(t, dir, limit)
					p := start(t, dir, limit)
					p.want(t, ratelimit.AllowAll, 0)
					for range calls {
						p.Take()
					}
					for range ended {
						p.End()
					}
					p.kill()
					next := start(t, dir, limit)
					defer next.Close()
					sum := 0
					for _, s := range next.spent {
						sum += s.Calls
					}
					if sum < calls || sum > calls+max(limit/100-1, 0) || next.allowance != ratelimit.AllowAll {
						t.Errorf("limit %d, %d calls, %d of them ended: the next process got %d calls and the allowance %d, want at most %d calls and %d", limit, calls, ended, sum, next.allowance, calls+max(limit/100-1, 0), ratelimit.AllowAll)
					}
				})
			}
		}
	}
}

// TestWhenCallsEnded checks that an ended call counts from its end. A call that was running at a kill counts from the start of the
// next process.
func TestWhenCallsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		makeWhole(t, dir, 100)
		p := start(t, dir, 100)
		first := time.Now()
		p.Take()
		p.End()
		time.Sleep(20 * time.Second)
		p.Take()
		time.Sleep(10 * time.Second)
		p.kill()
		time.Sleep(5 * time.Second)
		next := start(t, dir, 100)
		defer next.Close()
		next.want(t, ratelimit.AllowAll, 2)
		for i, want := range []time.Time{first, time.Now()} {
			if late := next.spent[i].At.Sub(want); late < 0 || late > time.Second {
				t.Errorf("call %d counts from %v, want %v or at most a second later", i, next.spent[i].At, want)
			}
		}
	})
}

// TestKilledTwice checks that a process inherits the calls of all earlier processes from the last minute.
func TestKilledTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		makeWhole(t, dir, 100)
		for i := range 3 {
			p := start(t, dir, 100)
			p.want(t, ratelimit.AllowAll, 10*i)
			for range 10 {
				p.Take()
				p.End()
			}
			p.kill()
		}
		time.Sleep(50 * time.Second)
		p := start(t, dir, 100)
		p.want(t, ratelimit.AllowAll, 30)
		time.Sleep(13 * time.Second)
		p.kill()
		p = start(t, dir, 100)
		p.want(t, ratelimit.AllowAll, 1) // the last write of the third process counted its last call as running
		p.Close()
	})
}

// TestIdle checks that an idle process keeps its file from becoming too old.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		p := start(t, dir, 100)
		time.Sleep(time.Hour)
		p.kill()
		time.Sleep(54 * time.Second)
		p = start(t, dir, 100)
		p.want(t, ratelimit.AllowAll, 0)
		time.Sleep(3 * time.Second)
		p.Close()
		time.Sleep(time.Minute)
		p = start(t, dir, 100)
		p.want(t, ratelimit.AllowAll, 0)
		p.Close()
		time.Sleep(time.Minute + time.Millisecond)
		p = start(t, dir, 100)
		p.want(t, ratelimit.AllowMarginFirst, 0)
		p.Close()
	})
}

// TestThreeProcesses checks the allowances of three processes. When a process ends, the next process must take its place and
// inherit its calls.
func TestThreeProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		makeWhole(t, dir, 100)
		first := start(t, dir, 100)
		first.want(t, ratelimit.AllowAll, 0)
		second := start(t, dir, 100)
		second.want(t, ratelimit.AllowMargin, 0)
		third := start(t, dir, 100)
		third.want(t, ratelimit.AllowNone, 0)
		for range 10 {
			first.Take()
			first.End()
		}
		for range 3 {
			second.Take()
		}
		count, until := second.lastInherit()
		time.Sleep(10 * time.Second)
		second.want(t, ratelimit.AllowMargin, 0)
		if again, later := second.lastInherit(); again < count+9 || later.Sub(until) < 9*time.Second {
			t.Errorf("in 10 s inherit was called %d times, the last time until %v; want at least 9 calls and a time at least 9 s after %v", again-count, later, until)
		}
		// After the end of the second process, the third process gets the margin and inherits the calls of the second process.
		second.kill()
		time.Sleep(1100 * time.Millisecond)
		third.want(t, ratelimit.AllowMargin, 3)
		third.Take()
		third.End()
		first.kill()
		time.Sleep(1100 * time.Millisecond)
		third.want(t, ratelimit.AllowAll, 13)
		// The second file is unlocked again, so the fourth process gets the margin.
		fourth := start(t, dir, 100)
		fourth.want(t, ratelimit.AllowMargin, 4)
		fourth.Close()
		// The first file now also contains the calls that the second and the third process made from the margin.
		third.kill()
		fifth := start(t, dir, 100)
		fifth.want(t, ratelimit.AllowAll, 14)
		fifth.Close()
	})
}

// TestWritesAreFew checks, for several limits, that the process writes the file about a hundred times while it makes as many calls
// as the limit.
func TestWritesAreFew(t *testing.T) {
	for _, limit := range []int{100, 1000, 100_000} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			p := start(t, dir, limit)
			defer p.Close()
			writes := 0
			for range limit {
				p.Take()
				p.End()
				if p.aheadLeft == p.ahead { // Take has written the file
					writes++
				}
			}
			if writes > 110 || writes < 90 {
				t.Errorf("limit %d: got %d writes, want 90 to 110", limit, writes)
			}
		})
	}
}

// steppedClock is the system clock plus a constant.
type steppedClock struct{ by time.Duration }

func (c *steppedClock) Now() time.Time { return time.Now().Add(c.by) }

// TestClockIsSet checks that a process ignores the calls in the file if its wall clock is at least ten seconds behind the clock of
// the previous process, or at least two minutes ahead.
func TestClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, -10 * time.Second, 2 * time.Minute, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			makeWhole(t, dir, 100)
			p := start(t, dir, 100)
			p.Take()
			p.End()
			p.kill()
			p = startAt(t, dir, 100, &steppedClock{by})
			if p.allowance != ratelimit.AllowMarginFirst || len(p.spent) != 0 {
				t.Errorf("the clock was set by %v: got the allowance %d and the calls %v, want %d and no calls", by, p.allowance, p.spent, ratelimit.AllowMarginFirst)
			}
			p.Close()
		})
	}
}

// TestConcurrentCalls checks that concurrent calls are all recorded.
func TestConcurrentCalls(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, 1000)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				p.Take()
				runtime.Gosched()
				p.End()
			}
		})
	}
	all.Wait()
	p.kill()
	next := start(t, dir, 1000)
	defer next.Close()
	sum := 0
	for _, s := range next.spent {
		sum += s.Calls
	}
	if sum < 400 || sum > 400+9 {
		t.Errorf("the next process got %d calls, want 400 to 409; the list is %v", sum, next.spent)
	}
}
