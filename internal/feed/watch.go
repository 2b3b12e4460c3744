package feed

import (
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

// Watch follows a topic. Its methods are for one reader.
type Watch struct {
	topic  *topic
	signal chan struct{}

	// The topic's lock protects the rest.
	items  Items
	err    error
	closed bool
}

// Changed is signalled after every change; several changes may fall into one signal.
func (w *Watch) Changed() <-chan struct{} { return w.signal }

// State returns the present state. err is why the watch has ended; nothing follows then.
func (w *Watch) State() (s State, err error) {
	w.topic.mu.Lock()
	defer w.topic.mu.Unlock()
	return w.topic.state, w.err
}

// Take returns the present state and what has queued, which it takes. err is why the watch has ended.
func (w *Watch) Take() (s State, items Items, err error) {
	w.topic.mu.Lock()
	defer w.topic.mu.Unlock()
	items, w.items = w.items, Items{}
	return w.topic.state, items, w.err
}

// Close ends the watch. The topic stays open for the linger if it was the last one. Closing again does nothing.
func (w *Watch) Close() { w.topic.leave(w) }

// notify signals the watch. The topic's lock is held.
func (w *Watch) notify() {
	select {
	case w.signal <- struct{}{}:
	default:
		w.topic.feed.counts.conflated.Add(1)
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
	if w.err != nil {
		return
	}
	if len(w.items.Trades)+len(w.items.Changes)+len(add.Trades)+len(add.Changes) > limit {
		w.topic.feed.counts.dropped.Add(uint64(len(w.items.Trades) + len(w.items.Changes)))
		w.fail(market.Errorf(market.CodeRateLimited, "the subscription was read too slowly: more than %d events were waiting", limit))
		return
	}
	w.items.Trades = append(w.items.Trades, add.Trades...)
	w.items.Changes = append(w.items.Changes, add.Changes...)
	w.items.Gap = w.items.Gap || add.Gap
}
