package polymarket

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

const (
	positionsPage = 500
	// recordsPage is the greatest number of trades or activities on a page.
	recordsPage  = 100
	maxPositions = 10_000
	// maxPages bounds the number of pages of an account's positions. A page may be short or empty although there is a next page.
	maxPages = 100
	// A position may move to another page while the driver reads the pages. The driver then reads all pages again. It reads them at
	// most maxReads times.
	maxReads = 3
)

// leastSize is the smallest size of a position or a trade, because Polymarket's tokens have six decimals. By default, Polymarket leaves
// out positions of less than 0.1 shares and trades of less than 0.01 shares, and a least size of 0 means the default.
const leastSize = "0.000001"

func forAccount(e upstream.Endpoint, a market.Address) *rest.Request {
	rq := &rest.Request{Endpoint: e, Keys: 1, Account: a}
	rq.Query.Set("user", string(a))
	return rq
}

// Balance returns the value of an account's positions, or nil if Polymarket does not know the account. Polymarket adds the costs of
// combos whose result is not known. The value contains no cash, because Polymarket's APIs do not report balances on the blockchain.
func (d *Driver) Balance(ctx context.Context, call upstream.Call, a market.Address) (*market.Balance, error) {
	const e = upstream.EndpointBalance
	return rest.WithBackoff(d.data, e, d.data.Digest(string(a)), func() (*market.Balance, error) {
		payload, err := d.data.Get(ctx, call, forAccount(e, a))
		if err != nil {
			return nil, rest.NilIfNotFound(err)
		}
		if data := payload.Member("data"); data.Kind() != wire.Missing {
			payload = data
		}
		var n rest.Drift
		b, err := readValue(payload, a, n.Add)
		d.data.Report(e, n)
		return b, formError(e, err)
	})
}

// Positions returns all positions of an account from all pages, including positions of less than one share and those in archived
// markets. It does not return combos, which are positions in several markets. If it cannot return all positions, it returns an error,
// because clients sum the positions.
func (d *Driver) Positions(ctx context.Context, call upstream.Call, a market.Address) ([]market.Position, error) {
	const e = upstream.EndpointPositions
	return rest.WithBackoff(d.data, e, d.data.Digest(string(a)), func() ([]market.Position, error) {
		for range maxReads {
			rows, moved, err := d.allPositions(ctx, call, a)
			if err != nil || !moved {
				market.NumberPositions(rows)
				return rows, err
			}
		}
		return nil, rest.UnknownForm(e, "the list changes while it is read")
	})
}

// allPositions reads all pages. If the same token is on two pages, moved is true: a row has moved to another page during the read,
// so another row may be missing.
func (d *Driver) allPositions(ctx context.Context, call upstream.Call, a market.Address) (all []market.Position, moved bool, err error) {
	const e = upstream.EndpointPositions
	all = []market.Position{}
	seen, cursor, cursors := make(map[string]int), "", make(map[string]bool)
	for page := 1; ; page++ {
		rq := forAccount(e, a)
		rq.Query.Set("filter_type", "TOKENS").Set("filter_amount", leastSize).Set("include_archived", "true").
			Set("limit", strconv.Itoa(positionsPage)).Set("cursor", cursor)
		p, err := d.page(ctx, call, rq)
		if err != nil {
			return nil, false, err
		}
		var n rest.Drift
		good, bad := rest.ReadRows(p.rows, n.Add, readPosition)
		d.data.Report(e, n)
		if len(bad) > 0 {
			return nil, false, rest.UnknownForm(e, bad[0].Where+": "+bad[0].Err.Error())
		}
		for i := range good {
			id := good[i].TokenID
			moved = moved || seen[id] != 0 && seen[id] != page
			seen[id] = page
		}
		cursors[cursor] = true
		switch all = append(all, good...); {
		case len(all) > maxPositions:
			return nil, false, rest.UnknownForm(e, "the list has more than 10000 rows")
		case p.next == "", cursors[p.next] && !p.more:
			return all, moved, nil
		case cursors[p.next], page == maxPages:
			return nil, false, rest.UnknownForm(e, "the list does not end")
		}
		cursor = p.next
	}
}

func (d *Driver) page(ctx context.Context, call upstream.Call, rq *rest.Request) (dataPage, error) {
	payload, err := d.data.Get(ctx, call, rq)
	if err != nil {
		return dataPage{}, rest.BadIfNotFound(rq.Endpoint, err)
	}
	p, err := readPage(payload)
	return p, formError(rq.Endpoint, err)
}

// pageStart is the start of a page of records. Numbering counts equal rows across pages, so that equal rows on different pages get
// different ids.
type pageStart struct {
	// At is the cursor of the venue.
	At        string           `json:"c,omitempty"`
	Numbering market.Numbering `json:"n,omitzero"`
}

func (p pageStart) after(next string) string {
	if p.At = next; next == "" {
		return ""
	}
	return rest.PageToken(p)
}

type records[T any] struct {
	rows []T
	bad  rest.RowErrors
	at   pageStart
	// next is the venue's cursor of the next page. It is empty on the last page.
	next string
}

// readRecords requests one page of the records that rq selects. The parameters from and to bound the times of the records. The
// request has both bounds rounded down to whole seconds, and not before 1970, because the venue accepts no negative numbers. A
// limit of 0 means recordsPage.
func readRecords[T any](ctx context.Context, call upstream.Call, d *Driver, rq *rest.Request, from, to queries.Bound, limit int, page string, read func(*wire.Row) T) (records[T], error) {
	e, list := rq.Endpoint, cmp.Or(string(rq.Account), rq.Query.String())
	if limit < 0 || limit > recordsPage {
		return records[T]{}, rest.BadInput(e, "a page has 1 to 100 rows")
	}
	if limit == 0 {
		limit = recordsPage
	}
	var at pageStart
	if err := rest.ParsePage(e, page, &at); err != nil {
		return records[T]{}, err
	}
	start := int64(1) // if the request has no start, the venue leaves out old records
	if t, ok := from.Get(); ok {
		start = max(t.Unix(), 1)
	}
	rq.Query.Set("start", strconv.FormatInt(start, 10))
	if t, ok := to.Get(); ok {
		rq.Query.Set("end", strconv.FormatInt(max(t.Unix(), 1), 10))
	}
	rq.Query.Set("limit", strconv.Itoa(limit)).Set("cursor", at.At)
	out := records[T]{at: at}
	return rest.WithBackoff(d.data, e, d.data.Digest(list), func() (records[T], error) {
		p, err := d.page(ctx, call, rq)
		if err != nil {
			return out, err
		}
		var n rest.Drift
		out.rows, out.bad = rest.ReadRows(p.rows, n.Add, read)
		out.next = rest.NextCursor(p.next, at.At)
		d.data.Report(e, n)
		if len(out.rows) == 0 && len(out.bad) > 0 {
			return out, rest.UnknownForm(e, out.bad.WhyEmpty())
		}
		return out, nil
	})
}

// Trades returns one page of an account's trades as maker and as taker, newest first. Unreadable rows are reported in LeftOut. If
// q.MarketID is not a condition id, the page is empty.
func (d *Driver) Trades(ctx context.Context, call upstream.Call, a market.Address, q queries.Trades) (*queries.TradePage, error) {
	const e = upstream.EndpointTrades
	rq := forAccount(e, a)
	if q.MarketID != "" {
		if err := rest.CheckID(e, q.MarketID); err != nil {
			return nil, err
		}
		if !isCondition(q.MarketID) {
			return &queries.TradePage{}, nil
		}
	}
	id := conditionID(q.MarketID)
	rq.Query.Set("condition", id).Set("taker_only", "false").Set("filter_type", "TOKENS").Set("filter_amount", leastSize)
	p, err := readRecords(ctx, call, d, rq, q.From, q.To, q.Limit, q.Page, readTrade)
	if err != nil {
		return nil, err
	}
	kept := slices.DeleteFunc(p.at.Numbering.NumberTrades(p.rows), func(t market.Trade) bool {
		return q.MarketID != "" && !strings.EqualFold(t.MarketID, id) || queries.IsOutside(t.Timestamp, q.From, q.To)
	})
	return &queries.TradePage{Trades: kept, Next: p.at.after(p.next), LeftOut: p.bad.LeftOut(e)}, nil
}

// History returns one page of an account's activity, newest first. Unreadable rows are reported in LeftOut. If q.Kinds is empty,
// the page has no records of the kind market.HistoryTransfer. Polymarket sends these records only if the request contains their
// types. If Polymarket has no records of the kinds in q.Kinds, the page is empty.
func (d *Driver) History(ctx context.Context, call upstream.Call, a market.Address, q queries.History) (*queries.HistoryPage, error) {
	const e = upstream.EndpointHistory
	var types []string
	for _, kind := range q.Kinds {
		types = append(types, activityTypes[kind]...)
	}
	rq := forAccount(e, a)
	switch {
	case slices.Contains(q.Kinds, market.HistoryUnknown): // the venue cannot filter by unknown types, so request all types
	case len(q.Kinds) > 0 && len(types) == 0:
		return &queries.HistoryPage{}, nil // Polymarket has no such records
	default:
		rq.Query.List("type", types)
	}
	rq.Query.Set("exclude_deposits_withdrawals", "false")
	p, err := readRecords(ctx, call, d, rq, q.From, q.To, q.Limit, q.Page, readRecord)
	if err != nil {
		return nil, err
	}
	kept := slices.DeleteFunc(p.at.Numbering.NumberRecords(p.rows), func(h market.HistoryRecord) bool {
		return len(q.Kinds) > 0 && !slices.Contains(q.Kinds, h.Kind) || queries.IsOutside(h.Timestamp, q.From, q.To)
	})
	return &queries.HistoryPage{Records: kept, Next: p.at.after(p.next), LeftOut: p.bad.LeftOut(e)}, nil
}
