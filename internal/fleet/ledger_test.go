package fleet

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oddsgraph/tests/tool"
)

// answer contains the arguments of Ask's callback.
type answer struct {
	calls []string
	left  int
	again time.Duration
	hold  time.Duration
}

// ask requests n public calls from the ledger and waits for the callback.
func ask(t testing.TB, f *Fleet, limit, n int) answer {
	t.Helper()
	answered := make(chan answer, 1)
	f.Ask("", limit, n, func(calls []string, left int, again, hold time.Duration) {
		answered <- answer{calls, left, again, hold}
	})
	select {
	case a := <-answered:
		return a
	case <-time.After(30 * time.Second):
		t.Fatal("Ask did not call the callback within 30 seconds")
		return answer{}
	}
}

// shortWindow returns a configuration with a window of half a second.
func shortWindow(server *tool.Redis) Config {
	return Config{URL: server.URL(), Span: 500 * time.Millisecond, Use: 100 * time.Millisecond, CallTimeout: 100 * time.Millisecond}
}

// waitForLedger waits until the ledger in Redis grants calls and its window contains no calls.
func waitForLedger(t *testing.T, f *Fleet) {
	t.Helper()
	waitConnected(t, f)
	eventually(t, "the ledger grants calls", func() bool {
		got := ask(t, f, 1_000_000, 1)
		f.End("", nil, got.calls)
		return len(got.calls) > 0
	})
	eventually(t, "the window contains no calls", func() bool { return ask(t, f, 1_000_000, 0).left == 1_000_000 })
}

func TestLedger(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	cfg := shortWindow(server)
	cfg.Span = 3 * time.Second // the calls of the two replicas must be in one window, even on a slow machine
	a, b := join(t, cfg), join(t, cfg)
	waitConnected(t, a)
	if got := ask(t, a, 10, 1); len(got.calls) != 0 || got.left != 0 || got.again <= 0 || got.again > a.grantLifetime() {
		t.Errorf("new ledger: got %+v, want no calls and a wait of at most %v", got, a.grantLifetime())
	}
	waitForLedger(t, a)
	waitForLedger(t, b)

	before := b.Stats()
	first, second := ask(t, a, 10, 6), ask(t, b, 10, 6)
	if len(first.calls) != 6 || first.left != 4 || len(second.calls) != 4 || second.left != 0 || second.again <= 0 {
		t.Fatalf("two replicas that requested 6 of 10 calls got %+v and %+v, want 6 and 4 calls", first, second)
	}
	for _, call := range second.calls {
		if slices.Contains(first.calls, call) {
			t.Errorf("the call %s was granted twice", call)
		}
	}
	if s := b.Stats(); s.Granted-before.Granted != 4 || s.Refused-before.Refused != 2 {
		t.Errorf("Stats counts %d granted and %d refused calls, want 4 and 2", s.Granted-before.Granted, s.Refused-before.Refused)
	}
	b.End("", nil, second.calls[:1])
	eventually(t, "a call that was not made is granted again", func() bool { return len(ask(t, a, 10, 1).calls) == 1 })
	if got := ask(t, a, 5, 1); len(got.calls) != 0 || got.left != 0 {
		t.Errorf("with a lower limit: got %+v, want no calls", got)
	}
	eventually(t, "calls whose end is not reported leave the window", func() bool { return ask(t, a, 10, 0).left == 10 })
}

// TestLedgerWindow checks that a call counts for the length of one window after its end. A call whose end no replica reports must
// count for longer.
func TestLedgerWindow(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	cfg := shortWindow(server)
	cfg.CallTimeout = time.Minute
	f := join(t, cfg)
	waitConnected(t, f)
	ask(t, f, 10, 0) // creates the window in Redis
	server.CLI(t, "ZADD", f.windowKey(""), "XX", "-1", "born")
	got := ask(t, f, 10, 2)
	if len(got.calls) != 2 {
		t.Fatalf("got %+v, want 2 calls", got)
	}
	f.End("", got.calls[:1], nil)
	ended := time.Now()
	eventually(t, "the ended call leaves the window", func() bool { return ask(t, f, 10, 0).left == 9 })
	if took := time.Since(ended); took < cfg.Span {
		t.Errorf("the ended call counted for %v, want at least %v", took, cfg.Span)
	}
	time.Sleep(cfg.Span)
	if left := ask(t, f, 10, 0).left; left != 9 {
		t.Errorf("got %d free calls, want 9, because the end of one call was not reported", left)
	}
}

func TestLedgerHold(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	a, b := join(t, shortWindow(server)), join(t, shortWindow(server))
	waitForLedger(t, a)
	waitForLedger(t, b)
	a.Hold("", time.Now().Add(time.Hour))
	a.Hold("", time.Now().Add(time.Second)) // a shorter hold does not shorten a longer one
	eventually(t, "the other replica gets no calls and a hold of almost an hour", func() bool {
		got := ask(t, b, 10, 1)
		b.End("", nil, got.calls)
		return len(got.calls) == 0 && got.hold > 50*time.Minute
	})
	for name, f := range map[string]*Fleet{"the replica that called Hold": a, "the other replica": b} {
		if left := time.Until(f.Stats().Hold); left < 50*time.Minute || left > time.Hour {
			t.Errorf("%s has a hold of %v, want 50 minutes to an hour", name, left)
		}
	}
	answered := make(chan time.Duration, 1)
	b.Ask("another", 10, 1, func(_ []string, _ int, _, hold time.Duration) { answered <- hold })
	if hold := <-answered; hold != 0 {
		t.Errorf("another scope got a hold of %v, want 0, because only public calls are on hold", hold)
	}
	granted := make(chan int, 1)
	b.Ask("a new one", 10, 3, func(calls []string, _ int, _, _ time.Duration) { granted <- len(calls) })
	if n := <-granted; n != 3 {
		t.Errorf("a new window of a server that has run for long grants %d calls, want 3", n)
	}
}

// TestLedgerForgets checks that a server that has lost its data grants no calls until the calls in the lost data would have left
// the window.
func TestLedgerForgets(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *tool.Redis){
		"FLUSHALL": func(t *testing.T, server *tool.Redis) { server.CLI(t, "FLUSHALL") },
		"restart with nothing": func(t *testing.T, server *tool.Redis) {
			server.Kill()
			server.Start(t)
		},
		"restart with an old file": func(t *testing.T, server *tool.Redis) {
			server.Kill() // after the restart, the server loads the data that SAVE has stored below
			server.Start(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := tool.StartRedis(t)
			cfg := shortWindow(server)
			cfg.Span = 3 * time.Second // longer than the restart of the server, also on a busy machine
			f := join(t, cfg)
			waitForLedger(t, f)
			if strings.HasSuffix(name, "file") {
				server.CLI(t, "SAVE")
			}
			if got := ask(t, f, 10, 10); len(got.calls) != 10 {
				t.Fatalf("got %+v, want 10 calls", got)
			}
			lost := time.Now()
			lose(t, server)
			eventually(t, "calls are granted again", func() bool { return len(ask(t, f, 10, 1).calls) > 0 })
			if took := time.Since(lost); took < f.grantLifetime() {
				t.Errorf("calls were granted %v after the loss, want at least %v", took, f.grantLifetime())
			}
		})
	}
}

// TestLedgerReturnsUnansweredCalls checks that a replica returns calls to the ledger if the server grants them only after the
// replica's timeout.
func TestLedgerReturnsUnansweredCalls(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	cfg := shortWindow(server)
	cfg.Timeout, cfg.CallTimeout = 25*time.Millisecond, time.Hour // with this CallTimeout, no call leaves the window during the test
	f := join(t, cfg)
	waitConnected(t, f)
	eventually(t, "the ledger exists", func() bool { ask(t, f, 10, 0); return server.CLI(t, "EXISTS", f.windowKey("")) == "1" })
	server.CLI(t, "ZADD", f.windowKey(""), "XX", "-1", "born")
	if err := server.Process().Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ask(t, f, 10, 10)
	if err := server.Process().Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the calls are returned", func() bool { return ask(t, f, 10, 0).left == 10 })
}

// TestLedgerWithFaults checks that no window contains more calls than the limit while the server is flushed, killed, stopped
// and restarted.
func TestLedgerWithFaults(t *testing.T) {
	t.Parallel()
	const limit, replicas = 20, 3
	server := tool.StartRedis(t)
	var mu sync.Mutex
	var made []time.Time
	stop := make(chan struct{})
	var running sync.WaitGroup
	cfg := shortWindow(server)
	cfg.Timeout = 25 * time.Millisecond
	for range replicas {
		f := join(t, cfg)
		running.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				asked := time.Now()
				got := ask(t, f, limit, 1+rand.IntN(8))
				for _, call := range got.calls {
					if rand.IntN(4) == 0 || time.Since(asked) > cfg.Use {
						f.End("", nil, []string{call})
						continue
					}
					mu.Lock()
					made = append(made, time.Now())
					mu.Unlock()
					if rand.IntN(8) > 0 { // the end of about one in eight calls is not reported
						f.End("", []string{call}, nil)
					}
				}
				if len(got.calls) == 0 {
					time.Sleep(min(max(got.again, time.Millisecond), 20*time.Millisecond))
				}
			}
		})
	}
	signal := func(s syscall.Signal) {
		if err := server.Process().Signal(s); err != nil {
			t.Error(err)
		}
	}
	for _, fault := range []func(){
		func() { server.CLI(t, "FLUSHALL") },
		func() { server.Kill(); time.Sleep(300 * time.Millisecond); server.Start(t) },
		func() { signal(syscall.SIGSTOP); time.Sleep(700 * time.Millisecond); signal(syscall.SIGCONT) },
		func() { server.CLI(t, "SAVE"); time.Sleep(200 * time.Millisecond); server.Kill(); server.Start(t) },
	} {
		time.Sleep(1500 * time.Millisecond)
		fault()
	}
	time.Sleep(3 * time.Second)
	close(stop)
	running.Wait()

	slices.SortFunc(made, time.Time.Compare)
	most := 0
	for i, first := 0, 0; i < len(made); i++ {
		for made[i].Sub(made[first]) >= cfg.Span {
			first++
		}
		most = max(most, i-first+1)
	}
	if most > limit {
		t.Errorf("got %d calls within %v, want at most %d", most, cfg.Span, limit)
	}
	if len(made) < 3*limit {
		t.Errorf("got %d calls in all, want at least %d", len(made), 3*limit)
	}
	t.Logf("%d calls in all, at most %d calls in a window", len(made), most)
}
