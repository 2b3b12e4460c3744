package feed

import (
	"slices"

	"oddsgraph/internal/market"
)

// open reports whether an order still stands.
func open(o *market.Order) bool {
	return o.Status == market.OrderOpen || o.Status == market.OrderPartiallyFilled || o.Status == market.OrderUnknown
}

// accountOf returns the account of a snapshot. Orders and positions that are nil there are not known.
func accountOf(m *market.Message) *Account {
	return &Account{
		Orders:    slices.DeleteFunc(slices.Clone(m.Orders), func(o market.Order) bool { return !open(&o) }),
		Positions: slices.DeleteFunc(slices.Clone(m.Positions), func(p market.Position) bool { return p.Size.IsZero() }),
		Balance:   m.Balance,
	}
}

// with returns the account with a change made. a may be nil, when changes come without a snapshot: a change of a list
// that is not known leaves it unknown, since its one element is not all of it.
func (a *Account) with(m *market.Message) *Account {
	next := Account{}
	if a != nil {
		next = *a
	}
	switch {
	case m.Kind == market.MessageOrder && next.Orders != nil:
		next.Orders = slices.Clone(next.Orders)
		for _, o := range m.Orders {
			i := slices.IndexFunc(next.Orders, func(x market.Order) bool { return x.OrderID == o.OrderID })
			next.Orders = put(next.Orders, i, o, open(&o))
		}
	case m.Kind == market.MessagePosition && next.Positions != nil:
		next.Positions = slices.Clone(next.Positions)
		for _, p := range m.Positions {
			i := slices.IndexFunc(next.Positions, func(x market.Position) bool {
				return x.MarketID == p.MarketID && x.Outcome == p.Outcome
			})
			next.Positions = put(next.Positions, i, p, !p.Size.IsZero())
		}
	case m.Kind == market.MessageBalance:
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
