package follow

import (
	"context"
	"slices"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
)

// PriceUpdate is a token's price. Spread is nil where it is not known with the price.
type PriceUpdate struct {
	Price  *market.Price
	Spread *market.Spread
	// Previous is the price of the event before; nil on the first one and where the present state is sent again.
	Previous *market.Price
	Meta     market.Meta
}

// ReadPrices reads tokens' prices, aligned with the ids.
type ReadPrices func(ctx context.Context, tokenIDs []string) []market.Result[market.Read[*market.Price]]

// Prices follows the prices of tokens, with at least every between two events of a token.
func Prices(ctx context.Context, s Source, tokenIDs []string, every time.Duration, read ReadPrices) Stream[PriceUpdate] {
	k := kind[PriceUpdate]{
		topic:  func(id string) market.Topic { return market.Topic{Channel: market.ChannelPrices, ID: id} },
		beside: func(id string) market.Topic { return market.Topic{Channel: market.ChannelOrderbook, ID: id} },
		state: func(s feed.State) (PriceUpdate, bool) {
			return PriceUpdate{Price: s.Price, Spread: s.Spread}, s.Price != nil
		},
		same: func(a, b PriceUpdate) bool { return a.Price.Price.Cmp(b.Price.Price) == 0 },
		read: func(ctx context.Context, ids []string) []market.Result[market.Read[PriceUpdate]] {
			return converted(read(ctx, ids), func(p *market.Price) PriceUpdate { return PriceUpdate{Price: p} })
		},
		absent: func(p PriceUpdate) bool { return p.Price == nil }, unknown: "token", mode: Replace,
	}
	return mapped(stream(ctx, s, every, k.open(tokenIDs)), func(u update[PriceUpdate]) PriceUpdate {
		return PriceUpdate{Price: u.Value.Price, Spread: u.Value.Spread, Previous: u.Before.Price, Meta: u.Meta}
	})
}

// BookUpdate is a token's order book, cut to a depth.
type BookUpdate struct {
	Book *market.Book
	// Previous is the book of the event before; nil on the first one and where the present state is sent again.
	Previous *market.Book
	// Delta reports that Bids and Asks are the levels that differ from Previous; otherwise they are all levels.
	Delta      bool
	Bids, Asks []market.Level
	Meta       market.Meta
}

// Book follows a token's book, with at least every between two events. With deltas, events that go on from the one before carry
// what differs, where the venue numbers its books.
func Book(ctx context.Context, s Source, tokenID string, depth int, deltas bool, every time.Duration, read func(ctx context.Context) (market.Read[*market.Book], error)) Stream[BookUpdate] {
	mode := Replace
	if deltas {
		mode = Delta
	}
	k := kind[*market.Book]{
		topic:  func(id string) market.Topic { return market.Topic{Channel: market.ChannelOrderbook, ID: id} },
		beside: func(id string) market.Topic { return market.Topic{Channel: market.ChannelPrices, ID: id} },
		state: func(s feed.State) (*market.Book, bool) {
			if s.Book == nil {
				return nil, false
			}
			return s.Book.Cut(depth), true
		},
		same: func(a, b *market.Book) bool { return sameLevels(a.Bids, b.Bids) && sameLevels(a.Asks, b.Asks) },
		read: single(func(ctx context.Context) (r market.Read[*market.Book], err error) {
			if r, err = read(ctx); err == nil && r.Value != nil {
				r.Value = r.Value.Cut(depth)
			}
			return r, err
		}),
		absent: func(b *market.Book) bool { return b == nil }, unknown: "token", mode: mode,
	}
	return withReason(stream(ctx, s, every, k.open([]string{tokenID})), func(reason Reason, u update[*market.Book]) BookUpdate {
		b := BookUpdate{Book: u.Value, Previous: u.Before, Bids: u.Value.Bids, Asks: u.Value.Asks, Meta: u.Meta}
		if b.Delta = deltas && u.Goes && u.Value.Seq != 0 && !reason.whole(); b.Delta {
			b.Bids = market.BookSideDelta(u.Before.Bids, b.Bids, market.SideBuy)
			b.Asks = market.BookSideDelta(u.Before.Asks, b.Asks, market.SideSell)
		}
		return b
	})
}

// Account is an account as the caller of a context sees it, with how to read a part of it.
type Account[T any] struct {
	Topic       market.Topic
	Credentials *market.Credentials
	Read        func(ctx context.Context) (market.Read[*T], error)
}

func (a Account[T]) topic(string) market.Topic { return a.Topic }

// BalanceUpdate is an account's balance; nil where the venue knows the account without one.
type BalanceUpdate struct {
	Balance *market.Balance
	Meta    market.Meta
}

// Balance follows an account's balance.
func Balance(ctx context.Context, s Source, a Account[market.Balance]) Stream[BalanceUpdate] {
	k := kind[*market.Balance]{
		topic: a.topic, personal: true, credentials: a.Credentials,
		state: func(s feed.State) (*market.Balance, bool) {
			if s.Account == nil {
				return nil, false
			}
			return s.Account.Balance, s.Account.Balance != nil
		},
		same: sameBalance, read: single(a.Read), mode: Replace,
	}
	return mapped(stream(ctx, s, 0, k.open([]string{""})), func(u update[*market.Balance]) BalanceUpdate { return BalanceUpdate{u.Value, u.Meta} })
}

// OrdersUpdate is a change of an account's active orders.
type OrdersUpdate struct {
	// Changed are the orders that are new or differ from the event before, or all of them. Closed are those that are gone.
	Changed, Closed []*market.Order
}

// Orders follows an account's active orders.
func Orders(ctx context.Context, s Source, a Account[[]market.Order]) Stream[OrdersUpdate] {
	k := kind[[]market.Order]{
		topic: a.topic, personal: true, credentials: a.Credentials,
		state: func(s feed.State) ([]market.Order, bool) {
			if s.Account == nil {
				return nil, false
			}
			return s.Account.Orders, s.Account.Orders != nil // else they are not known
		},
		same: func(a, b []market.Order) bool {
			return slices.EqualFunc(a, b, func(x, y market.Order) bool { return x.OrderID == y.OrderID && sameOrder(&x, &y) })
		},
		read: single(func(ctx context.Context) (r market.Read[[]market.Order], err error) {
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
	return withReason(stream(ctx, s, 0, k.open([]string{""})), func(reason Reason, u update[[]market.Order]) (o OrdersUpdate) {
		find := func(in []market.Order, id string) int {
			return slices.IndexFunc(in, func(o market.Order) bool { return o.OrderID == id })
		}
		for i := range u.Value {
			if j := find(u.Before, u.Value[i].OrderID); reason.whole() || j < 0 || !sameOrder(&u.Before[j], &u.Value[i]) {
				o.Changed = append(o.Changed, &u.Value[i])
			}
		}
		for i := range u.Before {
			if find(u.Value, u.Before[i].OrderID) < 0 {
				o.Closed = append(o.Closed, &u.Before[i])
			}
		}
		return o
	})
}

// errNoAnswer is that of an account for which the venue has nothing where it must have something.
var errNoAnswer error = market.Errorf(market.CodeUpstreamBadResponse, "the venue gave no answer for this account")

func sameLevels(a, b []market.Level) bool {
	return slices.EqualFunc(a, b, func(x, y market.Level) bool { return x.Price.Cmp(y.Price) == 0 && x.Size.Cmp(y.Size) == 0 })
}

func sameDecimal(a, b *market.Decimal) bool { return a == b || a != nil && b != nil && a.Cmp(*b) == 0 }

func sameBalance(a, b *market.Balance) bool {
	return a == b || a != nil && b != nil && sameDecimal(a.PortfolioValue, b.PortfolioValue) && sameDecimal(a.CashBalance, b.CashBalance) &&
		sameDecimal(a.PositionsValue, b.PositionsValue) && sameDecimal(a.TotalValue, b.TotalValue)
}

func sameOrder(a, b *market.Order) bool {
	return a.Status == b.Status && a.StatusRaw == b.StatusRaw && a.Price.Cmp(b.Price) == 0 && a.Size.Cmp(b.Size) == 0 && a.FilledSize.Cmp(b.FilledSize) == 0
}

// single makes a read of a list of one of a read of one.
func single[T any](read func(ctx context.Context) (market.Read[T], error)) func(context.Context, []string) []market.Result[market.Read[T]] {
	return func(ctx context.Context, _ []string) []market.Result[market.Read[T]] {
		value, err := read(ctx)
		return []market.Result[market.Read[T]]{{Value: value, Err: err}}
	}
}

// converted returns results with other values.
func converted[T, U any](results []market.Result[market.Read[T]], value func(T) U) []market.Result[market.Read[U]] {
	out := make([]market.Result[market.Read[U]], len(results))
	for i, r := range results {
		out[i].Err = r.Err
		out[i].Value = market.Read[U]{Value: value(r.Value.Value), Meta: r.Value.Meta}
	}
	return out
}

// mapped returns a stream with other values.
func mapped[T, U any](in Stream[T], value func(T) U) Stream[U] {
	return withReason(in, func(_ Reason, v T) U { return value(v) })
}

// withReason is mapped for values that depend on the reason.
func withReason[T, U any](in Stream[T], value func(Reason, T) U) Stream[U] {
	return func(yield func(Event[U], error) bool) {
		for e, err := range in {
			out := Event[U]{Reason: e.Reason, Problem: e.Problem}
			if err == nil && e.Problem == nil {
				out.Value = value(e.Reason, e.Value)
			}
			if !yield(out, err) {
				return
			}
		}
	}
}
