package generic

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// accountPage is a page of an account's trades or history.
type accountPage struct {
	rest.RowList
	pageInfo
	drift rest.Drift
}

// readPage reads one page of an account's trades or history. filter sets the parameters that select rows. The venue may ignore them,
// so the calling function must filter the rows again. A limit of 0 means maxPageSize. keys are the names of the JSON members that may
// contain the list.
//
// If a page begins like the page before, one call with an offset beyond every list shows whether the venue ignores offsets.
func (c reading) readPage(ctx context.Context, e upstream.Endpoint, a market.Address, filter func(to *rest.Query), limit int, token string, keys ...string) (p accountPage, err error) {
	if limit < 0 || limit > maxPageSize {
		return p, rest.BadInput(e, "a page has 1 to 100 rows")
	}
	limit = cmp.Or(limit, maxPageSize)
	start, err := parsePageToken(e, token)
	if err != nil {
		return p, err
	}
	l := &pagedList{endpoint: e, paging: settingAccountPaging, id: fieldRecordID}
	options := c.value(settingAccountOptions) == yes
	get := func(start pageStart) (wire.Value, error) {
		rq := rest.ForAccount(e, a)
		if options {
			filter(&rq.Query)
			rq.Query.Set("limit", strconv.Itoa(limit))
		}
		start.setQuery(&rq.Query)
		return rest.WithBackoff(c.Client.Client, e, c.AccountKey(c.call, a), func() (wire.Value, error) { return c.Get(ctx, c.call, rq) })
	}
	payload, err := get(start)
	switch {
	case start.Guessed && rest.Refused(err):
		return p, nil
	case options && refusesOptions(err):
		return p, c.contradiction(e, settingAccountOptions, "the venue refuses a parameter")
	case err != nil:
		return p, rest.BadIfNotFound(e, err)
	}
	rows, ok := rest.RowsOf(payload, keys...)
	if !ok {
		return p, rest.UnknownForm(e, "no list of rows")
	}
	if l.repeats(start, rows.Rows) { // the venue ignores offsets, or the rows of both pages are alike, or a row has moved
		far, err := get(pageStart{Offset: maxOffset})
		beyond, _ := rest.RowsOf(far, keys...)
		switch {
		case err != nil && !rest.RefusesForm(err):
			return p, rest.BadIfNotFound(e, err)
		case err != nil || !l.repeats(start, beyond.Rows):
		case c.decided(l.paging):
			return p, c.repeatedPage(e, l.paging)
		default:
			return accountPage{RowList: rest.RowList{Object: rows.Object}, drift: rest.Drift{"repeated page"}}, nil
		}
	}
	if n := len(rows.Rows); n > 0 && n%roundCount == 0 {
		limit = min(limit, n) // the venue's pages may be smaller than requested
	}
	p.RowList = rows
	p.pageInfo, err = c.pageInfo(l, rows, start, limit)
	p.numbering = start.Numbering
	return p, err
}

func refusesOptions(err error) bool {
	why, ok := errors.AsType[*rest.CallFailure](err)
	return ok && rest.RefusesParameter(err) && why.Status != http.StatusNotImplemented
}
