package polymarket

import (
	"encoding/base64"
	"net/http"
	"slices"

	"oddsgraph/internal/demo"
)

type execution struct {
	demo.Trade
	token token
}

// tape returns the last trades of a market, newest first. A market with the flag untraded has no trades from before
// Dialect.Created.
func (v *Venue) tape(m *market) (all []execution) {
	for _, trade := range v.Engine().Tape(m.demoTokens...) {
		if !m.untraded || trade.At.After(v.Created) {
			all = append(all, execution{trade, v.byDemoToken[trade.TokenID]})
		}
	}
	return all
}

// answerTape answers a page of the public trades of a market. A cursor contains the id of the last trade of a page.
func (v *Venue) answerTape(r *request) any {
	limit := r.integer("limit", maxTrades, maxTrades)
	if r.Get("taker_only") == "false" {
		return r.Refuse(refuse(http.StatusBadRequest, "the simulator has no trades of makers"))
	}
	last, bad := base64.URLEncoding.DecodeString(r.Get("cursor"))
	if bad != nil {
		return r.Refuse(invalid("invalid cursor"))
	}
	all, least := []execution{}, r.leastSize(0.01)
	if m := v.byCondition[r.Get("condition")]; m != nil {
		all = slices.DeleteFunc(v.tape(m), func(p execution) bool { return r.amount(p.Size, p.Price) < least })
	}
	all = all[slices.IndexFunc(all, func(p execution) bool { return p.ID == string(last) })+1:]
	next := ""
	if len(all) > limit {
		all = all[:limit]
		next = base64.URLEncoding.EncodeToString([]byte(all[limit-1].ID))
	}
	list := make([]object, len(all))
	for i, p := range all {
		list[i] = p.row()
	}
	return rows(list, limit, next)
}

func (p *execution) row() object {
	m := p.token.market
	return object{
		"proxy_wallet": "0x" + digest("wallet", p.ID)[:40], "side": string(p.Side), "token_id": m.tokenIDs[p.token.index], "condition_id": m.conditionID,
		"size": jsonNumber(p.Size), "price": jsonNumber(p.Price), "timestamp": p.At.Unix(), "title": m.question, "slug": m.slug, "event_slug": m.event.slug,
		"outcome": m.labels[p.token.index], "outcome_index": p.token.index, "transaction_hash": transaction(p.Trade),
	}
}

func transaction(t demo.Trade) string { return "0x" + digest("transaction", t.ID) }
