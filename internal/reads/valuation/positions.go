package valuation

import (
	"cmp"
	"slices"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
)

// Sort is a sort order of an account's positions.
type Sort string

// The sort orders of positions. SortVenue keeps the venue's order. SortEndsAt sorts by the end of the market, earliest first. All
// other orders sort by a figure of the position, greatest first.
const (
	SortVenue      Sort = "VENUE"
	SortValue      Sort = "VALUE"
	SortPnl        Sort = "PNL"
	SortPnlPercent Sort = "PNL_PERCENT"
	SortEndsAt     Sort = "ENDS_AT"
)

// Reads is the source of the data for valuing and sorting positions. A method returns an error if the read failed, or if the value
// has not arrived yet.
type Reads interface {
	Market(market.MarketRef) (reads.Value[*market.Market], error)
	Price(tokenID string) (reads.Value[*market.Price], error)
	Spread(tokenID string) (reads.Value[*market.Spread], error)
}

// readMarkets reads the markets of all positions and returns the first error. It continues after an error, so that all markets
// that are not cached are fetched together.
func readMarkets(from Reads, positions []*market.Position) ([]*market.Market, error) {
	markets, failed := make([]*market.Market, len(positions)), error(nil)
	for i, p := range positions {
		read, err := from.Market(market.MarketRef{By: market.ByMarketID, Value: p.MarketID})
		markets[i], failed = read.Value, cmp.Or(failed, err)
	}
	return markets, failed
}

// KeepRedeemable returns the positions that can be redeemed if *wanted is true, or the positions that cannot be redeemed if
// *wanted is false. It omits positions for which Market.Redeems returns nil. If wanted is nil, it returns all positions.
func KeepRedeemable(from Reads, positions []*market.Position, wanted *bool) ([]*market.Position, error) {
	if wanted == nil {
		return positions, nil
	}
	markets, err := readMarkets(from, positions)
	if err != nil {
		return nil, err
	}
	var kept []*market.Position
	for i, m := range markets {
		if can := m.Redeems(positions[i]); can != nil && *can == *wanted {
			kept = append(kept, positions[i])
		}
	}
	return kept, nil
}

// ReadQuotes reads the quotes that are needed to price a position by a basis. If the token is known, ReadQuotes requests the price
// even if the market has not arrived yet or its read failed. So both can be fetched together.
func ReadQuotes(from Reads, p *market.Position, basis market.PriceBasis) (q Quotes, err error) {
	token := p.TokenID
	if basis == "" || basis == market.BasisSettlement || basis != market.BasisPosition && token == "" {
		q.Market, err = from.Market(market.MarketRef{By: market.ByMarketID, Value: p.MarketID})
		if q.Outcome = q.Market.Value.OutcomeOf(p); token == "" && q.Outcome != nil {
			token = q.Outcome.TokenID
		}
	}
	if token == "" || basis == "" && q.Market.Value != nil && q.Market.Value.SettlementPrice(q.Outcome) != nil {
		return q, err
	}
	if basis == "" || basis == market.BasisVenue || basis == market.BasisLast {
		var failed error
		q.Price, failed = from.Price(token)
		err = cmp.Or(err, failed)
	}
	if err != nil {
		return q, err
	}
	switch {
	case basis == "" && q.Price.Value == nil && !isClosed(q.Market.Value), basis == market.BasisMidpoint, basis == market.BasisBestBid, basis == market.BasisBestAsk:
		q.Spread, err = from.Spread(token)
	}
	return q, err
}

// isClosed reports whether trading in a market is known to have ended. ReadQuotes does not read the spread of such a market as a
// substitute for a missing price.
func isClosed(m *market.Market) bool {
	if m == nil {
		return false
	}
	switch m.Status {
	case market.StatusClosed, market.StatusResolved, market.StatusCancelled:
		return true
	case market.StatusDisputed:
		return m.AcceptingOrders != nil && !*m.AcceptingOrders
	}
	return false
}

// All returns the quotes and the valuation of each position. A valuation is nil if no price of the position is known or a read for
// the position failed. All returns the error of the first failed read. After an error, the valuations must not be summed.
func All(from Reads, positions []*market.Position, meta reads.Meta, basis market.PriceBasis) ([]Quotes, []*Valuation, error) {
	quotes, valuations, failed := make([]Quotes, len(positions)), make([]*Valuation, len(positions)), error(nil)
	for i, p := range positions {
		var err error
		if quotes[i], err = ReadQuotes(from, p, basis); err == nil {
			valuations[i] = Of(p, meta, &quotes[i], basis)
		} else if failed == nil {
			failed = err
		}
	}
	return quotes, valuations, failed
}

// SortPositions sorts positions in place. The sort is stable. Positions without the figure to sort by come last. meta is the Meta
// of the list.
func SortPositions(from Reads, positions []*market.Position, meta reads.Meta, by Sort) error {
	switch by {
	case SortVenue:
		return nil
	case SortEndsAt:
		markets, err := readMarkets(from, positions)
		sortBy(positions, func(i int) *time.Time {
			if m := markets[i]; m != nil && !m.EndsAt.IsZero() {
				return &m.EndsAt
			}
			return nil
		}, time.Time.Compare)
		return err
	}
	_, valuations, err := All(from, positions, meta, "")
	sortBy(positions, func(i int) *market.Decimal {
		switch v := valuations[i]; {
		case v == nil:
			return nil
		case by == SortValue:
			return &v.Value
		case by == SortPnl:
			return v.UnrealizedPnl
		default:
			return v.UnrealizedPnlPercent
		}
	}, func(a, b market.Decimal) int { return b.Cmp(a) })
	return err
}

// sortBy sorts positions by a figure. figure(i) returns the figure of the position that has the index i before the sort. Positions
// without a figure come last.
func sortBy[F any](positions []*market.Position, figure func(i int) *F, compare func(a, b F) int) {
	figures := make(map[*market.Position]*F, len(positions))
	for i, p := range positions {
		figures[p] = figure(i)
	}
	slices.SortStableFunc(positions, func(a, b *market.Position) int {
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
