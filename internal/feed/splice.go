package feed

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"oddsgraph/internal/market"
)

// Origin reads the present state of tokens over REST, for topics whose snapshot the stream does not send. It must ask the
// venue itself: a cache would answer with what the feed put there. A nil value means that the venue has none.
type Origin interface {
	Price(ctx context.Context, tokenID string) (market.Read[*market.Price], error)
	Book(ctx context.Context, tokenID string, depth int) (market.Read[*market.Book], error)
}

const (
	// maxReads is how many reads of the origin may run at once, readWithin how long each may take.
	maxReads   = 16
	readWithin = 15 * time.Second
	// readEvery is the least time from a topic's read that brought nothing to the next; it doubles up to maxReadEvery.
	readEvery    = 4 * time.Second
	maxReadEvery = 2 * time.Minute
	// renewedAfter is the least time from a read whose answer was too old to the next.
	renewedAfter = time.Second
	// lag is by how much REST and stream are thought to lag behind one another at most. Were it longer, one wrong time of
	// the venue's could keep a topic from its changes, or from its state, for ever.
	lag = time.Minute
)

// reads runs reads of the origin. It is safe for concurrent use.
type reads struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	queue   []*read
	running int
	closed  bool
}

// read is one read of a topic's state. Its topic's lock protects began, which is zero while it waits for its turn.
type read struct {
	topic  *topic
	ctx    context.Context
	cancel context.CancelFunc
	began  time.Time
}

func newReads() *reads {
	r := &reads{}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// add begins a read as soon as fewer than maxReads run.
func (r *reads) add(x *read) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.queue = append(r.queue, x)
	if r.running < maxReads {
		r.running++
		r.wg.Go(r.work)
	}
}

func (r *reads) work() {
	for {
		r.mu.Lock()
		if len(r.queue) == 0 {
			r.running--
			r.mu.Unlock()
			return
		}
		x := r.queue[0]
		r.queue = r.queue[1:]
		r.mu.Unlock()
		x.run()
	}
}

// close ends all reads and waits for them.
func (r *reads) close() {
	r.mu.Lock()
	r.closed, r.queue = true, nil
	r.mu.Unlock()
	r.cancel()
	r.wg.Wait()
}

func (x *read) run() {
	defer x.cancel()
	if !x.topic.begin(x) {
		return
	}
	ctx, cancel := context.WithTimeout(x.ctx, readWithin)
	defer cancel()
	m, age, err := x.topic.feed.fetch(ctx, x.topic.key)
	x.topic.fetched(x, m, age, err)
}

// fetch returns what the origin says of a topic as if the stream had sent it, nil where it has nothing, and how old that may be.
func (f *Feed) fetch(ctx context.Context, key market.Topic) (*market.Message, market.Age, error) {
	m, age := &market.Message{Topic: key}, market.Age{}
	if key.Channel == market.ChannelPrices {
		r, err := f.cfg.Origin.Price(ctx, key.ID)
		if err != nil || r.Value == nil {
			return nil, age, err
		}
		p := r.Value
		age = r.Handle.Age()
		m.Kind, m.Price, m.Time = market.MessagePrice, p, p.Timestamp
	} else {
		r, err := f.cfg.Origin.Book(ctx, key.ID, market.MaxBookDepth)
		if err != nil || r.Value == nil {
			return nil, age, err
		}
		b := r.Value
		age = r.Handle.Age()
		m.Kind, m.Book, m.Epoch, m.Seq, m.Time = market.MessageBookSnapshot, b, b.Epoch, b.Seq, b.Timestamp
	}
	m.ReceivedAt = f.cfg.Clock.Now()
	return m, age, nil
}

// read sends for the topic's state over REST. It reports whether it did: not every channel can be read, and not again and
// again. The lock is held.
func (t *topic) read() bool {
	if t.feed.cfg.Origin == nil || t.key.Channel != market.ChannelPrices && t.key.Channel != market.ChannelOrderbook ||
		t.feed.cfg.Clock.Now().Before(t.readAt) {
		return false
	}
	t.reading = &read{topic: t}
	t.reading.ctx, t.reading.cancel = context.WithCancel(t.feed.reads.ctx)
	t.feed.reads.add(t.reading)
	return true
}

// abandon ends the read that is under way. The lock is held.
func (t *topic) abandon() {
	if t.reading != nil {
		t.reading.cancel()
		t.reading = nil
	}
}

// begin takes note that a read begins. It reports whether it is still wanted.
func (t *topic) begin(x *read) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	x.began = t.feed.cfg.Clock.Now()
	return t.reading == x
}

// fetched takes what a read has brought, unless it is not wanted any more. A state that may be from before the topic's changes were
// buffered is not taken: changes between the two would be missing. It is read again when the venue may have a newer one.
func (t *topic) fetched(x *read, m *market.Message, age market.Age, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reading != x {
		return
	}
	t.reading = nil
	if t.aged = m != nil && age.Most > 0 && x.began.Add(-age.Most).Before(t.buffers); t.aged {
		t.readAt = t.feed.cfg.Clock.Now().Add(min(max(age.Renewed, renewedAfter), maxReadEvery))
		return
	}
	if err == nil && m != nil && t.splice(m, x.began) {
		t.feed.counts.spliced.Add(1)
		return
	}
	wait := min(readEvery<<min(t.fetches, 10), maxReadEvery)
	t.fetches++
	t.readAt = t.feed.cfg.Clock.Now().Add(wait/2 + rand.N(wait/2))
	t.feed.cfg.Log.Debug("a read brought no state for a topic", "channel", t.key.Channel, "times", t.fetches, "error", err)
}

// adopt goes on from the trades that have come where the tape itself does not: REST has none. It reports whether there are
// any. The lock is held.
func (t *topic) adopt() bool {
	if t.key.Channel != market.ChannelTrades || len(t.buffered) == 0 {
		return false
	}
	next := t.state
	items := Items{Gap: next.Known || t.cut != nil}
	for _, m := range t.buffered {
		if seen(&next, m) {
			continue
		}
		items.Gap = items.Gap || !t.follows(&next, m)
		items.add(apply(&next, m))
	}
	t.commit(next, items)
	return true
}

// base is a state that was read over REST, and what tells which messages of the stream it has in it.
type base struct {
	epoch string
	seq   uint64
	at    time.Time // the venue's
	// began and ended are when the read was.
	began, ended time.Time
}

// has reports whether a state has a message in it: by their numbers where both count the same, else by the venue's times,
// of which the stream wins a tie, and where there are none, by whether the message had come before the read began.
func (b *base) has(m *market.Message) bool {
	switch {
	case b.seq != 0 && m.Seq != 0 && b.epoch == m.Epoch:
		return m.Seq <= b.seq
	case !b.at.IsZero() && !m.Time.IsZero():
		return m.Time.Before(b.at)
	default:
		return m.ReceivedAt.Before(b.began) && (b.seq == 0 || m.Seq == 0) // else they are of different epochs
	}
}

// splice makes a state that was read over REST the present one, with the changes that the stream has brought since. It
// reports whether they fit together. The lock is held.
func (t *topic) splice(m *market.Message, began time.Time) bool {
	b := &base{m.Epoch, m.Seq, m.Time, began, m.ReceivedAt}
	if t.behind(m) || t.cut != nil && !b.has(t.cut) {
		return false
	}
	next := t.state
	t.whole(&next, m)
	next.Meta.Source = market.SourceREST
	if t.crossed(&next) {
		return false
	}
	for _, later := range t.buffered {
		if b.has(later) {
			b.renumber(&next, later)
			continue
		}
		if !t.follows(&next, later) {
			return false
		}
		apply(&next, later)
		if t.crossed(&next) {
			return false
		}
	}
	t.commit(next, Items{})
	t.base = b
	return true
}

// behind reports whether a state that was read over REST is older than the streamed one that is known. The lock is held.
func (t *topic) behind(m *market.Message) bool {
	s := &t.state
	switch {
	case !s.Known:
		return false
	case m.Seq != 0 && s.Seq != 0 && m.Epoch == s.Epoch:
		return m.Seq < s.Seq
	default:
		return m.Time.Before(s.Meta.AsOf) && !m.Time.IsZero() && m.ReceivedAt.Sub(s.Meta.ReceivedAt) < lag
	}
}

// late reports whether a message comes behind the state that was read over REST and has it in it. The lock is held.
func (t *topic) late(m *market.Message) bool {
	if t.base == nil {
		return false
	}
	if m.ReceivedAt.Sub(t.base.ended) >= lag {
		t.base = nil
		return false
	}
	return t.base.has(m)
}

// renumber takes over the number of a message that a state has in it, where REST has not told the state's own.
func (b *base) renumber(s *State, m *market.Message) {
	if b.seq != 0 || m.Seq == 0 || seen(s, m) {
		return
	}
	s.Epoch, s.Seq = m.Epoch, m.Seq
	if s.Book != nil {
		book := *s.Book
		book.Epoch, book.Seq = m.Epoch, m.Seq
		s.Book = &book
	}
}
