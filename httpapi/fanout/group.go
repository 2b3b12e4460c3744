package fanout

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"oddsgraph/internal/feed/follow"
)

// Group is an execution of a subscription with its members. The execution sends the present state to the cohorts that TakeWaiting
// returns. A cohort is a set of members that wait for the present state together. A Group is safe for concurrent use.
type Group struct {
	hub    *Hub
	key    Key
	cancel context.CancelFunc
	// waiting is signalled when members wait for the present state.
	waiting chan struct{}
	// paused is true while await runs. A signal on wanted makes await check its conditions again.
	paused atomic.Bool
	wanted chan struct{}
	// The hub's lock guards billing.
	billing billing

	// mu guards the fields below.
	mu      sync.Mutex
	members []*seat
	// started reports whether an event was delivered to all members. From then on, a new member waits for the present state.
	started bool
	// newcomers are new members, and behind are members that missed events. All of them wait for the present state or have left.
	newcomers, behind []*seat
	// resynced reports whether the last call of TakeWaiting returned members that had missed events.
	resynced bool
	// cohort contains the members that are getting the present state, from TakeWaiting until Join. lastCohort identifies them.
	cohort     []*seat
	lastCohort follow.Cohort
}

func newGroup(h *Hub, key Key) *Group {
	return &Group{hub: h, key: key, waiting: make(chan struct{}, 1), wanted: make(chan struct{}, 1), billing: make(billing)}
}

// add adds a member to the group. If an event has already been delivered, the member waits for the present state. The calling
// function holds the hub's lock.
func (g *Group) add(s *seat) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s.index = len(g.members)
	g.members = append(g.members, s)
	g.signalWanted()
	if s.receives = !g.started; g.started {
		g.newcomers = append(g.newcomers, s)
		g.signalWaiting()
	}
}

// remove removes a member and reports whether the group is now empty. If the member has already been removed, it returns false.
// The calling function holds the hub's lock.
func (g *Group) remove(s *seat) (empty bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.index < 0 {
		return false
	}
	last := len(g.members) - 1
	g.members[s.index], g.members[last].index = g.members[last], s.index
	g.members[last] = nil
	g.members = g.members[:last]
	s.index = -1
	g.signalWanted()
	if last > 0 { // the hub charges the last client until the execution has ended
		g.billing.leave(s.payer)
	}
	return last == 0
}

// signalWaiting tells the execution that members wait for the present state.
func (g *Group) signalWaiting() {
	select {
	case g.waiting <- struct{}{}:
	default:
	}
}

// signalWanted makes a paused execution check again whether a member wants more events.
func (g *Group) signalWanted() {
	if !g.paused.Load() {
		return
	}
	select {
	case g.wanted <- struct{}{}:
	default:
	}
}

// wantsEvent reports whether any member has fewer than Limits.Ahead unread bytes. It also returns true if there are no members.
func (g *Group) wantsEvent() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.members) == 0 || slices.ContainsFunc(g.members, func(s *seat) bool { return s.member.unread() < g.hub.limits.Ahead })
}

// await waits until a member wants more events, or until ctx ends.
func (g *Group) await(ctx context.Context) {
	g.paused.Store(true)
	defer g.paused.Store(false)
	for ctx.Err() == nil && !g.wantsEvent() {
		select {
		case <-g.wanted:
		case <-ctx.Done():
		}
	}
}

// Waiting returns a channel that is signalled when members wait for the present state. TakeWaiting takes these members.
func (g *Group) Waiting() <-chan struct{} { return g.waiting }

// TakeWaiting returns a cohort of members that wait for the present state. resync is true if these members have missed events,
// and false if they are new. ok is false if no member waits. Until Join is called for the cohort, it gets only the events that are
// addressed to it. If other members still wait, TakeWaiting signals Waiting again.
func (g *Group) TakeWaiting() (to follow.Cohort, resync, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	left := func(s *seat) bool { return s.index < 0 }
	g.newcomers, g.behind = slices.DeleteFunc(g.newcomers, left), slices.DeleteFunc(g.behind, left)
	resync = len(g.newcomers) == 0 || len(g.behind) > 0 && !g.resynced
	wanting, others := &g.newcomers, &g.behind
	if resync {
		wanting, others = others, wanting
	}
	if len(*wanting) == 0 {
		return 0, false, false
	}
	g.resynced = resync
	g.lastCohort++
	g.cohort, *wanting = *wanting, nil
	if len(*others) > 0 {
		g.signalWaiting()
	}
	return g.lastCohort, resync, true
}

// Join makes the last cohort that TakeWaiting has returned receive all events from now on.
func (g *Group) Join(to follow.Cohort) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if to != g.lastCohort {
		return
	}
	for _, s := range g.cohort {
		s.receives = true
	}
	g.cohort = nil
}

func (g *Group) run(ctx context.Context, execute Execute) {
	g.await(ctx)
	errors, event := execute(ctx, g, func(e *Event) {
		g.deliver(e)
		g.await(ctx)
	})
	abandoned := ctx.Err() != nil // no member is left, or the hub is closing
	g.hub.ended(g)
	if abandoned {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.members {
		s.member.finishPart(s, errors, event)
	}
}

// deliver puts an event into the queues of the members that get it: those of its cohort, or else all that receive events.
func (g *Group) deliver(e *Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delivered := uint64(0)
	members, addressed := g.members, e.To != 0
	if addressed {
		members = g.cohort
	} else {
		g.started = true
	}
	for _, s := range members {
		if addressed && s.index >= 0 || !addressed && s.receives {
			delivered++
			if s.member.add(s, e) {
				s.member.wake()
			}
		}
	}
	g.hub.counts.events.Add(1)
	g.hub.counts.deliveries.Add(delivered)
}

// resync makes a member wait for the present state if the member has missed events. Call resync when the member's queue is empty.
func (g *Group) resync(s *seat) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !s.member.caughtUp(s) {
		return
	}
	s.receives = false // deliver also locks g.mu, so it cannot queue another event between caughtUp and this line
	if s.index >= 0 {
		g.behind = append(g.behind, s)
		g.signalWaiting()
	}
}
