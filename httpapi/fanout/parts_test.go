package fanout_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/feed/follow"
)

// scripts opens the parts of lists and keeps the latest script of each part.
type scripts struct {
	t      *testing.T
	mu     sync.Mutex
	byPart map[string]*script
	ready  chan struct{}
}

func newScripts(t *testing.T) *scripts {
	return &scripts{t: t, byPart: make(map[string]*script), ready: make(chan struct{}, 1000)}
}

func (s *scripts) parts(names ...string) (parts []fanout.Part) {
	for _, name := range names {
		parts = append(parts, fanout.Part{Key: key(name), Execute: func(ctx context.Context, g *fanout.Group, deliver func(*fanout.Event)) (errors, event []byte) {
			one := newScript(s.t, ctx, g)
			s.mu.Lock()
			s.byPart[name] = one
			s.mu.Unlock()
			s.ready <- struct{}{}
			return one.run(deliver)
		}})
	}
	return parts
}

// part returns the latest script of a part.
func (s *scripts) part(name string) *script {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byPart[name]
}

// join makes a new reader a member of the groups of a list. opens is the number of new executions that join waits for.
func (s *scripts) join(h *hub, opens int, names ...string) *reader {
	s.t.Helper()
	r := newReader()
	if joined, err := h.JoinParts(s.t.Context(), key("list "+strings.Join(names, ",")), r.Member, quota.Client{}, free, s.parts(names...)); !joined || err != nil {
		s.t.Fatalf("JoinParts returned joined %v and the error %v, want true and nil", joined, err)
	}
	for range opens {
		receive(s.t, s.ready)
	}
	return r
}

// TestPartsShareExecutions checks that each part of several lists is executed once, and that members get the events of their
// parts.
func TestPartsShareExecutions(t *testing.T) {
	h, s := newHub(t, fanout.Limits{}), newScripts(t)
	one := s.join(h, 2, "a", "b")
	two := s.join(h, 1, "b", "c")
	three := s.join(h, 0, "c", "a")
	for i := range 3 {
		for _, name := range []string{"a", "b", "c"} {
			s.part(name).post(fmt.Sprint(name, i), about(name, appended))
		}
	}
	one.expect(t, "a0", "b0", "a1", "b1", "a2", "b2")
	two.expect(t, "b0", "c0", "b1", "c1", "b2", "c2")
	three.expect(t, "a0", "c0", "a1", "c1", "a2", "c2")
	if got := h.Stats(); got.Groups != 3 || got.Members != 3 || got.Executions != 3 || got.Events != 9 || got.Deliveries != 18 {
		t.Errorf("the hub has %+v, want 3 groups, members and executions, 9 events and 18 deliveries", got)
	}
	one.Leave()
	one.Leave()
	if got := h.Stats(); got.Groups != 3 || got.Members != 2 {
		t.Errorf("after one member has left: the hub has %+v, want 3 groups and 2 members", got)
	}
	two.Leave()
	receive(t, s.part("b").closed)
	three.Leave()
	receive(t, s.part("a").closed)
	receive(t, s.part("c").closed)
	if got := h.Stats(); got.Groups != 0 || got.Members != 0 {
		t.Errorf("after all members have left: the hub has %+v, want no groups and no members", got)
	}
}

// TestSlowMemberOfParts checks that an event of one part replaces no queued event of another part.
func TestSlowMemberOfParts(t *testing.T) {
	h, s := newHub(t, fanout.Limits{}), newScripts(t)
	slow, fast := s.join(h, 2, "a", "b"), s.join(h, 0, "b", "a")
	for i := range 3 {
		s.part("a").post(fmt.Sprint("a", i), about("a", replaced))
		s.part("b").post(fmt.Sprint("b", i), about("b", replaced))
		fast.expect(t, fmt.Sprint("a", i), fmt.Sprint("b", i))
	}
	slow.expect(t, "a2", "b2")
}

// TestEndOfAPart checks that a member whose part ends with an event continues with its other parts. The member must end if it has
// no other parts, or if the part ends without an event.
func TestEndOfAPart(t *testing.T) {
	h, s := newHub(t, fanout.Limits{}), newScripts(t)
	both, third, alone := s.join(h, 2, "a", "b"), s.join(h, 1, "a", "c"), s.join(h, 0, "a")
	end := func(name, errors, event string) {
		x := s.part(name)
		x.last = []byte(errors)
		if event != "" {
			x.event = []byte(event)
		}
		close(x.events)
	}
	end("a", "[a]", "{a}")
	for _, r := range []*reader{both, third, alone} {
		receive(t, r.woken)
	}
	both.expect(t, "{a}")
	third.expect(t, "{a}")
	if got, over, why := alone.take(); len(got) > 0 || !over || string(why.Errors) != "[a]" {
		t.Errorf("the member of one part got %q, over %v, errors %s; want no event, over true, errors [a]", got, over, why.Errors)
	}
	s.part("b").post("B", about("b", appended))
	both.expect(t, "B")
	receive(t, both.woken)
	end("b", "[b]", "{b}")
	receive(t, both.woken)
	if got, over, why := both.take(); len(got) > 0 || !over || string(why.Errors) != "[b]" {
		t.Errorf("after the last of its parts has ended, the member got %q, over %v, errors %s; want no event, over true, errors [b]", got, over, why.Errors)
	}
	again := s.join(h, 1, "c", "d")
	end("c", "[c]", "")
	receive(t, again.woken)
	if got, over, why := again.take(); len(got) > 0 || !over || string(why.Errors) != "[c]" {
		t.Errorf("after a part has ended without an event, the member got %q, over %v, errors %s; want no event, over true, errors [c]", got, over, why.Errors)
	}
}

// TestProblemOfParts checks that a member gets a problem once if several of its parts report the problem.
func TestProblemOfParts(t *testing.T) {
	h, s := newHub(t, fanout.Limits{}), newScripts(t)
	r := s.join(h, 2, "a", "b")
	down := follow.Envelope{Mode: follow.Append, Problem: true}
	s.part("a").post("down", down)
	s.part("b").post("down", down)
	s.part("b").post("B", about("b", replaced))
	s.part("b").post("other", down)
	r.expect(t, "down", "B", "other")
}

// TestPartsRestart checks that a member gets the present state of all its parts after an event did not fit into its memory.
func TestPartsRestart(t *testing.T) {
	h, s := newHub(t, fanout.Limits{}), newScripts(t)
	r := newReader()
	r.SetMemory(&memory{free: 4 << 10}, quota.Client{})
	if _, err := h.JoinParts(t.Context(), key("list"), r.Member, quota.Client{}, free, s.parts("a", "b")); err != nil {
		t.Fatal(err)
	}
	receive(t, s.ready)
	receive(t, s.ready)
	s.part("a").post(text("a", 4), about("a", replaced))
	s.part("b").post(text("b", 4), about("b", replaced)) // the event does not fit
	s.part("a").post("a lost", about("a", replaced))
	s.part("b").post("b lost", about("b", replaced))
	r.expect(t)
	s.part("a").post("a early", about("a", replaced))
	for _, name := range []string{"b", "a"} {
		if !s.part(name).waiting() {
			t.Fatalf("no member of %s waits for the present state", name)
		}
		if resync, ok := s.part(name).show(name+" now", about(name, replaced)); !resync || !ok {
			t.Errorf("%s: a member was waiting: %v, resync: %v; want true for both", name, ok, resync)
		}
	}
	s.part("b").post("b next", about("b", replaced))
	r.expect(t, "b now", "a now", "b next")
}

// TestPartsAreCharged checks that a client is charged once for all its members with equal lists, until the last of them leaves.
func TestPartsAreCharged(t *testing.T) {
	h, s := newHub(t, fanout.Limits{Groups: 3}), newScripts(t)
	charged, released := 0, 0
	charge := func() (func(), error) { charged++; return func() { released++ }, nil }
	join := func(list string, charge func() (func(), error), names ...string) (*reader, bool, error) {
		r := newReader()
		joined, err := h.JoinParts(t.Context(), key(list), r.Member, quota.Client{}, charge, s.parts(names...))
		return r, joined, err
	}
	one, _, _ := join("ab", charge, "a", "b")
	two, _, _ := join("ab", charge, "a", "b")
	if charged != 1 {
		t.Errorf("the client was charged %d times for two equal lists, want 1", charged)
	}
	if _, _, err := join("bc", func() (func(), error) { return nil, context.Canceled }, "b", "c"); err == nil {
		t.Error("a client joined although its charge failed")
	}
	if _, joined, err := join("cd", charge, "c", "d"); joined || err != nil || charged != 1 {
		t.Errorf("with too many groups: joined %v, error %v, charged %d times; want false, nil and 1", joined, err, charged)
	}
	three, joined, _ := join("bc", charge, "b", "c")
	if !joined || charged != 2 || h.Stats().Groups != 3 {
		t.Errorf("with the greatest number of groups: joined %v, charged %d times, %d groups; want true, 2 and 3", joined, charged, h.Stats().Groups)
	}
	one.Leave()
	if released != 0 {
		t.Error("the charge was released before the last member of the list had left")
	}
	two.Leave()
	three.Leave()
	if released != 2 || h.Stats().Groups != 0 {
		t.Errorf("after all members have left: released %d times, %d groups; want 2 and 0", released, h.Stats().Groups)
	}
	gone := newReader()
	gone.Leave()
	if _, err := h.JoinParts(t.Context(), key("ab"), gone.Member, quota.Client{}, charge, s.parts("a")); err != nil || charged != 3 || released != 3 {
		t.Errorf("a member that has left joins: error %v, charged %d times, released %d times; want nil, 3 and 3", err, charged, released)
	}
}

// TestPartsAtOnce checks that members can join, read and leave on many goroutines while events come.
func TestPartsAtOnce(t *testing.T) {
	h := newHub(t, fanout.Limits{Ahead: 1})
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("t%d", i))
	}
	parts := func(names []string) (parts []fanout.Part) {
		for _, name := range names {
			parts = append(parts, fanout.Part{Key: key(name), Execute: func(ctx context.Context, g *fanout.Group, deliver func(*fanout.Event)) (errors, event []byte) {
				tick(ctx, g, name, deliver)
				return nil, nil
			}})
		}
		return parts
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			list := []string{names[i%20], names[(i*7+1)%20], names[(i*3+2)%20]}
			slices.Sort(list)
			list = slices.Compact(list)
			for range 3 {
				r := newReader()
				if _, err := h.JoinParts(context.Background(), key(fmt.Sprint(list)), r.Member, quota.Client{}, free, parts(list)); err != nil {
					t.Error(err)
				}
				last := map[string]int{}
				for events := 0; events < 10; {
					receive(t, r.woken)
					got, _, _ := r.take()
					for _, payload := range got {
						var name string
						var number int
						if _, err := fmt.Sscanf(payload, "%s %d", &name, &number); err != nil || !slices.Contains(list, name) || number <= last[name] {
							t.Errorf("the event %q came after the number %d to a member with the list %q: %v", payload, last[name], list, err)
						}
						last[name] = number
						events++
					}
				}
				r.Leave()
			}
		})
	}
	all.Wait()
	if got := h.Stats(); got.Groups != 0 || got.Members != 0 {
		t.Errorf("after all members have left: the hub has %+v, want no groups and no members", got)
	}
}

// tick delivers increasing numbers as events.
func tick(ctx context.Context, g *fanout.Group, name string, deliver func(*fanout.Event)) {
	for number := 1; ctx.Err() == nil; number++ {
		to, _, ok := g.TakeWaiting()
		deliver(&fanout.Event{Envelope: follow.Envelope{Topic: name, State: ok, To: to}, Payload: fmt.Appendf(nil, "%s %d", name, number)})
		if ok {
			g.Join(to)
		}
	}
}
