package polymarket

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/stream"
)

const (
	// After maxRepairs failed repairs of a lost book, the codec subscribes to the asset again.
	maxRepairs = 2
	tickEvery  = 50 * time.Millisecond
	// auditEvery is the time between two comparisons of all books with REST.
	auditEvery = 25 * time.Second
	// If a streamed book differs from the book from REST, the streamed book must reach the levels of the book from REST within
	// catchUp.
	catchUp = 2 * time.Second
	// retryEvery is the least time between two reads of lost books.
	retryEvery = time.Second
	// A book is frozen if the socket no longer sends the changes of the book. The socket is replaced if one comparison finds more than
	// maxFrozen frozen books, and if these are more than 1/frozenShare of the changed books. When a comparison begins, a book counts
	// as changed if the socket has changed it since the previous comparison began.
	maxFrozen   = 3
	frozenShare = 10
	// If the venue does not send the first book of an asset within firstBookWithin, the codec reads the book over REST.
	firstBookWithin = 1500 * time.Millisecond
)

// errFrozen ends a socket that is open but no longer sends the changes of several books.
var errFrozen = errors.New("the socket is open, but sends no changes of several books")

// readBooksFunc reads the books of up to maxTokens tokens. If the venue does not have a book, the Value of the result is nil.
type readBooksFunc func(ctx context.Context, ids []string) ([]upstream.Result[*market.Book], error)

// Maintain repairs lost books and finds frozen books. If the socket must be replaced, Maintain returns errFrozen. A separate
// goroutine makes the REST reads, so that the reads do not delay tick. Maintain implements stream.Maintainer.
func (c *codec) Maintain(ctx context.Context, emit func(func(now time.Time) []stream.Event)) error {
	ctx, cancel := context.WithCancel(ctx)
	var reads sync.WaitGroup
	defer func() { cancel(); reads.Wait() }()
	ticks := time.NewTicker(tickEvery)
	defer ticks.Stop()
	var reading atomic.Bool
	audit, retry, frozen, changed := time.Now().Add(auditEvery), time.Time{}, 0, 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		now := time.Now()
		emit(func(now time.Time) []stream.Event {
			events, found := c.tick(now)
			frozen += found
			return events
		})
		if frozen > maxFrozen && frozen*frozenShare > changed {
			return errFrozen
		}
		if reading.Load() {
			continue
		}
		var lost, compared []string
		if !now.Before(retry) {
			if lost = c.lostAssets(); len(lost) > 0 {
				retry = now.Add(retryEvery)
			}
		}
		if !now.Before(audit) {
			compared, changed = c.beginComparison()
			audit, frozen = now.Add(auditEvery), 0
		}
		if len(lost)+len(compared) == 0 {
			continue
		}
		reading.Store(true)
		reads.Go(func() {
			defer reading.Store(false)
			c.readAll(ctx, lost, func(id string, r upstream.Result[*market.Book]) {
				emit(func(now time.Time) []stream.Event { return c.finishRepair(id, r, now) })
			})
			c.readAll(ctx, compared, func(id string, r upstream.Result[*market.Book]) { c.compare(id, r.Value, time.Now()) })
		})
	}
}

func (c *codec) readAll(ctx context.Context, ids []string, use func(id string, r upstream.Result[*market.Book])) {
	for part := range slices.Chunk(ids, maxTokens) {
		books, err := c.read(ctx, part)
		for i, id := range part {
			if err == nil {
				use(id, books[i])
			} else {
				use(id, upstream.Result[*market.Book]{Err: err})
			}
		}
	}
}

// tick marks the book of an asset as lost if the first book or a part of a burst is late. It ends comparisons whose deadline has
// passed, and repairs the streamed books that still differ. It delivers the current state to topics that wait for this state, and
// confirms new subscriptions. It returns the events, and the number of frozen books. A frozen book differs from the book from
// REST, and no later change has arrived for it.
func (c *codec) tick(now time.Time) (events []stream.Event, frozen int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.subscribed) > 0 {
		events = append(events, stream.Event{Kind: stream.EventAck, Topics: c.subscribed})
		c.subscribed = nil
	}
	for _, a := range c.assets {
		a.awaitFirst(now)
		if !a.burstBy.IsZero() && !now.Before(a.burstBy) {
			a.lose()
			events = append(events, c.lossEvents(a)...)
		}
		if cmp := a.comparison; cmp != nil && cmp.rest != nil && !now.Before(cmp.deadline) && len(a.burst) == 0 {
			a.comparison = nil
			if l, at := applyLater(cmp.rest, cmp.since); !a.book.equal(l.bids, l.asks) {
				if at.Equal(cmp.rest.Timestamp) {
					frozen++
				}
				a.lose(cmp.since...)
				events = append(events, c.lossEvents(a)...)
				events = append(events, c.repair(a, cmp.rest, now)...)
			}
		}
		if a.book != nil && len(a.burst) == 0 && len(a.owed) > 0 {
			events = append(events, c.settle(a, now)...)
		}
	}
	return events, frozen
}

func (c *codec) settle(a *asset, now time.Time) []stream.Event {
	if a.owes(messages.ChannelOrderbook) {
		return c.publishState(a, now)
	}
	events := c.report(a, a.book.top(), a.at, now)
	a.owed = nil
	return events
}

// lostAssets returns the assets whose books are lost and had fewer than maxRepairs failed repairs. The caller must read these books
// and pass the results to finishRepair.
func (c *codec) lostAssets() []string {
	return c.choose(func(a *asset) bool {
		a.reading, a.outdated = a.lost && a.failures < maxRepairs, false
		return a.reading
	})
}

// beginComparison begins a comparison of each book. It returns the assets of these books, and the number of books that the socket
// has changed since the previous comparison began.
func (c *codec) beginComparison() (ids []string, changed int) {
	ids = c.choose(func(a *asset) bool {
		if a.changed {
			changed++
		}
		a.changed = false
		if a.book != nil {
			a.comparison = &comparison{from: a.at}
		}
		return a.book != nil
	})
	return ids, changed
}

func (c *codec) choose(pass func(*asset) bool) (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, a := range c.assets {
		if pass(a) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// finishRepair handles the result of a REST read of a lost book. If the book was lost again during the read, the repair has failed.
func (c *codec) finishRepair(id string, r upstream.Result[*market.Book], now time.Time) []stream.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.assets[id]
	if a == nil || !a.reading { // the asset may have been subscribed again during the read
		return nil
	}
	outdated := a.outdated
	if a.reading, a.outdated = false, false; !a.lost {
		return nil
	}
	if outdated {
		return c.repair(a, nil, now)
	}
	if b := r.Value; b == nil && r.Err == nil && len(a.kept) == 0 { // the venue has no book of the token, so the book is empty
		r.Value = &market.Book{TokenID: id, Timestamp: now}
	}
	return c.repair(a, r.Value, now)
}

// repair applies the later changes of the stream to the book b from REST, and replaces the lost book by the result. The repair
// fails if b is nil, or if the result does not have the reported best prices. After maxRepairs failures, repair reports the loss
// again. Package stream then requests a resync, and the resync subscribes to the asset again.
func (c *codec) repair(a *asset, b *market.Book, now time.Time) (events []stream.Event) {
	if b != nil {
		if l, at, ok := a.splice(b); ok {
			a.replace(l, at)
			events = c.publishState(a, now)
		}
	}
	if a.lost {
		if a.failures++; a.failures == maxRepairs {
			events = c.lossEvents(a)
		}
	}
	return events
}

// compare compares the streamed book of an asset with the book b from REST. If the read failed or the venue has no book, b is nil.
// The two books may differ by a few changes that are still in flight. If the books differ or a burst is incomplete, the streamed
// book must reach the levels of b within catchUp.
func (c *codec) compare(id string, b *market.Book, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.assets[id]
	if a == nil || a.comparison == nil {
		return
	}
	if b == nil || b.Timestamp.Before(a.comparison.from) { // b may lack changes from before the comparison
		a.comparison = nil
		return
	}
	if l, _ := applyLater(b, a.comparison.since); len(a.burst) == 0 && a.book.equal(l.bids, l.asks) {
		a.comparison = nil
		return
	}
	a.comparison.rest, a.comparison.deadline = b, now.Add(catchUp)
}
