package polymarket

import (
	"context"
	"slices"
	"strconv"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

// listPosition is a position in one of Gamma's two lists of markets: the list of open markets or the list of closed markets.
type listPosition struct {
	// Ended reports that the list has no more markets, or that the search does not use the list.
	Ended bool `json:"e,omitempty"`
	// At is Gamma's cursor of a page.
	At string `json:"c,omitempty"`
	// Skip is the number of rows before the position on this page. It may be more than 0, because a page of the merged lists may
	// end in the middle of a page of Gamma.
	Skip int `json:"s,omitempty"`
}

// startPositions returns the positions at which a page begins in the lists of open and of closed markets.
func startPositions(q queries.Search) (both [2]listPosition, err error) {
	if q.Page == "" {
		open, closed := sides(q.Status)
		return [2]listPosition{{Ended: !open}, {Ended: !closed}}, nil
	}
	const e = upstream.EndpointSearch
	err = rest.ParsePage(e, q.Page, &both)
	for _, l := range both {
		if l.Skip < 0 || l.Skip > maxPageSize {
			err = rest.BadPage(e)
		}
	}
	return both, err
}

type listResult struct {
	rows []marketRow
	// next is the cursor of the next page. It is empty on the last page.
	next string
	err  error
}

// listMarkets returns one page of the list of markets, sorted as q requests. If Gamma does not know the sort of q, the page is
// sorted by the volume of the last 24 hours, greatest first. Gamma lists open and closed markets separately. So a search for open
// and closed markets merges both lists.
func (d *Driver) listMarkets(ctx context.Context, call upstream.Call, q queries.Search) (*queries.SearchPage, error) {
	if orders[q.Sort] == "" {
		q.Sort, q.Direction = queries.SortVolume24h, queries.Descending
	}
	at, err := startPositions(q)
	if err != nil {
		return nil, err
	}
	tag, known, err := d.tagID(ctx, call, q.Tag)
	if err != nil || !known {
		return &queries.SearchPage{}, err
	}
	var n rest.Drift
	var pages [2]listResult
	var drifts [2]rest.Drift
	rest.ForEach(len(at), func(i int) {
		if !at[i].Ended {
			pages[i] = d.listPage(ctx, call, q, tag, at[i], i == 1, drifts[i].Add)
		}
	})
	for i := range pages {
		n = append(n, drifts[i]...)
		if pages[i].err != nil {
			return nil, pages[i].err
		}
	}
	page, err := mergeLists(q, at, pages)
	if err == nil {
		err = checkOrder(page.Markets, q)
	}
	d.gamma.Report(upstream.EndpointSearch, n)
	if err != nil {
		return nil, err
	}
	page.Markets = slices.DeleteFunc(page.Markets, func(m *market.Market) bool { q := q; q.Tag = ""; return !matches(m, q) })
	return page, nil
}

func (d *Driver) listPage(ctx context.Context, call upstream.Call, q queries.Search, tag string, at listPosition, closed bool, note func(string)) listResult {
	const e = upstream.EndpointSearch
	rq := &rest.Request{Endpoint: e, Keys: 1}
	rq.Query.Set("closed", strconv.FormatBool(closed)).Set("order", orders[q.Sort]).Set("ascending", strconv.FormatBool(q.Direction == queries.Ascending)).
		Set("tag_id", tag).Set("include_tag", "true")
	rq.Query.Set("end_date_min", q.EndsAfter.Format(time.RFC3339)).Set("end_date_max", q.EndsBefore.Format(time.RFC3339)).
		Set("limit", strconv.Itoa(min(at.Skip+q.Limit, maxPageSize))).Set("after_cursor", at.At)
	payload, err := d.gamma.Get(ctx, call, rq)
	if err != nil {
		return listResult{err: rest.BadIfNotFound(e, err)}
	}
	rows, next, err := readMarkets(payload, note)
	return listResult{rows, rest.NextCursor(next, at.At), formError(e, err)}
}

// mergeLists merges two pages, both sorted as q requests. It stops after q.Limit rows. Some of these rows may be unreadable. It
// also stops at the end of a page that has a next page, because the next row of the result may be on that next page. It leaves out
// placeholders. If all other rows are unreadable, mergeLists returns an error.
func mergeLists(q queries.Search, at [2]listPosition, pages [2]listResult) (*queries.SearchPage, error) {
	const e = upstream.EndpointSearch
	page, places, compare := &queries.SearchPage{}, [2]int{at[0].Skip, at[1].Skip}, queries.SortFields[q.Sort].Comparer(q.Direction)
	var bad rest.RowErrors
	more := func(i int) bool { return places[i] < len(pages[i].rows) }
	for taken := 0; taken < q.Limit; taken++ {
		i := 0
		switch {
		case !more(0) && pages[0].next != "", !more(1) && pages[1].next != "", !more(0) && !more(1):
			i = -1
		case !more(0):
			i = 1
		case more(1):
			a, b := pages[0].rows[places[0]].market, pages[1].rows[places[1]].market
			if a != nil && (b == nil || compare(a, b) > 0) {
				i = 1
			}
		}
		if i < 0 {
			break
		}
		row := pages[i].rows[places[i]]
		places[i]++
		switch {
		case !isListed(row):
		case row.market != nil:
			page.Markets = append(page.Markets, row.market)
		default:
			bad = append(bad, rest.RowError{Where: "row " + strconv.Itoa(places[i]), Err: row.row.Err})
		}
	}
	if len(page.Markets) == 0 && len(bad) > 0 {
		return nil, rest.UnknownForm(e, bad.WhyEmpty())
	}
	page.LeftOut = bad.LeftOut(e)
	for i := range at {
		switch {
		case at[i].Ended:
		case more(i):
			at[i].Skip = places[i]
		default:
			at[i] = listPosition{At: pages[i].next, Ended: pages[i].next == ""}
		}
	}
	if !at[0].Ended || !at[1].Ended {
		page.Next = rest.PageToken(at)
	}
	return page, nil
}

// checkOrder sorts markets that are nearly in order. If at least two pairs of neighbours are out of order, and Gamma has probably
// ignored the sort, checkOrder returns an error.
func checkOrder(markets []*market.Market, q queries.Search) error {
	compare := queries.SortFields[q.Sort].Comparer(q.Direction)
	if wrong, ignored := queries.OutOfOrder(markets, compare); wrong > 1 && ignored {
		return unsupported("the list of markets is not sorted by " + orders[q.Sort])
	}
	slices.SortStableFunc(markets, compare)
	return nil
}
