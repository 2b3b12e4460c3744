package follow

import (
	"context"
	"slices"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/reads"
)

// PriceUpdate is an event with a token's price. Spread is nil if only the price is known.
type PriceUpdate struct {
	Price  *market.Price
	Spread *market.Spread
	// Previous is the price in the last event. It is nil in the first event and in events for readers that join.
	Previous *market.Price
	Meta     reads.Meta
}

// ReadPrices reads the prices of tokens and returns them in the order of the ids.
type ReadPrices func(ctx context.Context, tokenIDs []string) []reads.Result[*market.Price]

// Prices follows the prices of tokens. minInterval is the minimum time between two events of a token.
func Prices(ctx context.Context, s Source, tokenIDs []string, minInterval time.Duration, read ReadPrices) Stream[PriceUpdate] {
	return mapStream(stream(ctx, s, minInterval, prices(read).open(s, tokenIDs)), priceUpdate)
}

// PriceLists is like Prices, but each event contains all prices that have changed since the last event. minInterval is the minimum
// time between two events.
func PriceLists(ctx context.Context, s Source, tokenIDs []string, minInterval time.Duration, read ReadPrices) Stream[[]Event[PriceUpdate]] {
	return mapStream(stream(ctx, s, 0, prices(read).openBatch(s, tokenIDs, minInterval)), func(_ Reason, list []Event[update[PriceUpdate]]) []Event[PriceUpdate] {
		out := make([]Event[PriceUpdate], len(list))
		for i, e := range list {
			out[i] = Event[PriceUpdate]{Reason: e.Reason, Value: priceUpdate(e.Reason, e.Value)}
		}
		return out
	})
}

func priceUpdate(_ Reason, u update[PriceUpdate]) PriceUpdate {
	return PriceUpdate{Price: u.Value.Price, Spread: u.Value.Spread, Previous: u.Previous.Price, Meta: u.Meta}
}

func prices(read ReadPrices) stateSpec[PriceUpdate] {
	return stateSpec[PriceUpdate]{
		topic:     func(id string) messages.Topic { return messages.Topic{Channel: messages.ChannelPrices, ID: id} },
		companion: func(id string) messages.Topic { return messages.Topic{Channel: messages.ChannelOrderbook, ID: id} },
		state: func(s feed.State) (PriceUpdate, bool) {
			return PriceUpdate{Price: s.Price, Spread: s.Spread}, s.Price != nil
		},
		equal: func(a, b PriceUpdate) bool { return a.Price.Price.Cmp(b.Price.Price) == 0 },
		read: func(ctx context.Context, ids []string) []reads.Result[PriceUpdate] {
			prices := read(ctx, ids)
			out := make([]reads.Result[PriceUpdate], len(prices))
			for i, p := range prices {
				out[i].Err, out[i].Value.Value.Price, out[i].Value.Meta = p.Err, p.Value.Value, p.Value.Meta
			}
			return out
		},
		absent: func(p PriceUpdate) bool { return p.Price == nil }, keyNoun: "token", mode: Replace,
	}
}

// BookUpdate is an event with a token's order book, cut to a depth.
type BookUpdate struct {
	Book *market.Book
	// Previous is the book in the last event. It is nil in the first event and in events for readers that join.
	Previous *market.Book
	// Delta reports whether Bids and Asks contain only the levels that differ from Previous.
	Delta      bool
	Bids, Asks []market.Level
	Meta       reads.Meta
}

// Book follows a token's book, cut to the given depth. minInterval is the minimum time between two events. If deltas is true and
// the venue sends sequence numbers, Changed and Freshness events contain only the changed levels. Initial and Resync events always
// contain the whole book. read must read the book with all levels that the stream changes, because the feed may join the book with
// the changes of the stream.
func Book(ctx context.Context, s Source, tokenID string, depth int, deltas bool, minInterval time.Duration, read func(ctx context.Context) (reads.Value[*market.Book], error)) Stream[BookUpdate] {
	mode := Replace
	if deltas {
		mode = Delta
	}
	k := stateSpec[*market.Book]{
		topic:     func(id string) messages.Topic { return messages.Topic{Channel: messages.ChannelOrderbook, ID: id} },
		companion: func(id string) messages.Topic { return messages.Topic{Channel: messages.ChannelPrices, ID: id} },
		state: func(s feed.State) (*market.Book, bool) {
			if s.Book == nil {
				return nil, false
			}
			return s.Book.Cut(depth), true
		},
		equal: func(a, b *market.Book) bool { return a.Bids.Equal(b.Bids) && a.Asks.Equal(b.Asks) },
		older: func(a, b *market.Book) bool { return a.Epoch == b.Epoch && a.Seq != 0 && a.Seq < b.Seq },
		read:  readOne(read),
		offer: func(w *feed.Watch, b *market.Book, m reads.Meta) (*market.Book, bool) {
			return b.Cut(depth), w != nil && w.Join(b, m)
		},
		absent: func(b *market.Book) bool { return b == nil }, keyNoun: "token", mode: mode,
	}
	return mapStream(stream(ctx, s, minInterval, k.open(s, []string{tokenID})), func(reason Reason, u update[*market.Book]) BookUpdate {
		b := BookUpdate{Book: u.Value, Previous: u.Previous, Meta: u.Meta}
		if b.Delta = deltas && u.Continues && u.Value.Seq != 0 && !reason.isState(); b.Delta {
			b.Bids = market.BookSideDelta(u.Previous.Bids, u.Value.Bids, market.SideBuy)
			b.Asks = market.BookSideDelta(u.Previous.Asks, u.Value.Asks, market.SideSell)
		} else {
			b.Bids, b.Asks = u.Value.Bids.Levels(), u.Value.Asks.Levels()
		}
		return b
	})
}

// Account contains the topic of an account and a function that reads one part of the account. Read takes the client
// (Request.Caller) and the credentials from its context.
type Account[T any] struct {
	Topic       messages.Topic
	Credentials *market.Credentials
	Read        func(ctx context.Context) (reads.Value[*T], error)
}

func (a Account[T]) topic(string) messages.Topic { return a.Topic }

// BalanceUpdate is an event with an account's balance. Balance is nil if the account has no balance.
type BalanceUpdate struct {
	Balance *market.Balance
	Meta    reads.Meta
}

// Balance follows an account's balance.
func Balance(ctx context.Context, s Source, a Account[market.Balance]) Stream[BalanceUpdate] {
	k := stateSpec[*market.Balance]{
		topic: a.topic, personal: true, credentials: a.Credentials,
		state: func(s feed.State) (*market.Balance, bool) {
			if s.Account == nil {
				return nil, false
			}
			return s.Account.Balance, s.Account.Balance != nil
		},
		unread: func(s feed.State) uint64 { return s.Unread.Balance },
		equal:  sameBalance, read: readOne(a.Read), mode: Replace,
	}
	return mapStream(stream(ctx, s, 0, k.open(s, []string{""})), func(_ Reason, u update[*market.Balance]) BalanceUpdate {
		return BalanceUpdate{u.Value, u.Meta}
	})
}

// OrdersUpdate is an event with an account's active orders.
type OrdersUpdate struct {
	// Changed contains the orders that are new or have changed since the last event. In Initial and Resync events, Changed contains
	// all active orders. Closed contains the orders that are no longer active.
	Changed, Closed []*market.Order
}

// Orders follows an account's active orders.
func Orders(ctx context.Context, s Source, a Account[[]market.Order]) Stream[OrdersUpdate] {
	k := stateSpec[[]market.Order]{
		topic: a.topic, personal: true, credentials: a.Credentials,
		state: func(s feed.State) ([]market.Order, bool) {
			if s.Account == nil {
				return nil, false
			}
			return s.Account.Orders, s.Account.Orders != nil // nil orders are unknown
		},
		unread: func(s feed.State) uint64 { return s.Unread.Orders },
		equal: func(a, b []market.Order) bool {
			return slices.EqualFunc(a, b, func(x, y market.Order) bool { return x.OrderID == y.OrderID && sameOrder(&x, &y) })
		},
		read: readOne(func(ctx context.Context) (r reads.Value[[]market.Order], err error) {
			read, err := a.Read(ctx)
			if r.Meta = read.Meta; err == nil && read.Value == nil {
				err = errNoAnswer
			}
			if err == nil {
				r.Value = *read.Value
			}
			return r, err
		}),
		mode: Delta,
	}
	return mapStream(stream(ctx, s, 0, k.open(s, []string{""})), func(reason Reason, u update[[]market.Order]) (o OrdersUpdate) {
		find := func(in []market.Order, id string) int {
			return slices.IndexFunc(in, func(o market.Order) bool { return o.OrderID == id })
		}
		for i := range u.Value {
			if j := find(u.Previous, u.Value[i].OrderID); reason.isState() || j < 0 || !sameOrder(&u.Previous[j], &u.Value[i]) {
				o.Changed = append(o.Changed, &u.Value[i])
			}
		}
		for i := range u.Previous {
			if find(u.Value, u.Previous[i].OrderID) < 0 {
				o.Closed = append(o.Closed, &u.Previous[i])
			}
		}
		return o
	})
}

var errNoAnswer error = market.Errorf(market.CodeUpstreamBadResponse, "the venue gave no answer for this account")

func sameDecimal(a, b *market.Decimal) bool { return a == b || a != nil && b != nil && a.Cmp(*b) == 0 }

func sameBalance(a, b *market.Balance) bool {
	return a == b || a != nil && b != nil && sameDecimal(a.PortfolioValue, b.PortfolioValue) && sameDecimal(a.CashBalance, b.CashBalance) &&
		sameDecimal(a.PositionsValue, b.PositionsValue) && sameDecimal(a.TotalValue, b.TotalValue)
}

func sameOrder(a, b *market.Order) bool {
	return a.Status == b.Status && a.StatusRaw == b.StatusRaw && a.Price.Cmp(b.Price) == 0 && a.Size.Cmp(b.Size) == 0 && a.FilledSize.Cmp(b.FilledSize) == 0
}

// readOne converts a read of one value into a read for a list that contains one key.
func readOne[T any](read func(ctx context.Context) (reads.Value[T], error)) func(context.Context, []string) []reads.Result[T] {
	return func(ctx context.Context, _ []string) []reads.Result[T] {
		value, err := read(ctx)
		return []reads.Result[T]{{Value: value, Err: err}}
	}
}

// mapStream converts the values of a stream.
func mapStream[T, U any](in Stream[T], value func(Reason, T) U) Stream[U] {
	return func(yield func(Event[U], error) bool) {
		for e, err := range in {
			out := Event[U]{Envelope: e.Envelope, Reason: e.Reason, Problem: e.Problem}
			if err == nil && e.Problem == nil {
				out.Value = value(e.Reason, e.Value)
			}
			if !yield(out, err) {
				return
			}
		}
	}
}
