package fanout

import (
	"net/netip"
	"sync"

	"oddsgraph/internal/market"
)

// freeBytes is how much may wait for a member without room: no more than a subscription takes anyway.
const freeBytes = 2 << 10

// Room is memory that clients share. Its methods do not wait.
type Room interface {
	// Take takes n bytes for a client, or reports false; Give takes them back.
	Take(client netip.Prefix, n int) bool
	Give(client netip.Prefix, n int)
}

// Member is one reader: a subscription of a client. Whoever holds it takes what there is when it is woken, and leaves in
// the end. Its methods are safe for concurrent use.
type Member struct {
	wake func(*Member)

	// The group's lock protects these. place is the member's in the list of members, -1 outside of it; since is the number
	// of the first event for all that it gets.
	place int
	since uint64
	// payer is who is charged for it, protected by the hub's lock.
	payer *payer

	// mu protects the rest.
	mu    sync.Mutex
	group *Group
	queue []*event
	bytes int
	// room holds so much for what waits, for what was taken and is being written, and for what was promised to Send or are the errors
	// of the end; nil is no bound.
	room                    Room
	client                  netip.Prefix
	held, writing, promised int
	// deltas and appended count those in the queue. behind tells that a delta was lost; the group is told of it when the
	// queue is empty.
	deltas, appended int
	behind           bool
	// over tells that nothing more comes, end why.
	over bool
	end  End
	// events and taken count what was taken, and its bytes. left tells that the member has left, onLeave is told of it.
	events, taken int64
	left          bool
	onLeave       func(Departure)
}

// Departure is what a member has had by the time that it leaves.
type Departure struct {
	// Events and Bytes count what it has taken.
	Events, Bytes int64
	// End is how its subscription ended; zero where it did not, or was over.
	End End
}

// event is one with what is said of it. All members that it waits for have the same one, and nobody changes it.
type event struct {
	payload []byte
	market.Envelope
}

// End is how a subscription ended for a member: both nil where it was over.
type End struct {
	// Errors is a JSON list of what ended the subscription.
	Errors []byte
	// Err is what ended it for this member alone.
	Err error
	// Unread says that the client had no room for more, since it leaves too much unread.
	Unread bool
}

// NewMember returns a member of no group. wake is called whenever there is something to take and must not wait; it may be
// called while the group's lock is held, so it must not leave or take either.
func NewMember(wake func(*Member)) *Member { return &Member{wake: wake, place: -1} }

// join reports whether the member may still enter a group.
func (m *Member) join(g *Group) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return false
	}
	m.group = g
	return true
}

// OnLeave has f told once, when the member leaves or at once where it has left.
func (m *Member) OnLeave(f func(Departure)) {
	m.mu.Lock()
	left, had := m.left, m.departure()
	if !left {
		m.onLeave = f
	}
	m.mu.Unlock()
	if left {
		f(had)
	}
}

// departure returns what the member has had. The lock is held.
func (m *Member) departure() Departure { return Departure{m.events, m.taken, m.end} }

// Leave ends the membership, or keeps the member from joining. Leaving again does nothing.
func (m *Member) Leave() {
	m.mu.Lock()
	g, told, had := m.group, m.onLeave, m.departure()
	m.over, m.queue, m.left, m.onLeave = true, nil, true, nil
	m.bytes, m.promised = 0, 0
	m.hold()
	m.mu.Unlock()
	if g != nil {
		g.hub.leave(g, m)
	}
	if told != nil {
		told(had)
	}
}

// Send lays a response into the queue of a member of no group, whose operation is executed for it alone.
func (m *Member) Send(payload []byte) {
	m.mu.Lock()
	if m.left {
		m.mu.Unlock()
		return
	}
	m.appended++
	m.bytes, m.promised = m.bytes+len(payload), 0
	m.hold()
	m.queue = append(m.queue, &event{payload, market.Envelope{Mode: market.Append}})
	m.mu.Unlock()
	m.wake(m)
}

// Charge has a room hold for a client what waits for the member. It is called before the member joins or is sent anything.
func (m *Member) Charge(room Room, client netip.Prefix) { m.room, m.client = room, client }

// Promise makes room for a response that Send brings, or reports that the client has none.
func (m *Member) Promise(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left {
		return true
	}
	m.promised = n
	if !m.hold() {
		m.promised = 0
		return false
	}
	return true
}

// hold makes the room that is needed now, or gives back what is not. It reports whether there was room. The lock is held.
func (m *Member) hold() bool {
	if m.room == nil {
		return true
	}
	switch more := max(m.bytes+m.writing+m.promised-freeBytes, 0) - m.held; {
	case more > 0:
		if !m.room.Take(m.client, more) {
			return false
		}
		m.held += more
	case more < 0:
		m.room.Give(m.client, -more)
		m.held += more
	}
	return true
}

// unread returns how many bytes wait for the member or are being written.
func (m *Member) unread() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes + m.writing
}

// Written notes that what Take has returned last was written, or never will be. It is called after Leave, too.
func (m *Member) Written() {
	m.mu.Lock()
	m.writing = 0
	m.hold()
	g := m.group
	m.mu.Unlock()
	if g != nil {
		g.resume()
	}
}

// Finish ends the operation of a member of no group behind what was sent. Errors that have no room end it as unread.
func (m *Member) Finish(e End) { m.finish(e.Errors, e.Err) }

// Take returns the next response, which must not be changed. It has room until Written or the next Take. Where there is none, over tells that none will come any more,
// and end why.
func (m *Member) Take() (payload []byte, over bool, end End) {
	m.mu.Lock()
	m.writing = 0
	if len(m.queue) > 0 {
		payload = m.remove(0).payload
		m.writing = len(payload)
		m.hold()
		m.events++
		m.taken += int64(len(payload))
		if len(m.queue) == 0 && cap(m.queue) > 16 {
			m.queue = nil // a queue that was long once is rare
		}
		m.mu.Unlock()
		return payload, false, End{}
	}
	over, end = m.over, m.end
	behind, g := m.behind && !over, m.group
	m.behind = false
	m.hold()
	m.mu.Unlock()
	if g != nil {
		g.resume()
	}
	if behind {
		g.resync(m)
	}
	return nil, over, end
}

// remove takes an event out of the queue. The lock is held.
func (m *Member) remove(i int) *event {
	e := m.queue[i]
	m.bytes -= len(e.payload)
	switch {
	case e.Mode == market.Append:
		m.appended--
	case e.Mode == market.Delta && !e.State:
		m.deltas--
	}
	copy(m.queue[i:], m.queue[i+1:])
	m.queue[len(m.queue)-1] = nil
	m.queue = m.queue[:len(m.queue)-1]
	return e
}

// lay puts an event into the queue as its envelope says. The group's lock is held.
func (m *Member) lay(e *event) {
	if m.add(e) {
		m.wake(m)
	}
}

// add returns whether there is something new to take.
func (m *Member) add(e *event) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return false
	}
	limits, counts := &m.group.hub.limits, &m.group.hub.counts
	replaced := false
	switch {
	case e.Mode == market.Append:
		m.appended++
	case e.State:
		m.supersede(e.Topic)
	case e.Mode == market.Replace:
		replaced = m.replace(e)
	default:
		m.deltas++
	}
	if !replaced {
		m.queue = append(m.queue, e)
		m.bytes += len(e.payload)
	}
	switch {
	case m.appended > limits.Events || m.bytes > limits.Bytes && len(m.queue) > 1: // one alone may be of any size
		counts.dropped.Add(1)
		m.clear()
		m.over = true
		m.end = End{Err: market.Errorf(market.CodeRateLimited, "the subscription was read too slowly: more than %d events or %d bytes were waiting", limits.Events, limits.Bytes)}
	case m.deltas > limits.Deltas:
		counts.lost.Add(1)
		m.clear()
		m.behind, m.since = true, outside
	case !m.hold():
		counts.crowded.Add(1)
		m.crowd(replaced || len(m.queue) > 1 || m.writing > 0)
	default:
		return !replaced
	}
	m.hold()
	return true
}

// crowd lets a member that has no room for what waits start anew when it has read what is being written. One that has nothing to
// read, or would miss what must arrive, ends.
func (m *Member) crowd(reading bool) {
	ends := m.appended > 0 || !reading
	m.clear()
	if m.behind, m.since = !ends, outside; ends {
		m.over, m.end = true, tooMuchUnread
	}
}

// tooMuchUnread is the end of a member whose client has no room.
var tooMuchUnread = End{Unread: true, Err: market.Errorf(market.CodeRateLimited, "the subscription was read too slowly: its client leaves too much unread")}

// replace puts an event into the place of the newest one of its topic, unless that is none that can be replaced.
func (m *Member) replace(e *event) bool {
	for i := len(m.queue) - 1; i >= 0; i-- {
		q := m.queue[i]
		if q.Topic != e.Topic {
			continue
		}
		if q.State || q.Mode != market.Replace {
			return false
		}
		m.group.hub.counts.conflated.Add(1)
		m.bytes += len(e.payload) - len(q.payload)
		m.queue[i] = e
		return true
	}
	return false
}

// supersede takes what waits of a topic out of the queue, since the whole state of it follows. The first state stays, so
// that a reader sees where it began, and so does what must arrive.
func (m *Member) supersede(topic string) {
	first := true
	for i := 0; i < len(m.queue); {
		q := m.queue[i]
		if q.Topic != topic || q.Mode == market.Append || q.State && first {
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
	if m.promised = len(errors); !m.hold() { // until it leaves
		m.promised, m.end = 0, tooMuchUnread
	}
	m.mu.Unlock()
	m.wake(m)
}
