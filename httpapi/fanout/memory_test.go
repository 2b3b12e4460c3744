package fanout_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/httpapi/quota"
)

// memory is a fanout.Memory with a number of bytes that all clients share.
type memory struct {
	mu   sync.Mutex
	free int
}

func (r *memory) Take(_ quota.Client, n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > r.free {
		return false
	}
	r.free -= n
	return true
}

func (r *memory) Give(_ quota.Client, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free += n
}

func (r *memory) want(t *testing.T, free int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.free != free {
		t.Errorf("%d bytes are free, want %d", r.free, free)
	}
}

// text returns a payload of kib KiB that begins with name.
func text(name string, kib int) string { return name + strings.Repeat(" ", kib<<10-len(name)) }

// TestMemory checks that queued events and events that are being written take memory of the member's client.
func TestMemory(t *testing.T) {
	h := newHub(t, fanout.Limits{})
	r := &memory{free: 10 << 10}
	begin := func(name string) (*reader, *script) {
		m := newReader()
		m.SetMemory(r, quota.Client{})
		_ = h.Join(t.Context(), key(name), m.Member, quota.Client{}, free, h.open)
		return m, h.script()
	}
	m, s := begin("a")
	s.post(text("I", 2), state(delta))
	r.want(t, 10<<10) // the first 2 KiB of a member are not counted
	s.post(text("a", 6), delta)
	r.want(t, 4<<10)
	s.post(text("b", 4), delta)
	r.want(t, 0)
	if payload, _, _ := m.Take(); payload[0] != 'I' {
		t.Fatalf("the member got %.10q, want the first event", payload)
	}
	r.want(t, 0) // the event takes memory while it is being written
	m.Written()
	r.want(t, 2<<10)
	s.post(text("c", 4), delta) // the event does not fit, so the member must restart
	r.want(t, 10<<10)
	m.expect(t)
	if !s.waiting() {
		t.Fatal("no member waits for the present state")
	}
	if resync, ok := s.show(text("R", 3), state(delta)); !resync || !ok {
		t.Fatalf("a member was waiting: %v, resync: %v; want true for both", ok, resync)
	}
	if payload, _, _ := m.Take(); payload[0] != 'R' {
		t.Fatalf("the member got %.10q, want the present state", payload)
	}
	m.Leave()
	r.want(t, 9<<10) // the event takes memory until it is written
	m.Written()
	r.want(t, 10<<10)
	if s := h.Stats(); s.Crowded != 1 || s.Dropped != 0 {
		t.Errorf("the hub has Crowded %d and Dropped %d, want 1 and 0", s.Crowded, s.Dropped)
	}
	for name, last := range map[string][]testEvent{
		"a second appended event that does not fit": {{text("1", 8), appended}, {text("2", 8), appended}},
		"a first state that does not fit":           {{text("I", 20), state(replaced)}},
	} {
		m, s := begin(name)
		for _, e := range last {
			s.post(e.payload, e.Envelope)
		}
		if got, over, end := m.take(); len(got) != 0 || !over || !end.Unread || end.Err == nil {
			t.Errorf("%s: the member got %d events, over %v, %+v; want no events and an end with Unread", name, len(got), over, end)
		}
		m.Leave()
		r.want(t, 10<<10)
	}
}

// TestMemoryOfASend checks that Reserve takes the memory for the next Send.
func TestMemoryOfASend(t *testing.T) {
	r := &memory{free: 10 << 10}
	one, other := newReader(), newReader()
	one.SetMemory(r, quota.Client{})
	other.SetMemory(r, quota.Client{})
	if !one.Reserve(10<<10) || other.Reserve(10<<10) || !other.Reserve(4<<10) {
		t.Error("of 10 KiB, Reserve must give 10 KiB to one member, then refuse 10 KiB to the other member, and give it 4 KiB")
	}
	r.want(t, 0)
	one.Send([]byte(text("a", 10)))
	r.want(t, 0)
	one.Take()
	one.Leave()
	r.want(t, 0)
	one.Written()
	r.want(t, 8<<10)
	other.Leave()
	other.Send([]byte(text("b", 4))) // does nothing, because the member has left
	r.want(t, 10<<10)
}

// askedAgain reports whether the group has requested its next event.
func (s *script) askedAgain() bool {
	synctest.Wait()
	select {
	case <-s.queued:
		return true
	default:
		return false
	}
}

// TestPause checks that an execution pauses while each member has at least Limits.Ahead unread bytes.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, fanout.Limits{Ahead: 10})
		one, other := newReader(), newReader()
		h.join(one)
		s := h.script()
		event := func() {
			t.Helper()
			send(t, s.events, &fanout.Event{Envelope: replaced, Payload: []byte("0123456789")})
		}
		event()
		if s.askedAgain() {
			t.Fatal("the execution continues, want a pause")
		}
		one.Take()
		if s.askedAgain() {
			t.Fatal("the execution continues during the write, want a pause")
		}
		if one.Written(); !s.askedAgain() {
			t.Fatal("the execution pauses although its member has read all events")
		}
		event()
		if s.askedAgain() {
			t.Fatal("the execution continues, want a pause")
		}
		if h.join(other); !s.askedAgain() {
			t.Fatal("the execution pauses although a new member waits for the present state")
		}
		event()
		if !s.askedAgain() {
			t.Fatal("the execution pauses although the new member has no unread bytes")
		}
		other.Leave()
		one.Leave() // the last member leaves, so the paused execution must end
		receive(t, s.closed)
	})
}

// TestErrorsTakeMemory checks that the errors that end a member take memory, and that End.Unread is set if the errors do not fit.
func TestErrorsTakeMemory(t *testing.T) {
	r := &memory{free: 10 << 10}
	finish := func() *fanout.Member {
		m := fanout.NewMember(func() {})
		m.SetMemory(r, quota.Client{})
		m.Finish(fanout.End{Errors: []byte(text("[", 8))})
		return m
	}
	first := finish()
	r.want(t, 4<<10) // 4 of 10 KiB are free: the errors take 6 KiB, because the first 2 of their 8 KiB are not counted
	if _, over, end := first.Take(); !over || len(end.Errors) != 8<<10 || end.Unread {
		t.Errorf("the first member got over %v, %d bytes of errors, Unread %v; want over true, 8 KiB, Unread false", over, len(end.Errors), end.Unread)
	}
	r.want(t, 4<<10) // the errors take memory until the member leaves
	second := finish()
	r.want(t, 4<<10)
	if _, over, end := second.Take(); !over || end.Errors != nil || !end.Unread || end.Err == nil {
		t.Errorf("the second member got over %v, %d bytes of errors, Unread %v, Err %v; want over true, no errors, Unread true and an Err", over, len(end.Errors), end.Unread, end.Err)
	}
	first.Leave()
	second.Leave()
	r.want(t, 10<<10)
}
