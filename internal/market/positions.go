package market

import (
	"slices"
	"time"
)

// PositionSort is a sort order of an account's positions.
type PositionSort string

// The sort orders of positions. PositionSortVenue is the venue's order, PositionSortEndsAt sorts by the end of the market,
// earliest first, and the others sort by value, greatest first.
const (
	PositionSortVenue      PositionSort = "VENUE"
	PositionSortValue      PositionSort = "VALUE"
	PositionSortPnl        PositionSort = "PNL"
	PositionSortPnlPercent PositionSort = "PNL_PERCENT"
	PositionSortEndsAt     PositionSort = "ENDS_AT"
)

// PositionReads reads the data that position values and sort orders need. A read may fail because its value is pending.
type PositionReads interface {
	Market(MarketRef) (Read[*Market], error)
	Price(tokenID string) (Read[*Price], error)
	Spread(tokenID string) (Read[*Spread], error)
}

// OutcomeOf returns the outcome that a position holds, or nil if none matches or m is nil.
func (m *Market) OutcomeOf(p *Position) *Outcome {
	switch {
	case m == nil:
		return nil
	case p.TokenID != "":
		return m.OutcomeByToken(p.TokenID)
	default:
		return m.OutcomeByLabel(p.Outcome)
	}
}

// Redeems reports whether the market is resolved and a position's outcome has won. It returns nil if this is not known.
func (m *Market) Redeems(p *Position) *bool {
	switch {
	case m == nil || m.Status == StatusUnknown:
		return nil
	case m.Status != StatusResolved:
		return new(bool)
	default:
		return m.Won(m.OutcomeOf(p))
	}
}

// readMarkets reads the markets of all positions and returns the first error. It does not stop at the error, so that all
// missing markets are fetched together.
func readMarkets(from PositionReads, positions []*Position) ([]*Market, error) {
	markets, failed := make([]*Market, len(positions)), error(nil)
	for i, p := range positions {
		read, err := from.Market(MarketRef{By: ByMarketID, Value: p.MarketID})
		if markets[i] = read.Value; failed == nil {
			failed = err
		}
	}
	return markets, failed
}

// KeepRedeemable returns the positions that can be redeemed (wanted is true) or cannot (false). If wanted is nil, it returns
// all positions.
func KeepRedeemable(from PositionReads, positions []*Position, wanted *bool) ([]*Position, error) {
	if wanted == nil {
		return positions, nil
	}
	markets, err := readMarkets(from, positions)
	if err != nil {
		return nil, err
	}
	var kept []*Position
	for i, m := range markets {
		if can := m.Redeems(positions[i]); can != nil && *can == *wanted {
			kept = append(kept, positions[i])
		}
	}
	return kept, nil
}

// ReadQuotes reads the quotes that price a position by a basis. If the market is pending, ReadQuotes reads the price anyway,
// so that both are fetched together.
func ReadQuotes(from PositionReads, p *Position, basis PriceBasis) (q Quotes, err error) {
	token := p.TokenID
	if basis == "" || basis == BasisSettlement || basis != BasisPosition && token == "" {
		q.Market, err = from.Market(MarketRef{By: ByMarketID, Value: p.MarketID})
		if q.Outcome = q.Market.Value.OutcomeOf(p); token == "" && q.Outcome != nil {
			token = q.Outcome.TokenID
		}
	}
	if token == "" || basis == "" && q.Market.Value != nil && q.Market.Value.SettlementPrice(q.Outcome) != nil {
		return q, err
	}
	if basis == "" || basis == BasisVenue || basis == BasisLast {
		var failed error
		if q.Price, failed = from.Price(token); err == nil {
			err = failed
		}
	}
	if err != nil {
		return q, err
	}
	switch {
	case basis == "" && q.Price.Value == nil, basis == BasisMidpoint, basis == BasisBestBid, basis == BasisBestAsk:
		q.Spread, err = from.Spread(token)
	}
	return q, err
}

// ValueAll prices positions. A valuation is nil if no price of the position is known. The error is the first failed read;
// callers must not sum the valuations then.
func ValueAll(from PositionReads, positions []*Position, held Meta, basis PriceBasis) ([]Quotes, []*Valuation, error) {
	quotes, valuations, failed := make([]Quotes, len(positions)), make([]*Valuation, len(positions)), error(nil)
	for i, p := range positions {
		var err error
		if quotes[i], err = ReadQuotes(from, p, basis); err == nil {
			valuations[i] = Value(p, held, &quotes[i], basis)
		} else if failed == nil {
			failed = err
		}
	}
	return quotes, valuations, failed
}

// SortPositions sorts in place and is stable. Positions without a known figure come last. held is the Meta of the list.
func SortPositions(from PositionReads, positions []*Position, held Meta, by PositionSort) error {
	switch by {
	case PositionSortVenue:
		return nil
	case PositionSortEndsAt:
		markets, err := readMarkets(from, positions)
		sortBy(positions, func(i int) *time.Time {
			if m := markets[i]; m != nil && !m.EndsAt.IsZero() {
				return &m.EndsAt
			}
			return nil
		}, time.Time.Compare)
		return err
	}
	_, valuations, err := ValueAll(from, positions, held, "")
	sortBy(positions, func(i int) *Decimal {
		switch v := valuations[i]; {
		case v == nil:
			return nil
		case by == PositionSortValue:
			return &v.Value
		case by == PositionSortPnl:
			return v.UnrealizedPnl
		default:
			return v.UnrealizedPnlPercent
		}
	}, func(a, b Decimal) int { return b.Cmp(a) })
	return err
}

// sortBy sorts positions by the figures at their indexes. Positions without a figure come last.
func sortBy[F any](positions []*Position, figure func(i int) *F, compare func(a, b F) int) {
	figures := make(map[*Position]*F, len(positions))
	for i, p := range positions {
		figures[p] = figure(i)
	}
	slices.SortStableFunc(positions, func(a, b *Position) int {
		switch x, y := figures[a], figures[b]; {
		case x != nil && y != nil:
			return compare(*x, *y)
		case x != nil:
			return -1
		case y != nil:
			return 1
		}
		return 0
	})
}
