package loaders

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
)

// A response can be made by attempts. In each, whoever reads gets what is there, or an error at once, and goes on with what
// else there is to read. So all that an attempt lacks is known when it is over, leaves together, and is there for the next.

// errUnderway is what a read costs whose value is not there yet.
var errUnderway = errors.New("what is asked for is on its way")

// gathering is what the loaders of a response that is made by attempts have in common. What is not said to be otherwise belongs to the
// goroutine that makes the attempts.
type gathering struct {
	// failed is the error of what is not there and will not come; nil while it may.
	failed error
	// ended tells that reads wait again.
	ended bool
	// lacks tells that the present attempt has read what is not there yet, again that another one may find more though nothing
	// was sent for.
	lacks, again bool
	// senders send for what the present attempt lacks.
	senders []func()
	// underway is how much was sent for and is not there yet, came how much is. Whoever brings something changes them.
	underway, came atomic.Int64
	// seen is what came was when the present attempt began.
	seen int64
	// parties are those of which not all were back when an attempt began.
	parties []*party
	// arrival is signalled when something has come.
	arrival chan struct{}
}

// party is keys that left together though each travels on its own.
type party struct {
	size int64
	back atomic.Int64
}

// split reports whether some are back and others are not.
func (p *party) split() bool { back := p.back.Load(); return back > 0 && back < p.size }

// arrived notes that something which was sent for is there. A response that is not made by attempts has nil, which ignores it.
func (g *gathering) arrived(n int) {
	if g == nil {
		return
	}
	g.came.Add(int64(n))
	g.underway.Add(int64(-n))
	select {
	case g.arrival <- struct{}{}:
	default:
	}
}

// fetch has something brought after the attempt, which ends with the response's context.
func (g *gathering) fetch(bring func()) {
	g.senders = append(g.senders, func() {
		g.underway.Add(1)
		go func() {
			bring()
			g.arrived(1)
		}()
	})
}

// lack notes a read whose value is not there yet.
func (g *gathering) lack() error {
	if g.failed != nil {
		return g.failed
	}
	g.lacks = true
	return errUnderway
}

// Attempts reports whether the response is made by attempts at present.
func (r *response) Attempts() bool { return r.gathering != nil && !r.gathering.ended }

// Gather begins attempts: from now on a read gives what is there or fails at once, and what it lacks is noted. The set belongs
// to one goroutine then, until Wait.
func (s *Set) Gather() { s.gathering = &gathering{arrival: make(chan struct{}, 1)} }

// Lacks reports whether the present attempt has read what is not there yet. Whatever was made by it is void then.
func (s *Set) Lacks() bool { return s.gathering.lacks }

// Advance ends an attempt: it sends for all that was lacking, one batch for each kind, and waits until all that is under way has
// come, or for patience from when the first of it has. It waits longer for the rest of a list whose elements travel alone, until
// half of the response's time is gone, since what hangs on them can travel together again. It returns false where another
// attempt would find nothing more, and when the response's time is over.
func (s *Set) Advance(patience time.Duration) bool {
	g := s.gathering
	g.send()
	again := g.again
	g.lacks, g.again = false, false
	var enough, half <-chan time.Time
	if deadline, ok := s.ctx.Deadline(); ok {
		t := time.NewTimer(time.Until(deadline) / 2)
		defer t.Stop()
		half = t.C
	}
	late, last := false, false
	for g.underway.Load() > 0 && !(late && (last || !slices.ContainsFunc(g.parties, (*party).split))) {
		if enough == nil && g.came.Load() > g.seen {
			t := time.NewTimer(patience)
			defer t.Stop()
			enough = t.C
		}
		select {
		case <-g.arrival:
		case <-enough:
			late = true
		case <-half:
			last = true
		case <-s.ctx.Done():
			return false
		}
	}
	came := g.came.Load()
	again = again || came > g.seen
	g.seen = came
	g.parties = slices.DeleteFunc(g.parties, func(p *party) bool { return p.back.Load() == p.size })
	return again
}

// Fail waits for what was sent for, which ends with the response's context at the latest, and gives err to whoever reads what
// is not there from now on.
func (s *Set) Fail(err error) {
	g := s.gathering
	for g.underway.Load() > 0 {
		<-g.arrival
	}
	g.failed, g.lacks = err, false
}

// Wait ends the attempts: what they lacked is sent for, and reads wait again.
func (s *Set) Wait() {
	s.gathering.send()
	s.gathering.ended = true
}

// send lets leave what was noted.
func (g *gathering) send() {
	for _, send := range g.senders {
		send()
	}
	g.senders = g.senders[:0]
}

// glean is Get in an attempt.
func (l *Loader[K, T]) glean(key K) (market.Read[*T], error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.slots[key]
	if s == nil {
		l.note([]K{key})
		s = l.slots[key]
	}
	result := l.have(s)
	return result.Value, result.Err
}

// gleanMany is GetMany in an attempt.
func (l *Loader[K, T]) gleanMany(keys []K, out []market.Result[market.Read[*T]]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(keys)
	for i, key := range keys {
		out[i] = *l.have(l.slots[key])
	}
}

// gleanEach is Recall in an attempt.
func (l *Loader[K, T]) gleanEach(keys []K, each func(i int, read *market.Read[*T])) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(keys)
	for i, key := range keys {
		if result := l.have(l.slots[key]); result.Err == nil {
			each(i, &result.Value)
		}
	}
}

// have returns what is there of a slot, and records what it was read from. The caller holds the lock.
func (l *Loader[K, T]) have(s *slot[T]) result[T] {
	if s.result == nil {
		err := l.gathering.lack()
		if l.underway == nil || l.underway.Err != err {
			l.underway = &market.Result[market.Read[*T]]{Err: err}
		}
		return l.underway
	}
	l.recorder.Record(s.result.Value.Handle)
	return s.result
}

// note looks up those of the keys that are new to the response, and notes what is missing. The caller holds the lock.
func (l *Loader[K, T]) note(keys []K) {
	fresh, slots := l.enroll(keys, nil)
	if len(fresh) == 0 {
		return
	}
	missing := l.look(fresh, slots)
	if len(missing) == 0 {
		return
	}
	if len(l.wanted) == 0 {
		l.gathering.senders = append(l.gathering.senders, l.leave)
	}
	l.wanted = slices.Grow(l.wanted, len(missing))
	for _, i := range missing {
		slots[i].wanted = true
		l.wanted = append(l.wanted, fresh[i])
	}
}

// leave sends for the keys that were noted: together, or each on its own where nothing is won by waiting for another.
func (l *Loader[K, T]) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gathering.underway.Add(int64(len(l.wanted)))
	var together *party
	if !l.gathers && len(l.wanted) > 1 {
		together = &party{size: int64(len(l.wanted))}
		l.gathering.parties = append(l.gathering.parties, together)
	}
	for i, key := range l.wanted {
		s := l.slots[key]
		s.party = together
		l.load(s, key)
		if !l.gathers || i == len(l.wanted)-1 {
			l.send()
		}
	}
	l.wanted = nil
}

// gleanBook is Book in an attempt. All depths of a token's book are answered by one, so the greatest counts; where it comes last,
// the others are read anew.
func (s *Set) gleanBook(tokenID string, depth int) (market.Read[*market.Book], error) {
	known := s.depths[tokenID]
	q := s.deepest(tokenID, depth)
	read, err := s.books.Get(q)
	if known == 0 || known == q.Depth {
		return read, err
	}
	s.books.forgo(market.BookQuery{TokenID: tokenID, Depth: known})
	s.gathering.again = true
	return market.Read[*market.Book]{}, s.gathering.lack()
}

// forgo keeps a key from being sent for, if it was noted.
func (l *Loader[K, T]) forgo(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.wanted, key); i >= 0 {
		l.wanted = slices.Delete(l.wanted, i, i+1)
		delete(l.slots, key)
	}
}
