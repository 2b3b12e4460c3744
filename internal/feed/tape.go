package feed

import (
	"slices"

	"oddsgraph/internal/market"
)

// maxTape is the number of latest trades in a tape. By contract, a venue's snapshot contains at most this number.
const maxTape = 50

// mergeTape adds a snapshot of the latest trades, oldest first, to the known tape. items contains the new trades, or nothing if
// no tape was known before. If the snapshot contains no known trade, trades may be missing, and items reports a gap.
func mergeTape(before, latest []market.Trade, known bool) (after []market.Trade, items Items) {
	latest = slices.Clone(latest)
	var n market.Numbering
	n.NumberTrades(latest)
	if !known {
		return newest(latest), items
	}
	seen := keysOf(before)
	// Trades before the first known trade are older than the tape.
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
	return newest(slices.Concat(before, items.Trades)), items
}

// appendNew appends the new trades of a message and returns them as fresh. A trade without an id may equal an earlier trade. In a
// message with a sequence number, such a trade counts as a different trade and gets the next ordinal. In a message without a
// number, such a trade may be a repetition and is dropped.
func appendNew(before, more []market.Trade, numbered bool) (after, fresh []market.Trade) {
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
	return newest(slices.Concat(before, fresh)), fresh
}

func newest(trades []market.Trade) []market.Trade {
	return slices.Clip(trades[max(0, len(trades)-maxTape):])
}

func keysOf(trades []market.Trade) map[string]bool {
	keys := make(map[string]bool, len(trades)+1)
	for i := range trades {
		keys[trades[i].Key()] = true
	}
	return keys
}
