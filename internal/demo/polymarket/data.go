package polymarket

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/server"
)

// The maximum numbers of rows on a page of the Data API.
const (
	maxPositions = 500
	maxTrades    = 100
)

var addressForm = regexp.MustCompile(`^0x[0-9a-fA-F]{40}$`)

func (r *request) user() string {
	if !addressForm.MatchString(r.Get("user")) {
		r.Refuse(refuse(http.StatusBadRequest, "required query param 'user' not provided"))
	}
	return strings.ToLower(r.Get("user"))
}

// rows returns a page in the form of the Data API. next is the cursor of the next page. It is empty on the last page.
func rows(list []object, limit int, next string) object {
	cursor := any(nil)
	if next != "" {
		cursor = next
	}
	return object{"data": list, "pagination": object{"limit": limit, "offset": 0, "has_more": next != "", "next_cursor": cursor}}
}

func (v *Venue) answerPositions(r *request) any {
	user := r.user()
	limit := r.integer("limit", 100, maxPositions)
	from := r.cursor("cursor")
	least := r.leastSize(0.1)
	all := slices.DeleteFunc(v.Engine().Positions(user), func(p demo.Position) bool { return r.amount(p.Size, p.CurrentPrice) < least })
	first := min(int(from), len(all))
	page, next := all[first:], ""
	if len(page) > limit {
		page, next = page[:limit], server.Cursor(uint64(first+limit))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	list := []object{}
	for _, p := range page {
		list = append(list, v.position(user, p))
	}
	return rows(list, limit, next)
}

// leastSize returns the least amount of a row: the parameter filter_amount, or the given default if the parameter is missing, 0 or
// invalid.
func (r *request) leastSize(fallback float64) float64 {
	if least, err := strconv.ParseFloat(r.Get("filter_amount"), 64); err == nil && least > 0 {
		return least
	}
	return fallback
}

// amount returns what filter_amount counts: shares, or their value if filter_type is CASH.
func (r *request) amount(size demo.Size, price demo.Price) float64 {
	text := size.String()
	if r.Get("filter_type") == "CASH" {
		text = notional(size, price).String()
	}
	amount, _ := strconv.ParseFloat(text, 64) // a decimal number
	return amount
}

func (v *Venue) position(user string, p demo.Position) object {
	t := v.byDemoToken[p.TokenID]
	m := t.market
	entry, value := notional(p.Size, p.AvgPrice), notional(p.Size, p.CurrentPrice)
	percent := 0.0
	if entry > 0 {
		percent = float64(p.UnrealizedPnl) * 100 / float64(entry)
	}
	status := "OPEN"
	if m.winner() >= 0 {
		status = "REDEEMABLE"
	}
	return object{
		"proxy_wallet": user, "condition_id": m.conditionID, "token_id": m.tokenIDs[t.index], "outcome": m.labels[t.index],
		"outcome_index": t.index, "opposite_outcome": m.labels[1-t.index], "opposite_token_id": m.tokenIDs[1-t.index],
		"title": m.question, "slug": m.slug, "event_id": m.event.id, "event_slug": m.event.slug, "end_date": m.state.EndAt.UTC().Format(time.DateOnly),
		"current_size": jsonNumber(p.Size), "total_size": jsonNumber(p.Size), "avg_price": jsonNumber(p.AvgPrice), "current_price": jsonNumber(p.CurrentPrice),
		"entry_cost_usdc": jsonNumber(entry), "entry_fees_usdc": 0, "total_cost_usdc": jsonNumber(entry), "current_value": jsonNumber(value),
		"unrealized_pnl": jsonNumber(p.UnrealizedPnl), "realized_pnl": 0, "total_pnl": jsonNumber(p.UnrealizedPnl), "percent_pnl": percent,
		"percent_realized_pnl": 0, "status": status, "redeemable": status == "REDEEMABLE", "mergeable": false, "negative_risk": m.event.negRisk,
		"archived": false, "last_event_at": m.state.UpdatedAt.Unix(),
	}
}

func notional(s demo.Size, p demo.Price) demo.Money { return demo.Money(int64(s) * int64(p)) }

func (v *Venue) answerValue(r *request) any {
	user := r.user()
	b, _ := v.Engine().Balance(user)
	return object{"data": object{"proxy_wallet": user, "value": jsonNumber(b.PortfolioValue)}}
}

func (v *Venue) answerTrades(r *request) any {
	if r.Get("user") == "" && r.Get("condition") != "" {
		return v.answerTape(r)
	}
	least := r.leastSize(0.01)
	return v.answerRecords(r, func(rec demo.Record) bool { return rec.Kind == "TRADE" && r.amount(rec.Size, rec.Price) >= least }, (*Venue).trade)
}

// answerActivity answers the activity of a wallet. It includes deposits and withdrawals only if the request has
// exclude_deposits_withdrawals=false, and tips only if the request has their type.
func (v *Venue) answerActivity(r *request) any {
	known := []string{"TRADE", "SPLIT", "MERGE", "REDEEM", "REWARD", "CONVERSION", "MIGRATION"}
	if r.Get("exclude_deposits_withdrawals") == "false" || r.Get("excludeDepositsWithdrawals") == "false" {
		known = append(known, "DEPOSIT", "WITHDRAWAL")
	}
	types := r.list("type")
	return v.answerRecords(r, func(rec demo.Record) bool {
		t := activityType(rec)
		return slices.Contains(types, t) && (t == "TIP" || slices.Contains(known, t)) || len(types) == 0 && slices.Contains(known, t)
	}, (*Venue).activity)
}

// activityType returns the type of the activity for a record. The demo venue has fees, which Polymarket's activity does not contain.
// It has no conversions, migrations and tips, so some of its fees take their place. The type of all other fees is FEE.
func activityType(r demo.Record) string {
	if r.Kind != "FEE" {
		return r.Kind
	}
	return [...]string{"CONVERSION", "MIGRATION", "TIP", "TIP", "FEE"}[r.Number%5]
}

// answerRecords answers a page of a wallet's records, newest first. A cursor contains 1 plus the number of the last record of a
// page.
func (v *Venue) answerRecords(r *request, keep func(demo.Record) bool, row func(*Venue, string, demo.Record) object) any {
	user := r.user()
	limit := r.integer("limit", maxTrades, maxTrades)
	before := r.cursor("cursor")
	start, _ := strconv.ParseInt(r.Get("start"), 10, 64)
	end, _ := strconv.ParseInt(r.Get("end"), 10, 64)
	conditions := slices.Concat(r.list("condition"), r.list("condition_id"), r.list("market"))
	records := v.Engine().Records(user)
	v.mu.Lock()
	defer v.mu.Unlock()
	list, last, next := []object{}, uint64(0), ""
	for _, rec := range records {
		if before > 0 && rec.Number+1 >= before || !keep(rec) || rec.At.Unix() < start || end > 0 && rec.At.Unix() > end ||
			len(conditions) > 0 && (rec.TokenID == "" || !slices.Contains(conditions, v.byDemoToken[rec.TokenID].market.conditionID)) {
			continue
		}
		if len(list) == limit {
			next = server.Cursor(last + 1)
			break
		}
		list, last = append(list, row(v, user, rec)), rec.Number
	}
	return rows(list, limit, next)
}

// unknownIndex is the outcome_index of rows for which the Data API does not know the index. The event_slug of these rows is empty.
// Trades among them still have the label of the outcome.
const unknownIndex = 999

func (v *Venue) trade(user string, r demo.Record) object {
	t := v.byDemoToken[r.TokenID]
	m := t.market
	out := object{
		"proxy_wallet": user, "side": string(r.Side), "token_id": m.tokenIDs[t.index], "condition_id": m.conditionID, "size": jsonNumber(r.Size),
		"price": jsonNumber(r.Price), "timestamp": r.At.Unix(), "title": m.question, "slug": m.slug, "event_slug": m.event.slug,
		"outcome": m.labels[t.index], "outcome_index": t.index, "transaction_hash": "0x" + r.Transaction,
	}
	if r.Number%4 == 3 {
		out["outcome_index"], out["event_slug"] = unknownIndex, ""
	}
	return out
}

func (v *Venue) activity(user string, r demo.Record) object {
	out := object{
		"proxy_wallet": user, "side": "", "token_id": "", "condition_id": "", "size": jsonNumber(r.Size), "price": jsonNumber(r.Price),
		"timestamp": r.At.Unix(), "title": "", "slug": "", "event_slug": "", "outcome": "", "outcome_index": unknownIndex,
		"transaction_hash": "0x" + r.Transaction,
	}
	if r.TokenID != "" {
		out = v.trade(user, r)
	}
	amount := r.Amount
	if amount < 0 {
		amount = -amount
	}
	out["type"], out["usdc_size"] = activityType(r), jsonNumber(amount)
	switch activityType(r) {
	case "CONVERSION", "MIGRATION": // tokens for other tokens, without money
		out["size"], out["usdc_size"], out["side"], out["price"] = jsonNumber(amount), 0, "", 0
		out["token_id"], out["outcome"], out["outcome_index"] = "", "", unknownIndex
	case "TIP": // the size is the money
		out["size"], out["usdc_size"], out["side"], out["price"] = jsonNumber(amount), 0, [...]string{"IN", "OUT"}[r.Number%2], 0
		for _, name := range []string{"token_id", "condition_id", "title", "slug", "event_slug", "outcome"} {
			out[name] = ""
		}
		out["outcome_index"] = unknownIndex
	}
	return out
}
