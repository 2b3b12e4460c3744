package fanout

import (
	"bytes"

	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
)

// add adds an event of a group to the queue. It ignores the event if the member has ended or waits for the present state of the
// group, or if the event repeats the member's last problem. add reports whether the calling function must call wake. The calling
// function holds the group's lock.
func (m *Member) add(s *seat, e *Event) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over || s.behind || e.Problem && m.knows(e.Payload) {
		return false
	}
	return m.append(e)
}

// knows reports whether a problem event is equal to the last one that the member got. It stores the event for the next call. If
// the member has only one group, knows stores nothing and returns false.
func (m *Member) knows(problem []byte) bool {
	if len(m.seats) == 1 {
		return false
	}
	known := bytes.Equal(m.problem, problem)
	m.problem = problem
	return known
}

// append puts an event into the queue and reports whether the member must call wake.
func (m *Member) append(e *Event) bool {
	limits, counts := &m.hub.limits, &m.hub.counts
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
		m.bytes += len(e.Payload)
	}
	switch {
	case m.appended > limits.Events || m.bytes > limits.Bytes && len(m.queue) > 1: // a single event may have any size
		counts.dropped.Add(1)
		m.clear()
		m.over = true
		m.end = End{Err: market.Errorf(market.CodeRateLimited, "the subscription was read too slowly: more than %d events or %d bytes were waiting", limits.Events, limits.Bytes)}
	case m.deltas > limits.Deltas:
		counts.lost.Add(1)
		m.restart()
	case !m.settle():
		counts.crowded.Add(1)
		m.crowd(replaced || len(m.queue) > 1 || m.writingBytes > 0)
	default:
		return !replaced
	}
	m.settle()
	return true
}

// crowd handles an event for which the client has too little of the service's memory left. moreUnread is true if the event
// replaced another event, or if the member has other unread events. The member ends if its queue contains Append events, because
// a restart would lose them. It also ends if moreUnread is false, because a restart would free no memory. In all other cases the
// member restarts from the present state.
func (m *Member) crowd(moreUnread bool) {
	if m.appended > 0 || !moreUnread {
		m.clear()
		m.over, m.end = true, tooMuchUnread
		return
	}
	m.restart()
}

// restart drops the queue. The member also drops all further events until Take calls Group.resync. After that, the member gets
// the present state of its groups.
func (m *Member) restart() {
	m.clear()
	m.behind, m.problem = true, nil
	for i := range m.seats {
		m.seats[i].behind = !m.seats[i].over
	}
}

// replace puts e in the place of the newest queued event of the same topic. It returns false if the queue has no event of this
// topic, or if the newest one must not be replaced.
func (m *Member) replace(e *Event) bool {
	for i := len(m.queue) - 1; i >= 0; i-- {
		q := m.queue[i]
		if q.Topic != e.Topic {
			continue
		}
		if q.State || q.Mode != follow.Replace {
			return false
		}
		m.hub.counts.conflated.Add(1)
		m.bytes += len(e.Payload) - len(q.Payload)
		m.queue[i] = e
		return true
	}
	return false
}

// supersede removes the queued events of a topic, because an event with the whole state of the topic follows. It keeps Append
// events. It also keeps the first queued state, so that the client gets the state at the start of the subscription.
func (m *Member) supersede(topic string) {
	first := true
	for i := 0; i < len(m.queue); {
		q := m.queue[i]
		if q.Topic != topic || q.Mode == follow.Append || q.State && first {
			first = first && (q.Topic != topic || !q.State)
			i++
			continue
		}
		m.hub.counts.conflated.Add(1)
		m.remove(i)
	}
}

func (m *Member) clear() {
	clear(m.queue)
	m.queue, m.bytes, m.deltas, m.appended = m.queue[:0], 0, 0, 0
}
