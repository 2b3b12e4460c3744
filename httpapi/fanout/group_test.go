package fanout_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
)

// TestJoiner checks that a member that joins between events gets the present state and then exactly the events after that state.
func TestJoiner(t *testing.T) {
	h, first, second := newHub(t, fanout.Limits{}), newReader(), newReader()
	h.join(first)
	s := h.script()
	s.post("I1", state(delta))
	h.join(second)
	if !s.waiting() {
		t.Fatal("Waiting was not signalled for the joiner")
	}
	// A source may lag behind its announcements. So the test announces three events before the script returns the first of them.
	s.group.Announce(delta)
	to, resync, ok := s.group.TakeWaiting()
	if !ok || resync {
		t.Fatalf("TakeWaiting returned ok %v and resync %v, want true and false", ok, resync)
	}
	s.group.Announce(follow.Envelope{Mode: follow.Delta, State: true, To: to})
	s.group.Join(to)
	s.group.Announce(delta)
	s.hand("D2")
	second.expect(t)
	s.hand("I2")
	s.hand("D3")
	first.expect(t, "I1", "D2", "D3")
	second.expect(t, "I2", "D3")
	if _, ok := s.show("again", delta); ok {
		t.Error("a member still waits for the present state after all members got it")
	}
}

// TestEarlyJoiner checks that a member that joins before the first event gets no separate state.
func TestEarlyJoiner(t *testing.T) {
	h, first, second := newHub(t, fanout.Limits{}), newReader(), newReader()
	h.join(first)
	s := h.script()
	h.join(second)
	if _, _, ok := s.group.TakeWaiting(); ok {
		t.Error("a member waits for the present state before the first event")
	}
	s.hand("not announced")
	s.post("I", state(replaced))
	first.expect(t, "not announced", "I")
	second.expect(t, "not announced", "I")
}

// TestTurnsOfNewAndSlowMembers checks that new members and members that missed events get the present state in turn.
func TestTurnsOfNewAndSlowMembers(t *testing.T) {
	h, slow := newHub(t, fanout.Limits{Deltas: 1}), newReader()
	h.join(slow)
	s := h.script()
	for _, e := range deltas(0, 2) {
		s.post(e.payload, e.Envelope)
	}
	slow.expect(t)
	for i, want := range []bool{true, false} {
		h.join(newReader())
		s.waiting()
		if resync, ok := s.show("state", delta); !ok || resync != want {
			t.Errorf("turn %d: a member was waiting: %v, want true; resync is %v, want %v", i, ok, resync, want)
		}
		if i == 0 && !s.waiting() {
			t.Error("Waiting was not signalled for the other members")
		}
	}
	slow.expect(t, "state")
}

// TestManyNewMembers checks that a thousand members that join together get the present state in one event.
func TestManyNewMembers(t *testing.T) {
	h, first := newHub(t, fanout.Limits{}), newReader()
	h.join(first)
	s := h.script()
	s.post("I", state(replaced))
	readers := make([]*reader, 1000)
	var wg sync.WaitGroup
	for i := range readers {
		readers[i] = newReader()
		wg.Go(func() { h.join(readers[i]) })
	}
	wg.Wait()
	gone := newReader()
	h.join(gone)
	gone.Leave()
	events := h.Stats().Events
	s.show("present", replaced)
	if _, ok := s.show("again", replaced); ok {
		t.Error("a member still waits for the present state after all members got it")
	}
	for _, r := range readers {
		r.expect(t, "present")
	}
	first.expect(t, "I")
	stats := h.Stats()
	if stats.Executions != 1 || stats.Members != 1001 || stats.Groups != 1 || stats.Events != events+1 {
		t.Errorf("the hub has %+v, want 1 execution, 1001 members, 1 group and %d events", stats, events+1)
	}
	late := newReader()
	h.join(late)
	late.Leave()
	if _, _, ok := s.group.TakeWaiting(); ok {
		t.Error("TakeWaiting returned a member that has left")
	}
}

// TestLastMemberEndsTheExecution checks that an execution ends when its last member leaves, and that the next join opens a new
// execution.
func TestLastMemberEndsTheExecution(t *testing.T) {
	h, a, b := newHub(t, fanout.Limits{}), newReader(), newReader()
	type ctxKey struct{}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), ctxKey{}, "value"))
	_ = h.Join(ctx, key("k"), a.Member, netip.Prefix{}, free, h.open)
	h.join(b)
	s := h.script()
	cancel() // this is the context of the first member, not of the group
	a.Leave()
	a.Leave()
	s.post("still", replaced)
	b.expect(t, "still")
	if got := s.ctx.Value(ctxKey{}); got != "value" {
		t.Errorf("the execution's context has the value %v", got)
	}
	b.Leave()
	receive(t, s.closed)
	if stats := h.Stats(); stats.Groups != 0 || stats.Members != 0 {
		t.Errorf("after all members have left, the hub has %+v, want no groups and no members", stats)
	}
	c := newReader()
	h.join(c)
	h.script().post("anew", replaced)
	c.expect(t, "anew")
	if got, over, _ := b.take(); len(got) > 0 || !over {
		t.Errorf("a member that has left got %q, over %v; want no event and over true", got, over)
	}
}

// TestLeftBeforeJoining checks that a member that has left does not join.
func TestLeftBeforeJoining(t *testing.T) {
	h, gone, there := newHub(t, fanout.Limits{}), newReader(), newReader()
	gone.Leave()
	h.join(gone)
	if stats := h.Stats(); stats != (fanout.Stats{}) {
		t.Errorf("after the join of a member that has left, the hub has %+v, want only zeros", stats)
	}
	h.join(there)
	h.script()
	h.join(gone)
	if stats := h.Stats(); stats.Members != 1 {
		t.Errorf("the hub has %d members, want 1", stats.Members)
	}
}

// TestKeys checks that subscriptions with different keys have different executions.
func TestKeys(t *testing.T) {
	h, a, b := newHub(t, fanout.Limits{}), newReader(), newReader()
	_ = h.Join(context.Background(), key("a"), a.Member, netip.Prefix{}, free, h.open)
	forA := h.script()
	_ = h.Join(context.Background(), key("b"), b.Member, netip.Prefix{}, free, h.open)
	forB := h.script()
	forA.post("a", replaced)
	forB.post("b", replaced)
	a.expect(t, "a")
	b.expect(t, "b")
}

// TestEnd checks that members get the End of an execution after all queued events.
func TestEnd(t *testing.T) {
	for _, errors := range []string{"", `[{"message":"no"}]`} {
		h, a, b := newHub(t, fanout.Limits{}), newReader(), newReader()
		h.join(a, b)
		s := h.script()
		s.post("last", appended)
		receive(t, a.woken)
		receive(t, b.woken)
		if errors != "" {
			s.last = []byte(errors)
		}
		close(s.events)
		for _, r := range []*reader{a, b} {
			receive(t, r.woken)
			got, over, end := r.take()
			if want := []string{"last"}; !slices.Equal(got, want) || !over || string(end.Errors) != errors || end.Err != nil {
				t.Errorf("the member got %q, over %v, errors %q, Err %v; want %q, over true, errors %q, Err nil", got, over, end.Errors, end.Err, want, errors)
			}
		}
		if stats := h.Stats(); stats.Groups != 0 {
			t.Errorf("after the execution has ended, the hub has %d groups, want 0", stats.Groups)
		}
		again := newReader()
		h.join(again)
		h.script().post("anew", replaced)
		again.expect(t, "anew")
		a.Leave()
		b.Leave()
		again.Leave()
		if stats := h.Stats(); stats.Members != 0 || stats.Groups != 0 {
			t.Errorf("after all members have left, the hub has %+v, want no groups and no members", stats)
		}
		h.Close()
	}
}

// TestClose checks that Close ends the executions but not the members, and that a closed hub refuses new members.
func TestClose(t *testing.T) {
	h, a := newHub(t, fanout.Limits{}), newReader()
	h.join(a)
	s := h.script()
	h.Close()
	receive(t, s.closed)
	if got, over, _ := a.take(); over || len(got) > 0 {
		t.Errorf("after Close, the member got %q, over %v; want no event and over false", got, over)
	}
	late := newReader()
	h.join(late)
	receive(t, late.woken)
	if _, over, end := late.take(); !over || market.CodeOf(end.Err) != market.CodeUpstreamUnavailable {
		t.Errorf("a member that joins a closed hub got over %v and the error %v; want over true and the code %s", over, end.Err, market.CodeUpstreamUnavailable)
	}
	a.Leave()
	late.Leave()
	if stats := h.Stats(); stats.Groups != 0 || stats.Members != 0 {
		t.Errorf("after all members have left, the hub has %+v, want no groups and no members", stats)
	}
}

// counter is a subscription to a number that grows by one with each event. At the last number, counter stays open and sends that
// number to members that join, until stopped is closed.
type counter struct {
	ctx     context.Context
	group   *fanout.Group
	last    int
	events  chan string
	stopped chan struct{}
	// reached is called after the event for each number was posted.
	reached func(number int)
	// present counts how often the present number was sent to waiting members.
	present atomic.Int64
}

func (c *counter) run() {
	defer close(c.events)
	number := 0
	post := func(kind string, e follow.Envelope) bool {
		c.group.Announce(e)
		select {
		case c.events <- kind + strconv.Itoa(number):
			return true
		case <-c.ctx.Done():
			return false
		}
	}
	if !post("I", state(delta)) {
		return
	}
	c.reached(number)
	for {
		step := make(chan struct{})
		close(step)
		if number == c.last {
			step = nil
		}
		select {
		case <-c.ctx.Done():
			return
		case <-c.stopped:
			return
		case <-step:
			number++
			if !post("D", delta) {
				return
			}
			c.reached(number)
		case <-c.group.Waiting():
			to, resync, ok := c.group.TakeWaiting()
			if !ok {
				continue
			}
			c.present.Add(1)
			kind := "I"
			if resync {
				kind = "R"
			}
			if !post(kind, follow.Envelope{Mode: follow.Delta, State: true, To: to}) {
				return
			}
			c.group.Join(to)
		}
	}
}

func (c *counter) Next() ([]byte, bool) {
	payload, ok := <-c.events
	return []byte(payload), ok
}

func (c *counter) Last() (errors, event []byte) { return nil, nil }

// replay reads a counter's events until it has read the number last. It returns an error if the member ends, or if an event cannot
// follow the previous event. If pause is not 0, replay lets other goroutines run at every pause-th read.
func (r *reader) replay(last, pause int) error {
	number, began := -1, false
	for reads := 0; ; reads++ {
		payload, over, _ := r.Take()
		if payload == nil {
			if over {
				return fmt.Errorf("the member ended after the number %d", number)
			}
			select {
			case <-r.woken:
			case <-time.After(patience):
				return fmt.Errorf("no event came after the number %d", number)
			}
			continue
		}
		value, _ := strconv.Atoi(string(payload[1:]))
		switch kind := payload[0]; {
		case kind == 'I' && !began, kind == 'R' && value >= number:
		case kind == 'D' && began && value == number+1:
		default:
			return fmt.Errorf("the event %s came after the number %d", payload, number)
		}
		began, number = true, value
		if number == last {
			return nil
		}
		if pause > 0 && reads%pause == 0 {
			for range 20 {
				// Let other goroutines run, so that this reader falls behind.
				runtime.Gosched()
			}
		}
	}
}

// TestReplay checks that members that join at different numbers and read at different speeds all get the last number.
func TestReplay(t *testing.T) {
	const last, readers = 3000, 200
	h := newHub(t, fanout.Limits{Deltas: 8})
	random := rand.New(rand.NewPCG(1, 2))
	// joiners contains, for each number, how many members join when counter reaches that number.
	joiners := make([]int, last+1)
	for range readers {
		joiners[random.IntN(last)]++
	}
	var wg sync.WaitGroup
	join := func(pause int, leaves bool, joined *sync.WaitGroup) {
		defer wg.Done()
		r := newReader()
		_ = h.Join(context.Background(), key("k"), r.Member, netip.Prefix{}, free, nil)
		joined.Done()
		if !leaves {
			if err := r.replay(last, pause); err != nil {
				t.Error(err)
			}
		}
		r.Leave()
	}
	var source atomic.Pointer[counter]
	open := func(ctx context.Context, g *fanout.Group) fanout.Source {
		c := &counter{ctx: ctx, group: g, last: last, events: make(chan string), stopped: make(chan struct{})}
		c.reached = func(number int) {
			var joined sync.WaitGroup
			for range joiners[number] {
				wg.Add(1)
				joined.Add(1)
				go join(random.IntN(4), random.IntN(8) == 0, &joined)
			}
			joined.Wait()
		}
		source.Store(c)
		go c.run()
		return c
	}
	anchor := newReader() // keeps the group open
	_ = h.Join(context.Background(), key("k"), anchor.Member, netip.Prefix{}, free, open)
	if err := anchor.replay(last, 0); err != nil {
		t.Errorf("the first reader: %v", err)
	}
	wg.Wait()
	stats := h.Stats()
	if stats.Lost == 0 {
		t.Error("no reader missed events, so the test shows nothing")
	}
	t.Logf("%d events were executed; readers missed events %d times; the present state was sent %d times to %d readers", stats.Events, stats.Lost, source.Load().present.Load(), readers)
	close(source.Load().stopped)
	receive(t, anchor.woken)
	anchor.Leave()
}
