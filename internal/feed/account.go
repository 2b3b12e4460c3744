package feed

import (
	"slices"

	"oddsgraph/internal/market"
)

// open reports whether an order still stands.
func open(o *market.Order) bool {
	return o.Status == market.OrderOpen || o.Status == market.OrderPartiallyFilled || o.Status == market.OrderUnknown
}

func openOrders(orders []market.Order) []market.Order {
	return slices.DeleteFunc(slices.Clone(orders), func(o market.Order) bool { return !open(&o) })
}

// with returns the account with a change made. a may be nil, when changes come without a snapshot.
func (a *Account) with(m *market.Message) *Account {
	next := Account{}
	if a != nil {
		next = *a
	}
	switch m.Kind {
	case market.MessageOrder:
		next.Orders = slices.Clone(next.Orders)
		for _, o := range m.Orders {
			i := slices.IndexFunc(next.Orders, func(x market.Order) bool { return x.OrderID == o.OrderID })
			next.Orders = put(next.Orders, i, o, open(&o))
		}
	case market.MessagePosition:
		next.Positions = slices.Clone(next.Positions)
		for _, p := range m.Positions {
			i := slices.IndexFunc(next.Positions, func(x market.Position) bool {
				return x.MarketID == p.MarketID && x.Outcome == p.Outcome
			})
			next.Positions = put(next.Positions, i, p, p.Size.Sign() != 0)
		}
	case market.MessageBalance:
		next.Balance = m.Balance
	}
	return &next
}

// put replaces element i, adds it where i is negative, or takes it out where it is not to stay.
func put[T any](list []T, i int, v T, stays bool) []T {
	switch {
	case i < 0 && stays:
		return append(list, v)
	case i < 0:
		return list
	case stays:
		list[i] = v
		return list
	default:
		return slices.Delete(list, i, i+1)
	}
}
