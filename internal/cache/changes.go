package cache

import (
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
)

// maxAnnounced bounds the number of streamed changes that are stored for one market.
const maxAnnounced = 4

// outdatedBackoff is the wait after responses in a row that contradict the stream.
var outdatedBackoff = market.Backoff{Min: 2 * time.Second, Max: time.Minute}

// change is the last streamed change of a key. The store's lock guards it.
type change struct {
	number uint64
	at     time.Time
	// announced contains the streamed values. It is nil if the stream sent no values, or if a newer response has replaced them.
	announced *announced
	// lateResponses counts the responses that contradict the stream although their calls started after the change.
	lateResponses int
}

// announced contains the streamed changes of a market, which override REST values that contradict them, if these were requested
// less than restLag after at. at is the time of the last change.
type announced struct {
	changes []market.MarketChange // oldest first
	at      time.Time
}

// newChanges returns an LRU for the last changes of at most size keys.
func newChanges[K comparable](size int) *lru.Cache[K, *change] {
	c, err := lru.New[K, *change](max(size, 1))
	if err != nil {
		panic("cache: " + err.Error()) // only for a size below 1
	}
	return c
}

// withChange returns the streamed changes of a market, including the new change c. The earlier changes are in w, which may be nil.
// If c is RESOLVED and its status is known or empty, the result contains c and the latest earlier changes, at most maxAnnounced
// changes in all. If c has another known status, c replaces the earlier changes, except a new tick size. If c has neither a status
// nor a tick size, the result is w.
func (w *announced) withChange(c *market.MarketChange, at time.Time) *announced {
	resolved := c != nil && c.Kind == "RESOLVED"
	if c == nil || c.Status == market.StatusUnknown || c.Status == "" && !resolved && c.TickSize == nil {
		return w
	}
	var said []market.MarketChange
	if w != nil {
		said = slices.Clone(w.changes)
	}
	switch {
	case resolved:
	case c.TickSize != nil:
		said = slices.DeleteFunc(said, func(x market.MarketChange) bool { return x.TickSize != nil })
	default:
		said = slices.DeleteFunc(said, func(x market.MarketChange) bool { return x.TickSize == nil })
	}
	return &announced{changes: append(said[max(len(said)-maxAnnounced+1, 0):], *c), at: at}
}

// apply returns a copy of m with the changes applied. contradicts reports whether m has another status, outcome or tick size than
// the changes say, or lacks a winner that they name. A time of the resolution that m lacks is no contradiction.
func (w *announced) apply(m *market.Market) (amended *market.Market, contradicts bool) {
	next := m
	for _, c := range w.changes {
		next = next.With(c)
	}
	return next, next.Status != m.Status || (next.Winner() == nil) != (m.Winner() == nil) || resolvedTo(next) != resolvedTo(m) ||
		!same(next.TickSize, m.TickSize)
}

// resolvedTo returns the outcome to which a market was resolved, or "".
func resolvedTo(m *market.Market) string {
	if m.Resolution != nil && m.Resolution.Outcome != "" {
		return m.Resolution.Outcome
	}
	if w := m.Winner(); w != nil {
		return w.Label
	}
	return ""
}

// markChanged records a streamed change of a key. c is nil if the stream sent no values. The next reader fetches the key again.
// Until a fetch succeeds, values of calls that started before the change are served only if the venue fails.
func (s *store[K, T]) markChanged(slot K, c *market.MarketChange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := &change{number: s.changes.Add(1), at: s.clock.Now()}
	if before, ok := s.changed.Get(slot); ok {
		last.announced = before.announced
	}
	last.announced = last.announced.withChange(c, last.at)
	s.changed.Add(slot, last)
	s.absent.remove(slot)
	if old := s.entries.get(slot); old != nil {
		e := &entry[T]{read: old.read, freshUntil: market.Earlier(old.freshUntil, s.clock.Now()), staleUntil: old.staleUntil, outdated: true}
		if last.announced != nil && e.read.Value != nil {
			e.read.Value, _ = s.kind.amend(e.read.Value, last.announced)
		}
		e.read.Handle = reads.NewHandle(e.freshUntil)
		s.replace(s.entries, slot, e)
	}
	for _, l := range s.routes {
		l.detach(slot, last.number, s.kind.alias)
	}
	if s.shared != nil {
		if name, ok := s.shared.name(slot); ok {
			s.shared.Drop(s.shared.kind, name)
		}
	}
}

// storeUnsettled handles a response that may be older than the last streamed change of its key: its call started before the change,
// or less than restLag after it and the response contradicts the stream. storeUnsettled applies the streamed changes to the value and
// stores the result as an outdated entry, so that the key is fetched again. It does not store an absence. If the call started before
// the change, storeUnsettled does not replace an existing entry. For any other response, storeUnsettled stores nothing, and ok is
// false. The calling function holds the lock.
func (s *store[K, T]) storeUnsettled(slot K, e *entry[T], from origin) (read reads.Value[*T], ok bool) {
	c, ok := s.changed.Get(slot)
	if !ok {
		return read, false
	}
	before, older := c.number > from.changes, false
	if c.announced != nil && e.read.Value != nil {
		value, contradicts := s.kind.amend(e.read.Value, c.announced)
		older = contradicts && from.startedAt.Before(c.announced.at.Add(restLag))
		if contradicts && !older {
			c.announced = nil
		} else {
			e.read.Value = value
		}
	}
	if !before && !older {
		return read, false
	}
	now := s.clock.Now()
	e.outdated, e.freshUntil = true, now
	if !before {
		c.lateResponses++
		s.counters.late.Add(1)
		e.answersUntil = now.Add(outdatedBackoff.Wait(c.lateResponses, 1))
		e.refreshAt.Store(e.answersUntil.UnixNano())
	}
	e.read.Handle = reads.NewHandle(now)
	e.read.Handle.Invalidate()
	if e.read.Value != nil && (!before || s.entries.get(slot) == nil) {
		s.replace(s.entries, slot, e)
	}
	read = e.read
	read.MarkStale(reads.CauseChanged)
	return read, true
}
