package feed

import (
	"slices"

	"oddsgraph/internal/market"
)

// maxTape is the number of trades that a topic keeps.
const maxTape = 50

// tape takes a snapshot of the latest trades, oldest first: what is new since the last one seen goes to the watches. A
// snapshot that does not reach back to it leaves a gap.
func (t *topic) tape(latest []market.Trade) {
	if len(t.state.Trades) == 0 {
		t.state.Trades = lastOf(slices.Clone(latest))
		return
	}
	last := key(&t.state.Trades[len(t.state.Trades)-1])
	i := slices.IndexFunc(latest, func(x market.Trade) bool { return key(&x) == last })
	t.trades(latest[i+1:], i < 0 && len(latest) > 0)
}

// trades adds trades that were not seen before.
func (t *topic) trades(more []market.Trade, gap bool) {
	seen := make(map[string]bool, len(t.state.Trades))
	for i := range t.state.Trades {
		seen[key(&t.state.Trades[i])] = true
	}
	fresh := make([]market.Trade, 0, len(more))
	for i := range more {
		if k := key(&more[i]); !seen[k] {
			seen[k] = true
			fresh = append(fresh, more[i])
		}
	}
	if len(fresh) == 0 && !gap {
		return
	}
	t.state.Trades = lastOf(slices.Concat(t.state.Trades, fresh))
	for w := range t.watches {
		w.queue(t.feed.cfg.Queue, Items{Trades: fresh, Gap: gap})
	}
}

func lastOf(trades []market.Trade) []market.Trade {
	return trades[max(0, len(trades)-maxTape):]
}

// key tells a trade from others, also where the venue gives no id.
func key(t *market.Trade) string {
	if t.TradeID != "" {
		return t.TradeID
	}
	return t.Timestamp.String() + t.Price.String() + "/" + t.Size.String() + t.SideRaw + t.TransactionHash
}
