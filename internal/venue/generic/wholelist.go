package generic

import (
	"context"
	"slices"
	"strconv"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

const (
	// furtherRows is the requested page size of the second and all further pages.
	furtherRows = 500
	maxRows     = 10_000
	// maxPages is more than maxRows/furtherRows, because the venue may use smaller pages than requested.
	maxPages = 200
	// Page sizes are usually multiples of roundCount. If a response does not say whether there is a next page, but the number of
	// its rows is such a multiple, the client guesses that there is a next page.
	roundCount = 10
	// If rows may have moved to other pages during a read, the client reads the whole list again, at most maxReads times in all.
	maxReads = 3
)

type wholeList[T any, K comparable] struct {
	endpoint upstream.Endpoint
	name     string
	read     func(*wire.Row) T
	key      func(*T) K
	// unique reports that two rows with the same key are the same row.
	unique bool
}

// readAll reads every page of a list. If two pages have rows with the same key, moved is true.
//
// If a page that was only guessed repeats an earlier page, the list has ended before. If the venue had announced the page, readAll
// fails. But if l.unique is false, pages for different purchases of one outcome can look the same. All rows of such pages are alike,
// and the page counts if a cursor or the setting account-paging shows that it is another page.
func (l wholeList[T, K]) readAll(ctx context.Context, c reading, a market.Address) (all []T, moved bool, err error) {
	all = []T{}
	seen := make(map[K]int) // maps a key to the number of the first page with this key
	var pages [][]K
	start := pageStart{}
	for n := range maxPages {
		page, err := l.readListPage(ctx, c, a, start)
		if start.Guessed && rest.Refused(err) {
			return all, moved, nil
		}
		if err != nil {
			return nil, false, err
		}
		keys := make([]K, len(page.rows))
		for i := range page.rows {
			keys[i] = l.key(&page.rows[i])
		}
		repeated := len(keys) > 0 && slices.ContainsFunc(pages, func(p []K) bool { return slices.Equal(p, keys) })
		alike := !l.unique && !slices.ContainsFunc(keys, func(k K) bool { return k != keys[0] })
		if repeated && start.Guessed && !alike {
			return all, moved, nil
		}
		if repeated && !(alike && (start.Cursor != "" || c.value(settingAccountPaging) == byOffset)) {
			return nil, false, c.repeatedPage(l.endpoint, settingAccountPaging)
		}
		pages = append(pages, keys)
		fresh, overlap := l.newRows(page.rows, keys, seen, n)
		moved = moved || overlap
		last := page.next.isStart()
		switch {
		case start.Guessed && len(fresh) == 0:
			return all, moved, nil
		case len(fresh) == 0 && !(last && len(keys) == 0):
			return nil, false, c.repeatedPage(l.endpoint, settingAccountPaging)
		case len(all)+len(fresh) > maxRows:
			return nil, false, rest.UnknownForm(l.endpoint, "the list has more than 10000 rows")
		}
		if all = append(all, fresh...); last {
			return all, moved, nil
		}
		start = page.next
	}
	return nil, false, rest.UnknownForm(l.endpoint, "the list has too many pages")
}

// newRows returns the rows of page n, which have the given keys, and adds them to seen, which maps each key to its first page. If
// l.unique is true, newRows leaves out rows whose key was in seen. overlap reports that an earlier page has one of the keys.
func (l wholeList[T, K]) newRows(rows []T, keys []K, seen map[K]int, n int) (fresh []T, overlap bool) {
	fresh = rows[:0]
	for i, key := range keys {
		page, known := seen[key]
		if !known {
			seen[key] = n
		}
		overlap = overlap || known && page != n
		if !known || !l.unique {
			fresh = append(fresh, rows[i])
		}
	}
	return fresh, overlap
}

type listPage[T any] struct {
	pageInfo
	rows []T
}

// readListPage reads one page. It fails if a row is bad. The first page is requested with the address alone, as the documentation
// shows, and further announced pages with a page size.
func (l wholeList[T, K]) readListPage(ctx context.Context, c reading, a market.Address, start pageStart) (listPage[T], error) {
	e, rq := l.endpoint, rest.ForAccount(l.endpoint, a)
	sized := !start.isStart() && !start.Guessed && c.value(settingAccountOptions) == yes
	if sized {
		rq.Query.Set("limit", strconv.Itoa(furtherRows))
	}
	start.setQuery(&rq.Query)
	payload, err := c.Get(ctx, c.call, rq)
	switch {
	case sized && refusesOptions(err):
		return listPage[T]{}, c.contradiction(e, settingAccountOptions, "the venue refuses a parameter")
	case err != nil:
		return listPage[T]{}, rest.BadIfNotFound(e, err)
	}
	list, ok := rest.RowsOf(payload, l.name)
	if !ok {
		return listPage[T]{}, rest.UnknownForm(e, "no list of "+l.name)
	}
	// The number of received rows counts as the page size, because the venue may send fewer rows than requested.
	t, err := c.pageInfo(&pagedList{endpoint: e, paging: settingAccountPaging}, list, start, max(len(list.Rows), 1))
	if err != nil {
		return listPage[T]{}, err
	}
	if t.next.Guessed && len(list.Rows)%roundCount != 0 {
		t.next = pageStart{}
	}
	var drift rest.Drift
	defer func() { c.Report(e, drift) }()
	rows, note := make([]T, 0, len(list.Rows)), drift.Add
	for i, v := range list.Rows {
		r := wire.NewRow(v, note)
		if rows = append(rows, l.read(r)); r.Err != nil {
			drift.Add("bad row")
			return listPage[T]{}, market.Errorf(market.CodeUpstreamBadResponse, "row %d of the venue's answer could not be read (%s)", start.Offset+i+1, e).
				Because(&rest.CallFailure{Kind: rest.KindUnreadable, Text: r.Err.Error()})
		}
	}
	return listPage[T]{pageInfo: t, rows: rows}, nil
}
