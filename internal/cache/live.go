package cache

import (
	"context"
	"encoding/hex"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
)

// Watcher learns which tokens clients read, so that it can subscribe to tokens that clients read repeatedly.
type Watcher interface {
	// RecordPoll counts a read of the prices or books of existing tokens. Reads with the same pollID belong to one poll, and
	// each token counts only once in a poll. If pollID is 0, each call of RecordPoll is a separate poll. RecordPoll must not wait.
	RecordPoll(pollID uint64, c messages.Channel, tokenIDs []string)
}

// SetWatcher sets the watcher. Reads of spreads are reported as reads of prices. SetWatcher must be called before the first read.
func (c *Cache) SetWatcher(w Watcher) { c.prices.watcher, c.spreads.watcher, c.books.watcher = w, w, w }

// Streamer subscribes to tokens on the venue's stream. While calls would have to wait, the cache tells the Streamer which tokens are
// missing from the cache.
type Streamer interface {
	// AutoWatch subscribes to tokens whose price, spread or book a request is waiting for. All tokens exist at the venue; a token may
	// occur repeatedly. If a streamed value arrives in the cache before the REST response, the request gets the streamed value.
	// AutoWatch must not wait. It is called concurrently.
	AutoWatch(c messages.Channel, tokenIDs []string)
}

// SetStreamer sets the Streamer that is told about missing prices, spreads and books while calls would have to wait. SetStreamer must
// be called before the first read.
func (c *Cache) SetStreamer(s Streamer) {
	known := knownTokens{c, s}
	c.prices.streamer, c.spreads.streamer, c.books.streamer = known, known, known
}

// knownTokens is a Streamer of the tokens that the venue has.
type knownTokens struct {
	cache *Cache
	Streamer
}

// AutoWatch implements Streamer.
func (k knownTokens) AutoWatch(channel messages.Channel, tokens []string) {
	exist := make([]string, 0, len(tokens))
	for _, t := range tokens {
		if k.cache.isKnownToken(t) {
			exist = append(exist, t)
		}
	}
	if len(exist) > 0 {
		k.Streamer.AutoWatch(channel, exist)
	}
}

// isKnownToken reports whether a cached market, price, spread or book shows that the venue has a token. With this check, the
// Streamer never gets ids that a client has invented.
func (c *Cache) isKnownToken(token string) bool {
	return c.names.get(market.MarketRef{By: market.ByToken, Value: token}).bytes != 0 || c.prices.entries.get(token) != nil ||
		c.spreads.entries.get(token) != nil || c.books.entries.get(queries.Book{TokenID: token}) != nil
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

// Scope returns the scope of an account's stream topic for the caller in ctx; see messages.Topic.
func (c *Cache) Scope(ctx context.Context, a market.Address) string {
	caller := c.scope.keyFor(ctx, a).caller
	return hex.EncodeToString(caller[:])
}

// StreamAccount stores the streamed data of an account for the caller of topic t. The data is fresh until its session ends or
// StreamStale is called. If orders, positions or b is nil, the cached orders, positions or balance stays.
func (c *Cache) StreamAccount(s *reads.Session, t messages.Topic, orders []market.Order, positions []market.Position, b *market.Balance, m reads.Meta) {
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
	key := userKey{Address: market.Address(t.ID)}
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
func (s *store[K, T]) stream(slot K, value *T, session *reads.Session, m reads.Meta) {
	e := &entry[T]{session: session}
	e.read.Value = value
	e.read.Meta = m
	e.read.Handle = reads.NewStreamHandle(session)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.entries.get(slot); old != nil && old.session == nil && s.kind.older(value, old.read.Value) {
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

func before(a, b time.Time) bool { return !a.IsZero() && !b.IsZero() && a.Before(b) }

func same(a, b *market.Decimal) bool {
	return a == b || a != nil && b != nil && a.Cmp(*b) == 0
}
