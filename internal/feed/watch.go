package feed

import (
	"slices"
	"sync"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/reads"
)

// State contains the values of a topic at one time. It is read-only.
type State struct {
	// Known reports whether a value has arrived. Live reports whether the stream is connected and no message is missing.
	Known, Live bool
	// Resyncs counts how often a complete state replaced an incomplete state.
	Resyncs uint64
	// Seq is the venue's sequence number of the last message, within Epoch. If the venue sends no sequence numbers, Seq is 0. If the
	// venue sends no epochs, Epoch is empty.
	Epoch string
	Seq   uint64
	// Meta describes the value. If Known is true, Meta.Stale is the opposite of Live.
	Meta reads.Meta

	Price  *market.Price
	Spread *market.Spread
	Book   *market.Book
	// Trades contains the latest trades, oldest first. Tape reports whether the venue has sent a snapshot of them. If Tape is false,
	// the trades from before the subscription are unknown.
	Trades  []market.Trade
	Tape    bool
	Account *Account
	// Unread counts the changes of the account that the feed could not apply, because it does not know the changed list.
	Unread Unread
	// Account is a snapshot of mutable. Readers get a State without mutable.
	mutable *mutableAccount
}

// Unread counts changes of the lists of an account. After such a change, the list must be read over REST.
type Unread struct{ Orders, Positions, Balance, Trades uint64 }

// Account is the state of a user topic. A nil list or balance is unknown.
type Account struct {
	// Orders contains the active orders.
	Orders    []market.Order
	Positions []market.Position
	Balance   *market.Balance
}

// Items are the trades and market changes that arrived since the last call of Watch.Take.
type Items struct {
	// Trades contains new trades of the tape, or new fills of the account.
	Trades  []market.Trade
	Changes []market.MarketChange
	// Gap reports whether trades or market changes may be missing before these items.
	Gap bool
}

func (i *Items) empty() bool { return len(i.Trades) == 0 && len(i.Changes) == 0 && !i.Gap }

// add appends items to i. Afterwards, the slices of i may share elements with the slices of items. add never writes to these
// elements.
func (i *Items) add(items Items) {
	if len(i.Trades) == 0 {
		i.Trades = slices.Clip(items.Trades)
	} else {
		i.Trades = append(i.Trades, items.Trades...)
	}
	if len(i.Changes) == 0 {
		i.Changes = slices.Clip(items.Changes)
	} else {
		i.Changes = append(i.Changes, items.Changes...)
	}
	i.Gap = i.Gap || items.Gap
}

// Reader is a subscriber with several watches. One channel signals changes of all its watches. Only one goroutine may use a Reader.
type Reader struct {
	names  market.Names
	feeds  []*Feed
	signal chan struct{}
	// caller is the name of the reader's caller. The topics of the reader count for this caller; see shares.
	caller string

	// watches contains the open watches. taken is the last result of Take.
	watches map[*Watch]struct{}
	taken   []*Watch
	// mu protects changed and Watch.queued. mu may be locked while topic.mu is held.
	mu      sync.Mutex
	changed []*Watch
}

// NewReader returns a reader without watches. The number of public topics that all readers of one caller watch together is limited.
// See the package comment. Close the reader after use.
func (f *Feed) NewReader(caller string) *Reader { return NewReader(caller, nil, f) }

// NewReader returns a reader of the feeds of venues. Each feed limits the number of the caller's topics in this feed.
func NewReader(caller string, names market.Names, feeds ...*Feed) *Reader {
	return &Reader{names: names, feeds: feeds, caller: caller, signal: make(chan struct{}, 1), watches: make(map[*Watch]struct{})}
}

func (r *Reader) of(key messages.Topic) *Feed { return r.feeds[r.names.Find(key.ID)] }

// Watch watches a topic until the watch or the reader is closed. c contains the credentials of a user topic. If the topic's state
// is known or live, Watch signals the reader at once. Watch fails with RATE_LIMITED if the stream or the caller cannot have more
// topics. If the caller has more topics than its share, the feed may later end a watch of a price or book with RATE_LIMITED to make
// room for another topic. After either error, the client can poll instead.
func (r *Reader) Watch(key messages.Topic, c *market.Credentials) (*Watch, error) {
	w, err := r.of(key).watch(key, c, r)
	if err == nil {
		r.watches[w] = struct{}{}
	}
	return w, err
}

// Changed returns a channel that receives a value after a watch has changed. Take returns the changed watches.
func (r *Reader) Changed() <-chan struct{} { return r.signal }

// Take returns the open watches that have changed since the last call. The slice is valid until the next call.
func (r *Reader) Take() []*Watch {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed, r.taken = r.taken[:0], r.changed
	for _, w := range r.taken {
		w.queued = false
	}
	r.taken = slices.DeleteFunc(r.taken, func(w *Watch) bool { return w.closed })
	return r.taken
}

// Close closes the reader and all its watches.
func (r *Reader) Close() {
	for w := range r.watches {
		w.Close()
	}
	clear(r.watches)
}

// Watch is a reference to a topic. A watch without a reader only keeps the topic live, so that queries find its value.
type Watch struct {
	topic  *topic
	reader *Reader
	owner  *Reader // the reader that opened the watch, or nil; the topic may count for the owner's caller, see shares
	closed bool    // only the reader's goroutine uses this field
	queued bool    // Reader.changed contains the watch; Reader.mu protects this field

	// topic.mu protects the fields below.
	index int // the index in topic.watches, or detached
	items Items
	err   error
}

// detached is the index of a watch that was removed from its topic.
const detached = -1

// Topic returns the watched topic.
func (w *Watch) Topic() messages.Topic { return w.topic.key }

// State returns the present state. err is not nil if the watch has ended.
func (w *Watch) State() (s State, err error) {
	w.topic.mu.Lock()
	defer w.topic.mu.Unlock()
	return w.topic.visibleState(), w.err
}

// Take returns the present state and the queued items, and empties the queue. err is not nil if the watch has ended.
func (w *Watch) Take() (s State, items Items, err error) {
	w.topic.mu.Lock()
	defer w.topic.mu.Unlock()
	items, w.items = w.items, Items{}
	return w.topic.visibleState(), items, w.err
}

// Close closes the watch. A second Close does nothing. If the watch has a reader, only the reader's goroutine may call Close.
func (w *Watch) Close() {
	w.closed = true
	if w.reader != nil {
		delete(w.reader.watches, w)
	}
	w.topic.leave(w)
}

// ended reports whether the topic has ended.
func (w *Watch) ended() bool {
	w.topic.mu.Lock()
	defer w.topic.mu.Unlock()
	return w.topic.ended
}

// notify adds the watch to the next result of Reader.Take and signals the reader. topic.mu must be locked.
func (w *Watch) notify() {
	r := w.reader
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.queued {
		w.topic.feed.counts.conflated.Add(1)
		return
	}
	w.queued = true
	r.changed = append(r.changed, w)
	select {
	case r.signal <- struct{}{}:
	default:
	}
}

// fail ends the watch with an error. topic.mu must be locked.
func (w *Watch) fail(err error) {
	if w.err == nil {
		w.err = err
		w.items = Items{}
		w.notify()
	}
}

// queue queues items for the reader. It does nothing if the watch has ended or has no reader. If more than maxQueued items would
// wait, queue ends the watch instead. topic.mu must be locked.
func (w *Watch) queue(add Items) {
	if w.err != nil || w.reader == nil {
		return
	}
	if waiting := len(w.items.Trades) + len(w.items.Changes); waiting+len(add.Trades)+len(add.Changes) > maxQueued {
		w.topic.feed.counts.dropped.Add(uint64(waiting + len(add.Trades) + len(add.Changes)))
		w.fail(market.Errorf(market.CodeRateLimited, "the subscription was read too slowly: more than %d events were waiting", maxQueued))
		return
	}
	w.items.add(add)
}
