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
		t.Fatal("an Ask was not answered")
		return answer{}
	}
}

// short returns a configuration with a window of half a second.
func short(server *tool.Redis) Config {
	return Config{URL: server.URL(), Span: 500 * time.Millisecond, Use: 100 * time.Millisecond, CallTimeout: 100 * time.Millisecond}
}

// grown waits until the ledger in Redis grants calls and its window contains no calls.
func grown(t *testing.T, f *Fleet) {
	t.Helper()
	connected(t, f)
	eventually(t, "the ledger is open", func() bool {
		got := ask(t, f, 1_000_000, 1)
		f.End("", nil, got.calls)
		return len(got.calls) > 0
	})
	eventually(t, "the ledger is empty", func() bool { return ask(t, f, 1_000_000, 0).left == 1_000_000 })
}

func TestLedger(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	a, b := join(t, short(server)), join(t, short(server))
	connected(t, a)
	if got := ask(t, a, 10, 1); len(got.calls) != 0 || got.left != 0 || got.again <= 0 || got.again > a.keepGranted() {
		t.Errorf("a new ledger answered %+v; want nothing for at most %v", got, a.keepGranted())
	}
	grown(t, a)
	grown(t, b)

	before := b.Stats()
	first, second := ask(t, a, 10, 6), ask(t, b, 10, 6)
	if len(first.calls) != 6 || first.left != 4 || len(second.calls) != 4 || second.left != 0 || second.again <= 0 {
		t.Fatalf("two replicas that asked for 6 of 10 calls were answered %+v and %+v; want 6 and 4", first, second)
	}
	for _, call := range second.calls {
		if slices.Contains(first.calls, call) {
			t.Errorf("the call %s was granted twice", call)
		}
	}
	if s := b.Stats(); s.Granted-before.Granted != 4 || s.Refused-before.Refused != 2 {
		t.Errorf("%d granted and %d refused calls are counted; want 4 and 2", s.Granted-before.Granted, s.Refused-before.Refused)
	}
	b.End("", nil, second.calls[:1])
	eventually(t, "a call that was not made is granted again", func() bool { return len(ask(t, a, 10, 1).calls) == 1 })
	if got := ask(t, a, 5, 1); len(got.calls) != 0 || got.left != 0 {
		t.Errorf("under a lower limit the ledger answered %+v; want nothing", got)
	}
	eventually(t, "calls that nobody ends leave the window", func() bool { return ask(t, a, 10, 0).left == 10 })
}

// TestLedgerWindow checks that a call counts for the length of one window after its end. A call whose end no replica reports must
// count for longer.
func TestLedgerWindow(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	cfg := short(server)
	cfg.CallTimeout = time.Minute
	f := join(t, cfg)
	connected(t, f)
	ask(t, f, 10, 0) // creates the window in Redis
	server.CLI(t, "ZADD", f.windowKey(""), "XX", "-1", "born")
	got := ask(t, f, 10, 2)
	if len(got.calls) != 2 {
		t.Fatalf("the ledger answered %+v; want 2 calls", got)
	}
	f.End("", got.calls[:1], nil)
	ended := time.Now()
	eventually(t, "the ended call leaves the window", func() bool { return ask(t, f, 10, 0).left == 9 })
	if took := time.Since(ended); took < cfg.Span {
		t.Errorf("the call counted for %v; want %v at least", took, cfg.Span)
	}
	time.Sleep(cfg.Span)
	if left := ask(t, f, 10, 0).left; left != 9 {
		t.Errorf("%d calls are left; want 9, since one has not ended", left)
	}
}

func TestLedgerHold(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	a, b := join(t, short(server)), join(t, short(server))
	grown(t, a)
	grown(t, b)
	a.Hold("", time.Now().Add(time.Hour))
	a.Hold("", time.Now().Add(time.Second)) // a shorter hold does not shorten a longer one
	eventually(t, "the other replica gets nothing for an hour", func() bool {
		got := ask(t, b, 10, 1)
		b.End("", nil, got.calls)
		return len(got.calls) == 0 && got.hold > 50*time.Minute
	})
	for name, f := range map[string]*Fleet{"the replica that was refused": a, "the other one": b} {
		if left := time.Until(f.Stats().Hold); left < 50*time.Minute || left > time.Hour {
			t.Errorf("%s has a hold for %v; want an hour", name, left)
		}
	}
	answered := make(chan time.Duration, 1)
	b.Ask("another", 10, 1, func(_ []string, _ int, _, hold time.Duration) { answered <- hold })
	if hold := <-answered; hold != 0 {
		t.Errorf("a hold of public calls holds another window for %v", hold)
	}
	granted := make(chan int, 1)
	b.Ask("a new one", 10, 3, func(calls []string, _ int, _, _ time.Duration) { granted <- len(calls) })
	if n := <-granted; n != 3 {
		t.Errorf("a new window of an old server grants %d calls; want 3", n)
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
			f := join(t, short(server))
			grown(t, f)
			if strings.HasSuffix(name, "file") {
				server.CLI(t, "SAVE")
			}
			if got := ask(t, f, 10, 10); len(got.calls) != 10 {
				t.Fatalf("the ledger answered %+v; want 10 calls", got)
			}
			lost := time.Now()
			lose(t, server)
			eventually(t, "calls are granted again", func() bool { return len(ask(t, f, 10, 1).calls) > 0 })
			if took := time.Since(lost); took < f.keepGranted() {
				t.Errorf("calls were granted %v after the loss; want %v at least", took, f.keepGranted())
			}
		})
	}
}

// TestLedgerReturnsUnansweredCalls checks that a replica returns calls to the ledger if the server grants them only after the
// replica's timeout.
func TestLedgerReturnsUnansweredCalls(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	cfg := short(server)
	cfg.Timeout, cfg.CallTimeout = 25*time.Millisecond, time.Hour // with this CallTimeout, no call leaves the window during the test
	f := join(t, cfg)
	connected(t, f)
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

// TestLedgerWhateverHappens checks that no window contains more calls than the limit while the server is flushed, killed, stopped
// and restarted.
func TestLedgerWhateverHappens(t *testing.T) {
	t.Parallel()
	const limit, replicas = 20, 3
	server := tool.StartRedis(t)
	var mu sync.Mutex
	var made []time.Time
	stop := make(chan struct{})
	var running sync.WaitGroup
	cfg := short(server)
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
		t.Errorf("%d calls were made within %v; the limit is %d", most, cfg.Span, limit)
	}
	if len(made) < 3*limit {
		t.Errorf("only %d calls were made; the ledger hardly grants anything", len(made))
	}
	t.Logf("%d calls, %d at most in a window", len(made), most)
}
