package fanout_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/feed/follow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the longest time that a test waits for one event.
const patience = 20 * time.Second

// script is a subscription whose events the test returns one by one.
type script struct {
	t      *testing.T
	ctx    context.Context
	group  *fanout.Group
	events chan *fanout.Event
	// Each call of next except the first signals queued. The previous event is then in the queues of the members.
	queued      chan struct{}
	asked       bool
	last, event []byte
	// closed is closed when next notices that the context of the execution has ended.
	closed chan struct{}
}

func newScript(t *testing.T, ctx context.Context, g *fanout.Group) *script {
	return &script{t: t, ctx: ctx, group: g, events: make(chan *fanout.Event), queued: make(chan struct{}), closed: make(chan struct{})}
}

// hub is a fanout.Hub whose executions are scripts. Its function join uses the same key for all readers.
type hub struct {
	*fanout.Hub
	t      *testing.T
	opened chan *script
}

func newHub(t *testing.T, l fanout.Limits) *hub {
	h := &hub{fanout.New(l), t, make(chan *script, 1)}
	t.Cleanup(h.Close)
	return h
}

// open is a fanout.Execute.
func (h *hub) open(ctx context.Context, g *fanout.Group, deliver func(*fanout.Event)) (errors, event []byte) {
	s := newScript(h.t, ctx, g)
	h.opened <- s
	return s.run(deliver)
}

// join makes readers members of the group.
func (h *hub) join(readers ...*reader) {
	for _, r := range readers {
		_ = h.Join(context.Background(), key("k"), r.Member, quota.Client{}, free, h.open)
	}
}

// script waits for the next execution.
func (h *hub) script() *script {
	h.t.Helper()
	return receive(h.t, h.opened)
}

// free charges nothing.
func free() (func(), error) { return func() {}, nil }

// run is the rest of a fanout.Execute.
func (s *script) run(deliver func(*fanout.Event)) (errors, event []byte) {
	for {
		e, ok := s.next()
		if !ok {
			return s.last, s.event
		}
		deliver(e)
	}
}

func (s *script) next() (*fanout.Event, bool) {
	if s.asked {
		select {
		case s.queued <- struct{}{}:
		case <-s.ctx.Done():
		}
	}
	s.asked = true
	select {
	case e, ok := <-s.events:
		return e, ok
	case <-s.ctx.Done():
		close(s.closed)
		return nil, false
	}
}

// post makes the script deliver an event, and waits until the event is in the queues.
func (s *script) post(payload string, e follow.Envelope) {
	s.t.Helper()
	send(s.t, s.events, &fanout.Event{Envelope: e, Payload: []byte(payload)})
	receive(s.t, s.queued)
}

// show sends the present state to the members that wait for it. resync is true if these members have missed events. ok is false if
// no member was waiting.
func (s *script) show(payload string, e follow.Envelope) (resync, ok bool) {
	s.t.Helper()
	to, resync, ok := s.group.TakeWaiting()
	if !ok {
		return false, false
	}
	e.To, e.State = to, true
	s.post(payload, e)
	s.group.Join(to)
	return resync, true
}

// waiting reports whether Waiting was signalled.
func (s *script) waiting() bool {
	select {
	case <-s.group.Waiting():
		return true
	default:
		return false
	}
}

// reader is a member with a channel that its wake function signals.
type reader struct {
	*fanout.Member
	woken chan struct{}
}

func newReader() *reader {
	r := &reader{woken: make(chan struct{}, 1)}
	r.Member = fanout.NewMember(func() {
		select {
		case r.woken <- struct{}{}:
		default:
		}
	})
	return r
}

// take returns all queued payloads.
func (r *reader) take() (payloads []string, over bool, end fanout.End) {
	for {
		payload, over, end := r.Take()
		if payload == nil {
			return payloads, over, end
		}
		payloads = append(payloads, string(payload))
	}
}

func (r *reader) expect(t *testing.T, want ...string) {
	t.Helper()
	if got, over, _ := r.take(); over || !slices.Equal(got, want) {
		t.Errorf("the member got the events %q, over %v; want the events %q, over false", got, over, want)
	}
}

func receive[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("no value was received within %v", patience)
	}
	return v
}

func send[T any](t *testing.T, c chan<- T, v T) {
	t.Helper()
	select {
	case c <- v:
	case <-time.After(patience):
		t.Fatal("the group did not take the event in time")
	}
}

func key(s string) (k fanout.Key) {
	copy(k[:], s)
	return k
}

var (
	replaced = follow.Envelope{Mode: follow.Replace}
	appended = follow.Envelope{Mode: follow.Append}
	delta    = follow.Envelope{Mode: follow.Delta}
)

func about(topic string, e follow.Envelope) follow.Envelope {
	e.Topic = topic
	return e
}

func state(e follow.Envelope) follow.Envelope {
	e.State = true
	return e
}
