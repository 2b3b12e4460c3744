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
	latest = slices.Clone(latest)
	var n market.Numbering
	n.NumberTrades(latest)
	if !known {
		return lastOf(latest), items
	}
	seen := keysOf(before)
	// What lies before the first trade that was seen is older than what is kept.
	i := slices.IndexFunc(latest, func(x market.Trade) bool { return seen[x.Key()] })
	switch {
	case i >= 0:
		latest = latest[i:]
	case len(before) > 0:
		items.Gap = len(latest) > 0
	default:
		items.Gap = len(latest) >= maxTape
	}
	items.Trades = slices.DeleteFunc(latest, func(x market.Trade) bool {
		known := seen[x.Key()]
		seen[x.Key()] = true
		return known
	})
	return lastOf(slices.Concat(before, items.Trades)), items
}

// added adds the trades of a message that brings what is new, and returns them. A trade without an id may equal one before: in a
// numbered message it is another one, and gets the next ordinal; otherwise it may be the same again, and is dropped.
func added(before, more []market.Trade, numbered bool) (after, fresh []market.Trade) {
	seen := keysOf(before)
	fresh = make([]market.Trade, 0, len(more))
	for _, x := range more {
		if numbered && x.TradeID == "" {
			for seen[x.Key()] {
				x.Ordinal++
			}
		}
		if key := x.Key(); !seen[key] {
			seen[key] = true
			fresh = append(fresh, x)
		}
	}
	return lastOf(slices.Concat(before, fresh)), fresh
}

func lastOf(trades []market.Trade) []market.Trade {
	return slices.Clip(trades[max(0, len(trades)-maxTape):])
}

func keysOf(trades []market.Trade) map[string]bool {
	keys := make(map[string]bool, len(trades)+1)
	for i := range trades {
		keys[trades[i].Key()] = true
	}
	return keys
}
