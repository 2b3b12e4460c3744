package kalshi

import (
	"encoding/base64"
	"slices"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/server"
)

// execution is a trade of a market with the price of YES. taker is the index of the outcome that the taker bought.
type execution struct {
	demo.Trade
	taker int
}

func (t demoToken) executionOf(trade demo.Trade) execution {
	p := execution{Trade: trade}
	if trade.Side == demo.Sell {
		p.taker = 1
	}
	if t.no {
		p.Price, p.taker = payout-p.Price, 1-p.taker
	}
	return p
}

// tape returns the last trades of a market, newest first.
func (v *Venue) tape(m *market) (all []execution) {
	if m.quiet {
		return nil
	}
	tokens := []string{m.demoToken}
	if m.binary {
		v.mu.Lock()
		tokens = m.state.TokenIDs
		v.mu.Unlock()
	}
	for _, trade := range v.Engine().Tape(tokens...) {
		all = append(all, v.byDemoToken[trade.TokenID].executionOf(trade))
	}
	return all
}

// Kalshi moves trades to an archive when they are about three months old. As reported by users of its API, the list of trades still
// has trades that are up to 18 days older, so the same trades are in the list and in the archive for some time. Here the times are
// shorter, because all trades from before the simulator was created are less than 80 minutes old.
const (
	archivedAfter = 30 * time.Minute
	listedLonger  = 10 * time.Minute
)

// answerTrades answers a page of the trades of a market, without the trades that are only in the archive.
func (v *Venue) answerTrades(c *server.Call) any {
	oldest := v.Created.Add(-archivedAfter - listedLonger)
	return v.pageOfTrades(c, func(p execution) bool { return !p.At.Before(oldest) })
}

func (v *Venue) answerArchivedTrades(c *server.Call) any {
	cutoff := v.Created.Add(-archivedAfter)
	return v.pageOfTrades(c, func(p execution) bool { return p.At.Before(cutoff) })
}

// pageOfTrades answers a page of the trades of a market for which keep returns true. A cursor contains the id of the last trade of
// a page.
func (v *Venue) pageOfTrades(c *server.Call, keep func(execution) bool) any {
	limit := number(c, "limit", defaultPage, maxPage)
	from := number(c, "min_ts", 0, 1<<40)
	until := number(c, "max_ts", 1<<40, 1<<40)
	last, bad := base64.URLEncoding.DecodeString(c.Get("cursor"))
	if bad != nil {
		return c.Refuse(wrong("invalid cursor"))
	}
	all := []execution{}
	if m := v.byTicker[c.Get("ticker")]; m != nil {
		all = slices.DeleteFunc(v.tape(m), func(p execution) bool {
			return !keep(p) || p.At.Before(time.Unix(int64(from), 0)) || p.At.After(time.Unix(int64(until), 0))
		})
	}
	all = all[slices.IndexFunc(all, func(p execution) bool { return p.ID == string(last) })+1:]
	cursor := ""
	if limit = max(limit, 1); len(all) > limit {
		all = all[:limit]
		cursor = base64.URLEncoding.EncodeToString([]byte(all[limit-1].ID))
	}
	rows := make([]object, len(all))
	for i, p := range all {
		rows[i] = p.row()
		rows[i]["ticker"], rows[i]["created_time"] = c.Get("ticker"), iso(p.At)
	}
	return object{"trades": rows, "cursor": cursor}
}

func (p execution) row() object {
	return object{
		"trade_id": p.ID, "yes_price_dollars": dollars(p.Price), "no_price_dollars": dollars(payout - p.Price), "count_fp": contractCount(p.Size),
		"taker_side": sideNames[p.taker], "taker_outcome_side": sideNames[p.taker], "taker_book_side": [...]string{"bid", "ask"}[p.taker],
		"is_block_trade": false,
	}
}
