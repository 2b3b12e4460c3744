package kalshi

import (
	"errors"

	"oddsgraph/internal/market"
)

// ladder contains the totals of a market's bids, by side and price. The venue streams signed changes, but the codec publishes
// totals. So the codec adds the changes to the totals in the ladder.
type ladder [2]map[string]market.Decimal

func newLadder(b bids) (l ladder) {
	for _, s := range sides {
		l[s] = make(map[string]market.Decimal, len(b[s]))
		for _, level := range b[s] {
			l[s][priceKey(level.Price)] = level.Size
		}
	}
	return l
}

// priceKey returns a text that is the same for equal prices.
func priceKey(p market.Decimal) string { return p.Reduce().String() }

var errNegative = errors.New("a change makes a level negative")

// add adds a signed change to the bids of a side and returns the new total. If the new total is negative, add changes nothing and
// returns errNegative.
func (l ladder) add(s side, price, delta market.Decimal) (total market.Decimal, err error) {
	key := priceKey(price)
	total = l[s][key].Add(delta)
	switch total.Sign() {
	case -1:
		return total, errNegative
	case 0:
		delete(l[s], key)
	default:
		l[s][key] = total
	}
	return total, nil
}

// changeOf returns the change of an outcome's book when bids at a price get a new total size. The argument bidder is the outcome of
// these bids. A bid for the other outcome at p is an ask at 1 − p.
func changeOf(outcome, bidder side, price, total market.Decimal) market.LevelChange {
	if outcome == bidder {
		return market.LevelChange{Side: market.SideBuy, Level: market.Level{Price: price, Size: total}}
	}
	return market.LevelChange{Side: market.SideSell, Level: market.Level{Price: one.Sub(price), Size: total}}
}
