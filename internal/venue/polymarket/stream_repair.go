package polymarket

import (
	"context"
	"errors"
	"slices"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
)

const (
	// maxRepairs is the number of reads that may fail until the asset is subscribed again.
	maxRepairs = 2
	// tickEvery is the time between two looks at bursts and lost books. auditEvery is the time between two comparisons of all books
	// with REST. catchUp is the time in which the stream must reach a newer book of REST.
	tickEvery  = 50 * time.Millisecond
	auditEvery = 25 * time.Second
	catchUp    = 2 * time.Second
	// retryEvery is the time between two reads of lost books. maxFrozen is the number of assets of one audit that may be frozen before
	// the socket is replaced.
	retryEvery = time.Second
	maxFrozen  = 3
)

// errFrozen ends a socket that sends no data.
var errFrozen = errors.New("the socket is open, but sends no changes of several books")

// readBooksFunc reads the books of up to maxTokens tokens. A book is nil if the venue does not have it.
type readBooksFunc func(ctx context.Context, ids []string) ([]market.Result[*market.Book], error)

// Maintain repairs lost books and finds frozen ones. It returns errFrozen if the socket must be replaced. It implements
// stream.Maintainer.
func (c *codec) Maintain(ctx context.Context, emit func(func(now time.Time) []stream.Event)) error {
	ticks := time.NewTicker(tickEvery)
	defer ticks.Stop()
	audit, retry, frozen := time.Now().Add(auditEvery), time.Time{}, 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		now := time.Now()
		emit(func(now time.Time) []stream.Event {
			events, doubts := c.tick(now)
			frozen += doubts
			return events
		})
		if frozen > maxFrozen {
			return errFrozen
		}
		if ids := c.lostAssets(); len(ids) > 0 && !now.Before(retry) {
			retry = now.Add(retryEvery)
			c.readAll(ctx, ids, func(id string, b *market.Book) {
				emit(func(now time.Time) []stream.Event { return c.repaired(id, b, now) })
			})
		}
		if !now.Before(audit) {
			audit, frozen = now.Add(auditEvery), 0
			c.readAll(ctx, c.quietAssets(), func(id string, b *market.Book) {
				emit(func(now time.Time) []stream.Event { return c.audited(id, b, now) })
			})
		}
	}
}

// readAll reads books in calls of up to maxTokens ids. use gets nil for a book that could not be read.
func (c *codec) readAll(ctx context.Context, ids []string, use func(id string, b *market.Book)) {
	for part := range slices.Chunk(ids, maxTokens) {
		books, err := c.read(ctx, part)
		for i, id := range part {
			if err == nil && i < len(books) && books[i].Err == nil {
				use(id, books[i].Value)
			} else {
				use(id, nil)
			}
		}
	}
}

// tick ends bursts that take too long, delivers owed states, and checks doubted books. frozen is the number of books that did not
// reach the book of REST.
func (c *codec) tick(now time.Time) (events []stream.Event, frozen int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.assets {
		if !a.burstBy.IsZero() && !now.Before(a.burstBy) {
			a.lose()
			events = append(events, c.bad(a)...)
		}
		if a.doubt != nil && !now.Before(a.doubtBy) {
			b := a.doubt
			a.doubt = nil
			if a.book != nil && !b.Timestamp.Before(a.at) && !a.book.equal(b.Bids, b.Asks) {
				frozen++
				a.lose()
				events = append(events, c.bad(a)...)
				events = append(events, c.repair(a, b, now)...)
			}
		}
		if a.book != nil && len(a.burst) == 0 && len(a.owed) > 0 {
			events = append(events, c.settle(a, now)...)
		}
	}
	for i := range events {
		events[i].At = now
	}
	return events, frozen
}

// settle delivers the state of an asset to the topics that wait for it.
func (c *codec) settle(a *asset, now time.Time) []stream.Event {
	if a.owes(messages.ChannelOrderbook) {
		return c.whole(a, now)
	}
	events := c.report(a, a.book.top(), a.at, now)
	a.owed = nil
	return events
}

// lostAssets returns the assets whose books are lost.
func (c *codec) lostAssets() []string {
	return c.choose(func(a *asset) bool { return a.lost && a.failures < maxRepairs })
}

// quietAssets returns the assets that have a book.
func (c *codec) quietAssets() []string { return c.choose(func(a *asset) bool { return a.book != nil }) }

// choose returns the sorted ids of the assets that pass a test.
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

// repaired handles a book of REST for a lost book; nil if the read failed.
func (c *codec) repaired(id string, b *market.Book, now time.Time) []stream.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.assets[id]
	if a == nil || !a.lost {
		return nil
	}
	return c.repair(a, b, now)
}

// repair replaces a lost book by a book of REST with the later changes of the stream. A book that disagrees with the reported top is
// not used. After maxRepairs failures the session is asked for a resync, which subscribes the asset again.
func (c *codec) repair(a *asset, b *market.Book, now time.Time) (events []stream.Event) {
	if b != nil {
		if l, at, ok := a.splice(b); ok {
			a.replace(l, at)
			events = c.whole(a, now)
		}
	}
	if a.lost {
		if a.failures++; a.failures == maxRepairs {
			events = c.bad(a)
		}
	}
	for i := range events {
		events[i].At = now
	}
	return events
}

// audited compares a book with the one of REST. If REST is newer and has other levels, the stream gets the time catchUp to reach it. A
// book of the same time with other levels shows a lost change.
func (c *codec) audited(id string, b *market.Book, now time.Time) (events []stream.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.assets[id]
	if a == nil || b == nil || a.book == nil || len(a.burst) > 0 || b.Timestamp.Before(a.at) || a.book.equal(b.Bids, b.Asks) {
		return nil
	}
	a.doubt, a.doubtBy = b, now.Add(catchUp)
	return nil
}
