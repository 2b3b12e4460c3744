package feed

import (
	"slices"

	"oddsgraph/internal/market"
)

// maxTape is the number of trades that a topic keeps, and that a venue's snapshot has at most by contract.
const maxTape = 50

// tape makes the next tape out of the one that is known and a snapshot of the latest trades, oldest first. What is new
// goes to the readers, unless this is the first that is known; a snapshot that does not reach back to the last trade
// seen leaves a gap.
func tape(before, latest []market.Trade, known bool) (after []market.Trade, items Items) {
	if !known {
		return lastOf(latest), items
	}
	// What lies before the first trade that was seen is older than what is kept.
	i := slices.IndexFunc(latest, func(x market.Trade) bool { return holds(before, &x) })
	switch {
	case i >= 0:
		latest = latest[i:]
	case len(before) > 0:
		items.Gap = len(latest) > 0
	default:
		items.Gap = len(latest) >= maxTape
	}
	after, items.Trades = added(before, latest)
	return after, items
}

// added adds those trades that were not seen before, and returns them.
func added(before, more []market.Trade) (after, fresh []market.Trade) {
	fresh = make([]market.Trade, 0, len(more))
	for i := range more {
		if !holds(before, &more[i]) && !holds(fresh, &more[i]) {
			fresh = append(fresh, more[i])
		}
	}
	return lastOf(slices.Concat(before, fresh)), fresh
}

func lastOf(trades []market.Trade) []market.Trade {
	return slices.Clip(trades[max(0, len(trades)-maxTape):])
}

// holds reports whether a trade is among others, also where the venue gives no ids.
func holds(trades []market.Trade, x *market.Trade) bool {
	return slices.ContainsFunc(trades, func(t market.Trade) bool {
		if x.TradeID != "" || t.TradeID != "" {
			return x.TradeID == t.TradeID
		}
		return x.Timestamp.Equal(t.Timestamp) && x.SideRaw == t.SideRaw && x.TransactionHash == t.TransactionHash &&
			x.Price.Cmp(t.Price) == 0 && x.Size.Cmp(t.Size) == 0
	})
}
