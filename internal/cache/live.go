package cache

import (
	"context"
	"encoding/hex"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
)

// Watcher learns which tokens clients read, so that it can subscribe to tokens that clients read repeatedly.
type Watcher interface {
	// RecordPoll counts a read of the prices or books of existing tokens. Reads with the same pollID belong to one poll, and
	// each token counts only once in a poll. If pollID is 0, each call of RecordPoll is a separate poll. RecordPoll must not wait.
	RecordPoll(pollID uint64, c messages.Channel, tokenIDs []string)
}

// SetWatcher sets the watcher. Reads of spreads are reported as reads of prices. SetWatcher must be called before the first read.
func (c *Cache) SetWatcher(w Watcher) {
	prices := func(pollID uint64, tokens []string) {
		w.RecordPoll(pollID, messages.ChannelPrices, tokens)
	}
	c.prices.recordPoll, c.spreads.recordPoll = prices, prices
	c.books.recordPoll = func(pollID uint64, queries []queries.Book) {
		w.RecordPoll(pollID, messages.ChannelOrderbook, tokensOf(queries))
	}
}

func tokensOf(queries []queries.Book) []string {
	tokens := make([]string, len(queries))
	for i, q := range queries {
		tokens[i] = q.TokenID
	}
	return tokens
}

// StreamPrice stores a streamed price. It ignores the price if the cached REST price is newer. The stored price is fresh until its
// session ends or StreamStale is called.
func (c *Cache) StreamPrice(s *market.Session, p *market.Price, m market.Meta) {
	c.prices.stream(p.TokenID, p, s, m)
}

// StreamSpread stores a streamed spread; see StreamPrice.
func (c *Cache) StreamSpread(s *market.Session, sp *market.Spread, m market.Meta) {
	c.spreads.stream(sp.TokenID, sp, s, m)
}

// StreamBook stores a streamed book; see StreamPrice. Reads of every depth that the book covers get this book, so that all values
// of one response come from the same book.
func (c *Cache) StreamBook(s *market.Session, b *market.Book, m market.Meta) {
	c.books.stream(queries.Book{TokenID: b.TokenID}, b, s, m)
}

// StreamStale makes the streamed entries of a topic stale. It is called when the stream may have missed a message.
func (c *Cache) StreamStale(t messages.Topic) {
	switch t.Channel {
	case messages.ChannelPrices:
		c.prices.cutOff(t.ID)
		c.spreads.cutOff(t.ID)
	case messages.ChannelOrderbook:
		c.books.cutOff(queries.Book{TokenID: t.ID})
	case messages.ChannelUser:
		if key, ok := keyOfTopic(t); ok {
			c.balances.cutOff(key)
			c.positions.cutOff(key)
			c.orders.cutOff(key)
		}
	}
}

// StreamMarket records a streamed change of a market, so that the next read fetches the market again. If this fetch fails, the read
// returns the cached market. For restLag, a status, winner or tick size in the change overrides that of REST values. A market with
// an overridden value is marked stale. change is nil if the stream sent no values.
func (c *Cache) StreamMarket(marketID string, change *market.MarketChange) {
	c.markets.markChanged(market.MarketRef{By: market.ByMarketID, Value: marketID}, change)
}

// CachedMarket returns a market of the cache, of any age, or nil. It never calls the venue.
func (c *Cache) CachedMarket(marketID string) *market.Market {
	e := c.markets.entries.get(market.MarketRef{By: market.ByMarketID, Value: marketID})
	if e == nil {
		return nil
	}
	return e.read.Value
}

// Scope returns the scope of an account's stream topic for the caller in ctx; see messages.Topic.
func (c *Cache) Scope(ctx context.Context, a market.Address) string {
	caller := c.scope.keyFor(ctx, a).caller
	return hex.EncodeToString(caller[:])
}

// StreamAccount stores the streamed data of an account for the caller of topic t. The data is fresh until its session ends or
// StreamStale is called. If orders, positions or b is nil, the cached orders, positions or balance stays.
func (c *Cache) StreamAccount(s *market.Session, t messages.Topic, orders []market.Order, positions []market.Position, b *market.Balance, m market.Meta) {
	key, ok := keyOfTopic(t)
	if !ok {
		return
	}
	if b != nil {
		c.balances.stream(key, b, s, m)
	}
	if positions != nil {
		c.positions.stream(key, &positions, s, m)
	}
	if orders != nil {
		c.orders.stream(key, &orders, s, m)
	}
}

// StreamUnread records a change of an account's list or balance that the stream has announced and the feed could not apply. The next
// read fetches the list again.
func (c *Cache) StreamUnread(t messages.Topic, kind messages.Kind) {
	key, ok := keyOfTopic(t)
	if !ok {
		return
	}
	switch kind {
	case messages.KindOrder:
		c.orders.markChanged(key, nil)
	case messages.KindPosition:
		c.positions.markChanged(key, nil)
	case messages.KindBalance:
		c.balances.markChanged(key, nil)
	}
}

// keyOfTopic returns the key of a topic's account and caller. It returns false if the topic's scope cannot be a result of
// Cache.Scope.
func keyOfTopic(t messages.Topic) (userKey, bool) {
	key := userKey{address: market.Address(t.ID)}
	if len(t.Scope) != hex.EncodedLen(len(key.caller)) {
		return key, false
	}
	_, err := hex.Decode(key.caller[:], []byte(t.Scope))
	return key, err == nil
}

// restLag is the assumed greatest lag of the venue's REST values behind its stream. A streamed value overrides older REST values
// until restLag after the end of its session, a streamed change of a market until restLag after its arrival. Without this bound, a
// value with a wrong timestamp in the future would stay forever.
const restLag = time.Minute

// overrideEnd returns the time until which a streamed value overrides older REST values. It returns the zero time if the entry has
// no streamed value.
func (e *entry[T]) overrideEnd(now time.Time, ttl TTL) time.Time {
	if e.session == nil {
		return e.holdsUntil
	}
	end, _ := e.times(now, ttl)
	return end.Add(restLag)
}

// stream stores a streamed value. It ignores the value if the cached REST value is newer. It must be called in the order of the
// streamed values.
func (s *store[K, T]) stream(slot K, value *T, session *market.Session, m market.Meta) {
	e := &entry[T]{session: session}
	e.read.Value = value
	e.read.Meta = m
	e.read.Handle = market.NewStreamHandle(session)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.entries.get(slot); old != nil && old.session == nil && s.older != nil && s.older(value, old.read.Value) {
		return
	}
	s.absent.remove(slot)
	s.replace(s.entries, slot, e)
}

// cutOff makes a streamed entry stale from now on.
func (s *store[K, T]) cutOff(slot K) {
	if e := s.entries.get(slot); e != nil && e.session != nil && e.cut.CompareAndSwap(0, s.clock.Now().UnixNano()) {
		e.read.Handle.Invalidate()
	}
}

// olderPrice, olderSpread and olderBook report whether a is older than b. They compare the venue's timestamps. If the values of a
// and b are equal, a is not older, even if its timestamp is earlier. If both books have sequence numbers of the same epoch,
// olderBook compares only these numbers.

func olderPrice(a, b *market.Price) bool {
	return before(a.Timestamp, b.Timestamp) && a.Price.Cmp(b.Price) != 0
}

func olderSpread(a, b *market.Spread) bool {
	return before(a.Timestamp, b.Timestamp) && !(same(a.BestBid, b.BestBid) && same(a.BestAsk, b.BestAsk))
}

func olderBook(a, b *market.Book) bool {
	if a.Seq != 0 && b.Seq != 0 && a.Epoch == b.Epoch {
		return a.Seq < b.Seq
	}
	return before(a.Timestamp, b.Timestamp) && !(sameSide(a, b, a.Bids, b.Bids) && sameSide(a, b, a.Asks, b.Asks))
}

// sameSide reports whether one side of the books a and b has equal levels, down to the depth of the smaller side. The
// parameters as and bs contain this side of a and b.
func sameSide(a, b *market.Book, as, bs market.Side) bool {
	if as.Len() > bs.Len() {
		a, b, as, bs = b, a, bs, as
	}
	if as.Len() < bs.Len() && as.Len() < a.Depth {
		return false // book a contains all levels that this side had at the venue
	}
	return as.Equal(bs.Cut(as.Len()))
}

func before(a, b time.Time) bool { return !a.IsZero() && !b.IsZero() && a.Before(b) }

func same(a, b *market.Decimal) bool {
	return a == b || a != nil && b != nil && a.Cmp(*b) == 0
}
