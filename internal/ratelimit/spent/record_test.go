package spent

import (
	"bytes"
	"fmt"
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

// process is a record with what it told its budget and the log.
type process struct {
	*Record
	log bytes.Buffer

	mu       sync.Mutex
	told     int
	standing ratelimit.Standing
	spent    []ratelimit.Spent
	until    time.Time
}

// begin opens a record as a process that starts does.
func begin(t *testing.T, dir string, limit int) *process {
	t.Helper()
	return beginAt(t, dir, limit, market.SystemClock{})
}

func beginAt(t *testing.T, dir string, limit int, clock market.Clock) *process {
	t.Helper()
	p := &process{}
	p.Record = New(Config{
		Dir: dir, Venue: "https://user:pw@venue.example/base/?token=s3cret", Limit: limit, Cold: 75 * time.Second, Clock: clock, Log: slog.New(slog.NewTextHandler(&p.log, nil)),
	})
	p.Open(func(s ratelimit.Standing, spent []ratelimit.Spent, until time.Time) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.told++
		p.standing, p.until = s, until
		p.spent = append(p.spent, spent...)
	})
	return p
}

// kill ends the process as SIGKILL does: nothing is written, and the kernel releases its locks.
func (p *process) kill() {
	close(p.stop)
	p.running.Wait()
	if p.file != nil {
		_ = p.file.Close()
	}
}

// heard returns how often the record told something, and until when it told last.
func (p *process) heard() (times int, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told, p.until
}

// want checks what the record told last, the calls being the sum of all that still count.
func (p *process) want(t *testing.T, standing ratelimit.Standing, calls int) {
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
	if p.told == 0 || p.standing != standing || sum != calls {
		t.Errorf("told %d times, standing %d with %d calls; want %d with %d\n%s", p.told, p.standing, sum, standing, calls, &p.log)
	}
}

// age lets the first process make the file whole.
func age(t *testing.T, dir string, limit int) {
	t.Helper()
	p := begin(t, dir, limit)
	time.Sleep(80 * time.Second)
	p.Close()
}

// A process that is killed has told the next one of each call that it was about to send, whether or not it has ended.
func TestKilled(t *testing.T) {
	for _, limit := range []int{100, 1000, 100_000} {
		for _, calls := range []int{0, 1, 7, 60} {
			for _, ended := range []int{0, calls / 2, calls} {
				synctest.Test(t, func(t *testing.T) {
					dir := t.TempDir()
					age(t, dir, limit)
					p := begin(t, dir, limit)
					p.want(t, ratelimit.Alone, 0)
					for range calls {
						p.Take()
					}
					for range ended {
						p.End()
					}
					p.kill()
					next := begin(t, dir, limit)
					defer next.Close()
					sum := 0
					for _, s := range next.spent {
						sum += s.Calls
					}
					if sum < calls || sum > calls+max(limit/100-1, 0) || next.standing != ratelimit.Alone {
						t.Errorf("limit %d, %d calls of which %d ended: the next process knows %d, standing %d", limit, calls, ended, sum, next.standing)
					}
				})
			}
		}
	}
}

// Calls count from the second in which they ended; those that were under way when the process was killed, from when the next
// one started.
func TestWhenCallsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		age(t, dir, 100)
		p := begin(t, dir, 100)
		first := time.Now()
		p.Take()
		p.End()
		time.Sleep(20 * time.Second)
		p.Take()
		time.Sleep(10 * time.Second)
		p.kill()
		time.Sleep(5 * time.Second)
		next := begin(t, dir, 100)
		defer next.Close()
		next.want(t, ratelimit.Alone, 2)
		for i, want := range []time.Time{first, time.Now()} {
			if late := next.spent[i].At.Sub(want); late < 0 || late > time.Second {
				t.Errorf("call %d counts from %v, want it from %v on", i, next.spent[i].At, want)
			}
		}
	})
}

// The process after the next one knows of the first one's calls too, and nothing of what has left the minute.
func TestKilledTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		age(t, dir, 100)
		for i := range 3 {
			p := begin(t, dir, 100)
			p.want(t, ratelimit.Alone, 10*i)
			for range 10 {
				p.Take()
				p.End()
			}
			p.kill()
		}
		time.Sleep(50 * time.Second)
		p := begin(t, dir, 100)
		p.want(t, ratelimit.Alone, 30)
		time.Sleep(13 * time.Second)
		p.kill()
		p = begin(t, dir, 100)
		p.want(t, ratelimit.Alone, 1) // which was under way as far as the file said when the process after it began
		p.Close()
	})
}

// A file does not grow old while its process makes no calls, and says when it stopped.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		p := begin(t, dir, 100)
		time.Sleep(time.Hour)
		p.kill()
		time.Sleep(54 * time.Second)
		p = begin(t, dir, 100)
		p.want(t, ratelimit.Alone, 0)
		time.Sleep(3 * time.Second)
		p.Close()
		time.Sleep(time.Minute)
		p = begin(t, dir, 100)
		p.want(t, ratelimit.Alone, 0)
		p.Close()
		time.Sleep(time.Minute + time.Millisecond)
		p = begin(t, dir, 100)
		p.want(t, ratelimit.Unsure, 0)
		p.Close()
	})
}

// Of processes beside each other the first makes the calls, the second has the reserve, the third nothing. Each takes the
// place of the one before when that has ended, and then knows what it has spent.
func TestBesideEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		age(t, dir, 100)
		first := begin(t, dir, 100)
		first.want(t, ratelimit.Alone, 0)
		second := begin(t, dir, 100)
		second.want(t, ratelimit.Second, 0)
		third := begin(t, dir, 100)
		third.want(t, ratelimit.Third, 0)
		for range 10 {
			first.Take()
			first.End()
		}
		for range 3 {
			second.Take()
		}
		told, until := second.heard()
		time.Sleep(10 * time.Second)
		second.want(t, ratelimit.Second, 0)
		if again, later := second.heard(); again < told+9 || later.Sub(until) < 9*time.Second {
			t.Errorf("the standing was renewed %d times, to %v", again-told, later)
		}
		// One that has the reserve and is killed leaves what it has spent of that to the next.
		second.kill()
		time.Sleep(1100 * time.Millisecond)
		third.want(t, ratelimit.Second, 3)
		third.Take()
		third.End()
		first.kill()
		time.Sleep(1100 * time.Millisecond)
		third.want(t, ratelimit.Alone, 13)
		// The reserve is free again.
		fourth := begin(t, dir, 100)
		fourth.want(t, ratelimit.Second, 4)
		fourth.Close()
		// What the third spent of the reserve is in the first file now, and what was under way of the second.
		third.kill()
		fifth := begin(t, dir, 100)
		fifth.want(t, ratelimit.Alone, 14)
		fifth.Close()
	})
}

// There are about a hundred writes a minute, however many calls there are.
func TestWritesAreFew(t *testing.T) {
	for _, limit := range []int{100, 1000, 100_000} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			p := begin(t, dir, limit)
			defer p.Close()
			writes, last := 0, []byte(nil)
			for range limit {
				p.Take()
				p.End()
				if p.noted == p.ahead { // it was written just now
					writes++
				}
			}
			if writes > 110 || writes < 90 {
				t.Errorf("limit %d: %d writes, %d bytes", limit, writes, len(last))
			}
		})
	}
}

// steppedClock is a clock that somebody sets.
type steppedClock struct{ by time.Duration }

func (c *steppedClock) Now() time.Time { return time.Now().Add(c.by) }

// Where the wall clock of the next process is another one, the file shows nothing rather than too little.
func TestClocksThatAreSet(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, -10 * time.Second, 2 * time.Minute, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			age(t, dir, 100)
			p := begin(t, dir, 100)
			p.Take()
			p.End()
			p.kill()
			p = beginAt(t, dir, 100, &steppedClock{by})
			if p.standing != ratelimit.Unsure || len(p.spent) != 0 {
				t.Errorf("set by %v: standing %d with %v", by, p.standing, p.spent)
			}
			p.Close()
		})
	}
}

// Many calls at once lose none.
func TestConcurrentCalls(t *testing.T) {
	dir := t.TempDir()
	p := begin(t, dir, 1000)
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
	next := begin(t, dir, 1000)
	defer next.Close()
	sum := 0
	for _, s := range next.spent {
		sum += s.Calls
	}
	if sum < 400 || sum > 400+9 {
		t.Errorf("400 calls, the next process knows %s", fmt.Sprint(next.spent))
	}
}
