package feed

import (
	"slices"
	"sync"

	"oddsgraph/internal/market"
)

// State is what is known of a topic. It never changes; a newer one takes its place.
type State struct {
	// Known tells that there is a value; Live that it is the present one, as far as the stream tells.
	Known, Live bool
	// Resyncs counts how often a snapshot has taken the place of a state that may have missed something.
	Resyncs uint64
	// Seq and Epoch number the state.
	Epoch string
	Seq   uint64
	// Meta is the value's; stale unless Live.
	Meta market.Meta

	Price  *market.Price
	Spread *market.Spread
	Book   *market.Book
	// Trades are the latest ones, oldest first.
	Trades  []market.Trade
	Account *Account
	// ledger makes the Account of a topic's own state; it is not shown.
	ledger *ledger
}

// Account is the state of a user topic.
type Account struct {
	// Orders are the open ones.
	Orders    []market.Order
	Positions []market.Position
	Balance   *market.Balance
}

// Items is what queued for a watch since it was last taken.
type Items struct {
	// Trades are of the tape, or an account's own fills.
	Trades  []market.Trade
	Changes []market.MarketChange
	// Gap tells that something may be missing before these.
	Gap bool
}

func (i *Items) empty() bool { return len(i.Trades) == 0 && len(i.Changes) == 0 && !i.Gap }

// add puts more behind what there is. Slices are taken over as they are where there is nothing, and never written to.
func (i *Items) add(more Items) {
	if len(i.Trades) == 0 {
		i.Trades = slices.Clip(more.Trades)
	} else {
		i.Trades = append(i.Trades, more.Trades...)
	}
	if len(i.Changes) == 0 {
		i.Changes = slices.Clip(more.Changes)
	} else {
		i.Changes = append(i.Changes, more.Changes...)
	}
	i.Gap = i.Gap || more.Gap
}

// Reader is one subscriber: the watches that it reads together and what has changed of them. Its methods are for one
// goroutine.
type Reader struct {
	feed   *Feed
	signal chan struct{}
	// caller is who the topics count for, where shared tells that they do.
	caller string
	shared bool

	// watches are those that are open; taken is what Take returned last.
	watches map[*Watch]struct{}
	taken   []*Watch
	// mu protects changed. Topics' locks may be held when it is taken.
	mu      sync.Mutex
	changed []*Watch
}

// NewReaderFor returns a reader without watches for a caller, whose readers together have a share of the stream. Close it.
func (f *Feed) NewReaderFor(caller string) *Reader {
	r := f.NewReader()
	r.caller, r.shared = caller, true
	return r
}

// NewReader returns a reader of the program's own, whose topics count for no caller. Close it.
func (f *Feed) NewReader() *Reader {
	return &Reader{feed: f, signal: make(chan struct{}, 1), watches: make(map[*Watch]struct{})}
}

// Watch follows a topic until the watch or the reader is closed. c is the identity of a user topic. An error means that
// there is no room for another topic, or that the caller has had its share: values may be polled instead. A watch may end so
// too, when others need the room. A topic whose state is known is reported as changed at once.
func (r *Reader) Watch(key market.Topic, c *market.Credentials) (*Watch, error) {
	w, err := r.feed.watch(key, c, r)
	if err == nil {
		r.watches[w] = struct{}{}
	}
	return w, err
}

// Changed is signalled when watches have changed; Take says which.
func (r *Reader) Changed() <-chan struct{} { return r.signal }

// Take returns the open watches that have changed since it was last called, each once. The slice is the caller's until
// the next call.
func (r *Reader) Take() []*Watch {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed, r.taken = r.taken[:0], r.changed
	for _, w := range r.taken {
		w.marked = false
	}
	r.taken = slices.DeleteFunc(r.taken, func(w *Watch) bool { return w.closed })
	return r.taken
}

// Close closes the watches.
func (r *Reader) Close() {
	for w := range r.watches {
		w.Close()
	}
	clear(r.watches)
}

// mark notes that a watch has changed.
func (r *Reader) mark(w *Watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.marked {
		r.feed.counts.conflated.Add(1)
		return
	}
	w.marked = true
	r.changed = append(r.changed, w)
	select {
	case r.signal <- struct{}{}:
	default:
	}
}

// Watch follows a topic for a reader, or for nobody, just to keep it live.
type Watch struct {
	topic  *topic
	reader *Reader // nil where nobody reads
	owner  *Reader // on whose account the topic is open; nil for the feed's own
	closed bool    // the reader's goroutine knows it
	marked bool    // the reader's lock protects it

	// The topic's lock protects the rest.
	place int // among the topic's watches, or gone
	items Items
	err   error
}

// gone is the place of a watch that has left its topic.
const gone = -1

// Topic returns the topic that is watched.
func (w *Watch) Topic() market.Topic { return w.topic.key }

// State returns the present state. err is why the watch has ended; nothing follows then.
func (w *Watch) State() (s State, err error) {
	w.topic.mu.Lock()
	defer w.topic.mu.Unlock()
	return w.topic.present(), w.err
}

// Take returns the present state and what has queued, which it takes. err is why the watch has ended.
func (w *Watch) Take() (s State, items Items, err error) {
	w.topic.mu.Lock()
	defer w.topic.mu.Unlock()
	items, w.items = w.items, Items{}
	return w.topic.present(), items, w.err
}

// Close ends the watch. The topic stays open for the linger if it was the last one. Closing again does nothing. It is for
// the reader's goroutine.
func (w *Watch) Close() {
	w.closed = true
	if w.reader != nil {
		delete(w.reader.watches, w)
	}
	w.topic.leave(w)
}

// ended reports whether the topic of the watch has ended.
func (w *Watch) ended() bool {
	w.topic.mu.Lock()
	defer w.topic.mu.Unlock()
	return w.topic.ended
}

// sole reports whether nobody else watches the topic.
func (w *Watch) sole() bool {
	readers, keepers := w.topic.watchers()
	return readers+keepers == 1
}

// notify tells the reader. The topic's lock is held.
func (w *Watch) notify() {
	if w.reader != nil {
		w.reader.mark(w)
	}
}

// fail ends the watch with an error. The topic's lock is held.
func (w *Watch) fail(err error) {
	if w.err == nil {
		w.err = err
		w.items = Items{}
		w.notify()
	}
}

// queue adds items, or ends the watch where there is no more room. The topic's lock is held.
func (w *Watch) queue(limit int, add Items) {
	if w.err != nil || w.reader == nil {
		return
	}
	if waiting := len(w.items.Trades) + len(w.items.Changes); waiting+len(add.Trades)+len(add.Changes) > limit {
		w.topic.feed.counts.dropped.Add(uint64(waiting + len(add.Trades) + len(add.Changes)))
		w.fail(market.Errorf(market.CodeRateLimited, "the subscription was read too slowly: more than %d events were waiting", limit))
		return
	}
	w.items.add(add)
}
