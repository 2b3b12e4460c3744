package feed

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
)

// Origin reads the price or book of a token over REST if the stream sends no snapshot. An Origin must not read from a cache that
// contains values of the feed. A nil value means that the venue has no price or book.
type Origin interface {
	Price(ctx context.Context, tokenID string) (market.Read[*market.Price], error)
	Book(ctx context.Context, tokenID string, depth int) (market.Read[*market.Book], error)
}

const (
	// At most maxReads reads of Origin run at the same time. A read fails after readTimeout.
	maxReads    = 16
	readTimeout = 15 * time.Second
	// After a read that returns no usable state, the topic waits about minReadDelay before its next read. The delay doubles with
	// each such read, up to maxReadDelay.
	minReadDelay = 4 * time.Second
	maxReadDelay = 2 * time.Minute
	// minRenewal is the minimum delay of the next read if a response may be older than bufferingSince.
	minRenewal = time.Second
	// maxSkew bounds how long a wrong timestamp of the venue can block a topic. If a message arrives maxSkew or more after a REST
	// response, the feed does not compare their timestamps. If a REST response arrives maxSkew or more after the topic's
	// state, the feed does not compare their timestamps either.
	maxSkew = time.Minute
)

// readQueue runs reads of Origin. It is safe for concurrent use.
type readQueue struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	slots  chan struct{} // contains one element for each running read

	mu     sync.Mutex
	closed bool
}

// originRead is one REST read of a topic's state. topic.mu protects startedAt, which is zero until the read starts.
type originRead struct {
	topic     *topic
	ctx       context.Context
	cancel    context.CancelFunc
	startedAt time.Time
}

func newReadQueue() *readQueue {
	r := &readQueue{slots: make(chan struct{}, maxReads)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// add starts a read as soon as fewer than maxReads reads are running. It does nothing after close.
func (r *readQueue) add(x *originRead) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.wg.Go(func() {
		defer x.cancel()
		select {
		case r.slots <- struct{}{}:
			x.run()
			<-r.slots
		case <-x.ctx.Done():
		}
	})
}

// close cancels all reads and waits for them to return.
func (r *readQueue) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.wg.Wait()
}

func (x *originRead) run() {
	if !x.topic.readStarted(x) {
		return
	}
	ctx, cancel := context.WithTimeout(x.ctx, readTimeout)
	defer cancel()
	m, age, err := x.topic.feed.readOrigin(ctx, x.topic.key)
	x.topic.readDone(x, m, age, err)
}

// readOrigin reads the state of a topic over REST. It returns the state as a message, and the age of the response. The message is
// nil if the read fails or the venue has no price or book.
func (f *Feed) readOrigin(ctx context.Context, key messages.Topic) (*messages.Message, market.Age, error) {
	m, age := &messages.Message{Topic: key}, market.Age{}
	if key.Channel == messages.ChannelPrices {
		r, err := f.cfg.Origin.Price(ctx, key.ID)
		if err != nil || r.Value == nil {
			return nil, age, err
		}
		p := r.Value
		age = r.Handle.Age()
		m.Kind, m.Price, m.Time = messages.KindPrice, p, p.Timestamp
	} else {
		r, err := f.cfg.Origin.Book(ctx, key.ID, queries.MaxBookDepth)
		if err != nil || r.Value == nil {
			return nil, age, err
		}
		b := r.Value
		age = r.Handle.Age()
		m.Kind, m.Book, m.Epoch, m.Seq, m.Time = messages.KindBookSnapshot, b, b.Epoch, b.Seq, b.Timestamp
	}
	m.ReceivedAt = f.cfg.Clock.Now()
	return m, age, nil
}

// startRead starts a REST read of a price or a book. It does nothing and returns false if the topic has another channel, if there
// is no Origin, or if t.nextRead is in the future. t.mu must be locked.
func (t *topic) startRead() bool {
	if t.feed.cfg.Origin == nil || t.key.Channel != messages.ChannelPrices && t.key.Channel != messages.ChannelOrderbook ||
		t.feed.cfg.Clock.Now().Before(t.nextRead) {
		return false
	}
	t.currentRead = &originRead{topic: t}
	t.currentRead.ctx, t.currentRead.cancel = context.WithCancel(t.feed.reads.ctx)
	t.feed.reads.add(t.currentRead)
	return true
}

// cancelRead cancels the current REST read. t.mu must be locked.
func (t *topic) cancelRead() {
	if t.currentRead != nil {
		t.currentRead.cancel()
		t.currentRead = nil
	}
}

// readStarted sets the start time of a read. It returns false if the topic has cancelled the read.
func (t *topic) readStarted(x *originRead) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	x.startedAt = t.feed.cfg.Clock.Now()
	return t.currentRead == x
}

// readDone handles the result of a read. It drops a response that may be older than bufferingSince. If the venue made a change
// after such a response and before the first buffered change, both lack this change. The next read after such a response waits
// until the venue may have a newer response.
func (t *topic) readDone(x *originRead, m *messages.Message, age market.Age, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.currentRead != x {
		return
	}
	t.currentRead = nil
	if t.readTooOld = m != nil && age.Most > 0 && x.startedAt.Add(-age.Most).Before(t.bufferingSince); t.readTooOld {
		t.nextRead = t.feed.cfg.Clock.Now().Add(min(max(age.Renewed, minRenewal), maxReadDelay))
		return
	}
	if err == nil && m != nil && t.splice(m, x.startedAt) {
		t.feed.counts.spliced.Add(1)
		return
	}
	wait := min(minReadDelay<<min(t.emptyReads, 10), maxReadDelay)
	t.emptyReads++
	t.nextRead = t.feed.cfg.Clock.Now().Add(wait/2 + rand.N(wait/2))
	t.feed.cfg.Log.Debug("a read returned no usable state of a topic", "channel", t.key.Channel, "times", t.emptyReads, "error", err)
}

// startFromTrades makes a topic of ChannelTrades live with its buffered trades. It is used if the venue sends no snapshot, because
// Origin cannot read trades. It returns false if the topic has another channel or if no trades are buffered. t.mu must be locked.
func (t *topic) startFromTrades() bool {
	if t.key.Channel != messages.ChannelTrades || len(t.buffered) == 0 {
		return false
	}
	next := t.state
	items := Items{Gap: next.Known || t.discarded != nil}
	for _, m := range t.buffered {
		if seen(&next, m) {
			continue
		}
		items.Gap = items.Gap || !follows(&next, m)
		items.add(apply(&next, m))
	}
	t.commit(next, items)
	return true
}

// base describes a state that was read over REST. The stream may still send messages whose changes this state already contains.
// base.includes finds these messages.
type base struct {
	epoch     string
	seq       uint64
	venueTime time.Time
	// readStart and readEnd are the start and the end of the read, by the local clock.
	readStart, readEnd time.Time
}

// includes reports whether the state already contains the change in a message. It uses the first of these comparisons that is
// possible:
//   - the sequence numbers, if the state and the message have numbers of the same epoch
//   - the venue's times; a message with the same time as the state counts as newer
//   - the arrival of the message and the start of the read. If the state and the message both have sequence numbers, these
//     are of different epochs, and the message counts as newer
func (b *base) includes(m *messages.Message) bool {
	switch {
	case b.seq != 0 && m.Seq != 0 && b.epoch == m.Epoch:
		return m.Seq <= b.seq
	case !b.venueTime.IsZero() && !m.Time.IsZero():
		return m.Time.Before(b.venueTime)
	default:
		return m.ReceivedAt.Before(b.readStart) && (b.seq == 0 || m.Seq == 0)
	}
}

// splice replaces the topic's state with m, a state that was read over REST, and applies the buffered changes to m. readStart is
// the start of the read. splice changes nothing and returns false if m is older than the topic's state, if a change between m and
// the buffered changes is missing, or if a book would be crossed. t.mu must be locked.
func (t *topic) splice(m *messages.Message, readStart time.Time) bool {
	b := &base{m.Epoch, m.Seq, m.Time, readStart, m.ReceivedAt}
	if t.isBehind(m) || t.discarded != nil && !b.includes(t.discarded) {
		return false
	}
	next := t.state
	replace(&next, m)
	next.Meta.Source = market.SourceREST
	if crossed(next.Book) {
		return false
	}
	for _, later := range t.buffered {
		if b.includes(later) {
			b.renumber(&next, later)
			continue
		}
		if !follows(&next, later) {
			return false
		}
		apply(&next, later)
		if crossed(next.Book) {
			return false
		}
	}
	t.commit(next, Items{})
	t.base = b
	return true
}

// isBehind reports whether m, a state that was read over REST, is older than the topic's state. t.mu must be locked.
func (t *topic) isBehind(m *messages.Message) bool {
	s := &t.state
	switch {
	case !s.Known:
		return false
	case m.Seq != 0 && s.Seq != 0 && m.Epoch == s.Epoch:
		return m.Seq < s.Seq
	default:
		return m.Time.Before(s.Meta.AsOf) && !m.Time.IsZero() && m.ReceivedAt.Sub(s.Meta.ReceivedAt) < maxSkew
	}
}

// inBase reports whether the last state that was read over REST already contains the change in a message. It returns false for a
// message that has arrived maxSkew or more after the read. t.mu must be locked.
func (t *topic) inBase(m *messages.Message) bool {
	if t.base == nil {
		return false
	}
	if m.ReceivedAt.Sub(t.base.readEnd) >= maxSkew {
		t.base = nil
		return false
	}
	return t.base.includes(m)
}

// renumber gives a state the sequence number of m if the REST response had no number. m is a message whose change the state already
// contains.
func (b *base) renumber(s *State, m *messages.Message) {
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
