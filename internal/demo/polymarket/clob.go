package polymarket

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Limits of the CLOB API.
const (
	maxTokens    = 500
	maxHistories = 20
)

// wantedTokens reads a request for several tokens. It leaves out unknown tokens and tokens without an order book.
func (v *Venue) wantedTokens(r *request) (out []token) {
	var in []struct {
		TokenID string `json:"token_id"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in) == 0 {
		r.Refuse(refuse(http.StatusBadRequest, "Invalid payload"))
		return nil
	}
	if r.Keys = len(in); len(in) > maxTokens {
		r.Refuse(refuse(http.StatusBadRequest, "Payload exceeds the limit"))
		return nil
	}
	for _, row := range in {
		if t, ok := v.tokens[row.TokenID]; ok && t.market.hasBooks() {
			out = append(out, t)
		}
	}
	v.random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] }) // Polymarket answers in another order
	return out
}

// answerRows answers a list with a row for each requested token that has an order book.
func (v *Venue) answerRows(r *request, row func(token) object) any {
	v.mu.Lock()
	defer v.mu.Unlock()
	rows := []object{}
	for _, w := range v.wantedTokens(r) {
		rows = append(rows, row(w))
	}
	return rows
}

func (v *Venue) answerBooks(r *request) any {
	return v.answerRows(r, func(t token) object {
		b := t.market.wholeBook(t.index)
		b["min_order_size"], b["neg_risk"] = t.market.state.MinOrder.String(), t.market.event.negRisk
		return b
	})
}

func (v *Venue) answerMidpoints(r *request) any {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := object{}
	for _, w := range v.wantedTokens(r) {
		if p, ok := w.market.book.forToken(w.index).middle(); ok {
			out[w.market.tokenIDs[w.index]] = p.String()
		}
	}
	return out
}

func (v *Venue) answerLastTrades(r *request) any {
	return v.answerRows(r, func(w token) object {
		if last := w.market.last[w.index]; last.side != "" {
			return object{"token_id": w.market.tokenIDs[w.index], "price": last.price.String(), "side": string(last.side)}
		}
		return object{"token_id": w.market.tokenIDs[w.index], "price": "0.5", "side": ""} // Polymarket's answer for a token that never traded
	})
}

func (v *Venue) answerHistories(r *request) any {
	var in struct {
		Markets  []string `json:"markets"`
		Start    int64    `json:"start_ts"`
		End      int64    `json:"end_ts"`
		Fidelity int64    `json:"fidelity"` // minutes
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Markets) == 0 {
		return r.Refuse(refuse(http.StatusBadRequest, "Invalid payload"))
	}
	if r.Keys = len(in.Markets); len(in.Markets) > maxHistories {
		return r.Refuse(refuse(http.StatusBadRequest, "Payload exceeds the limit"))
	}
	history := object{}
	for _, id := range in.Markets {
		t, ok := v.tokens[id]
		if !ok {
			continue
		}
		points := []object{}
		next := time.Time{}
		list := v.Engine().History(t.market.demoTokens[0], time.Unix(in.Start, 0), time.Unix(in.End+1, 0))
		for i := len(list) - 1; i >= 0; i-- {
			p := list[i]
			if p.At.Before(next) {
				continue
			}
			next = p.At.Add(time.Duration(max(in.Fidelity, 1)) * time.Minute)
			if t.index == 1 {
				p.Price = payout - p.Price
			}
			points = append(points, object{"t": p.At.Unix(), "p": jsonNumber(p.Price)})
		}
		history[id] = points
	}
	return object{"history": history}
}

// answerClobMarket answers a market with its winner, which Gamma sometimes omits.
func (v *Venue) answerClobMarket(r *request) any {
	v.mu.Lock()
	defer v.mu.Unlock()
	m := v.byCondition[r.PathValue("condition")]
	if m == nil {
		return r.Refuse(refuse(http.StatusNotFound, "market not found"))
	}
	tokens := make([]object, 2)
	for i, id := range m.tokenIDs {
		tokens[i] = object{"token_id": id, "outcome": m.labels[i], "price": jsonNumber(m.displayPrice(i)), "winner": m.winner() == i}
	}
	return object{
		"condition_id": m.conditionID, "question_id": "0x" + digest("question", m.conditionID), "question": m.question,
		"description": m.state.Description, "market_slug": m.slug, "tokens": tokens, "tags": m.state.Tags,
		"active": true, "closed": m.isClosed(), "archived": false, "accepting_orders": m.hasBooks(), "enable_order_book": m.hasBooks(),
		"accepting_order_timestamp": m.state.StartAt.UTC().Format(time.RFC3339), "end_date_iso": m.state.EndAt.UTC().Format(time.RFC3339),
		"game_start_time": nil, "minimum_order_size": jsonNumber(m.state.MinOrder), "minimum_tick_size": jsonNumber(m.state.TickSize),
		"seconds_delay": 0, "fpmm": "", "maker_base_fee": 0, "taker_base_fee": 0, "notifications_enabled": true,
		"neg_risk": m.event.negRisk, "neg_risk_market_id": m.negRiskID(), "neg_risk_request_id": "", "icon": m.picture(), "image": m.picture(),
		"rewards": object{"rates": nil, "min_size": 0, "max_spread": 0}, "is_50_50_outcome": m.state.Status == "CANCELLED",
	}
}

// negRiskID returns an id that all mutually exclusive markets of an event share, or "" if the event's markets do not exclude each
// other.
func (m *market) negRiskID() string {
	if !m.event.negRisk {
		return ""
	}
	return "0x" + digest("negRisk", m.event.id)
}

// picture returns a coloured picture, which needs no host.
func (m *market) picture() string {
	return fmt.Sprintf("data:image/svg+xml,%%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'%%3E"+
		"%%3Cpath fill='hsl(%d 50%%25 45%%25)' d='M0 0h8v8H0'/%%3E%%3Cpath fill='%%23fff' d='M1 6l2-3 2 1 2-3v5'/%%3E%%3C/svg%%3E", m.number%12*30)
}
