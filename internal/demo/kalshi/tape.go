package kalshi

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"

	"oddsgraph/internal/demo"
)

// execution is a trade of a market with the price of YES. taker is the index of the outcome that the taker bought.
type execution struct {
	demo.Trade
	taker int
}

// executionOf converts a trade of the demo venue's token t.
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

// tape returns the last trades of a market, newest first. For a silent market it omits trades from before the simulator was
// created.
func (v *Venue) tape(m *market) (all []execution) {
	tokens := []string{m.demoToken}
	if m.binary {
		v.mu.Lock()
		tokens = m.state.TokenIDs
		v.mu.Unlock()
	}
	for _, id := range tokens {
		for _, trade := range v.engine.Tape(id) {
			if !m.silent || trade.At.After(v.created) {
				all = append(all, v.byDemoToken[id].executionOf(trade))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b execution) int { return b.At.Compare(a.At) })
	return all
}

// answerTrades answers a page of the trades of a market. A cursor contains the id of the last trade of a page.
func (v *Venue) answerTrades(_ *http.Request, query url.Values) (any, *refusal) {
	limit, err := number(query, "limit", defaultPage, maxPage)
	if err != nil {
		return nil, err
	}
	last, bad := base64.URLEncoding.DecodeString(query.Get("cursor"))
	if bad != nil {
		return nil, refuse(http.StatusBadRequest, "invalid_parameters", "invalid cursor")
	}
	all := []execution{}
	if m := v.byTicker[query.Get("ticker")]; m != nil {
		all = v.tape(m)
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
		rows[i]["ticker"], rows[i]["created_time"] = query.Get("ticker"), iso(p.At)
	}
	return object{"trades": rows, "cursor": cursor}, nil
}

// row returns the members of a trade that REST and the stream have in common.
func (p execution) row() object {
	return object{
		"trade_id": p.ID, "yes_price_dollars": dollars(p.Price), "no_price_dollars": dollars(payout - p.Price), "count_fp": contractCount(p.Size),
		"taker_side": sideNames[p.taker], "taker_outcome_side": sideNames[p.taker], "taker_book_side": [...]string{"bid", "ask"}[p.taker],
		"is_block_trade": false,
	}
}
