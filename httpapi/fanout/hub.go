package fanout

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
)

// Key identifies equal subscriptions: the same document, operation, variables and rights.
type Key [32]byte

// Execute executes a subscription for a group. It calls deliver with each event. deliver returns when the group wants the next
// event. Execute returns when the subscription or ctx ends. errors is a JSON list of
// the errors that ended the subscription, or nil if there were no errors. If event is not nil, a member that has other running
// groups gets this event instead of the errors, and stays in these groups. In all other cases, errors end the member.
type Execute func(ctx context.Context, g *Group, deliver func(*Event)) (errors, event []byte)

// Limits are the limits of a hub. For a field that is zero, New uses the default of the field.
type Limits struct {
	// Events is the largest number of Append events in a member's queue. One more event ends the member. The default is 1,000.
	Events int
	// Deltas is the largest number of deltas in the queue of a member. After one more delta, the member restarts from the present
	// state. The default is 64.
	Deltas int
	// Ahead is the number of unread bytes that pauses a group: its execution pauses while every member has at least Ahead unread
	// bytes. Several changes of a topic during the pause can become one event. The default is 64 KiB.
	Ahead int
	// Groups is the number of open groups above which JoinParts refuses a member. The default is 4,000.
	Groups int
	// Bytes is the largest total size of the payloads in the queue of a member. If an event makes the total larger, the member
	// ends. But the only event in a queue may have any size. The default is 4 MiB.
	Bytes int
}

// Stats are the present gauges of a hub, and its counters since the start.
type Stats struct {
	Groups, Members int
	// Executions counts the executions that were started. Events counts the events of all executions. Deliveries counts an
	// event once for every member that it was meant for.
	Executions, Events, Deliveries uint64
	// Conflated counts events that a newer event replaced in a queue. Lost counts how often a member missed deltas and restarted.
	// Dropped counts members that were ended because their queue exceeded Limits.Events or Limits.Bytes.
	Conflated, Lost, Dropped uint64
	// Crowded counts events that did not fit into a client's memory. Such an event restarts or ends the member.
	Crowded uint64
}

// Hub contains all groups. It is safe for concurrent use. Close ends the groups.
type Hub struct {
	limits Limits
	counts counts

	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	// mu guards the fields below. refuses, group, take, forget, pay and unpay are called with it held. Lock order: the hub, then
	// a group, then a member.
	mu     sync.Mutex
	groups map[Key]*Group
	// lists contains the clients that are charged for subscriptions made with JoinParts, by the key of the whole subscription.
	lists  map[Key]billing
	closed bool
}

type counts struct {
	members                                                           atomic.Int64
	executions, events, deliveries, conflated, lost, dropped, crowded atomic.Uint64
}

// New returns an empty hub.
func New(l Limits) *Hub {
	l.Events, l.Deltas, l.Bytes, l.Ahead = cmp.Or(l.Events, 1000), cmp.Or(l.Deltas, 64), cmp.Or(l.Bytes, 4<<20), cmp.Or(l.Ahead, 64<<10)
	l.Groups = cmp.Or(l.Groups, 4000)
	h := &Hub{limits: l, groups: make(map[Key]*Group), lists: make(map[Key]billing)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Join adds m to the group of a key, and opens the group if it does not exist. The context of the group has the values of ctx
// and ends when the last member leaves. A member may join only once. If m has left already, Join does nothing. If the hub is
// closed, Join ends m with an error.
//
// A client is charged once for all its members in the group: Join calls charge before the first of them joins. If charge fails, m
// does not join, and Join returns the error. The hub calls release when the execution has ended, or when the client's last member
// leaves while members of other clients remain. charge and release must not use the hub.
func (h *Hub) Join(ctx context.Context, key Key, m *Member, client quota.Client, charge func() (release func(), err error), execute Execute) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuses(m) {
		return nil
	}
	g := h.group(key)
	p, err := g.billing.charge(client, charge)
	if err != nil {
		return err
	}
	seats := []seat{{member: m, group: g, payer: p}}
	if !m.join(h, seats, listPayment{}) {
		g.billing.leave(p)
		return nil
	}
	h.take(ctx, &seats[0], execute)
	return nil
}

// refuses reports whether the hub is closed. If so, it also ends m.
func (h *Hub) refuses(m *Member) bool {
	if h.closed {
		m.Finish(End{Err: market.Errorf(market.CodeUpstreamUnavailable, "the service is shutting down")})
	}
	return h.closed
}

// group returns the group of a key. If there is no such group, it returns a new group, which take will open.
func (h *Hub) group(key Key) *Group {
	if g := h.groups[key]; g != nil {
		return g
	}
	return newGroup(h, key)
}

func (h *Hub) take(ctx context.Context, s *seat, execute Execute) {
	g := s.group
	g.add(s)
	if h.groups[g.key] == g {
		return
	}
	h.groups[g.key] = g
	h.counts.executions.Add(1)
	groupCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(h.ctx, cancel)
	g.cancel = func() { stop(); cancel() }
	h.done.Go(func() {
		defer h.release(g)
		defer g.cancel()
		g.run(groupCtx, execute)
	})
}

// leave removes a member from its groups and ends the groups that are then empty.
func (h *Hub) leave(seats []seat, paid listPayment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts.members.Add(-1)
	for i := range seats {
		if s := &seats[i]; s.group.remove(s) {
			h.forget(s.group)
		}
	}
	h.unpay(paid)
}

// release ends the charges of all clients that are still charged for a group.
func (h *Hub) release(g *Group) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range g.billing {
		p.release()
	}
}

func (h *Hub) forget(g *Group) {
	if h.groups[g.key] == g {
		delete(h.groups, g.key)
	}
	g.cancel()
}

// ended removes a group whose execution has ended, so that no member joins it.
func (h *Hub) ended(g *Group) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(g)
}

// Close ends all groups and waits for their executions. It does not end the members: their owners must do that.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	h.done.Wait()
}

// Stats returns the present gauges and counters.
func (h *Hub) Stats() Stats {
	h.mu.Lock()
	groups := len(h.groups)
	h.mu.Unlock()
	c := &h.counts
	return Stats{
		Groups: groups, Members: int(c.members.Load()), Executions: c.executions.Load(), Events: c.events.Load(), Deliveries: c.deliveries.Load(),
		Conflated: c.conflated.Load(), Lost: c.lost.Load(), Dropped: c.dropped.Load(), Crowded: c.crowded.Load(),
	}
}
