package fanout

import (
	"sync"

	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
)

// freeBytes is the number of unread bytes that each member may have without taking them from Memory. It is not worth counting so
// few bytes: the Member value needs more memory, which is not counted either.
const freeBytes = 2 << 10

// Memory is a number of bytes that clients share. Its methods must not wait.
type Memory interface {
	// Take reserves n bytes for a client. It returns false if there is not enough memory.
	Take(client quota.Client, n int) bool
	// Give undoes Take.
	Give(client quota.Client, n int)
}

// Member is the subscription of one client. The owner of a Member calls Take whenever the member has called the function given
// to NewMember, and Leave at the end. A Member is safe for concurrent use.
type Member struct {
	wake func()

	// mu guards the fields below. stats, settle, wantsAgain, remove, knows, append, crowd, restart, replace and supersede are
	// called with it held.
	mu sync.Mutex
	// hub is nil before the member joins.
	hub *Hub
	// seats are the memberships in groups. openGroups is the number of these groups that have not ended.
	seats      []seat
	openGroups int
	paid       listPayment
	// queue contains the events that Take has not returned. bytes is the total size of their payloads.
	queue []*Event
	bytes int
	// memory limits the bytes of the queued payloads, of the payload that is being written, of the reservation for Send, and of the
	// final errors. If memory is nil, there is no limit.
	memory Memory
	client quota.Client
	// heldBytes are taken from memory. writingBytes is the size of the payload that is being written. reservedBytes is the number of
	// bytes that Reserve has reserved, or the size of the final errors.
	heldBytes, writingBytes, reservedBytes int
	// appended is the number of queued events with the mode Append. deltas is the number of queued events with the mode Delta, except
	// events with State.
	deltas, appended int
	// behind reports that events were dropped. When the queue is empty, the next Take requests the present state from the member's
	// groups.
	behind bool
	// problem is the payload of the last problem event that this member got, if it has several groups. Several groups often report
	// the same problem.
	problem []byte
	// over reports that nothing more will be queued. end is the reason.
	over bool
	end  End
	// events is the number of events that Take has returned. takenBytes is the total size of these events.
	events, takenBytes int64
	left               bool
	onLeave            func(MemberStats)
}

// MemberStats are the figures of a member.
type MemberStats struct {
	// Events and Bytes are the number and the total size of the events that Take has returned.
	Events, Bytes int64
	// End says how the subscription ended. It is zero before the end, and after an end without an error.
	End End
}

// Event is the response to an event of a subscription, with the envelope of the event. It must not be changed, because the queues of
// all members of a group share it.
type Event struct {
	follow.Envelope
	Payload []byte
}

// End says how a subscription ended for a member. The zero value means an end without an error.
type End struct {
	// Errors is a JSON list of the errors that ended the subscription.
	Errors []byte
	// Err is the error that ended the subscription for this member only.
	Err error
	// Unread reports that the client has too much unread output. Err then says so, and Errors is nil.
	Unread bool
}

// NewMember returns a member without a group. The member calls wake when Take has something to return. wake must not wait and
// must not call methods of the member, because it may run under a group's lock.
func NewMember(wake func()) *Member { return &Member{wake: wake} }

// join sets the member's groups. It returns false if the member has ended already. The calling function holds the hub's lock.
func (m *Member) join(h *Hub, seats []seat, paid listPayment) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return false
	}
	m.hub, m.seats, m.openGroups, m.paid = h, seats, len(seats), paid
	h.counts.members.Add(1)
	return true
}

// OnLeave makes the member call f once when it leaves. If the member has left already, OnLeave calls f at once.
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

func (m *Member) stats() MemberStats { return MemberStats{m.events, m.takenBytes, m.end} }

// Leave ends all memberships. A member that has not joined yet will not join. Further calls do nothing.
func (m *Member) Leave() {
	m.mu.Lock()
	h, seats, paid, onLeave, stats := m.hub, m.seats, m.paid, m.onLeave, m.stats()
	joined := h != nil && !m.left
	m.over, m.queue, m.left, m.onLeave = true, nil, true, nil
	m.bytes, m.reservedBytes = 0, 0
	m.settle()
	m.mu.Unlock()
	if joined {
		h.leave(seats, paid)
	}
	if onLeave != nil {
		onLeave(stats)
	}
}

// Send queues a response for a member without a group. The operation of such a member is executed for that member alone. After
// Leave, Send does nothing.
func (m *Member) Send(payload []byte) {
	m.mu.Lock()
	if m.left {
		m.mu.Unlock()
		return
	}
	m.appended++
	m.bytes, m.reservedBytes = m.bytes+len(payload), 0
	m.settle()
	m.queue = append(m.queue, &Event{follow.Envelope{Mode: follow.Append}, payload})
	m.mu.Unlock()
	m.wake()
}

// SetMemory sets the memory from which the member takes bytes for a client. Call SetMemory before any other method.
func (m *Member) SetMemory(memory Memory, client quota.Client) { m.memory, m.client = memory, client }

// Reserve reserves n bytes for the next Send. It returns false if there is not enough memory. After Leave, it reserves nothing
// and returns true.
func (m *Member) Reserve(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left {
		return true
	}
	m.reservedBytes = n
	if !m.settle() {
		m.reservedBytes = 0
		return false
	}
	return true
}

// settle takes or gives back memory, so that heldBytes is what the member needs. It returns false if there is not enough memory.
func (m *Member) settle() bool {
	if m.memory == nil {
		return true
	}
	switch more := max(m.bytes+m.writingBytes+m.reservedBytes-freeBytes, 0) - m.heldBytes; {
	case more > 0:
		if !m.memory.Take(m.client, more) {
			return false
		}
		m.heldBytes += more
	case more < 0:
		m.memory.Give(m.client, -more)
		m.heldBytes += more
	}
	return true
}

// unread returns the number of bytes that are queued or being written.
func (m *Member) unread() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes + m.writingBytes
}

// Written gives back the memory that is counted for the payload of the last Take. Call it after the payload was written or
// discarded. Written may be called after Leave.
func (m *Member) Written() {
	m.mu.Lock()
	before := m.bytes + m.writingBytes
	m.writingBytes = 0
	m.settle()
	wanting := m.wantsAgain(before)
	m.mu.Unlock()
	signalWanted(wanting)
}

// wantsAgain returns the member's seats if the number of its unread bytes has fallen below Limits.Ahead. Otherwise it returns
// nil. The parameter before is the previous number of unread bytes.
func (m *Member) wantsAgain(before int) (seats []seat) {
	if m.hub == nil || before < m.hub.limits.Ahead || m.bytes+m.writingBytes >= m.hub.limits.Ahead {
		return nil
	}
	return m.seats
}

// signalWanted wakes the paused execution of each group to which one of the seats belongs.
func signalWanted(seats []seat) {
	for i := range seats {
		seats[i].group.signalWanted()
	}
}

// Take returns the next response, which must not be changed. The response counts as unread until the next call of Written or
// Take. If payload is nil and over is true, no response will follow, and end is the reason. If payload is nil and over is false,
// the queue is empty.
func (m *Member) Take() (payload []byte, over bool, end End) {
	m.mu.Lock()
	before := m.bytes + m.writingBytes
	m.writingBytes = 0
	if len(m.queue) > 0 {
		payload = m.remove(0).Payload
		m.writingBytes = len(payload)
		m.settle()
		m.events++
		m.takenBytes += int64(len(payload))
		if len(m.queue) == 0 && cap(m.queue) > 16 {
			m.queue = nil // long queues are rare, so the memory of a long queue is not kept
		}
		wanting := m.wantsAgain(before)
		m.mu.Unlock()
		signalWanted(wanting)
		return payload, false, End{}
	}
	over, end = m.over, m.end
	wanting, missed := m.wantsAgain(before), []seat(nil)
	if m.behind && !over {
		missed = m.seats
	}
	m.behind = false
	m.settle()
	m.mu.Unlock()
	signalWanted(wanting)
	for i := range missed {
		missed[i].group.resync(&missed[i])
	}
	return nil, over, end
}

func (m *Member) remove(i int) *Event {
	e := m.queue[i]
	m.bytes -= len(e.Payload)
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

// caughtUp lets a member get events of a group again. It reports whether the member has missed events of this group. The calling
// function holds the group's lock.
func (m *Member) caughtUp(s *seat) (missed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	missed, s.behind = s.behind, false
	return missed
}

// finishPart ends the membership in a group that has ended. errors are the errors that ended the group, or nil. payload is an
// event that reports these errors to the client, or nil. The whole member ends if all its other groups have ended, or if there are
// errors but no payload.
func (m *Member) finishPart(s *seat, errors, payload []byte) {
	m.mu.Lock()
	m.openGroups--
	s.over, s.behind = true, false
	continues := m.openGroups > 0 && (errors == nil || payload != nil)
	wakes := continues && payload != nil && !m.over && m.append(&Event{follow.Envelope{Mode: follow.Append}, payload})
	m.mu.Unlock()
	if wakes {
		m.wake()
	}
	if !continues {
		m.Finish(End{Errors: errors})
	}
}

// tooMuchUnread is the End of a member whose client has no memory left.
var tooMuchUnread = End{Unread: true, Err: market.Errorf(market.CodeRateLimited, "the subscription was read too slowly: its client has too much unread output")}

// Finish ends the member. Take returns the queued responses before it returns e. If there is not enough memory for the errors, Take
// returns an End with Unread instead of e.
func (m *Member) Finish(e End) {
	m.mu.Lock()
	if m.over {
		m.mu.Unlock()
		return
	}
	m.over, m.end = true, e
	if m.reservedBytes = len(e.Errors); !m.settle() { // the errors are counted until the member leaves
		m.reservedBytes, m.end = 0, tooMuchUnread
	}
	m.mu.Unlock()
	m.wake()
}
