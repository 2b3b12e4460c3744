package fanout_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/httpapi/quota"
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
	s.post("D2", delta)
	second.expect(t)
	to, resync, ok := s.group.TakeWaiting()
	if !ok || resync {
		t.Fatalf("TakeWaiting returned ok %v and resync %v, want true and false", ok, resync)
	}
	s.post("I2", follow.Envelope{Mode: follow.Delta, State: true, To: to})
	s.group.Join(to)
	s.post("D3", delta)
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
	s.post("first", appended)
	s.post("I", state(replaced))
	first.expect(t, "first", "I")
	second.expect(t, "first", "I")
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
	_ = h.Join(ctx, key("k"), a.Member, quota.Client{}, free, h.open)
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
	_ = h.Join(context.Background(), key("a"), a.Member, quota.Client{}, free, h.open)
	forA := h.script()
	_ = h.Join(context.Background(), key("b"), b.Member, quota.Client{}, free, h.open)
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
