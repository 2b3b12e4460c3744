package fanout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
)

type testEvent struct {
	payload string
	follow.Envelope
}

// TestQueue checks which events stay in the queue of a member that does not read.
func TestQueue(t *testing.T) {
	initial, resync := state(replaced), state(replaced)
	for _, test := range []struct {
		name   string
		limits fanout.Limits
		events []testEvent
		want   []string
	}{
		{"a new event replaces the queued event", fanout.Limits{}, []testEvent{{"a", replaced}, {"b", replaced}, {"c", replaced}}, []string{"c"}},
		{"no event replaces the first state", fanout.Limits{}, []testEvent{{"I", initial}, {"a", replaced}, {"b", replaced}}, []string{"I", "b"}},
		{
			"no event replaces an event of another topic", fanout.Limits{},
			[]testEvent{{"a1", about("a", replaced)}, {"b1", about("b", replaced)}, {"a2", about("a", replaced)}, {"b2", about("b", replaced)}},
			[]string{"a2", "b2"},
		},
		{
			"a state replaces all queued events except the first state", fanout.Limits{},
			[]testEvent{{"I", initial}, {"a", replaced}, {"R", resync}, {"b", replaced}, {"c", replaced}},
			[]string{"I", "R", "c"},
		},
		{
			"a state replaces no event of another topic", fanout.Limits{},
			[]testEvent{{"a", about("a", replaced)}, {"b", about("b", replaced)}, {"Ra", about("a", resync)}},
			[]string{"b", "Ra"},
		},
		{
			"a state replaces all earlier states except the first", fanout.Limits{},
			[]testEvent{{"I", initial}, {"R1", resync}, {"R2", resync}, {"R3", resync}},
			[]string{"I", "R3"},
		},
		{
			"no delta replaces another delta, but a state replaces all deltas", fanout.Limits{Deltas: 3},
			[]testEvent{{"I", state(delta)}, {"1", delta}, {"2", delta}, {"3", delta}, {"R", state(delta)}, {"4", delta}, {"5", delta}, {"6", delta}},
			[]string{"I", "R", "4", "5", "6"},
		},
		{
			"no appended event is replaced", fanout.Limits{Events: 4},
			[]testEvent{{"1", state(appended)}, {"2", appended}, {"3", appended}, {"4", appended}},
			[]string{"1", "2", "3", "4"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, r := newHub(t, test.limits), newReader()
			h.join(r)
			s := h.script()
			for _, e := range test.events {
				s.post(e.payload, e.Envelope)
			}
			r.expect(t, test.want...)
			r.expect(t)
			s.post("next", replaced)
			r.expect(t, "next")
			if conflated := h.Stats().Conflated; conflated != uint64(len(test.events)-len(test.want)) {
				t.Errorf("%d events were conflated, want %d", conflated, len(test.events)-len(test.want))
			}
		})
	}
}

// TestLargeEvents checks that a member gets events larger than Limits.Bytes if it reads each event before the next one.
func TestLargeEvents(t *testing.T) {
	for name, e := range map[string]follow.Envelope{"appended": appended, "replaced": about("a", replaced), "delta": delta, "state": state(about("a", replaced))} {
		t.Run(name, func(t *testing.T) {
			h, slow, quick := newHub(t, fanout.Limits{Bytes: 8}), newReader(), newReader()
			h.join(slow, quick)
			s := h.script()
			for _, payload := range []string{"1234567890", "2345678901"} {
				s.post(payload, e)
				quick.expect(t, payload)
			}
			switch got, over, end := slow.take(); {
			case e.Mode == follow.Replace:
				if !slices.Equal(got, []string{"2345678901"}) && !e.State {
					t.Errorf("the slow member got %q, error %v; want only the second event", got, end.Err)
				}
			case len(got) > 0 || !over || market.CodeOf(end.Err) != market.CodeRateLimited:
				t.Errorf("the slow member got %q, over %v, error %v; want no event and the code %s", got, over, end.Err, market.CodeRateLimited)
			}
		})
	}
}

// TestTooMuch checks that the hub ends a member whose queue exceeds a limit, and no other member.
func TestTooMuch(t *testing.T) {
	for _, test := range []struct {
		name   string
		limits fanout.Limits
		events []testEvent
	}{
		{"events", fanout.Limits{Events: 3}, []testEvent{{"1", appended}, {"2", appended}, {"3", appended}, {"4", appended}}},
		{"bytes", fanout.Limits{Bytes: 8}, []testEvent{{"1234", appended}, {"5678", appended}, {"9", appended}}},
		{"bytes of a replacing event", fanout.Limits{Bytes: 8}, []testEvent{{"1", about("a", replaced)}, {"2", about("b", replaced)}, {"33333333", about("b", replaced)}}},
		{"bytes of deltas", fanout.Limits{Bytes: 8}, []testEvent{{"1234", delta}, {"56789", delta}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, slow, quick := newHub(t, test.limits), newReader(), newReader()
			h.join(slow, quick)
			s := h.script()
			for i, e := range test.events {
				if dropped := h.Stats().Dropped; dropped != 0 {
					t.Fatalf("the slow member was ended after %d of %d events", i, len(test.events))
				}
				s.post(e.payload, e.Envelope)
				quick.expect(t, e.payload)
			}
			got, over, end := slow.take()
			if len(got) > 0 || !over || market.CodeOf(end.Err) != market.CodeRateLimited || !strings.Contains(end.Err.Error(), "too slowly") {
				t.Errorf("the slow member got %q, over %v, error %v; want no event and an error that says \"too slowly\"", got, over, end.Err)
			}
			s.post("next", appended)
			quick.expect(t, "next")
			if dropped := h.Stats().Dropped; dropped != 1 {
				t.Errorf("%d members were dropped, want 1", dropped)
			}
			if got, over, _ := slow.take(); len(got) > 0 || !over {
				t.Errorf("after its end, the slow member got %q, over %v; want no event and over true", got, over)
			}
		})
	}
}

// TestLostDelta checks that a member that missed deltas gets the present state and then the deltas after that state.
func TestLostDelta(t *testing.T) {
	h, slow, quick := newHub(t, fanout.Limits{Deltas: 3}), newReader(), newReader()
	h.join(slow, quick)
	s := h.script()
	for _, e := range append([]testEvent{{"I0", state(delta)}}, deltas(1, 8)...) { // the fourth delta exceeds Limits.Deltas, which is three
		s.post(e.payload, e.Envelope)
		quick.expect(t, e.payload)
	}
	if s.waiting() {
		t.Fatal("a member that has not read yet waits for the present state")
	}
	slow.expect(t) // the fourth delta made the member drop its queue
	if !s.waiting() {
		t.Fatal("a member that missed deltas does not wait for the present state")
	}
	s.post("D9", delta)
	slow.expect(t)
	if resync, ok := s.show("R9", delta); !resync || !ok {
		t.Errorf("a member was waiting: %v, resync: %v; want true for both", ok, resync)
	}
	s.post("D10", delta)
	slow.expect(t, "R9", "D10")
	quick.expect(t, "D9", "D10")
	if _, ok := s.show("again", delta); ok {
		t.Error("a member still waits for the present state after all members got it")
	}
	if lost := h.Stats().Lost; lost != 1 {
		t.Errorf("members missed deltas %d times, want 1", lost)
	}
	for _, e := range deltas(11, 14) { // the slow member misses deltas again
		s.post(e.payload, e.Envelope)
		quick.expect(t, e.payload)
	}
	slow.expect(t)
	if resync, _ := s.show("R14", delta); !resync {
		t.Error("the slow member got no second resync")
	}
	slow.expect(t, "R14")
}

func deltas(from, to int) (all []testEvent) {
	for i := from; i <= to; i++ {
		all = append(all, testEvent{fmt.Sprint("D", i), delta})
	}
	return all
}

// TestAlone checks that a member without a group gets its responses and then its End.
func TestAlone(t *testing.T) {
	r := newReader()
	r.Send([]byte("a"))
	r.Send([]byte("b"))
	r.Finish(fanout.End{Errors: []byte("[]")})
	receive(t, r.woken)
	got, over, end := r.take()
	if want := []string{"a", "b"}; !slices.Equal(got, want) || !over || string(end.Errors) != "[]" {
		t.Errorf("the member got %q, over %v, errors %s; want %q, over true, errors []", got, over, end.Errors, want)
	}
	r.Leave()
	r.Leave()
}
