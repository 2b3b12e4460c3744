package cache

import (
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"oddsgraph/internal/market"
)

const (
	// The venue's servers may lag behind one another. So a response may be older than a change although its headers say that it was
	// created shortly after the change. Such a response counts as newer only if, by its headers, it was created at least headerSlack
	// after the change.
	headerSlack = 5 * time.Second
	// maxAnnounced bounds the number of streamed changes that are stored for one market.
	maxAnnounced = 4
)

// change is the last streamed change of a key. The store's lock guards it.
type change struct {
	number uint64
	at     time.Time
	// announced contains the streamed values. It is nil if the stream sent no values, or if a newer response has replaced them.
	announced *announced
	// lateResponses counts the responses that may be older than the change although their calls started after the change.
	lateResponses int
}

// announced contains the streamed changes of a market, which override older REST values. at is the time of the last change.
type announced struct {
	changes []market.MarketChange // oldest first
	at      time.Time
	session *market.Session
	// cut is the first time at which the stream may have missed a change, or the zero time.
	cut time.Time
}

// newChanges returns an LRU for the last changes of at most size keys.
func newChanges[K comparable](size int) *lru.Cache[K, *change] {
	c, err := lru.New[K, *change](max(size, 1))
	if err != nil {
		panic("cache: " + err.Error()) // only for a size below 1
	}
	return c
}

// override reports whether the streamed changes override a response that contradicts them. later is true if the response shows a
// later step of the market's life than the changes do. The stream may have skipped this step, so the changes override the response
// only until they are restLag old. If later is false, the changes override the response while the stream is open, because the
// stream would have sent a later change. If the stream ends or may have missed a change, the changes override the response for a
// further restLag.
func (w *announced) override(now time.Time, later bool) bool {
	if later {
		return now.Before(w.at.Add(restLag))
	}
	end, ended := w.session.Ended()
	if !w.cut.IsZero() && (!ended || w.cut.Before(end)) {
		end, ended = w.cut, true
	}
	return !ended || now.Before(end.Add(restLag))
}

// withChange returns the streamed changes of a market, including the new change c. The earlier changes are in w, which may be nil.
// If c is RESOLVED and its status is known or empty, the result contains c and the latest earlier changes, at most maxAnnounced
// changes in all. If c has another known status, c replaces the earlier changes, except a new tick size. If c has neither a status
// nor a tick size, the result is w.
func (w *announced) withChange(c *market.MarketChange, at time.Time, s *market.Session) *announced {
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
	return &announced{changes: append(said[max(len(said)-maxAnnounced+1, 0):], *c), at: at, session: s}
}

// apply returns a copy of m with the changes applied. contradicts reports whether m has another status, outcome or tick size than
// the changes say, or lacks a winner that they name. A time of the resolution that m lacks is no contradiction. later reports
// whether the status of m is unknown, or a later step of the market's life than the status of the copy.
func (w *announced) apply(m *market.Market) (amended *market.Market, contradicts, later bool) {
	next := m
	for _, c := range w.changes {
		next = next.With(c)
	}
	if next.Status == m.Status && (next.Winner() == nil) == (m.Winner() == nil) && resolvedTo(next) == resolvedTo(m) &&
		same(next.TickSize, m.TickSize) {
		return next, false, false
	}
	return next, true, m.Status == market.StatusUnknown || step(m.Status) > step(next.Status)
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

// step returns the position of a status in the life of a market, or 0 if the status has no position there.
func step(s market.Status) int {
	switch s {
	case market.StatusOpen:
		return 1
	case market.StatusClosed:
		return 2
	case market.StatusDisputed:
		return 3
	case market.StatusResolved, market.StatusCancelled:
		return 4
	}
	return 0
}

// markChanged records a streamed change of a key. c is nil if the stream sent no values. The next reader fetches the key again.
// Until a fetch succeeds, values of calls that started before the change are served only if the venue fails.
func (s *store[K, T]) markChanged(slot K, session *market.Session, c *market.MarketChange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := &change{number: s.changes.Add(1), at: s.clock.Now()}
	if before, ok := s.changed.Get(slot); ok {
		last.announced = before.announced
	}
	last.announced = last.announced.withChange(c, last.at, session)
	s.changed.Add(slot, last)
	s.absent.remove(slot)
	if old := s.entries.get(slot); old != nil {
		e := &entry[T]{read: old.read, freshUntil: market.Earlier(old.freshUntil, s.clock.Now()), staleUntil: old.staleUntil, outdated: true}
		if last.announced != nil && e.read.Value != nil {
			e.read.Value, _, _ = s.amend(last.announced, e.read.Value)
		}
		e.read.Handle = market.NewHandle(e.freshUntil)
		s.replace(s.entries, slot, e)
	}
	for _, l := range s.routes {
		l.detach(slot, last.number, s.alias)
	}
	if s.shared != nil {
		if name, ok := s.shared.name(slot); ok {
			s.shared.Drop(s.shared.kind, name)
		}
	}
}

// markMissed records that the stream may have missed a change of a key.
func (s *store[K, T]) markMissed(slot K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.changed.Get(slot); ok && c.announced != nil && c.announced.cut.IsZero() {
		c.announced.cut = s.clock.Now()
	}
}

// storeUnsettled handles a response that may be older than the last streamed change of its key. That is so in three cases: the call
// started before the change, an HTTP cache may have stored the response before the change, or the response contradicts the stream.
// storeUnsettled applies the streamed changes to the value and stores the result as an outdated entry, so that the key is fetched
// again. It does not store an absence. If the call started before the change, storeUnsettled does not replace an existing entry. If
// none of the three cases applies, storeUnsettled stores nothing, and ok is false. The calling function holds the lock.
func (s *store[K, T]) storeUnsettled(slot K, e *entry[T], from origin) (read market.Read[*T], ok bool) {
	if s.changed == nil {
		return read, false
	}
	c, ok := s.changed.Get(slot)
	if !ok {
		return read, false
	}
	now := s.clock.Now()
	before := c.number > from.changes
	made := from.startedAt.Add(-from.age.Most) // the earliest time at which the venue can have created the response
	older := from.age.Most > 0 && made.Before(c.at)
	if c.announced != nil && e.read.Value != nil {
		value, contradicts, later := s.amend(c.announced, e.read.Value)
		if from.age.Known && !made.Before(c.announced.at.Add(headerSlack)) || contradicts && !c.announced.override(now, later) {
			c.announced = nil
		} else {
			e.read.Value, older = value, older || contradicts
		}
	}
	if !before && !older {
		return read, false
	}
	age := from.age
	e.outdated, e.freshUntil = true, now
	if !before {
		c.lateResponses++
		age.Renewed = age.Retry(c.lateResponses)
		s.counters.late.Add(1)
		e.answersUntil = now.Add(age.Renewed)
		e.refreshAt.Store(e.answersUntil.UnixNano())
	}
	e.read.Handle = market.NewHandleOfAge(now, age)
	e.read.Handle.Invalidate()
	if e.read.Value != nil && (!before || s.entries.get(slot) == nil) {
		s.replace(s.entries, slot, e)
	}
	read = e.read
	read.MarkStale(market.CauseChanged)
	return read, true
}
