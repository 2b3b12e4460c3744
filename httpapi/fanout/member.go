package fanout

import (
	"net/netip"
	"sync"

	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
)

// freeBytes is the number of bytes that may wait for a member without being counted. The subscription itself needs more memory
// than that.
const freeBytes = 2 << 10

// Memory is a number of bytes that clients share. Its methods must not wait.
type Memory interface {
	// Take reserves n bytes for a client. It returns false if there is not enough. Give undoes Take.
	Take(client netip.Prefix, n int) bool
	Give(client netip.Prefix, n int)
}

// Member is the subscription of one client. Its owner calls Take after each wake, and Leave at the end. A Member is safe for
// concurrent use.
type Member struct {
	wake func(*Member)

	// The group's lock guards index and since. index is the position in the group's members, or -1. since is the number of the
	// first event that the member gets.
	index int
	since uint64
	// payer is guarded by the hub's lock.
	payer *payer

	// mu protects the rest.
	mu    sync.Mutex
	group *Group
	queue []*event
	bytes int
	// memory counts the bytes that are queued, that are being written, that were reserved for Send, and those of the final errors.
	// nil means no limit. held is the number of bytes taken from memory, writing those being written, and promised those reserved.
	memory                  Memory
	client                  netip.Prefix
	held, writing, promised int
	// deltas and appended are the numbers of queued events with these modes. behind reports that a delta was lost. When the queue
	// is empty, the member then waits for the present state.
	deltas, appended int
	behind           bool
	// over reports that nothing more will be queued. end is the reason.
	over bool
	end  End
	// events is the number of events that Take has returned, and taken their size. onLeave is called when the member leaves.
	events, taken int64
	left          bool
	onLeave       func(MemberStats)
}

// MemberStats are the figures of a member.
type MemberStats struct {
	// Events and Bytes are the number and the size of the events that Take has returned.
	Events, Bytes int64
	// End is the end of the subscription. It is zero if the subscription has not ended or has ended without an error.
	End End
}

// event is an immutable payload that all queues share, with its envelope.
type event struct {
	payload []byte
	follow.Envelope
}

// End is the end of a subscription for a member. The zero value means an end without an error.
type End struct {
	// Errors is a JSON list of the errors that ended the subscription.
	Errors []byte
	// Err is the error that ended the subscription for this member only.
	Err error
	// Unread reports that the client has too much unread output, so that its errors are not sent.
	Unread bool
}

// NewMember returns a member without a group. wake is called when Take has something to return. wake may run under the group's
// lock, so it must not wait and must not call the member.
func NewMember(wake func(*Member)) *Member { return &Member{wake: wake, index: -1} }

// join sets the member's group. It returns false if the member must not join.
func (m *Member) join(g *Group) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return false
	}
	m.group = g
	return true
}

// OnLeave makes the member call f once when it leaves, or at once if it has left.
func (m *Member) OnLeave(f func(MemberStats)) {
	m.mu.Lock()
	left, stats := m.left, m.stats()
	if !left {
		m.onLeave = f
	}
	m.mu.Unlock()
	if left {
		f(stats)
	}
}

// stats returns the member's figures. The caller holds the lock.
func (m *Member) stats() MemberStats { return MemberStats{m.events, m.taken, m.end} }

// Leave ends the membership. A member that has not joined yet will not join. Further calls do nothing.
func (m *Member) Leave() {
	m.mu.Lock()
	g, onLeave, stats := m.group, m.onLeave, m.stats()
	m.over, m.queue, m.left, m.onLeave = true, nil, true, nil
	m.bytes, m.promised = 0, 0
	m.settle()
	m.mu.Unlock()
	if g != nil {
		g.hub.leave(g, m)
	}
	if onLeave != nil {
		onLeave(stats)
	}
}

// Send queues a response for a member without a group. The operation of such a member is executed only for it.
func (m *Member) Send(payload []byte) {
	m.mu.Lock()
	if m.left {
		m.mu.Unlock()
		return
	}
	m.appended++
	m.bytes, m.promised = m.bytes+len(payload), 0
	m.settle()
	m.queue = append(m.queue, &event{payload, follow.Envelope{Mode: follow.Append}})
	m.mu.Unlock()
	m.wake(m)
}

// SetMemory sets the memory in which the member's unread bytes are counted for a client. Call it before any other method.
func (m *Member) SetMemory(memory Memory, client netip.Prefix) { m.memory, m.client = memory, client }

// Reserve reserves n bytes for the next Send. It returns false if there is not enough memory.
func (m *Member) Reserve(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left {
		return true
	}
	m.promised = n
	if !m.settle() {
		m.promised = 0
		return false
	}
	return true
}

// settle adjusts the reserved bytes to the needed bytes. It returns false if there is not enough memory. The caller holds the
// lock.
func (m *Member) settle() bool {
	if m.memory == nil {
		return true
	}
	switch more := max(m.bytes+m.writing+m.promised-freeBytes, 0) - m.held; {
	case more > 0:
		if !m.memory.Take(m.client, more) {
			return false
		}
		m.held += more
	case more < 0:
		m.memory.Give(m.client, -more)
		m.held += more
	}
	return true
}

// unread returns the bytes that are queued or being written.
func (m *Member) unread() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes + m.writing
}

// Written releases the payload of the last Take, whether it was written or discarded. It may be called after Leave.
func (m *Member) Written() {
	m.mu.Lock()
	m.writing = 0
	m.settle()
	g := m.group
	m.mu.Unlock()
	if g != nil {
		g.signalWanted()
	}
}

// Finish ends the operation of a member without a group, after its queued responses. If there is not enough memory for the
// errors, the end is Unread.
func (m *Member) Finish(e End) { m.finish(e.Errors, e.Err) }

// Take returns the next response, which must not be changed. The response counts as unread until Written or the next Take. If
// payload is nil and over is true, no response will follow; end is the reason.
func (m *Member) Take() (payload []byte, over bool, end End) {
	m.mu.Lock()
	m.writing = 0
	if len(m.queue) > 0 {
		payload = m.remove(0).payload
		m.writing = len(payload)
		m.settle()
		m.events++
		m.taken += int64(len(payload))
		if len(m.queue) == 0 && cap(m.queue) > 16 {
			m.queue = nil // long queues are rare
		}
		m.mu.Unlock()
		return payload, false, End{}
	}
	over, end = m.over, m.end
	behind, g := m.behind && !over, m.group
	m.behind = false
	m.settle()
	m.mu.Unlock()
	if g != nil {
		g.signalWanted()
	}
	if behind {
		g.resync(m)
	}
	return nil, over, end
}

// remove removes and returns event i of the queue. The caller holds the lock.
func (m *Member) remove(i int) *event {
	e := m.queue[i]
	m.bytes -= len(e.payload)
	switch {
	case e.Mode == follow.Append:
		m.appended--
	case e.Mode == follow.Delta && !e.State:
		m.deltas--
	}
	copy(m.queue[i:], m.queue[i+1:])
	m.queue[len(m.queue)-1] = nil
	m.queue = m.queue[:len(m.queue)-1]
	return e
}

// enqueue adds an event to the queue in the way that its envelope requires. The caller holds the group's lock.
func (m *Member) enqueue(e *event) {
	if m.add(e) {
		m.wake(m)
	}
}

// add adds an event to the queue. It reports whether Take has something new to return.
func (m *Member) add(e *event) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return false
	}
	limits, counts := &m.group.hub.limits, &m.group.hub.counts
	replaced := false
	switch {
	case e.Mode == follow.Append:
		m.appended++
	case e.State:
		m.supersede(e.Topic)
	case e.Mode == follow.Replace:
		replaced = m.replace(e)
	default:
		m.deltas++
	}
	if !replaced {
		m.queue = append(m.queue, e)
		m.bytes += len(e.payload)
	}
	switch {
	case m.appended > limits.Events || m.bytes > limits.Bytes && len(m.queue) > 1: // a single event may have any size
		counts.dropped.Add(1)
		m.clear()
		m.over = true
		m.end = End{Err: market.Errorf(market.CodeRateLimited, "the subscription was read too slowly: more than %d events or %d bytes were waiting", limits.Events, limits.Bytes)}
	case m.deltas > limits.Deltas:
		counts.lost.Add(1)
		m.clear()
		m.behind, m.since = true, notReceiving
	case !m.settle():
		counts.crowded.Add(1)
		m.crowd(replaced || len(m.queue) > 1 || m.writing > 0)
	default:
		return !replaced
	}
	m.settle()
	return true
}

// crowd handles an event for which there is not enough memory. A member that is reading restarts from the present state. A
// member that reads nothing, or that would miss an Append event, ends.
func (m *Member) crowd(reading bool) {
	ends := m.appended > 0 || !reading
	m.clear()
	if m.behind, m.since = !ends, notReceiving; ends {
		m.over, m.end = true, tooMuchUnread
	}
}

// tooMuchUnread ends a member whose client has no memory left.
var tooMuchUnread = End{Unread: true, Err: market.Errorf(market.CodeRateLimited, "the subscription was read too slowly: its client leaves too much unread")}

// replace replaces the newest queued event of the same topic by e. It returns false if there is none or if that event may not
// be replaced.
func (m *Member) replace(e *event) bool {
	for i := len(m.queue) - 1; i >= 0; i-- {
		q := m.queue[i]
		if q.Topic != e.Topic {
			continue
		}
		if q.State || q.Mode != follow.Replace {
			return false
		}
		m.group.hub.counts.conflated.Add(1)
		m.bytes += len(e.payload) - len(q.payload)
		m.queue[i] = e
		return true
	}
	return false
}

// supersede removes the queued events of a topic, because the whole state of the topic follows. It keeps the first state, so
// that a reader gets the state at the start, and Append events.
func (m *Member) supersede(topic string) {
	first := true
	for i := 0; i < len(m.queue); {
		q := m.queue[i]
		if q.Topic != topic || q.Mode == follow.Append || q.State && first {
			first = first && (q.Topic != topic || !q.State)
			i++
			continue
		}
		m.group.hub.counts.conflated.Add(1)
		m.remove(i)
	}
}

func (m *Member) clear() {
	clear(m.queue)
	m.queue, m.bytes, m.deltas, m.appended = m.queue[:0], 0, 0, 0
}

// finish ends the queue.
func (m *Member) finish(errors []byte, err error) {
	m.mu.Lock()
	if m.over {
		m.mu.Unlock()
		return
	}
	m.over, m.end = true, End{Errors: errors, Err: err}
	if m.promised = len(errors); !m.settle() { // the errors are counted until the member leaves
		m.promised, m.end = 0, tooMuchUnread
	}
	m.mu.Unlock()
	m.wake(m)
}
