package feed

import (
	"context"
	"fmt"
	"slices"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
)

// replayer is a subscription that sends deltas of a book, together with a client that applies these deltas.
type replayer struct {
	chaos  *chaos
	token  *token
	depth  int
	every  int // the number of ticks between two reads
	reader *Reader
	watch  *Watch

	// These fields are the state of the subscription.
	sent, live bool
	resyncs    uint64
	book       *market.Book
	// These fields are the state of the client. reasons counts the events with each reason.
	bids, asks map[int32]int32
	events     int
	reasons    map[string]int
}

// read takes the state of the watch as a subscription does, and applies the resulting event to the client's book.
func (r *replayer) read() error {
	select {
	case <-r.reader.Changed():
	default:
		return nil
	}
	if taken := r.reader.Take(); len(taken) == 0 {
		return nil
	}
	s, err := r.watch.State()
	if err != nil || !s.Known {
		return err
	}
	cut := s.Book.Cut(r.depth)
	same := r.book != nil && r.book.Bids.Equal(cut.Bids) && r.book.Asks.Equal(cut.Asks)
	reason := ""
	switch {
	case !r.sent:
		reason = "INITIAL"
	case s.Resyncs != r.resyncs:
		reason = "RESYNC"
	case !same && s.Live:
		reason = "CHANGE"
	case s.Live != r.live:
		reason = "FRESHNESS"
		cut = r.book
	default:
		return nil
	}
	r.sent, r.live, r.resyncs = true, s.Live, s.Resyncs
	if r.book != nil && cut.Seq != 0 && (reason == "CHANGE" || reason == "FRESHNESS") {
		applyLevels(r.bids, market.BookSideDelta(r.book.Bids, cut.Bids, market.SideBuy))
		applyLevels(r.asks, market.BookSideDelta(r.book.Asks, cut.Asks, market.SideSell))
	} else {
		r.bids, r.asks = make(map[int32]int32), make(map[int32]int32)
		applyLevels(r.bids, cut.Bids.Levels())
		applyLevels(r.asks, cut.Asks.Levels())
	}
	r.book = cut
	r.events++
	r.reasons[reason]++
	return r.check(reason)
}

// applyLevels sets the sizes of levels in one side of the client's book.
func applyLevels(side map[int32]int32, levels []market.Level) {
	for _, l := range levels {
		if l.Size.IsZero() {
			delete(side, tickOf(l.Price))
		} else {
			side[tickOf(l.Price)] = sizeOf(l.Size)
		}
	}
}

// check compares the client's book with the venue's book that has the same sequence number or hash.
func (r *replayer) check(reason string) error {
	was, ok := r.chaos.history[stateIDOf(r.book)]
	if !ok {
		return fmt.Errorf("wrong: the reader of %s at depth %d got a %s event with a book that the venue never had: %v", r.token.id, r.depth, reason, stateIDOf(r.book))
	}
	want := was.cut(r.depth)
	for _, side := range [...]struct {
		name string
		got  map[int32]int32
		want []tickLevel
	}{{"bids", r.bids, want.bids}, {"asks", r.asks, want.asks}} {
		bad := len(side.got) != len(side.want)
		for _, x := range side.want {
			bad = bad || side.got[x.tick] != x.size
		}
		if bad {
			return fmt.Errorf("wrong: after a %s event with the book %v, the reader of %s at depth %d has the %s %v, but the venue had %v", reason, stateIDOf(r.book), r.token.id, r.depth, side.name, side.got, side.want)
		}
	}
	return nil
}

// checkBook compares a book with the venue's book that has the same sequence number or hash.
func (c *chaos) checkBook(b *market.Book, depth int) error {
	c.mu.Lock()
	was, ok := c.history[stateIDOf(b)]
	c.mu.Unlock()
	if !ok {
		return fmt.Errorf("wrong: a query read a book that the venue never had: %v", stateIDOf(b))
	}
	want, got := was.cut(depth), b.Cut(depth)
	for _, side := range [...]struct {
		got  []market.Level
		want []tickLevel
	}{{got.Bids.Levels(), want.bids}, {got.Asks.Levels(), want.asks}} {
		if !slices.EqualFunc(side.got, side.want, func(l market.Level, x tickLevel) bool {
			return tickOf(l.Price) == x.tick && sizeOf(l.Size) == x.size
		}) {
			return fmt.Errorf("wrong: a query read the book %v with other levels than the venue had", stateIDOf(b))
		}
	}
	return nil
}

// checkQuery reads a token's book from the cache as a query does, and checks the book. If the cache has no book, a goroutine
// fetches the book from the venue, checks it and offers it to the topic. While the token is live, the cache must have a book.
func (c *chaos) checkQuery(ctx context.Context, k *token, depth int, w *Watch, live State) error {
	keys, out := []queries.Book{{TokenID: k.id, Depth: depth}}, make([]reads.Result[*market.Book], 1)
	if missing := c.cache.Books().Lookup(ctx, keys, out, nil); len(missing) > 0 {
		if live.Live {
			return fmt.Errorf("wrong: the book of %s is live, but a query must fetch it", k.id)
		}
		go func() {
			r := c.cache.Books().Fetch(ctx, keys)[0]
			if r.Err == nil {
				if r.Err = c.checkBook(r.Value.Value, depth); depth == queries.MaxBookDepth {
					w.Join(r.Value.Value, r.Value.Meta)
				}
			}
			if r.Err != nil && ctx.Err() == nil {
				c.mu.Lock()
				c.failure = r.Err
				c.mu.Unlock()
			}
		}()
		return nil
	}
	got := out[0].Value
	if live.Live && (got.Stale || stateIDOf(got.Value) != stateIDOf(live.Book)) && !(got.Source == market.SourceREST && stateIDOf(got.Value).after(stateIDOf(live.Book))) {
		return fmt.Errorf("wrong: the live book of %s is %v, but a query read the book %v (stale: %t) from %s", k.id, stateIDOf(live.Book), stateIDOf(got.Value), got.Stale, got.Source)
	}
	if !live.Live && got.Source == market.SourceStream && !got.Stale {
		return fmt.Errorf("wrong: the book of %s is not live, but a query read the fresh book %v from the stream", k.id, stateIDOf(got.Value))
	}
	return c.checkBook(got.Value, depth)
}

// checkToken checks the states of a token's watches, the results of queries, and the recovery after faults.
func (c *chaos) checkToken(ctx context.Context, k *token, watches [2]*Watch, n int) error {
	price, err := watches[0].State()
	if err != nil {
		return err
	}
	if want, ok := c.prices[stateID{token: k.id, epoch: price.Epoch, seq: price.Seq}]; price.Known && (!ok || tickOf(price.Price.Price) != want) {
		return fmt.Errorf("wrong: the price of %s at %s:%d is %s", k.id, price.Epoch, price.Seq, price.Price.Price)
	}
	book, err := watches[1].State()
	if err != nil {
		return err
	}
	if n%7 == 0 {
		if err := c.checkQuery(ctx, k, chaosDepths[c.rand.IntN(len(chaosDepths))], watches[1], book); err != nil {
			return err
		}
	}
	if c.faulty || !k.numbered {
		return nil
	}
	l, carried := c.topicOnLink(bookOf(k.id))
	if !l.up || !carried.up {
		return nil
	}
	faultsEnd := carried.lastFault
	for _, t := range []time.Time{l.upAt, carried.upAt, l.stalledUntil, faultsEnd.Add(chaosBeat + 100*time.Millisecond)} {
		if t.After(faultsEnd) {
			faultsEnd = t
		}
	}
	if time.Since(faultsEnd) < chaosHeal {
		return nil
	}
	for len(k.sent) > 0 && time.Since(k.sent[0].at) >= 100*time.Millisecond {
		k.dueSeq, k.sent = k.sent[0].seq, k.sent[1:]
	}
	if !book.Live || book.Epoch != c.epochName() || book.Seq < k.dueSeq {
		return fmt.Errorf("hang: %s after the last fault, the book of %s is at %s:%d (live: %t), but the venue is at %s:%d", time.Since(faultsEnd), k.id, book.Epoch, book.Seq, book.Live, c.epochName(), k.dueSeq)
	}
	return nil
}
