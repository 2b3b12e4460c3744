package fanout

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
)

// Key tells which subscriptions are equal: those of the same document, operation, variables and rights.
type Key [32]byte

// Source is a subscription that is being executed. Next waits for an event and returns its response, which nobody changes
// any more; ok is false when there is none left, and last may be a response that says why.
type Source interface {
	Next() (payload []byte, ok bool)
	// Last is asked when Next has said that there is nothing left: the errors that ended the subscription as a JSON list,
	// nil where it ended by itself.
	Last() (errors []byte)
}

// Open starts to execute a subscription for a group, until ctx ends.
type Open func(ctx context.Context, g *Group) Source

// Limits bound what waits for one member. The zero value of a field takes its default.
type Limits struct {
	// Events is the greatest number of events that must all arrive which may wait for a member before it is ended: 1,000.
	Events int
	// Deltas is the greatest number of deltas that may wait for a member before it starts anew: 64.
	Deltas int
	// Ahead is how many bytes must wait for every member before the execution pauses, so that what changes meanwhile is one event:
	// 64 KiB.
	Ahead int
	// Pace bounds what is executed and delivered for a client; nil is no bound. An event costs its bytes and perEvent, and a
	// sixteenth of that for each delivery.
	Pace Pace
	// Bytes is the greatest size of all that waits for a member before it is ended, unless it is a single event: 4 MiB.
	Bytes int
}

// Pace bounds what clients may spend. Its methods do not wait.
type Pace interface {
	// Spend takes n from a client, Debt returns how long it has to wait until it owes nothing.
	Spend(client netip.Prefix, n int)
	Debt(client netip.Prefix) time.Duration
}

const (
	// perEvent is what an event costs beside its bytes; a delivery costs one part in deliveryShare of both.
	perEvent, deliveryShare = 512, 16
)

// Stats are counters since the start, and what there is now.
type Stats struct {
	// Groups and Members are open now.
	Groups, Members int
	// Executions counts the groups that were opened, Events their events and Deliveries the queues that those were laid in.
	Executions, Events, Deliveries uint64
	// Conflated counts events that took the place of others, Lost the members that started anew, Dropped those that were
	// ended because too much waited for them.
	Conflated, Lost, Dropped uint64
	// Crowded counts the events for which a member's client had no room. Its member started anew or was ended.
	Crowded uint64
}

// Hub holds the groups. It is safe for concurrent use. Close it to end them.
type Hub struct {
	limits Limits
	counts counts

	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	// mu protects the rest. A group's lock may be taken inside it, a member's inside that, never the other way round.
	mu     sync.Mutex
	groups map[Key]*Group
	closed bool
}

type counts struct {
	members                                                           atomic.Int64
	executions, events, deliveries, conflated, lost, dropped, crowded atomic.Uint64
}

// New returns a hub without groups.
func New(l Limits) *Hub {
	l.Events, l.Deltas, l.Bytes, l.Ahead = or(l.Events, 1000), or(l.Deltas, 64), or(l.Bytes, 4<<20), or(l.Ahead, 64<<10)
	h := &Hub{limits: l, groups: make(map[Key]*Group)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

func or(v, otherwise int) int {
	if v <= 0 {
		return otherwise
	}
	return v
}

// Join makes m a member of the group of a key, which is opened where there is none: its context has the values of ctx and
// lasts as long as the group has members. A member joins once, and not at all when it has left.
func (h *Hub) Join(ctx context.Context, key Key, m *Member, open Open) {
	_ = h.JoinCharged(ctx, key, m, netip.Prefix{}, func() (func(), error) { return func() {}, nil }, open)
}

// JoinCharged is Join for a client who is charged for the group, once for all members that are of the client's: charge is asked
// before the first of them joins, and release called when the last has left, or when the execution has ended where nobody is
// left. The error is that of charge, with which m has not joined. Neither may use the hub.
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
	p, err := g.payers.charge(client, charge)
	if err != nil {
		return err
	}
	if !g.enter(m, p) {
		g.payers.leave(p)
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

// leave takes a member out of its group, which ends with its last one.
func (h *Hub) leave(g *Group, m *Member) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g.exit(m) {
		h.forget(g)
	}
}

// spend has the clients of a group pay for an event of so many bytes and its deliveries.
func (h *Hub) spend(g *Group, bytes int) {
	if h.limits.Pace == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	cost := bytes + perEvent
	for _, p := range g.payers {
		h.limits.Pace.Spend(p.client, cost+cost*p.delivered/deliveryShare)
		p.delivered = 0
	}
}

// debt returns how long the clients of a group have to wait until one of them owes nothing.
func (h *Hub) debt(g *Group) (least time.Duration) {
	if h.limits.Pace == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	first := true
	for _, p := range g.payers {
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

// release takes what is charged for a group off all that are charged still.
func (h *Hub) release(g *Group) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range g.payers {
		p.release()
	}
}

// forget ends a group. The lock is held.
func (h *Hub) forget(g *Group) {
	if h.groups[g.key] == g {
		delete(h.groups, g.key)
	}
	g.cancel()
}

// ended takes a group whose execution has come to its end out of the hub, so that nobody joins it any more.
func (h *Hub) ended(g *Group) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(g)
}

// Close ends all groups and waits for their executions. Their members are told nothing: it is for whoever holds them to
// say goodbye.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	h.done.Wait()
}

// Stats returns the counters.
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
