package fanout

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
)

// outside is the place of a member that gets no events yet, or no longer.
const outside = math.MaxUint64

// Group is one execution and those that it is for. The execution tells it of each event before it hands it over, by Post,
// and shows the present state to those that Take returns. Its methods are safe for concurrent use.
type Group struct {
	hub    *Hub
	key    Key
	cancel context.CancelFunc
	// waiting is signalled while members wait for the present state.
	waiting chan struct{}
	// paused says that the execution waits until a member wants more; wanted is signalled when one does.
	paused atomic.Bool
	wanted chan struct{}
	// payers are protected by the hub's lock.
	payers payers

	// mu protects the rest.
	mu      sync.Mutex
	members []*Member
	// newcomers and behind wait for the present state; some of them may have left. resynced tells that those behind had their
	// turn last.
	newcomers, behind []*Member
	resynced          bool
	// batches are the audiences that are being shown the present state.
	batches   []batch
	audiences market.Audience
	// posted counts the events that the execution has told of; envelopes are those that are on their way.
	posted    uint64
	envelopes []market.Envelope
}

// batch is an audience. Once it is admitted, the events before the number admitted may still be on their way to it.
type batch struct {
	to       market.Audience
	members  []*Member
	admitted uint64
}

func newGroup(h *Hub, key Key) *Group {
	return &Group{hub: h, key: key, waiting: make(chan struct{}, 1), wanted: make(chan struct{}, 1), payers: make(payers)}
}

// enter makes a member of one that has not left already, and reports whether. The present state is shown to it if there was
// an event already. The hub's lock is held.
func (g *Group) enter(m *Member, p *payer) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !m.join(g) {
		return false
	}
	g.hub.counts.members.Add(1)
	m.place, m.payer = len(g.members), p
	g.members = append(g.members, m)
	g.resume()
	if g.posted > 0 {
		m.since = outside
		g.newcomers = append(g.newcomers, m)
		g.call()
	}
	return true
}

// exit takes a member out and reports whether nobody is left. The hub's lock is held.
func (g *Group) exit(m *Member) (empty bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.place < 0 {
		return false
	}
	last := len(g.members) - 1
	g.members[m.place], g.members[last].place = g.members[last], m.place
	g.members[last] = nil
	g.members = g.members[:last]
	m.place = -1
	g.hub.counts.members.Add(-1)
	g.resume()
	if last > 0 { // else it is charged until the execution has ended
		g.payers.leave(m.payer)
	}
	return last == 0
}

// call tells the execution that somebody waits.
func (g *Group) call() {
	select {
	case g.waiting <- struct{}{}:
	default:
	}
}

// resume has the execution look again whether a member wants more.
func (g *Group) resume() {
	if !g.paused.Load() {
		return
	}
	select {
	case g.wanted <- struct{}{}:
	default:
	}
}

// wants reports whether a member wants more than what waits for it.
func (g *Group) wants() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.members) == 0 || slices.ContainsFunc(g.members, func(m *Member) bool { return m.unread() < g.hub.limits.Ahead })
}

// await waits until a member wants more and one of the clients may spend more, or until ctx ends.
func (g *Group) await(ctx context.Context) {
	g.paused.Store(true)
	defer g.paused.Store(false)
	for ctx.Err() == nil {
		if !g.wants() {
			select {
			case <-g.wanted:
			case <-ctx.Done():
			}
			continue
		}
		debt := g.hub.debt(g)
		if debt == 0 {
			return
		}
		late := time.NewTimer(debt)
		select {
		case <-late.C:
		case <-g.wanted: // by a client that owes nothing
		case <-ctx.Done():
		}
		late.Stop()
	}
}

// Debt returns how long to wait before an event is executed, because all clients of the group have spent too much.
func (g *Group) Debt() time.Duration { return g.hub.debt(g) }

// Spend has the clients pay for so many bytes that were executed and are in no event.
func (g *Group) Spend(bytes int) { g.hub.spend(g, bytes) }

// Waiting is signalled when members wait for the present state; Take says for whom.
func (g *Group) Waiting() <-chan struct{} { return g.waiting }

// Take returns an audience of members that wait for the present state: such that have seen nothing yet, or, where resync
// is true, such that have missed something. ok is false when there is none. Events to the audience are for them alone,
// until Admit. Where others wait still, Waiting is signalled again.
func (g *Group) Take() (to market.Audience, resync, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	left := func(m *Member) bool { return m.place < 0 }
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
	g.audiences++
	g.batches = append(g.batches, batch{to: g.audiences, members: *wanting, admitted: outside})
	*wanting = nil
	if len(*others) > 0 {
		g.call()
	}
	return g.audiences, resync, true
}

// Admit lets an audience have all events that are posted from now on.
func (g *Group) Admit(to market.Audience) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.batches {
		if b := &g.batches[i]; b.to == to {
			b.admitted = g.posted
			for _, m := range b.members {
				m.since = g.posted
			}
		}
	}
	g.shown()
}

// shown forgets the audiences that have got all that was for them alone.
func (g *Group) shown() {
	delivered := g.posted - uint64(len(g.envelopes))
	g.batches = slices.DeleteFunc(g.batches, func(b batch) bool { return b.admitted <= delivered })
}

// Post tells of the next event that the execution hands over.
func (g *Group) Post(e market.Envelope) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.posted++
	g.envelopes = append(g.envelopes, e)
}

// next returns the envelope of the event that was handed over, and its number. What was not posted is for all.
func (g *Group) next() (e market.Envelope, number uint64) {
	if len(g.envelopes) == 0 {
		return market.Envelope{Mode: market.Append}, g.posted
	}
	e = g.envelopes[0]
	number = g.posted - uint64(len(g.envelopes))
	g.envelopes = slices.Delete(g.envelopes, 0, 1)
	return e, number
}

// run executes the subscription until it ends or ctx does.
func (g *Group) run(ctx context.Context, open Open) {
	source := open(ctx, g)
	for {
		g.await(ctx)
		payload, ok := source.Next()
		if !ok {
			break
		}
		g.deliver(payload)
		g.hub.spend(g, len(payload))
	}
	abandoned := ctx.Err() != nil // nobody is left, or the hub is closing
	errors := source.Last()
	g.hub.ended(g)
	if abandoned {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.members {
		m.finish(errors, nil)
	}
}

// deliver lays an event into the queues of those that it is for.
func (g *Group) deliver(payload []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	envelope, number := g.next()
	e := &event{payload, envelope}
	delivered := uint64(0)
	if e.To == 0 {
		for _, m := range g.members {
			if m.since <= number {
				delivered++
				m.payer.delivered++
				m.lay(e)
			}
		}
	} else if i := slices.IndexFunc(g.batches, func(b batch) bool { return b.to == e.To }); i >= 0 {
		for _, m := range g.batches[i].members {
			if m.place >= 0 {
				delivered++
				m.payer.delivered++
				m.lay(e)
			}
		}
	}
	g.shown()
	g.hub.counts.events.Add(1)
	g.hub.counts.deliveries.Add(delivered)
}

// resync lets a member that has missed a delta, and read what came before it, wait for the present state.
func (g *Group) resync(m *Member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.place >= 0 {
		g.behind = append(g.behind, m)
		g.call()
	}
}
