package e2e

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/tests/tool"
)

// lanes are the services of a test, each with its own venue and its test cases. Different lanes run at the same time.
type lanes []laneWithRows

type laneWithRows struct {
	*lane
	rows []row
}

// run runs all test cases and returns their results by name. The test cases whose field alone is true run last, one after the
// other. run checks the memory use of each of them separately, and the memory use of all other test cases together.
func (all lanes) run(t testing.TB) (outcomes map[string]error) {
	t.Helper()
	outcomes = make(map[string]error)
	var mu sync.Mutex
	note := func(r *row, err error) {
		mu.Lock()
		defer mu.Unlock()
		outcomes[r.name] = err
	}
	err := checkMemory(math.MaxInt64, uint64(len(all))*laneLeft, func() error {
		var running sync.WaitGroup
		for _, l := range all {
			running.Go(func() {
				for i := range l.rows {
					if r := &l.rows[i]; !r.alone {
						note(r, r.run(l.lane))
					}
				}
			})
		}
		running.Wait()
		return nil
	})
	if err != nil {
		t.Errorf("the memory use of all test cases without alone set: %v", err)
	}
	for _, l := range all {
		for i := range l.rows {
			if r := &l.rows[i]; r.alone {
				note(r, checkMemory(largeAllocated, largeLeft, func() error { return r.run(l.lane) }))
			}
		}
	}
	return outcomes
}

// TestFaultMatrix checks each fault of each endpoint, with a cold and with a warm cache. The data from all other endpoints must not
// change.
func TestFaultMatrix(t *testing.T) {
	tool.CheckTier(t)
	survived, total := 0, 0
	tally := func(t *testing.T, outcomes map[string]error) {
		for _, name := range slices.Sorted(maps.Keys(outcomes)) {
			if total++; outcomes[name] == nil {
				survived++
				continue
			}
			t.Errorf("%s:\n%v", name, outcomes[name])
		}
	}
	// Test cases with calls that hang run in a synctest bubble, where a busy machine cannot cause timeouts.
	t.Run("calls that hang", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			patient, hurried := laneWithRows{lane: newPipedLane(t)}, laneWithRows{lane: newPipedLane(t, longCallTimeout, fmt.Sprint("--request-timeout=", shortTimeout))}
			for i := range wholeBranches {
				for f := range callFaults {
					if callFaults[f].hangs() {
						patient.rows = append(patient.rows, callFaults[f].rows(&wholeBranches[i])...)
					}
				}
				hurried.rows = append(hurried.rows, hangRow(&wholeBranches[i]))
			}
			tally(t, lanes{patient, hurried}.run(t))
		})
	})
	// All other test cases have long timeouts, because the machine may be busy.
	t.Run("other faults", func(t *testing.T) {
		var all lanes
		for i := range wholeBranches {
			rows := drifts(&wholeBranches[i])
			for f := range callFaults {
				if !callFaults[f].hangs() {
					rows = append(rows, callFaults[f].rows(&wholeBranches[i])...)
				}
			}
			all = append(all, laneWithRows{newLane(t, longCallTimeout), rows})
		}
		tally(t, all.run(t))
	})
	t.Logf("fault matrix: survived/total %d/%d", survived, total)
	if total < 100 {
		t.Errorf("there are only %d test cases, want at least 100", total)
	}
}

// These limits are in bytes.
const (
	// largeAllocated is the memory that a test case with alone set may allocate.
	largeAllocated = 48 << 20
	// largeLeft is the memory that may stay in use after such a test case.
	largeLeft = 4 << 20
	// laneLeft is the memory that may stay in use after all other test cases of a lane, for example for idle connections.
	laneLeft = 512 << 10
)

// checkMemory runs f and returns the error of f. It adds an error if f allocates more than maxAllocated bytes, or if memory in use
// grows by more than maxLeft bytes.
func checkMemory(maxAllocated, maxLeft uint64, f func() error) error {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	err := f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > maxAllocated {
		err = errors.Join(err, fmt.Errorf("%d MiB were allocated, want at most %d MiB", n>>20, maxAllocated>>20))
	}
	if after.HeapAlloc > before.HeapAlloc+maxLeft {
		err = errors.Join(err, fmt.Errorf("%d KiB stayed in use, want at most %d KiB", (after.HeapAlloc-before.HeapAlloc)>>10, maxLeft>>10))
	}
	return err
}

// streamRow is a fault of the stream.
type streamRow struct {
	name string
	faults.Fault
	// act, if not nil, is what happens to the venue instead of the fault.
	act func(v *demo.Venue)
	// closeFirst is true if the test closes the open streams as soon as it has set the fault. The fault then affects the new
	// connections.
	closeFirst bool
	// still is true if the market stops while the fault lasts, so that no later frame shows that the last frames are lost.
	still bool
	// banned is true if the service reconnects only after the long wait LimitedWait.
	banned bool
}

func streamRows() []streamRow {
	book, price, topics := []string{`"type":"orderbook_update"`}, []string{`"type":"price_update"`}, []string{`"seq":`}
	rows := []streamRow{
		{name: "dropped books", Fault: faults.Fault{Kind: faults.Drop, Contains: book, Probability: 0.2}},
		{name: "dropped prices", Fault: faults.Fault{Kind: faults.Drop, Contains: price, Probability: 0.2}},
		{name: "duplicates", Fault: faults.Fault{Kind: faults.Duplicate, Contains: topics, Probability: 0.3}},
		{name: "reordered books", Fault: faults.Fault{Kind: faults.Reorder, Contains: book, Probability: 0.2, Behind: 8}},
		{name: "reordered prices", Fault: faults.Fault{Kind: faults.Reorder, Contains: price, Probability: 0.2, Behind: 8}},
		{name: "lost tails", Fault: faults.Fault{Kind: faults.Drop, Contains: book, Probability: 0.5}, still: true},
		{name: "garbage", Fault: faults.Fault{Kind: faults.Truncate, Contains: topics, Probability: 0.1}},
		{name: "unknown types", Fault: faults.Fault{Contains: topics, Probability: 0.5, Frames: func(frame []byte) [][]byte {
			return [][]byte{[]byte(`{"type":"weather_update","seq":1,"temperature":21.5}`), frame}
		}}},
		{name: "slow snapshots", Fault: faults.Fault{Kind: faults.Delay, Contains: []string{`_snapshot"`}, DelayMs: 300}, closeFirst: true},
		// The proxy loses frozen frames, which TCP would only delay. Without its hello, a stream that goes on would name no epoch.
		{name: "a stall that ends", Fault: faults.Fault{Kind: faults.Freeze, Contains: topics, DelayMs: 700, Count: 1}},
		{name: "a stall that does not end", Fault: faults.Fault{Kind: faults.Freeze, Count: 1}},
		{name: "closed for an internal error", Fault: faults.Fault{Kind: faults.Close, Contains: topics, Code: 1011, Count: 1}},
		{name: "closed as too slow", Fault: faults.Fault{Kind: faults.Close, Contains: topics, Code: demo.CloseSlow, Count: 2}},
		{name: "closed to shed load", Fault: faults.Fault{Kind: faults.Close, Contains: topics, Code: demo.CloseShed, Count: 1}},
		{name: "closed for abuse", Fault: faults.Fault{Kind: faults.Close, Contains: topics, Code: demo.CloseAbuse, Count: 1}, banned: true},
		{name: "closed for credentials", Fault: faults.Fault{Kind: faults.Close, Contains: topics, Code: demo.CloseCredentials, Count: 1}},
		{name: "a restart", act: func(v *demo.Venue) { v.Restart(demo.CloseSlow) }},
		{name: "a new epoch behind open streams", act: func(v *demo.Venue) { v.Restart(0) }},
		{name: "opening: 503", Fault: faults.Fault{On: faults.OnOpens, Kind: faults.Status, Status: 503}, closeFirst: true},
		{name: "opening: HTML", Fault: faults.Fault{On: faults.OnOpens, Kind: faults.Status, Status: 200, Body: tool.HTML}, closeFirst: true},
		{name: "opening: hang", Fault: faults.Fault{On: faults.OnOpens, Kind: faults.Delay}, closeFirst: true},
		{name: "opening: delay", Fault: faults.Fault{On: faults.OnOpens, Kind: faults.Delay, DelayMs: 300}, closeFirst: true},
		{name: "opening: reset", Fault: faults.Fault{On: faults.OnOpens, Kind: faults.Reset}, closeFirst: true},
		{name: "opening: refused", Fault: faults.Fault{On: faults.OnOpens, Kind: faults.Refuse}, closeFirst: true},
		{name: "opening: redirect", Fault: faults.Fault{On: faults.OnOpens, Answer: tool.Redirect(302, "http://elsewhere.invalid/")}, closeFirst: true},
	}
	for i := range rows {
		if rows[i].On == "" {
			rows[i].On = faults.OnFrames
		}
	}
	return rows
}

// inject begins the fault of a row.
func (w *recordedVenue) inject(r *streamRow) (err error) {
	w.update(func() {
		if r.act != nil {
			r.act(w.venue)
			return
		}
		if err = w.faults.Set([]faults.Fault{r.Fault}); r.closeFirst {
			w.venue.Restart(demo.CloseSlow)
		}
	})
	return err
}

// shortWaits shortens the waits of the service's stream client.
func shortWaits(w *app.Wiring) {
	w.Stream.LimitedWait, w.Stream.DialWithin = 2*time.Second, 2*time.Second
	w.Stream.Rand = func() float64 { return rand.Float64() / 4 }
}

// TestStreamFaultsUnderLoad checks that clients receive only values that the venue has published, despite the faults of the stream.
// No query may fail. After each fault, all subscribers must catch up with the venue.
func TestStreamFaultsUnderLoad(t *testing.T) {
	tool.CheckTier(t)
	t.Parallel()
	const lanes = 4
	rows := streamRows()
	survived := make(chan int, lanes)
	for lane := range lanes {
		w := newRecordedVenue(t, 1, 8, [2]int{})
		s, _ := startLiveRigged(t, shortWaits, w.args()...)
		s.waitForStream(t)
		c := newCheckedLoad(s, w)
		for i := range 4 {
			c.subscribe(t, anonymous, w.tokens[2*i:2*i+2])
			c.subscribe(t, keyOf3, w.tokens[i:i+2])
		}
		for range 2 {
			c.poll(50*time.Millisecond, w.tokens)
		}
		go func() {
			n := 0
			defer func() { survived <- n }()
			defer c.stopLoad()
			for i := lane; i < len(rows); i += lanes {
				began := time.Now()
				if err := c.runFault(&rows[i]); err != nil {
					t.Errorf("%s, after %v: %v", rows[i].name, time.Since(began), err)
					continue
				}
				n++
			}
			t.Logf("the clients of lane %d saw %v", lane, c.counts())
		}()
	}
	n := 0
	for range lanes {
		n += <-survived
	}
	t.Logf("stream faults: survived/total %d/%d", n, len(rows))
}

// runFault injects a fault while the market moves, then waits until all subscribers have caught up.
func (c *checkedLoad) runFault(r *streamRow) error {
	tick := time.NewTicker(15 * time.Millisecond)
	defer tick.Stop()
	move := func(n int) {
		for range n {
			c.recorded.step()
			<-tick.C
		}
	}
	before := c.countOf("events")
	if err := c.recorded.inject(r); err != nil {
		return err
	}
	move(40)
	if r.still {
		time.Sleep(3 * c.recorded.heartbeat) // heartbeats have the sequence numbers of the lost frames
	}
	if err := c.recorded.faults.Set(nil); err != nil {
		return err
	}
	move(10)
	deadline := time.Now().Add(patience)
	for !c.caughtUp() {
		if time.Now().After(deadline) {
			return fmt.Errorf("subscribers have not caught up: %v, %s", c.last, asJSON(c.Venue.Live.Status()))
		}
		<-tick.C
	}
	if n := c.countOf("events"); n == before {
		return errors.New("no client received an event")
	}
	c.sample(c.recorded.tokens)
	for what, n := range c.counts() {
		if strings.HasPrefix(what, "error ") {
			return fmt.Errorf("%d queries failed: %s", n, what)
		}
	}
	if wrong := c.takeErrors(); len(wrong) > 0 {
		return fmt.Errorf("clients received wrong values: %v", wrong)
	}
	return nil
}
