//go:build unix

package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/tests/tool"
)

// soakSeedEnv is the environment variable for the random seed.
const soakSeedEnv = "SOAK_SEED"

// soak runs the service in its own process under a mixed load, while its venue has random faults.
type soak struct {
	*checkedLoad
	process       *program
	rand          *rand.Rand
	recordedVenue *recordedVenue
	// faultCounts counts the faults by name.
	faultCounts map[string]int
	rows        []soakRow
}

// soakRow is the resource use of the process at one moment.
type soakRow struct {
	at time.Duration // time since the start of the test
	figures
}

// TestSoak checks a service whose venue has random faults. No response may be wrong, no goroutine may leak, and memory may grow
// only a little. The command make soak runs the test for ten minutes, with 2,000 subscriptions.
func TestSoak(t *testing.T) {
	tool.NightlyTier(t)
	t.Parallel()
	length, seed := soakLength(t), rand.Uint64()
	if s := os.Getenv(soakSeedEnv); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("%s is %q; want a number", soakSeedEnv, s)
		}
		seed = n
	}
	sockets, pollers := 200, 40
	if length < soakLong {
		sockets, pollers = 10, 8
	}
	t.Logf("the seed is %d; %s=%d draws the same faults", seed, soakSeedEnv, seed)

	w := newRecordedVenue(t, 1, 60, [2]int{})
	p := runProgram(t, w.args("--log-level=info")...)
	s := &soak{checkedLoad: newCheckedLoad(p.service, w), process: p, recordedVenue: w, rand: rand.New(rand.NewPCG(seed, 0)), faultCounts: make(map[string]int)}
	s.sample(w.tokens[:4]) // makes the service allocate memory that it allocates only once
	began := time.Now()
	before := s.recordFigures(t, began)
	for i := range sockets {
		credentials := anonymous
		if i%4 == 0 {
			credentials = keyOf3
		}
		first := i * 9 % (len(w.tokens) - 9)
		s.subscribe(t, credentials, w.tokens[first:first+9]) // one subscription to nine prices, and one subscription to each of nine books
	}
	// Faults must wait for the first events, because a fault may end a subscription that has had no event.
	eventually(t, "all subscribers have their first events", func() bool { return s.countOf("event INITIAL") >= 18*sockets })
	for i := range pollers {
		first := i * 7 % (len(w.tokens) - 20)
		s.poll(time.Duration(500+s.rand.IntN(1000))*time.Millisecond, w.tokens[first:first+20])
		s.pollRandomly(time.Duration(500+s.rand.IntN(1000))*time.Millisecond, rand.New(rand.NewPCG(seed, uint64(i+1))))
	}
	t.Logf("%d subscriptions and %d pollers were started within %v", 10*sockets, 2*pollers, time.Since(began).Round(time.Millisecond))

	s.runFaults(t, began, length)

	s.stopLoad()
	s.client.CloseIdleConnections()
	after := s.waitSettled(t, before)
	s.rows = append(s.rows, soakRow{time.Since(began), after})
	t.Log("\n" + s.table())
	s.wantNothingWrong(t)
	for what, n := range s.counts() {
		if strings.Contains(what, "INTERNAL_SERVER_ERROR") {
			t.Errorf("the clients saw %d times: %s", n, what)
		}
	}
	// The caches are full after a quarter of the time.
	early := s.rows[1+len(s.rows)/4].Heap
	for _, r := range s.rows[1+len(s.rows)/4:] {
		if r.Heap > early+early/2+soakHeap {
			t.Errorf("after %v, the heap has %d MiB; it had %d MiB when the caches were full", r.at.Round(time.Second), r.Heap>>20, early>>20)
		}
	}
	if after.Heap > before.Heap+4*soakHeap {
		t.Errorf("at the end, the heap has %d MiB; it had %d MiB at the start", after.Heap>>20, before.Heap>>20)
	}
	select {
	case <-p.ended:
		t.Errorf("the program has ended: %v", p.status)
	default:
	}
}

const (
	// soakIdle is the allowed number of idle connections to the venue. A connection has a file and two goroutines.
	soakIdle = 32
	// soakMore is the allowed number of new files, and also of new goroutines, that do not belong to these connections.
	soakMore = 16
	// soakHeap limits the growth of the heap in bytes. After the caches are full, the heap may grow by half its size plus soakHeap.
	// From the start to the end of the test, it may grow by four times soakHeap.
	soakHeap = 8 << 20
)

// waitSettled waits until the process has about as many goroutines and files as at the start. It returns the resource use at that
// moment.
func (s *soak) waitSettled(t testing.TB, before figures) figures {
	t.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		f := s.process.figures(t, true)
		if f.Goroutines <= before.Goroutines+2*soakIdle+soakMore && f.Open <= before.Open+soakIdle+soakMore {
			return f
		}
		if time.Since(began) > patience {
			t.Errorf("%d goroutines and %d files are left; at the start, there were %d and %d", f.Goroutines, f.Open, before.Goroutines, before.Open)
			return f
		}
	}
}

func (s *soak) recordFigures(t testing.TB, began time.Time) figures {
	t.Helper()
	f := s.process.figures(t, true)
	s.rows = append(s.rows, soakRow{time.Since(began), f})
	return f
}

// runFaults moves the market and injects faults. It ends when the time since began is at least length and all subscribers have
// caught up.
func (s *soak) runFaults(t testing.TB, began time.Time, length time.Duration) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	measured, next := time.Now(), time.Now()
	spoiled := false
	for time.Since(began) < length {
		s.recordedVenue.step()
		<-tick.C
		switch {
		case time.Now().Before(next):
			continue
		case spoiled:
			s.heal()
			next = time.Now().Add(time.Duration(500+s.rand.IntN(1500)) * time.Millisecond)
		case time.Since(measured) >= length/12:
			s.waitCaughtUp(t, began)
			measured = time.Now()
			continue
		default:
			s.injectFaults(t)
			next = time.Now().Add(time.Duration(500+s.rand.IntN(3000)) * time.Millisecond)
		}
		spoiled = !spoiled
	}
	s.heal()
	s.waitCaughtUp(t, began)
}

// waitCaughtUp pauses the pollers and the market until all subscribers have received the venue's current prices and books. Then it
// records the resource use.
func (s *soak) waitCaughtUp(t testing.TB, began time.Time) {
	t.Helper()
	s.pause.Lock()
	defer s.pause.Unlock()
	s.recordedVenue.step() // a subscriber that missed a change detects the gap when the next change arrives
	if !until(patience, s.caughtUp) {
		s.wantNothingWrong(t) // a subscription may have ended with an error
		t.Fatalf("after %v, some subscribers have not received the venue's current state; the faults were %v; the status of the service is %s", patience, s.faultCounts,
			s.ask(t, queryStatus, nil, anonymous))
	}
	s.faultCounts["all subscribers caught up"]++
	s.recordFigures(t, began)
}

func (s *soak) heal() { _ = s.recordedVenue.faults.Set(nil) }

// injectFaults injects some faults, or kills the venue for a while.
func (s *soak) injectFaults(t testing.TB) {
	t.Helper()
	if s.rand.IntN(12) == 0 {
		s.faultCounts["venue killed"]++
		s.recordedVenue.close()
		time.Sleep(time.Duration(s.rand.IntN(2000)) * time.Millisecond) // the prices do not change during this time
		s.recordedVenue.open(t)
		return
	}
	var drawn []faults.Fault
	acts, restart := []func(*demo.Venue){}, false
	for range 1 + s.rand.IntN(4) {
		if s.rand.IntN(3) == 0 {
			// Leave out the faults that stop the stream for a minute, because they hide other faults.
			rows := slices.DeleteFunc(streamRows(), func(r streamRow) bool { return r.banned })
			r := rows[s.rand.IntN(len(rows))]
			s.faultCounts["stream: "+r.name]++
			restart = restart || r.closeFirst
			if r.act != nil {
				acts = append(acts, r.act)
			} else {
				drawn = append(drawn, r.Fault)
			}
			continue
		}
		f := callFaults[s.rand.IntN(len(callFaults))]
		if f.large && s.rand.IntN(4) > 0 || f.RetryAfter == inSeconds {
			f = callFaults[0] // large bodies must be rare; a date in Retry-After fails, because the process does not use the test's clock
		}
		s.faultCounts[f.name]++
		spoils := f.Fault
		spoils.Path = wholeBranches[s.rand.IntN(len(wholeBranches))].path
		if s.rand.IntN(3) == 0 {
			spoils.Path = ""
		}
		spoils.Probability, spoils.Seed = 0.2+0.8*s.rand.Float64(), s.rand.Uint64()
		if f.wait > 0 {
			spoils.RetryAfter = "1"
		}
		drawn = append(drawn, spoils)
	}
	s.recordedVenue.update(func() {
		if err := s.recordedVenue.faults.Set(drawn); err != nil {
			t.Error(err)
		}
		for _, act := range acts {
			act(s.recordedVenue.venue)
		}
		if restart {
			s.recordedVenue.venue.Restart(demo.CloseSlow)
		}
	})
}

// pollRandomly sends queries with unpredictable results. It checks only that each query gets a response.
func (s *soak) pollRandomly(every time.Duration, r *rand.Rand) {
	queries := []string{
		`query ($n: Int!) { searchMarkets(query: "will", first: $n) { nodes { question tokens { price { price } } } } }`,
		`query ($n: Int!, $a: Address!) { user(address: $a) { portfolio { totalValue } positions(first: $n) { nodes { size valuation { value } } } orders { totalCount } } }`,
		`query ($n: Int!, $a: Address!) { user(address: $a) { trades(first: $n) { nodes { price size } } history(first: $n) { nodes { kind amount } } } }`,
		`query ($n: Int!, $id: String!) { token(tokenId: $id) { history { points { price } } spread { spread } orderbook(depth: $n) { midpoint } market { question event { title } } } }`,
	}
	s.goroutines.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-s.ctx.Done():
				return
			}
			query := queries[r.IntN(len(queries))]
			variables := vars{"n": 1 + r.IntN(20)}
			if strings.Contains(query, "$a") {
				variables["a"] = addressOf3
			}
			if strings.Contains(query, "$id") {
				variables["id"] = s.recordedVenue.tokens[r.IntN(len(s.recordedVenue.tokens))]
			}
			var out struct {
				Data   any          `json:"data"`
				Errors []graphError `json:"errors"`
			}
			s.pause.RLock()
			err := s.post(s.ctx, query, variables, keyOf3, &out)
			s.pause.RUnlock()
			if err != nil {
				if s.ctx.Err() == nil {
					s.addError(fmt.Errorf("no answer: %w", err))
				}
				continue
			}
			s.count("other answers")
			for _, e := range out.Errors {
				s.count("error " + e.Extensions.Code)
			}
		}
	})
}

// table formats the counts and the resource use.
func (s *soak) table() string {
	var b strings.Builder
	out := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "after\theap MiB\tpeak MiB\tgoroutines\topen files\tCPU\t")
	for _, r := range s.rows {
		fmt.Fprintf(out, "%v\t%d\t%d\t%d\t%d\t%v\t\n", r.at.Round(time.Second), r.Heap>>20, r.Peak>>20, r.Goroutines, r.Open, r.CPU.Round(time.Second))
	}
	_ = out.Flush()
	counts := func(title string, of map[string]int) {
		fmt.Fprintf(&b, "\n%s\n", title)
		out := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, name := range slices.Sorted(maps.Keys(of)) {
			fmt.Fprintf(out, "  %s\t%d\n", name, of[name])
		}
		_ = out.Flush()
	}
	counts("what clients saw", s.counts())
	counts("faults of the venue", s.faultCounts)
	asked := make(map[string]int)
	for path, n := range s.recordedVenue.venue.Stats().Requests {
		asked[path] = int(n)
	}
	counts("requests that the venue got since its last restart", asked)
	return b.String()
}
