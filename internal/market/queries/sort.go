package queries

import (
	"time"

	"oddsgraph/internal/market"
)

// OutOfOrder returns how many pairs of neighbours are out of order. If they are more than a tenth of all pairs, the venue probably
// ignores the sort. A few pairs may be out of order, because a venue may sort by values that are a few seconds old.
func OutOfOrder[T any](list []T, compare func(a, b T) int) (pairs int, ignored bool) {
	for i := 1; i < len(list); i++ {
		if compare(list[i-1], list[i]) > 0 {
			pairs++
		}
	}
	return pairs, pairs*10 > len(list)-1
}

// SortField is the field of a market by which a sort orders the markets.
type SortField struct {
	Has     func(*market.Market) bool
	compare func(a, b *market.Market) int
}

// SortFields maps sorts to fields. Relevance has no field, because only the venue knows the relevance of a market.
var SortFields = map[Sort]SortField{
	SortVolume:    byDecimal(func(m *market.Market) *market.Decimal { return m.Volume }),
	SortVolume24h: byDecimal(func(m *market.Market) *market.Decimal { return m.Volume24h }),
	SortLiquidity: byDecimal(func(m *market.Market) *market.Decimal { return m.Liquidity }),
	SortStartsAt:  byTime(func(m *market.Market) time.Time { return m.StartsAt }),
	SortEndsAt:    byTime(func(m *market.Market) time.Time { return m.EndsAt }),

	SortPriceChange24h: byDecimal(func(m *market.Market) *market.Decimal { return m.PriceChange24h }),
}

func byDecimal(of func(*market.Market) *market.Decimal) SortField {
	return SortField{
		Has:     func(m *market.Market) bool { return of(m) != nil },
		compare: func(a, b *market.Market) int { return of(a).Cmp(*of(b)) },
	}
}

func byTime(of func(*market.Market) time.Time) SortField {
	return SortField{
		Has:     func(m *market.Market) bool { return !of(m).IsZero() },
		compare: func(a, b *market.Market) int { return of(a).Compare(of(b)) },
	}
}

// Comparer returns the function that compares two markets in direction d. In both directions, markets without the field come last.
func (f SortField) Comparer(d Direction) func(a, b *market.Market) int {
	return func(a, b *market.Market) int {
		switch {
		case !f.Has(a) && !f.Has(b):
			return 0
		case !f.Has(a):
			return 1
		case !f.Has(b):
			return -1
		case d == Ascending:
			return f.compare(a, b)
		}
		return f.compare(b, a)
	}
}
