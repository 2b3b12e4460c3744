package cache

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"oddsgraph/internal/market"
)

const (
	// maxChanges bounds the changes that are remembered. They matter to calls that left before them and to answers that are
	// older, so the latest are enough.
	maxChanges = 2000
	// lateAgain is how long an answer that may be from before a change is served at least before the venue is asked again. It
	// doubles with each such answer up to maxLateAgain.
	lateAgain    = 2 * time.Second
	maxLateAgain = 5 * time.Minute
	// grace is how long an answer is not believed against the stream although its header says that it is new: the venue's own
	// parts may be behind one another.
	grace = 5 * time.Second
	// maxSaid bounds what is remembered of the stream's words on one market.
	maxSaid = 4
)

// change is the last change of a key that the stream has announced. The store's lock protects it.
type change struct {
	number uint64
	at     time.Time
	// words are what the stream has said of the key; nil where it only announced changes.
	words *words
	// late counts the answers since that may be older than the change.
	late int
}

// words are the values that the stream has announced of a market. They hold against older answers of the venue.
type words struct {
	said    []market.MarketChange // oldest first
	at      time.Time
	session *market.Session
	// cut is when the stream may have said more that was missed; zero while it has not.
	cut time.Time
}

// newChanges remembers the changes of so many slots.
func newChanges[K comparable](size int) *lru.Cache[K, *change] {
	c, err := lru.New[K, *change](max(size, 1))
	if err != nil {
		panic("cache: " + err.Error()) // only for a size below 1
	}
	return c
}

// hold reports whether the words hold against an answer that may be older. While the stream is live they do, since it would
// have said what came later; but a stream may not announce every step of a market, so they yield to a later step soon.
func (w *words) hold(now time.Time, later bool) bool {
	if later {
		return now.Before(w.at.Add(trailing))
	}
	end, ended := w.session.Ended()
	if !w.cut.IsZero() && (!ended || w.cut.Before(end)) {
		end, ended = w.cut, true
	}
	return !ended || now.Before(end.Add(trailing))
}

// with returns the words after a change. A status replaces what was said before. A status that is not known says nothing.
func (w *words) with(c *market.MarketChange, at time.Time, s *market.Session) *words {
	var said []market.MarketChange
	switch resolved := c != nil && c.Kind == "RESOLVED"; {
	case c == nil, c.Status == market.StatusUnknown, c.Status == "" && !resolved:
		return w
	case resolved && w != nil:
		said = append(said, w.said[max(len(w.said)-maxSaid+1, 0):]...)
	}
	return &words{said: append(said, *c), at: at, session: s}
}

// of returns a market with the words in it, the same one where it agrees with them. later reports that the market is further on
// than the words are.
func (w *words) of(m *market.Market) (amended *market.Market, later bool) {
	next := m
	for _, c := range w.said {
		next = next.With(c)
	}
	if next.Status == m.Status && (next.Winner() == nil) == (m.Winner() == nil) && resolvedTo(next) == resolvedTo(m) {
		return m, false
	}
	return next, m.Status == market.StatusUnknown || step(m.Status) > step(next.Status)
}

func resolvedTo(m *market.Market) string {
	if m.Resolution == nil {
		return ""
	}
	return m.Resolution.Outcome
}

// step orders statuses as a market goes through them.
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

// overtake takes note that what a key stands for has changed, and what the stream says of that; c is nil where it says
// nothing. The next reader asks the venue anew. What was read before, or left for the venue before, answers only where that
// fails.
func (s *store[K, T]) overtake(slot K, session *market.Session, c *market.MarketChange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := &change{number: s.changes.Add(1), at: s.clock.Now()}
	if before, ok := s.changed.Get(slot); ok {
		last.words = before.words
	}
	last.words = last.words.with(c, last.at, session)
	s.changed.Add(slot, last)
	s.absent.remove(slot)
	if old := s.entries.get(slot); old != nil {
		e := &entry[T]{read: old.read, freshUntil: s.clock.Now(), staleUntil: old.staleUntil, overtaken: true}
		if old.freshUntil.Before(e.freshUntil) {
			e.freshUntil = old.freshUntil
		}
		if last.words != nil && e.read.Value != nil {
			e.read.Value, _ = s.amend(last.words, e.read.Value)
		}
		e.read.Handle = market.NewHandle(e.freshUntil)
		s.replace(s.entries, slot, e)
	}
	for _, l := range s.lanes {
		l.detach(slot, last.number, s.alias)
	}
}

// missed takes note that the stream may have said more of a key.
func (s *store[K, T]) missed(slot K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.changed.Get(slot); ok && c.words != nil && c.words.cut.IsZero() {
		c.words.cut = s.clock.Now()
	}
}

// unsettled stores an answer that may be from before the last change of its key: its call left before the change, a cache
// between the venue and us may have given it, or it contradicts what the stream said. The stream's words are put into it. It
// answers until the venue may have a newer one. ok is false for other answers. The lock is held.
func (s *store[K, T]) unsettled(slot K, e *entry[T], from origin) (read market.Read[*T], ok bool) {
	if s.changed == nil {
		return read, false
	}
	c, ok := s.changed.Get(slot)
	if !ok {
		return read, false
	}
	now := s.clock.Now()
	before := c.number > from.changes
	made := from.left.Add(-from.age.Most) // or later
	older := from.age.Most > 0 && made.Before(c.at)
	if c.words != nil && e.read.Value != nil {
		value, later := s.amend(c.words, e.read.Value)
		switch {
		case from.age.Known && !made.Before(c.words.at.Add(grace)), !c.words.hold(now, later):
			c.words = nil
		case value != e.read.Value:
			e.read.Value, older = value, true
		}
	}
	if !before && !older {
		return read, false
	}
	age := from.age
	e.overtaken, e.freshUntil = true, now
	if !before {
		age.Renewed = max(age.Renewed, min(lateAgain<<min(c.late, 10), maxLateAgain))
		c.late++
		s.counters.late.Add(1)
		e.awaits = now.Add(age.Renewed)
		e.refreshAt.Store(e.awaits.UnixNano())
	}
	e.read.Handle = market.NewHandleOfAge(now, age)
	e.read.Handle.Invalidate()
	if e.read.Value != nil && (!before || s.entries.get(slot) == nil) {
		s.replace(s.entries, slot, e)
	}
	read = e.read
	read.Stale = true
	return read, true
}
