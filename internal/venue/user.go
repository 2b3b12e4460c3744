package venue

import (
	"context"
	"slices"
	"strconv"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/wire"
)

const (
	// wholePage is the page size of reads that are followed to their end.
	wholePage = 500
	// maxRows bounds what is followed.
	maxRows = 10_000
	// maxPages bounds the calls of one read, whatever the venue makes of the page size.
	maxPages = 200
	// roundPage: a page of a multiple of so many rows, without a word on the next one, may have been cut by the venue.
	roundPage = 100
	// maxReads bounds how often a list that changes between its pages is read.
	maxReads = 3
	// maxAlike bounds the pages that are followed while each equals one before.
	maxAlike = 20
)

var (
	fieldRecordID = wire.Names("id", "recordId", "tradeId").Or("tradeID")
	fieldType     = wire.Names("type", "kind")
	fieldAmount   = wire.Names("amount", "usdcSize")
)

// Balance returns a wallet's money, or nil when the venue does not know the wallet. The total is the venue's, else
// positionsValue + cash, else portfolioValue + cash.
func (c *Client) Balance(ctx context.Context, a market.Address) (*market.Balance, error) {
	const e = market.EndpointBalance
	return guarded(c, e, c.backoffs.account(ctx, a), func() (*market.Balance, error) {
		payload, err := c.get(ctx, forAccount(e, a))
		if err != nil || payload.IsNull() {
			return nil, orAbsent(err)
		}
		var n notes
		b, err := decodeBalance(payload, &n)
		c.report(e, n)
		return b, err
	})
}

func decodeBalance(payload wire.Value, n *notes) (*market.Balance, error) {
	m, ok := objectOf(payload, "balance")
	if !ok {
		return nil, unknownForm(market.EndpointBalance, "not an object")
	}
	r := wire.NewRow(m, n.add)
	b := r.Balance()
	if r.Err != nil {
		n.add("bad element")
		return nil, unknownForm(market.EndpointBalance, r.Err.Error())
	}
	return b, nil
}

// Positions returns all positions of a wallet. It is whole or an error: pages are followed to their end, and one row
// that cannot be read, a page that repeats another, or more than 10,000 rows make it UPSTREAM_BAD_RESPONSE. A row is not
// left out here as it is elsewhere: portfolios are summed over these lists, and a wrong sum is worse than none.
//
// Positions have no ids. Two rows of one outcome are two lots, unless one row moved to a later page during the read, so a
// list that has such rows on different pages is read again until two reads agree.
func (c *Client) Positions(ctx context.Context, a market.Address) ([]market.Position, error) {
	l := wholeList[market.Position]{endpoint: market.EndpointPositions, name: "positions", read: (*wire.Row).Position, key: func(p *market.Position) string {
		return p.MarketID + "\x00" + p.TokenID + "\x00" + p.Outcome
	}}
	return guarded(c, l.endpoint, c.backoffs.account(ctx, a), func() ([]market.Position, error) {
		var before []market.Position
		for range maxReads {
			rows, moved, err := l.follow(ctx, c, a)
			if err != nil || !moved || slices.EqualFunc(before, rows, sameHolding) {
				market.NumberPositions(rows)
				return rows, err
			}
			before = rows
		}
		return nil, unknownForm(l.endpoint, "the list changes while it is read")
	})
}

// sameHolding reports whether two rows say the same of a holding, apart from its price.
func sameHolding(a, b market.Position) bool {
	return a.MarketID == b.MarketID && a.TokenID == b.TokenID && a.Outcome == b.Outcome && a.Size.Cmp(b.Size) == 0 &&
		(a.AvgPrice == b.AvgPrice || a.AvgPrice != nil && b.AvgPrice != nil && a.AvgPrice.Cmp(*b.AvgPrice) == 0)
}

// Orders returns all active orders of a wallet, each once; it is whole or an error, as Positions is.
func (c *Client) Orders(ctx context.Context, a market.Address) ([]market.Order, error) {
	l := wholeList[market.Order]{endpoint: market.EndpointOrders, name: "orders", read: (*wire.Row).Order, unique: true,
		key: func(o *market.Order) string { return o.OrderID }}
	return guarded(c, l.endpoint, c.backoffs.account(ctx, a), func() ([]market.Order, error) {
		rows, _, err := l.follow(ctx, c, a)
		return rows, err
	})
}

// wholeList is a wallet's list that is read to its end.
type wholeList[T any] struct {
	endpoint market.Endpoint
	name     string
	read     func(*wire.Row) T
	key      func(*T) string
	// unique says that no two rows have one key: the second is the first one again.
	unique bool
}

// follow reads every page of a list. moved reports that two pages have rows of one key. A page that equals an earlier one is
// the end where only its predecessor's length spoke for it, and an error otherwise, unless it may be another page of lots.
func (l wholeList[T]) follow(ctx context.Context, c *Client, a market.Address) (all []T, moved bool, err error) {
	all = []T{}
	seen, pages := make(map[string]int), make(map[string]bool) // seen is the number of the page that a key was on
	at, guessed := place{}, false
	for n := range maxPages {
		page, err := wholePageAt(ctx, c, l, a, at)
		if guessed && err != nil && refusesForm(err) {
			return all, moved, nil // nothing but its length spoke for another page, and the venue knows of none
		}
		if err != nil {
			return nil, false, err
		}
		print := fingerprint(page.raw)
		repeated := len(page.rows) > 0 && pages[print]
		if repeated && !l.unique {
			if repeated, err = l.repeats(ctx, c, a, at, guessed, page.raw, n); err != nil {
				return nil, false, err
			}
		}
		pages[print] = true
		if repeated && guessed {
			return all, moved, nil
		}
		fresh := page.rows[:0]
		for _, row := range page.rows {
			on, known := seen[l.key(&row)]
			if !known {
				seen[l.key(&row)] = n
			}
			moved = moved || known && on != n
			if !known || !l.unique {
				fresh = append(fresh, row)
			}
		}
		last := page.next.isStart()
		switch {
		case guessed && len(fresh) == 0:
			return all, moved, nil
		case repeated, len(fresh) == 0 && !(last && len(page.raw) == 0):
			return nil, false, unknownForm(l.endpoint, "the venue repeats its pages")
		case len(all)+len(fresh) > maxRows:
			return nil, false, unknownForm(l.endpoint, "the list has more than 10000 rows")
		}
		if all = append(all, fresh...); last {
			return all, moved, nil
		}
		at, guessed = page.next, page.guessed
	}
	return nil, false, unknownForm(l.endpoint, "the list has too many pages")
}

// repeats reports whether page n, whose rows equal those of an earlier page, is that page again. Lots that are all alike
// may fill several pages.
func (l wholeList[T]) repeats(ctx context.Context, c *Client, a market.Address, at place, guessed bool, rows []wire.Value, n int) (bool, error) {
	uniform := alike(rows)
	switch {
	case n > maxAlike, !uniform && (guessed || at.cursor != ""):
		return true, nil
	case at.cursor != "":
		return false, nil
	}
	heeds, err := c.heedsOffset(ctx, l.ask(a), rows, l.name)
	return !heeds, err
}

// ask returns the request for the list without a page.
func (l wholeList[T]) ask(a market.Address) *request {
	rq := forAccount(l.endpoint, a)
	rq.query.set("limit", strconv.Itoa(wholePage))
	return rq
}

// page is one page of a wallet's list.
type page[T any] struct {
	turn
	rows []T
	// raw are the rows as the venue wrote them.
	raw []wire.Value
}

// wholePageAt reads one page of which every row must be good.
func wholePageAt[T any](ctx context.Context, c *Client, l wholeList[T], a market.Address, at place) (page[T], error) {
	e, rq := l.endpoint, l.ask(a)
	at.apply(&rq.query)
	payload, err := c.get(ctx, rq)
	if err != nil {
		return page[T]{}, orBad(e, err)
	}
	list, ok := rowsOf(payload, l.name)
	if !ok {
		return page[T]{}, unknownForm(e, "no list of "+l.name)
	}
	limit := wholePage
	if n := len(list.rows); n > 0 && n%roundPage == 0 {
		limit = n // the venue may have a limit of its own
	}
	t, err := turnOf(e, list, at, limit)
	if err != nil {
		return page[T]{}, err
	}
	var n notes
	rows, note := make([]T, 0, len(list.rows)), n.add
	for i, v := range list.rows {
		r := wire.NewRow(v, note)
		if rows = append(rows, l.read(r)); r.Err != nil {
			n.add("bad row")
			c.report(e, n)
			return page[T]{}, market.Errorf(market.CodeUpstreamBadResponse, "row %d of the venue's answer could not be read (%s)", at.offset+i+1, e).
				Because(&cause{kind: causeUnreadable, text: r.Err.Error()})
		}
	}
	c.report(e, n)
	return page[T]{turn: t, rows: rows, raw: list.rows}, nil
}

// Trades returns one page of a wallet's trades, newest first. Rows that cannot be read, or that the venue should have
// left out, are left out, and LeftOut tells of the former; the page may be longer than asked for where the venue ignores
// the limit.
func (c *Client) Trades(ctx context.Context, a market.Address, q market.TradeQuery) (*market.TradePage, error) {
	const e = market.EndpointTrades
	if q.MarketID != "" {
		if err := checkID(e, q.MarketID); err != nil {
			return nil, err
		}
	}
	list, t, n, err := c.pageOf(ctx, func() *request {
		rq := forAccount(e, a)
		rq.query.set("marketId", q.MarketID).instant("from", q.From).instant("to", q.To)
		return rq
	}, q.Limit, q.Page, "trades")
	if err != nil {
		return nil, err
	}
	defer func() { c.report(e, n) }()
	trades, bad := readRows(list.rows, &n, (*wire.Row).UserTrade)
	if len(trades) == 0 && len(bad) > 0 {
		return nil, unknownForm(e, bad.whyEmpty())
	}
	t.carry.NumberTrades(trades)
	kept := slices.DeleteFunc(trades, func(trade market.Trade) bool {
		return q.MarketID != "" && trade.MarketID != q.MarketID || outside(trade.Timestamp, q.From, q.To)
	})
	slices.SortStableFunc(kept, func(a, b market.Trade) int { return b.Timestamp.Compare(a.Timestamp) })
	return &market.TradePage{Trades: kept, Next: t.following(), Total: t.total, LeftOut: bad.leftOut(e)}, nil
}

// History returns one page of a wallet's history, newest first; as with Trades.
func (c *Client) History(ctx context.Context, a market.Address, q market.HistoryQuery) (*market.HistoryPage, error) {
	const e = market.EndpointHistory
	kinds := make([]string, len(q.Kinds))
	for i, k := range q.Kinds {
		kinds[i] = string(k)
	}
	list, t, n, err := c.pageOf(ctx, func() *request {
		rq := forAccount(e, a)
		rq.query.list("type", kinds).instant("from", q.From).instant("to", q.To)
		return rq
	}, q.Limit, q.Page, "history", "trades")
	if err != nil {
		return nil, err
	}
	defer func() { c.report(e, n) }()
	onlyTrades := list.page.Member("trades").Kind() == wire.List
	records, bad := readRows(list.rows, &n, func(r *wire.Row) market.HistoryRecord { return readRecord(r, onlyTrades) })
	if len(records) == 0 && len(bad) > 0 {
		return nil, unknownForm(e, bad.whyEmpty())
	}
	t.carry.NumberRecords(records)
	kept := slices.DeleteFunc(records, func(h market.HistoryRecord) bool {
		return len(q.Kinds) > 0 && !slices.Contains(q.Kinds, h.Kind) || outside(h.Timestamp, q.From, q.To)
	})
	slices.SortStableFunc(kept, func(a, b market.HistoryRecord) int { return b.Timestamp.Compare(a.Timestamp) })
	return &market.HistoryPage{Records: kept, Next: t.following(), Total: t.total, LeftOut: bad.leftOut(e)}, nil
}

// readRecord reads a row of history. In a list of trades a row without a type is a trade.
func readRecord(r *wire.Row, trade bool) market.HistoryRecord {
	kind, side := r.Text(fieldType), r.Text(wire.FieldSide)
	if kind == "" && trade {
		kind = string(market.HistoryTrade)
	}
	h := market.HistoryRecord{
		ID:              r.ID(fieldRecordID),
		Kind:            market.ParseHistoryKind(kind),
		KindRaw:         kind,
		Timestamp:       r.Instant(wire.FieldTradeAt),
		Amount:          r.Decimal(fieldAmount),
		MarketID:        r.ID(wire.FieldMarketID),
		TokenID:         r.ID(wire.FieldUserToken),
		Outcome:         r.Text(wire.FieldLabel),
		Price:           r.Decimal(wire.FieldPrice),
		Size:            r.Decimal(wire.FieldHeld),
		TransactionHash: r.Text(wire.FieldTxHash),
	}
	if side != "" {
		h.Side = market.ParseSide(side)
	}
	return h
}

// pageOf asks for one page of a wallet's list. ask returns the request for the list without a page. A page that repeats the
// one before is the end where the venue ignores offsets; elsewhere its rows look like those before.
func (c *Client) pageOf(ctx context.Context, ask func() *request, limit int, token string, keys ...string) (found, turn, notes, error) {
	var n notes
	rq := ask()
	if limit < 0 || limit > maxLimit {
		return found{}, turn{}, nil, badInput(rq.endpoint, "a page has 1 to 100 rows")
	}
	if limit == 0 {
		limit = maxLimit
	}
	at, err := parsePlace(rq.endpoint, token)
	if err != nil {
		return found{}, turn{}, nil, err
	}
	rq.query.set("limit", strconv.Itoa(limit))
	at.apply(&rq.query)
	backoff := c.backoffs.account(ctx, rq.account)
	payload, err := guarded(c, rq.endpoint, backoff, func() (wire.Value, error) { return c.get(ctx, rq) })
	if err != nil {
		return found{}, turn{}, nil, orBad(rq.endpoint, err)
	}
	list, ok := rowsOf(payload, keys...)
	if !ok {
		return found{}, turn{}, nil, unknownForm(rq.endpoint, "no list of rows")
	}
	if at.repeats(list.rows) {
		heeds, err := guarded(c, rq.endpoint, backoff, func() (bool, error) {
			far := ask()
			far.query.set("limit", strconv.Itoa(limit))
			return c.heedsOffset(ctx, far, list.rows, keys...)
		})
		switch {
		case err != nil:
			return found{}, turn{}, nil, err
		case !heeds:
			n.add("repeated page")
			return found{page: list.page}, turn{}, n, nil
		}
	}
	t, err := turnOf(rq.endpoint, list, at, limit)
	if err == nil {
		t.carry, err = market.ParseNumbering(at.counted)
	}
	return list, t, n, err
}

// outside tells whether t is not from from to to, both included; zero bounds are none.
func outside(t, from, to time.Time) bool {
	return !from.IsZero() && t.Before(from) || !to.IsZero() && t.After(to)
}
