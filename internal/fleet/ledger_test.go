package fleet

import (
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"oddsgraph/internal/market/shared"
	"oddsgraph/tests/tool"
)

// ask requests n public calls from the ledger and waits for the callback.
func ask(t testing.TB, f *Fleet, limit, n int) shared.Grant { return askFor(t, f, "", limit, n) }

func askFor(t testing.TB, f *Fleet, scope string, limit, n int) shared.Grant {
	t.Helper()
	answered := make(chan shared.Grant, 1)
	f.Ask(scope, limit, n, func(g shared.Grant) { answered <- g })
	select {
	case g := <-answered:
		return g
	case <-time.After(30 * time.Second):
		t.Fatal("Ask did not call the callback within 30 seconds")
		return shared.Grant{}
	}
}

// shortWindow returns a configuration with a window of half a second.
func shortWindow(server *tool.Redis) Config {
	return Config{URL: server.URL(), Span: 500 * time.Millisecond, Use: 100 * time.Millisecond, CallTimeout: 100 * time.Millisecond}
}

// waitForLedger waits until the ledger in Redis exists and its window contains no calls.
func waitForLedger(t *testing.T, f *Fleet) {
	t.Helper()
	waitConnected(t, f)
	eventually(t, "the window contains no calls", func() bool { return ask(t, f, 10, 0).Left == 10 })
}

func TestLedger(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	cfg := shortWindow(server)
	cfg.Span = 3 * time.Second // the calls of the two replicas must be in one window, even on a slow machine
	a, b := join(t, cfg), join(t, cfg)
	waitConnected(t, a)
	if got := ask(t, a, 10, 0); got.Left < 5 || got.Assumed > 5 || got.Left+got.Assumed != 10 {
		t.Errorf("new ledger: got %+v, want half of 10 calls left, the others assumed", got)
	}
	waitForLedger(t, a)
	waitForLedger(t, b)

	before := b.Stats()
	first, second := ask(t, a, 10, 6), ask(t, b, 10, 6)
	if len(first.Calls) != 6 || first.Left != 4 || len(second.Calls) != 4 || second.Left != 0 || second.Again <= 0 {
		t.Fatalf("two replicas that requested 6 of 10 calls got %+v and %+v, want 6 and 4 calls", first, second)
	}
	for _, call := range second.Calls {
		if slices.Contains(first.Calls, call) {
			t.Errorf("the call %s was granted twice", call)
		}
	}
	if s := b.Stats(); s.Granted-before.Granted != 4 || s.Refused-before.Refused != 2 {
		t.Errorf("Stats counts %d granted and %d refused calls, want 4 and 2", s.Granted-before.Granted, s.Refused-before.Refused)
	}
	b.End("", nil, second.Calls[:1])
	eventually(t, "a call that was not made is granted again", func() bool { return len(ask(t, a, 10, 1).Calls) == 1 })
	if got := ask(t, a, 5, 1); len(got.Calls) != 0 || got.Left != 0 {
		t.Errorf("with a lower limit: got %+v, want no calls", got)
	}
	eventually(t, "calls whose end is not reported leave the window", func() bool { return ask(t, a, 10, 0).Left == 10 })
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
	waitForLedger(t, f)
	got := ask(t, f, 10, 2)
	if len(got.Calls) != 2 {
		t.Fatalf("got %+v, want 2 calls", got)
	}
	f.End("", got.Calls[:1], nil)
	ended := time.Now()
	eventually(t, "the ended call leaves the window", func() bool { return ask(t, f, 10, 0).Left == 9 })
	if took := time.Since(ended); took < cfg.Span {
		t.Errorf("the ended call counted for %v, want at least %v", took, cfg.Span)
	}
	time.Sleep(cfg.Span)
	if left := ask(t, f, 10, 0).Left; left != 9 {
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
		b.End("", nil, got.Calls)
		return len(got.Calls) == 0 && got.Hold > 50*time.Minute
	})
	for name, f := range map[string]*Fleet{"the replica that called Hold": a, "the other replica": b} {
		if left := time.Until(f.Stats().Hold); left < 50*time.Minute || left > time.Hour {
			t.Errorf("%s has a hold of %v, want 50 minutes to an hour", name, left)
		}
	}
	if got := askFor(t, b, "another", 10, 10); got.Hold != 0 || len(got.Calls) != 10 || got.Assumed != 0 {
		t.Errorf("another scope got %+v, want 10 calls: only public calls are on hold, and the ledger is old", got)
	}
}

// TestLedgerForgets checks that a server that has lost its data grants half of the calls at once, and the others within the span.
func TestLedgerForgets(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *tool.Redis){
		"FLUSHALL": func(t *testing.T, server *tool.Redis) { server.CLI(t, "FLUSHALL") },
		"restart with nothing": func(t *testing.T, server *tool.Redis) {
			server.Kill()
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
			if got := ask(t, f, 10, 10); len(got.Calls) != 10 {
				t.Fatalf("got %+v, want 10 calls", got)
			}
			lose(t, server)
			var got shared.Grant
			eventually(t, "the ledger answers", func() bool { got = ask(t, f, 10, 10); return !got.Away })
			if n := len(got.Calls); n+got.Assumed != 10 || n < 5 || got.Assumed == 0 {
				t.Errorf("got %+v after the loss, want half of 10 calls, the others assumed", got)
			}
			eventually(t, "the other calls are granted, too", func() bool { return ask(t, f, 10, 0).Assumed == 0 })
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
	waitForLedger(t, f)
	if err := server.Process().Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ask(t, f, 10, 10)
	if err := server.Process().Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the calls are returned", func() bool { return ask(t, f, 10, 0).Left == 10 })
}

// TestLedgerWithFaults checks that no window contains more than twice as many calls as the limit while the server is flushed,
// killed, stopped and restarted.
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
				for _, call := range got.Calls {
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
				if len(got.Calls) == 0 {
					time.Sleep(min(max(got.Again, time.Millisecond), 20*time.Millisecond))
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
	if most > 2*limit {
		t.Errorf("got %d calls within %v, want at most %d", most, cfg.Span, 2*limit)
	}
	if len(made) < 3*limit {
		t.Errorf("got %d calls in all, want at least %d", len(made), 3*limit)
	}
	t.Logf("%d calls in all, at most %d calls in a window", len(made), most)
}
