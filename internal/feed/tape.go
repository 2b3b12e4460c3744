package feed

import (
	"slices"

	"oddsgraph/internal/market"
)

// maxTape is the maximum number of trades in a tape, which is the list of a token's latest trades. It is also the number of trades
// in a full snapshot of a venue.
const maxTape = 50

// mergeTape adds the trades of a snapshot to a tape. latest contains the trades of the snapshot. All lists are sorted with the
// oldest trade first. If known is false, the tape was unknown before the snapshot, and items is empty. If known is true, items
// contains the new trades, and items.Gap reports whether trades may be missing. Trades may be missing in two cases:
//   - The tape and the snapshot both have trades, but no trade in common.
//   - The tape is empty, and the snapshot has at least maxTape trades.
func mergeTape(tape, latest []market.Trade, known bool) (merged []market.Trade, items Items) {
	latest = slices.Clone(latest)
	var n market.Numbering
	latest = n.NumberTrades(latest)
	if !known {
		return newest(latest), items
	}
	seen := keysOf(tape)
	// If the snapshot and the tape have common trades, the trades of the snapshot that precede the first common trade are older
	// than the tape.
	i := slices.IndexFunc(latest, func(x market.Trade) bool { return seen[x.Key()] })
	switch {
	case i >= 0:
		latest = latest[i:]
	case len(tape) > 0:
		items.Gap = len(latest) > 0
	default:
		items.Gap = len(latest) >= maxTape
	}
	items.Trades = slices.DeleteFunc(latest, func(x market.Trade) bool {
		known := seen[x.Key()]
		seen[x.Key()] = true
		return known
	})
	return newest(slices.Concat(tape, items.Trades)), items
}

// appendNew appends the new trades of a message to a tape. more contains the trades of the message. appendNew returns the longer
// tape and the new trades. A trade without an id may equal an earlier trade. If numbered is true, the message has a sequence
// number, so such a trade is new and gets the next free Ordinal. If numbered is false, the message may be a repetition, so
// appendNew drops such a trade.
func appendNew(tape, more []market.Trade, numbered bool) (longer, fresh []market.Trade) {
	seen := keysOf(tape)
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
	return newest(slices.Concat(tape, fresh)), fresh
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
