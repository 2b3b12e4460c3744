package kalshi

import (
	"maps"
	"slices"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/server"
)

// statuses maps a market's status at the demo venue to Kalshi's status. filters maps the demo venue's status to the value of the
// query parameter "status" that selects markets with this status.
var (
	statuses = map[string]string{
		"UPCOMING": "initialized", "OPEN": "active", "CLOSED": "closed", "DISPUTED": "disputed", "RESOLVED": "finalized", "CANCELLED": "finalized",
	}
	filters = map[string]string{
		"UPCOMING": "unopened", "OPEN": "open", "CLOSED": "closed", "DISPUTED": "closed", "RESOLVED": "settled", "CANCELLED": "settled",
	}
)

// The default and the greatest number of markets on a page.
const (
	defaultPage = 100
	maxPage     = 1000
)

func (v *Venue) answerMarkets(c *server.Call) any {
	status, timed := c.Get("status"), c.Get("min_close_ts")+c.Get("max_close_ts") != ""
	if !slices.Contains([]string{"", "unopened", "open", "paused", "closed", "settled"}, status) || timed && status != "" && status != "closed" {
		return c.Refuse(wrong("status filter is not valid"))
	}
	from := number(c, "min_close_ts", 0, 1<<40)
	until := number(c, "max_close_ts", 1<<40, 1<<40)
	return v.page(c, func(m *market) bool {
		endAt := m.state.EndAt.Unix()
		return !m.archived && (status == "" || filters[m.state.Status] == status) && endAt >= int64(from) && endAt <= int64(until)
	})
}

func (v *Venue) answerArchive(c *server.Call) any {
	return v.page(c, func(m *market) bool { return m.archived })
}

// page returns a page of the markets that match the filters in the query and for which keep returns true.
func (v *Venue) page(c *server.Call, keep func(*market) bool) any {
	limit := number(c, "limit", defaultPage, maxPage)
	if limit == 0 {
		limit = defaultPage
	}
	after := readCursor(c)
	tickers := list(c.Query, "tickers")
	v.mu.Lock()
	defer v.mu.Unlock()
	rows, cursor := []object{}, ""
	for _, m := range v.markets[min(after, len(v.markets)):] {
		matches := func(name, own string) bool { return c.Get(name) == "" || c.Get(name) == own }
		if !keep(m) || len(tickers) > 0 && !slices.Contains(tickers, m.ticker) || !matches("event_ticker", m.event.ticker) || !matches("series_ticker", m.event.series) {
			continue
		}
		if len(rows) == limit {
			cursor = server.Cursor(uint64(m.number))
			break
		}
		rows = append(rows, v.row(m))
	}
	return object{"markets": rows, "cursor": cursor}
}

func (v *Venue) answerEvent(c *server.Call) any {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.eventByTicker[c.PathValue("ticker")]
	if e == nil {
		return c.Refuse(notFound)
	}
	out, rows := v.event(e)
	if c.Get("with_nested_markets") == "true" {
		out["markets"] = rows
	}
	return object{"event": out, "markets": rows}
}

// event returns an event without its markets, and separately the event's markets that are not archived.
func (v *Venue) event(e *event) (out object, rows []object) {
	rows = []object{}
	for _, m := range e.markets {
		if !m.archived {
			rows = append(rows, v.row(m))
		}
	}
	return object{
		"event_ticker": e.ticker, "series_ticker": e.series, "title": e.title, "sub_title": "", "collateral_return_type": "",
		"mutually_exclusive": e.exclusive, "category": e.markets[0].state.Category, "available_on_brokers": true, "product_metadata": nil,
	}, rows
}

const maxEvents = 200

// answerEvents answers a page of the events. If the request names a status, at least one market of the event must have this status.
// As documented, the list has all events, but no archived markets.
func (v *Venue) answerEvents(c *server.Call) any {
	status := c.Get("status")
	if !slices.Contains([]string{"", "unopened", "open", "closed", "settled"}, status) {
		return c.Refuse(wrong("status filter is not valid"))
	}
	limit := number(c, "limit", maxEvents, maxEvents)
	after := readCursor(c)
	v.mu.Lock()
	defer v.mu.Unlock()
	events, cursor := []object{}, ""
	for i := min(after, len(v.events)); i < len(v.events); i++ {
		e := v.events[i]
		if !slices.ContainsFunc(e.markets, func(m *market) bool { return status == "" || filters[m.state.Status] == status }) {
			continue
		}
		if len(events) == max(limit, 1) {
			cursor = server.Cursor(uint64(i))
			break
		}
		out, rows := v.event(e)
		if c.Get("with_nested_markets") == "true" {
			out["markets"] = rows
		}
		events = append(events, out)
	}
	return object{"events": events, "cursor": cursor}
}

func (v *Venue) answerSeries(c *server.Call) any {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range v.events {
		if e.series == c.PathValue("ticker") {
			s := e.markets[0].state
			return object{"series": object{
				"ticker": e.series, "frequency": "custom", "title": s.Category, "category": s.Category, "tags": s.Tags,
				"settlement_sources": []object{{"name": "Official record", "url": "https://results.invalid/"}}, "contract_url": "", "contract_terms_url": "",
				"fee_type": "quadratic", "fee_multiplier": 1, "additional_prohibitions": []string{},
			}}
		}
	}
	return c.Refuse(notFound)
}

func (v *Venue) row(m *market) object {
	s := m.state
	bid, ask := best(m.bids[0]), payout-best(m.bids[1])
	volume := demo.Size(int64(s.Volume) / 10_000) // as if each contract had cost a dollar
	out := object{
		"ticker": m.ticker, "event_ticker": m.event.ticker, "market_type": "binary", "title": m.title, "subtitle": "", "yes_sub_title": m.yes, "no_sub_title": m.no,
		"created_time": iso(s.StartAt), "updated_time": iso(s.UpdatedAt), "open_time": iso(s.StartAt), "close_time": iso(s.EndAt),
		"latest_expiration_time": iso(s.EndAt.Add(7 * 24 * time.Hour)), "settlement_timer_seconds": 3600, "status": statuses[s.Status],
		"yes_bid_dollars": dollars(bid), "yes_bid_size_fp": contractCount(m.bids[0][bid]), "yes_ask_dollars": dollars(ask), "yes_ask_size_fp": contractCount(m.bids[1][payout-ask]),
		"no_bid_dollars": dollars(payout - ask), "no_ask_dollars": dollars(payout - bid), "last_price_dollars": dollars(m.last),
		"previous_yes_bid_dollars": dollars(bid), "previous_yes_ask_dollars": dollars(ask), "previous_price_dollars": dollars(m.last),
		"volume_fp": contractCount(volume), "volume_24h_fp": contractCount(volume / 10), "open_interest_fp": contractCount(volume / 3), "liquidity_dollars": "0.0000",
		"notional_value_dollars": dollars(payout), "result": "", "can_close_early": true, "fractional_trading_enabled": true, "expiration_value": "",
		"rules_primary": s.Description, "rules_secondary": "", "price_level_structure": "custom",
		"price_ranges": []object{{"start": dollars(0), "end": dollars(payout), "step": dollars(s.TickSize)}},
	}
	switch {
	case s.Status == "CANCELLED":
		out["result"], out["settlement_value_dollars"], out["settlement_ts"] = "scalar", dollars(payout/2), iso(s.ClosedAt)
	case s.Status == "RESOLVED":
		result, value := m.result()
		out["result"], out["settlement_value_dollars"], out["settlement_ts"] = result, dollars(value), iso(s.ResolvedAt)
	}
	return out
}

func (m *market) result() (string, demo.Price) {
	if m.state.Winner == m.outcome {
		return "yes", payout
	}
	return "no", 0
}

func iso(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999Z") }

// best returns the highest price, or 0 for an empty side.
func best(bids map[demo.Price]demo.Size) (p demo.Price) {
	for at := range bids {
		p = max(p, at)
	}
	return p
}

// levels returns the best bids of a side, worst first. It returns at most depth bids, or all bids if depth is 0.
func levels(bids map[demo.Price]demo.Size, depth int) [][2]string {
	prices := slices.Sorted(maps.Keys(bids))
	if depth > 0 && len(prices) > depth {
		prices = prices[len(prices)-depth:]
	}
	out := make([][2]string, len(prices))
	for i, p := range prices {
		out[i] = [2]string{dollars(p), contractCount(bids[p])}
	}
	return out
}

func (m *market) restBook(depth int) object {
	if m == nil || m.state.Status != "OPEN" {
		return object{"yes_dollars": [][2]string{}, "no_dollars": [][2]string{}}
	}
	return object{"yes_dollars": levels(m.bids[0], depth), "no_dollars": levels(m.bids[1], depth)}
}

func (v *Venue) answerBook(c *server.Call) any {
	depth := number(c, "depth", 0, 100)
	v.mu.Lock()
	defer v.mu.Unlock()
	m := v.byTicker[c.PathValue("ticker")]
	if m == nil {
		return c.Refuse(notFound)
	}
	return object{"orderbook_fp": m.restBook(depth)}
}
