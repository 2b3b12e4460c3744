package fanout

import (
	"cmp"
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
)

// Key identifies equal subscriptions: the same document, operation, variables and rights.
type Key [32]byte

// Source is a subscription that is being executed. Next waits for an event and returns its response, which must not be
// changed. ok is false after the last event.
type Source interface {
	Next() (payload []byte, ok bool)
	// Last is called after Next has returned false. It returns the errors that ended the subscription as a JSON list, or
	// nil if there were none.
	Last() (errors []byte)
}

// Open starts to execute a subscription for a group. The execution ends with ctx.
type Open func(ctx context.Context, g *Group) Source

// Limits bound the queue of one member. The zero value of a field takes its default.
type Limits struct {
	// Events is the number of Append events that may wait for a member; one more ends it. The default is 1,000.
	Events int
	// Deltas is the number of deltas that may wait for a member; after one more it restarts from the present state. The default is 64.
	Deltas int
	// Ahead is a number of unread bytes: the execution pauses while every member has as many, so that later changes
	// become one event. The default is 64 KiB.
	Ahead int
	// Pace bounds what is executed and delivered for a client; nil means no limit. An event costs its bytes and
	// perEvent, and a sixteenth of that for each delivery.
	Pace Pace
	// Bytes bounds the payloads that wait for a member; one more event ends it. A single event may be larger. The default is 4 MiB.
	Bytes int
}

// Pace limits the rate of each client. Its methods do not wait.
type Pace interface {
	// Spend charges a client n bytes. Debt returns how long the client has to wait until it is out of debt.
	Spend(client netip.Prefix, n int)
	Debt(client netip.Prefix) time.Duration
}

// perEvent is the cost of an event on top of its bytes; a delivery costs one part in deliveryShare of both.
const perEvent, deliveryShare = 512, 16

// Stats are the hub's gauges, and its counters since the start.
type Stats struct {
	// Groups and Members are open now.
	Groups, Members int
	// Executions counts the groups opened, Events their events, and Deliveries the queues that an event was appended to.
	Executions, Events, Deliveries uint64
	// Conflated counts the events that a newer one replaced, Lost the members that restarted after missed deltas,
	// Dropped the members ended because too much waited for them.
	Conflated, Lost, Dropped uint64
	// Crowded counts the events that did not fit a client's memory. The member restarted or was ended.
	Crowded uint64
}

// Hub holds the groups. It is safe for concurrent use. Close ends the groups.
type Hub struct {
	limits Limits
	counts counts

	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	// mu protects the rest. Lock order: the hub, then a group, then a member.
	mu     sync.Mutex
	groups map[Key]*Group
	closed bool
}

type counts struct {
	members                                                           atomic.Int64
	executions, events, deliveries, conflated, lost, dropped, crowded atomic.Uint64
}

// New returns an empty hub.
func New(l Limits) *Hub {
	l.Events, l.Deltas, l.Bytes, l.Ahead = cmp.Or(l.Events, 1000), cmp.Or(l.Deltas, 64), cmp.Or(l.Bytes, 4<<20), cmp.Or(l.Ahead, 64<<10)
	h := &Hub{limits: l, groups: make(map[Key]*Group)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Join adds m to the group of a key and opens the group if there is none. The group's context has the values of ctx, and
// ends with the last member. A member joins once; a member that has left does not join.
func (h *Hub) Join(ctx context.Context, key Key, m *Member, open Open) {
	_ = h.JoinCharged(ctx, key, m, netip.Prefix{}, func() (func(), error) { return func() {}, nil }, open)
}

// JoinCharged is Join for a client that pays for the group, once for all of its members. charge is called before the
// client's first member joins; its error is returned and m does not join. release is called after the client's last
// member has left, for the group's last client after the execution has ended. Neither function may use the hub.
func (h *Hub) JoinCharged(ctx context.Context, key Key, m *Member, client netip.Prefix, charge func() (release func(), err error), open Open) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		m.finish(nil, market.Errorf(market.CodeUpstreamUnavailable, "the service is shutting down"))
		return nil
	}
	g := h.groups[key]
	opened := g == nil
	if opened {
		g = newGroup(h, key)
	}
	p, err := g.billing.charge(client, charge)
	if err != nil {
		return err
	}
	if !g.add(m, p) {
		g.billing.leave(p)
		return nil
	}
	if !opened {
		return nil
	}
	h.groups[key] = g
	h.counts.executions.Add(1)
	groupCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(h.ctx, cancel)
	g.cancel = func() { stop(); cancel() }
	h.done.Go(func() {
		defer h.release(g)
		defer g.cancel()
		g.run(groupCtx, open)
	})
	return nil
}

// leave removes a member from its group and ends a group that is empty.
func (h *Hub) leave(g *Group, m *Member) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g.remove(m) {
		h.forget(g)
	}
}

// spend charges the clients of a group for an event of the given size and for its deliveries.
func (h *Hub) spend(g *Group, bytes int) {
	if h.limits.Pace == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	cost := bytes + perEvent
	for _, p := range g.billing {
		h.limits.Pace.Spend(p.client, cost+cost*p.delivered/deliveryShare)
		p.delivered = 0
	}
}

// debt returns how long it takes until the first client of a group is out of debt.
func (h *Hub) debt(g *Group) (least time.Duration) {
	if h.limits.Pace == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	first := true
	for _, p := range g.billing {
		debt := h.limits.Pace.Debt(p.client)
		if debt == 0 {
			return 0
		}
		if first || debt < least {
			first, least = false, debt
		}
	}
	return least
}

// release calls release for every client that still pays for a group.
func (h *Hub) release(g *Group) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range g.billing {
		p.release()
	}
}

// forget ends a group. The caller holds the lock.
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

// Close ends all groups and waits for their executions. It does not end the members: their owners do.
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
