package cache

import (
	"context"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// bookKind is the kind of order books. A token has one slot for its books of all depths.
type bookKind struct {
	plain[queries.Book, market.Book]
}

func (bookKind) about(cfg *Config) about {
	return about{kind: upstream.KindBook, ttl: cfg.Book, routes: []route{{upstream.EndpointBook, upstream.PriorityBooks}}}
}

func (bookKind) fetch(ctx context.Context, call upstream.Call, v venue.Reader, _ upstream.Endpoint, keys []queries.Book) ([]upstream.Result[*market.Book], error) {
	return v.Books(ctx, call, keys)
}

func (bookKind) own(key queries.Book, b *market.Book) queries.Book {
	key.TokenID = ownID(key.TokenID, b, func(b *market.Book) string { return b.TokenID })
	return key
}

func (bookKind) forget(id string) func(queries.Book) bool {
	return func(key queries.Book) bool { return key.TokenID == id }
}

func (bookKind) canonical(key queries.Book) queries.Book {
	return queries.Book{TokenID: key.TokenID, Depth: queries.BookDepthStep(key.Depth)}
}

func (bookKind) slot(key queries.Book) queries.Book { return queries.Book{TokenID: key.TokenID} }

func (bookKind) keysOf(slot queries.Book) (keys []queries.Book) {
	for depth := 0; depth < queries.MaxBookDepth; {
		depth = queries.BookDepthStep(depth + 1)
		keys = append(keys, queries.Book{TokenID: slot.TokenID, Depth: depth})
	}
	return keys
}

func (bookKind) covers(key queries.Book, b *market.Book) bool { return b.Covers(key.Depth) }

func (bookKind) widen(key queries.Book, b *market.Book) queries.Book {
	return queries.Book{TokenID: key.TokenID, Depth: max(key.Depth, b.Depth)}
}

func (bookKind) keep(old, fetched *market.Book) bool {
	return old.Depth > fetched.Depth && old.Seq != 0 && old.Epoch == fetched.Epoch && old.Seq >= fetched.Seq
}

func (bookKind) topics(keys []queries.Book) (messages.Channel, []string) {
	tokens := make([]string, len(keys))
	for i, key := range keys {
		tokens[i] = key.TokenID
	}
	return messages.ChannelOrderbook, tokens
}

func (bookKind) asOf(b *market.Book) time.Time { return b.Timestamp }

// older compares only the sequence numbers if both books have numbers of the same epoch. Otherwise it is like priceKind.older.
func (bookKind) older(a, b *market.Book) bool {
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

// weight does not visit the levels, because streamed books are replaced often.
func (bookKind) weight(b *market.Book) int {
	return weigh(b) + allocated(b.Bids.Bytes()) + allocated(b.Asks.Bytes())
}

func (bookKind) sound(key queries.Book, b *market.Book) bool {
	return b.TokenID == key.TokenID && b.Depth > 0 && soundSide(b.Bids, -1) && soundSide(b.Asks, 1)
}

// soundSide reports whether each level of a side has a price from 0 to 1 and a positive size, and the prices rise (order 1) or fall
// (order -1).
func soundSide(s market.Side, order int) bool {
	var last *market.Level
	for l := range s.All() {
		if !inUnit(&l.Price) || l.Size.Sign() <= 0 || last != nil && l.Price.Cmp(last.Price) != order {
			return false
		}
		last = l
	}
	return true
}

// Books returns the source of order books. A book may be deeper than requested.
func (c *Cache) Books() reads.Source[queries.Book, market.Book] { return c.books }

// StreamBook stores a streamed book; see StreamPrice. Reads of every depth that the book covers get this book, so that all values
// of one response come from the same book.
func (c *Cache) StreamBook(s *reads.Session, b *market.Book, m reads.Meta) {
	c.books.stream(queries.Book{TokenID: b.TokenID}, b, s, m)
}
