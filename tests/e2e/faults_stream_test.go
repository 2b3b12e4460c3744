package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
	"oddsgraph/tests/tool"
)

// streamRow is a fault of the stream.
type streamRow struct {
	name string
	demo.Fault
	// closeFirst is true if the test closes the open streams as soon as it has set the fault. The fault then affects the new
	// connections.
	closeFirst bool
	// banned is true if the service reconnects only after the long wait LimitedWait.
	banned bool
}

func streamRows() []streamRow {
	book, price := "orderbook_update", "price_update"
	rows := []streamRow{
		{name: "dropped books", Fault: demo.Fault{Kind: demo.FaultDrop, Frame: book, Probability: 0.2}},
		{name: "dropped prices", Fault: demo.Fault{Kind: demo.FaultDrop, Frame: price, Probability: 0.2}},
		{name: "duplicates", Fault: demo.Fault{Kind: demo.FaultDuplicate, Probability: 0.3}},
		{name: "reordered books", Fault: demo.Fault{Kind: demo.FaultReorder, Frame: book, Probability: 0.2}},
		{name: "reordered prices", Fault: demo.Fault{Kind: demo.FaultReorder, Frame: price, Probability: 0.2}},
		{name: "lost tails", Fault: demo.Fault{Kind: demo.FaultLostTail, Frame: book, Count: 3}},
		{name: "garbage", Fault: demo.Fault{Kind: demo.FaultGarbage, Probability: 0.1}},
		{name: "unknown types", Fault: demo.Fault{Kind: demo.FaultUnknownType, Probability: 0.5}},
		{name: "slow snapshots", Fault: demo.Fault{Kind: demo.FaultSlowSnapshot, DelayMs: 300}, closeFirst: true},
		{name: "skipped sequence numbers", Fault: demo.Fault{Kind: demo.FaultSkip, Channel: "orderbook", Probability: 0.2}},
		{name: "a stall that ends", Fault: demo.Fault{Kind: demo.FaultStall, DelayMs: 700, Count: 1}},
		{name: "a stall that does not end", Fault: demo.Fault{Kind: demo.FaultStall, Count: 1}},
		{name: "closed for an internal error", Fault: demo.Fault{Kind: demo.FaultClose, Code: 1011, Count: 1}},
		{name: "closed as too slow", Fault: demo.Fault{Kind: demo.FaultClose, Code: demo.CloseSlow, Count: 2}},
		{name: "closed to shed load", Fault: demo.Fault{Kind: demo.FaultClose, Code: demo.CloseShed, Count: 1}},
		{name: "closed for abuse", Fault: demo.Fault{Kind: demo.FaultClose, Code: demo.CloseAbuse, Count: 1}, banned: true},
		{name: "closed for credentials", Fault: demo.Fault{Kind: demo.FaultClose, Code: demo.CloseCredentials, Count: 1}},
		{name: "a restart", Fault: demo.Fault{Kind: demo.FaultRestart, Code: demo.CloseSlow, Count: 1}},
		{name: "a new epoch behind open streams", Fault: demo.Fault{Kind: demo.FaultNewEpoch, Count: 1}},
		{name: "opening: 503", Fault: demo.Fault{Kind: demo.FaultStatus, Status: 503}, closeFirst: true},
		{name: "opening: HTML", Fault: demo.Fault{Kind: demo.FaultHTML}, closeFirst: true},
		{name: "opening: hang", Fault: demo.Fault{Kind: demo.FaultHang}, closeFirst: true},
		{name: "opening: delay", Fault: demo.Fault{Kind: demo.FaultDelay, DelayMs: 300}, closeFirst: true},
		{name: "opening: reset", Fault: demo.Fault{Kind: demo.FaultReset}, closeFirst: true},
		{name: "opening: refused", Fault: demo.Fault{Kind: demo.FaultRefused}, closeFirst: true},
		{name: "opening: redirect", Fault: demo.Fault{Kind: demo.FaultRedirect}, closeFirst: true},
	}
	for i := range rows {
		rows[i].Path = demo.StreamPath
	}
	return rows
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
	if err := c.recorded.venue.SetFaults([]demo.Fault{r.Fault}); err != nil {
		return err
	}
	if r.closeFirst {
		c.recorded.update(func() { c.recorded.venue.Restart(demo.CloseSlow) })
	}
	move(40)
	c.recorded.update(func() { _ = c.recorded.venue.SetFaults(nil) })
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
