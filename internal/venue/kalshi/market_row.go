package kalshi

import (
	"cmp"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldTicker         = wire.NewField("ticker").Interned()
	fieldEventTicker    = wire.NewField("event_ticker").Interned()
	fieldTitle          = wire.NewField("title")
	fieldYesSubTitle    = wire.NewField("yes_sub_title")
	fieldRulesPrimary   = wire.NewField("rules_primary")
	fieldRulesSecondary = wire.NewField("rules_secondary")
	fieldStatus         = wire.NewField("status").Interned()
	fieldResult         = wire.NewField("result").Interned()
	fieldOpenTime       = wire.NewField("open_time")
	fieldCloseTime      = wire.NewField("close_time")
	fieldCreatedTime    = wire.NewField("created_time")
	fieldUpdatedTime    = wire.NewField("updated_time")
	fieldSettledAt      = wire.NewField("settlement_ts")
	fieldPriceRanges    = wire.NewField("price_ranges")
	fieldStep           = wire.NewField("step")
)

// statuses maps Kalshi's states of a market to the statuses of the GraphQL API. An inactive market is only paused, so it is still
// open. The result of a determined market is published, but can still be disputed. An amended market has a new result instead of
// the disputed result.
var statuses = map[string]market.Status{
	"initialized": market.StatusUpcoming,
	"active":      market.StatusOpen,
	"inactive":    market.StatusOpen,
	"closed":      market.StatusClosed,
	"disputed":    market.StatusDisputed,
	"determined":  market.StatusResolved,
	"amended":     market.StatusResolved,
	"finalized":   market.StatusResolved,
}

func statusOf(raw string) market.Status {
	if s, ok := statuses[raw]; ok {
		return s
	}
	return market.StatusUnknown
}

// minOrder is the least number of contracts of an order.
var minOrder = market.NewDecimal(1, -2)

// readMarket reads a market. Its second argument is the event of the market, or nil. readMarket leaves out the volumes, because
// Kalshi's volumes are numbers of contracts, but market.Market has amounts of money.
func readMarket(r *wire.Row, e *eventRow) *market.Market {
	ticker := r.RequireID(fieldTicker)
	m := &market.Market{
		MarketID:       ticker,
		Slug:           slug(ticker),
		Question:       r.Text(fieldTitle),
		GroupItemTitle: r.Text(fieldYesSubTitle),
		Description:    strings.TrimSpace(r.Text(fieldRulesPrimary) + "\n\n" + r.Text(fieldRulesSecondary)),
		StatusRaw:      r.RequireText(fieldStatus),
		StartsAt:       r.Time(fieldOpenTime),
		EndsAt:         r.Time(fieldCloseTime),
		TickSize:       tickSize(r),
		MinOrderSize:   &minOrder,
		EventID:        r.ID(fieldEventTicker),
		CreatedAt:      r.Time(fieldCreatedTime),
		UpdatedAt:      r.Time(fieldUpdatedTime),
	}
	if !isTicker(ticker) {
		r.Fail(fieldTicker, "is not a ticker")
	}
	m.Status, m.AcceptingOrders = statusOf(m.StatusRaw), new(m.StatusRaw == "active")
	m.EventSlug = slug(m.EventID)
	if e != nil {
		e.fill(m)
	}
	m.Question = cmp.Or(m.Question, m.GroupItemTitle)
	readOutcomes(r, m)
	return m
}

// tickSize returns the step between prices. If the step depends on the price, is missing or is unreadable, tickSize returns nil.
func tickSize(r *wire.Row) *market.Decimal {
	list, ok := r.Of(fieldPriceRanges).List()
	if !ok && !r.Of(fieldPriceRanges).IsNull() {
		r.Unreadable(fieldPriceRanges)
	}
	var step *market.Decimal
	for _, v := range list {
		d, ok := fieldStep.Of(v).Decimal()
		if !ok || step != nil && step.Cmp(d) != 0 {
			return nil
		}
		step = &d
	}
	return step
}

// readOutcomes sets the two outcomes, and the winner and the resolution if the result is published. With the result "scalar", no
// outcome wins: each outcome pays a part of the full payout, and this part is the price of the outcome.
func readOutcomes(r *wire.Row, m *market.Market) {
	q := readQuote(r)
	m.Outcomes = make([]market.Outcome, len(sides))
	for _, s := range sides {
		m.Outcomes[s] = market.Outcome{TokenID: s.token(m.MarketID), Label: labels[s]}
		if p := q.price(m.MarketID, s); p != nil {
			m.Outcomes[s].Price = &p.Price
		}
	}
	if m.Status != market.StatusResolved {
		return
	}
	m.Resolution = &market.Resolution{ResolvedAt: r.Time(fieldSettledAt)}
	for _, s := range sides {
		if !strings.EqualFold(r.Text(fieldResult), labels[s]) {
			continue
		}
		m.Outcomes[s].Winner, m.Outcomes[s.other()].Winner = new(true), new(false)
		m.Resolution.Outcome = labels[s]
	}
}
