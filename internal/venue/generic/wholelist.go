package generic

import (
	"context"
	"strconv"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

const (
	// wholeListLimit is the requested page size if the venue is known to divide the list into pages.
	wholeListLimit = 500
	maxRows        = 10_000
	// maxPages is more than maxRows/wholeListLimit, because the venue may use smaller pages than requested.
	maxPages = 200
	// Page sizes are usually multiples of roundCount. If a response does not say whether there is a next page, but the number of
	// its rows is such a multiple, the client may guess that there is a next page.
	roundCount = 10
	// If rows may have moved to other pages during a read, the client reads the whole list again, at most maxReads times in all.
	maxReads = 3
	// Pages are numbered from 0. After page maxAlikePages, the client treats every page that equals an earlier page as a repeated
	// page.
	maxAlikePages = 20
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
// The venue may repeat an earlier page. If the client had only guessed that there is one more page, the list ends before the
// repeated page. If the venue had announced one more page, readAll fails. If l.unique is false, rows for different purchases of one
// outcome can look the same, and so can whole pages. If isRepeat then finds no repeated page, readAll keeps the rows of both pages.
func (l wholeList[T, K]) readAll(ctx context.Context, c *Client, a market.Address) (all []T, moved bool, err error) {
	all = []T{}
	seen, pages := make(map[K]int), make(map[string]bool) // seen maps a key to the number of the first page with this key
	traits := &c.traits[l.endpoint]
	page, err := l.firstPage(ctx, c, a)
	limited := page.hasLimit
	start, guessed := pageStart{}, false
	for n := range maxPages {
		if n > 0 {
			page, err = readListPage(ctx, c, l, a, start, limited)
		}
		if guessed && rest.Refused(err) {
			l.recordIfWhole(c, n)
			return all, moved, nil // the client had only guessed that this page exists
		}
		if err != nil {
			return nil, false, err
		}
		last := page.next.isStart()
		var pageHash string
		if n > 0 || !last { // the only page of a list cannot repeat another page
			pageHash = fingerprint(page.raw)
		}
		repeated := len(page.rows) > 0 && pages[pageHash]
		if repeated && !l.unique {
			if repeated, err = l.isRepeat(ctx, c, a, start, guessed, page.raw, n); err != nil {
				return nil, false, err
			}
		}
		pages[pageHash] = true
		if repeated && guessed {
			l.recordIfWhole(c, n)
			return all, moved, nil
		}
		fresh, overlap := l.newRows(page.rows, seen, n)
		moved = moved || overlap
		switch {
		case guessed && len(fresh) == 0:
			if len(page.raw) > 0 {
				l.recordIfWhole(c, n)
			}
			return all, moved, nil
		case repeated, len(fresh) == 0 && !(last && len(page.raw) == 0):
			return nil, false, rest.UnknownForm(l.endpoint, "the venue repeats its pages")
		case len(all)+len(fresh) > maxRows:
			return nil, false, rest.UnknownForm(l.endpoint, "the list has more than 10000 rows")
		}
		if n > 0 {
			traits.setPaged()
		}
		if all = append(all, fresh...); last {
			return all, moved, nil
		}
		start, guessed = page.next, page.guessed
	}
	return nil, false, rest.UnknownForm(l.endpoint, "the list has too many pages")
}

// recordIfWhole is called if the client had guessed that there is a page n, but the venue does not have this page. The first
// page is page 0. If n is 1, recordIfWhole records that the first page is the whole list.
func (l wholeList[T, K]) recordIfWhole(c *Client, n int) {
	if n == 1 {
		c.traits[l.endpoint].recordIgnoredOffset(c.Now())
	}
}

// newRows returns the rows of page n. seen maps each key to the number of the first page with this key, and newRows adds the keys
// of the rows. If l.unique is true, newRows leaves out rows whose key was already in seen. If a row of page n has the same key as a
// row of an earlier page, overlap is true.
func (l wholeList[T, K]) newRows(rows []T, seen map[K]int, n int) (fresh []T, overlap bool) {
	fresh = rows[:0]
	for i := range rows {
		key := l.key(&rows[i])
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

// isRepeat is called if the rows of page n look the same as the rows of an earlier page. It reports whether the venue has repeated
// the earlier page. If isRepeat returns false, the rows are other purchases that only look the same.
func (l wholeList[T, K]) isRepeat(ctx context.Context, c *Client, a market.Address, start pageStart, guessed bool, rows []wire.Value, n int) (bool, error) {
	uniform := allAlike(rows)
	switch {
	case n > maxAlikePages, !uniform && (guessed || start.cursor != ""):
		return true, nil
	case start.cursor != "":
		return false, nil
	}
	respects, err := c.respectsOffset(ctx, rest.ForAccount(l.endpoint, a), rows, l.name)
	return !respects, err
}

// firstPage reads the first page. It requests a page size only if the venue is known to divide the list into pages. If the venue
// refuses the page size, firstPage reads the page once more without one.
func (l wholeList[T, K]) firstPage(ctx context.Context, c *Client, a market.Address) (listPage[T], error) {
	traits := &c.traits[l.endpoint]
	if !traits.sendsLimit() {
		return readListPage(ctx, c, l, a, pageStart{}, false)
	}
	first, err := readListPage(ctx, c, l, a, pageStart{}, true)
	if err == nil || !rest.RefusesParameter(err) {
		return first, err
	}
	if first, err = readListPage(ctx, c, l, a, pageStart{}, false); err == nil {
		traits.recordRefusedLimit()
	}
	return first, err
}

type listPage[T any] struct {
	pageInfo
	rows     []T
	raw      []wire.Value
	hasLimit bool
}

// readListPage reads one page. It fails if a row is bad.
func readListPage[T any, K comparable](ctx context.Context, c *Client, l wholeList[T, K], a market.Address, start pageStart, limited bool) (listPage[T], error) {
	e, rq := l.endpoint, rest.ForAccount(l.endpoint, a)
	if limited {
		rq.Query.Set("limit", strconv.Itoa(wholeListLimit))
	}
	start.setQuery(&rq.Query)
	payload, err := c.Get(ctx, rq)
	if err != nil {
		return listPage[T]{}, rest.BadIfNotFound(e, err)
	}
	list, ok := rest.RowsOf(payload, l.name)
	if !ok {
		return listPage[T]{}, rest.UnknownForm(e, "no list of "+l.name)
	}
	// The number of received rows counts as the page size, because the venue may send fewer rows than requested.
	t, err := pageInfoOf(e, list, start, max(len(list.Rows), 1))
	if err != nil {
		return listPage[T]{}, err
	}
	traits, now := &c.traits[e], c.Now()
	if t.guessed && !traits.mayBeCut(now, t, start, len(list.Rows), limited) {
		t.next, t.guessed = pageStart{}, false
	}
	traits.observe(now, t, len(list.Rows), limited)
	var drift rest.Drift
	rows, note := make([]T, 0, len(list.Rows)), drift.Add
	for i, v := range list.Rows {
		r := wire.NewRow(v, note)
		if rows = append(rows, l.read(r)); r.Err != nil {
			drift.Add("bad row")
			c.Report(e, drift)
			return listPage[T]{}, market.Errorf(market.CodeUpstreamBadResponse, "row %d of the venue's answer could not be read (%s)", start.offset+i+1, e).
				Because(&rest.CallFailure{Kind: rest.KindUnreadable, Text: r.Err.Error()})
		}
	}
	c.Report(e, drift)
	return listPage[T]{pageInfo: t, rows: rows, raw: list.Rows, hasLimit: limited}, nil
}
