package kalshi

import (
	"context"
	"slices"
	"strconv"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

const defaultPageSize = 20

// list requests {"name of f":[…],"cursor":…} and returns the list and the cursor of the next page.
func (d *Driver) list(ctx context.Context, call upstream.Call, rq *rest.Request, f wire.Field) (list []wire.Value, cursor string, err error) {
	payload, err := d.Get(ctx, call, rq)
	if err != nil {
		return nil, "", err
	}
	list, ok := f.Of(payload).List()
	if !ok {
		return nil, "", rest.UnknownForm(rq.Endpoint, "no list of "+f.String())
	}
	return list, payload.Member("cursor").Text(), nil
}

type page[T any] struct {
	rows   []T
	bad    rest.RowErrors
	cursor string
}

// readPage is like list, and reads the rows; see rest.ReadRows.
func readPage[T any](ctx context.Context, d *Driver, call upstream.Call, rq *rest.Request, f wire.Field, read func(*wire.Row) T) (p page[T], err error) {
	list, cursor, err := d.list(ctx, call, rq, f)
	if err != nil {
		return p, err
	}
	var n rest.Drift
	p.cursor = cursor
	p.rows, p.bad = rest.ReadRows(list, n.Add, read)
	d.Report(rq.Endpoint, n)
	return p, nil
}

// filters contains Kalshi's names of the states by which Kalshi can filter its list of markets.
var filters = map[market.Status]string{
	market.StatusUpcoming: "unopened", market.StatusOpen: "open", market.StatusClosed: "closed", market.StatusResolved: "settled",
}

// Search returns one page of markets in the venue's order. It leaves out markets that combine other markets. A page may be short
// although there is a next page. Unreadable rows are reported in LeftOut. After the last page of the list of markets, the pages of
// the archive follow, unless the query asks for a state that archived markets do not have.
//
// Kalshi has no search. So the error is UNSUPPORTED if q has a text, a category, a tag, a sort other than relevance, several
// states, or a state by which Kalshi cannot filter.
func (d *Driver) Search(ctx context.Context, call upstream.Call, q queries.Search) (*queries.SearchPage, error) {
	const e = upstream.EndpointSearch
	if q.Limit == 0 {
		q.Limit = defaultPageSize
	}
	var at position
	_, err := filterOf(q, "markets")
	switch {
	case q.Text != "":
		return nil, unsupported("search by text")
	case q.Category != "" || q.Tag != "":
		return nil, unsupported("search by category or tag")
	case err != nil:
		return nil, err
	}
	if err := rest.ParsePage(e, q.Page, &at); err != nil {
		return nil, err
	}
	rq := searchRequest(q, at)
	return rest.WithBackoff(d.Client, e, rq.Path+"?"+rq.Query.String(), func() (*queries.SearchPage, error) {
		p, err := readPage(ctx, d, call, rq, fieldMarkets, marketOf)
		if err != nil {
			return nil, rest.BadIfNotFound(e, err)
		}
		found := slices.DeleteFunc(p.rows, func(m *market.Market) bool { return !q.MatchesState(m) })
		if at.Archived && len(found) > 0 {
			if found, err = d.withoutListed(ctx, call, found); err != nil {
				return nil, err
			}
		}
		out := &queries.SearchPage{Markets: found, LeftOut: p.bad.LeftOut(e)}
		if cursor := rest.NextCursor(p.cursor, at.Cursor); cursor != "" || mayBeArchived(q) {
			out.Next = at.next(cursor)
		}
		return out, nil
	})
}

// filterOf returns Kalshi's name of the state by which a list is filtered, or "" for every state. It returns an error if Kalshi can
// neither filter nor sort the list as q requests.
func filterOf(q queries.Search, list string) (string, error) {
	switch {
	case q.Sort != "" && q.Sort != queries.SortRelevance:
		return "", unsupported("order of " + list)
	case len(q.Status) == 0:
		return "", nil
	case len(q.Status) > 1:
		return "", unsupported("search by several states at once")
	case filters[q.Status[0]] == "":
		return "", unsupported("search by the state " + string(q.Status[0]))
	}
	return filters[q.Status[0]], nil
}

func unsupported(what string) error {
	return market.Errorf(market.CodeUnsupported, "Kalshi has no %s (%s)", what, upstream.EndpointSearch)
}

// searchRequest returns the request for a page. Kalshi cannot filter by state and times together. If the query has times, the
// request omits the state, and the driver checks the states of the markets in the response. The archive can filter by neither.
func searchRequest(q queries.Search, at position) *rest.Request {
	rq := &rest.Request{Endpoint: upstream.EndpointSearch, Keys: 1}
	switch {
	case at.Archived:
		rq.Path = pathArchive
	case !q.EndsAfter.IsSet() && !q.EndsBefore.IsSet():
		if len(q.Status) > 0 {
			rq.Query.Set("status", filters[q.Status[0]])
		}
	default:
		rq.Query.Set("min_close_ts", unixBound(q.EndsAfter)).Set("max_close_ts", unixBound(q.EndsBefore))
	}
	rq.Query.Set("mve_filter", "exclude").Set("limit", strconv.Itoa(q.Limit)).Set("cursor", at.Cursor)
	return rq
}

// unix returns the seconds from 1970 to t. If t is before 1970, it returns 1, which selects the same data, because Kalshi has none
// from that time. Kalshi refuses negative numbers.
func unix(t time.Time) string { return strconv.FormatInt(max(t.Unix(), 1), 10) }

func unixBound(b queries.Bound) string {
	t, ok := b.Get()
	if !ok {
		return ""
	}
	return unix(t)
}

// mayBeArchived reports whether archived markets can match a search. Archived markets are settled.
func mayBeArchived(q queries.Search) bool {
	return len(q.Status) == 0 || slices.Contains(q.Status, market.StatusResolved)
}

// withoutListed leaves out the archived markets that Kalshi's list also has, because they are on the earlier pages.
func (d *Driver) withoutListed(ctx context.Context, call upstream.Call, markets []*market.Market) ([]*market.Market, error) {
	tickers := make([]string, len(markets))
	for i, m := range markets {
		tickers[i] = m.MarketID
	}
	const e = upstream.EndpointSearch
	rq := &rest.Request{Endpoint: e, Keys: len(tickers)}
	rq.Query.List("tickers", tickers).Set("limit", strconv.Itoa(len(tickers)))
	listed, err := readPage(ctx, d, call, rq, fieldMarkets, func(r *wire.Row) string { return r.ID(fieldTicker) })
	if err != nil {
		return nil, rest.BadIfNotFound(e, err)
	}
	return slices.DeleteFunc(markets, func(m *market.Market) bool { return slices.Contains(listed.rows, m.MarketID) }), nil
}
