package generic

import (
	"context"
	"strconv"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

type accountPage struct {
	endpoint upstream.Endpoint
	account  market.Address
	// filter sets the query parameters that select rows. The venue may ignore these parameters.
	filter func(to *rest.Query)
	limit  int
	start  pageStart
	// keys are the names of the JSON members that may contain the list.
	keys []string
}

// query returns the request for the page. If plain is true, the request has neither the filter nor a page size. If plain is false,
// the request has the filter. If plain is false and sized is true, the request also has a page size.
func (p *accountPage) query(plain, sized bool) *rest.Request {
	rq := rest.ForAccount(p.endpoint, p.account)
	if !plain {
		p.filter(&rq.Query)
	}
	if !plain && sized {
		rq.Query.Set("limit", strconv.Itoa(p.limit))
	}
	return rq
}

// readPage reads one page of an account's list. A limit of 0 means maxPageSize. The venue may ignore the filter, so the calling
// function must filter the rows again.
//
// If the page equals the previous page, readPage makes one more call to find out whether the venue ignores offsets. If the venue
// ignores offsets, the list ends after the previous page, and readPage returns no rows. If the venue respects offsets, the rows are
// different rows with equal content, and readPage returns them.
func (c *Client) readPage(ctx context.Context, e upstream.Endpoint, a market.Address, filter func(to *rest.Query), limit int, token string, keys ...string) (rest.RowList, pageInfo, rest.Drift, error) {
	if limit < 0 || limit > maxPageSize {
		return rest.RowList{}, pageInfo{}, nil, rest.BadInput(e, "a page has 1 to 100 rows")
	}
	if limit == 0 {
		limit = maxPageSize
	}
	start, err := parsePageToken(e, token)
	if err != nil {
		return rest.RowList{}, pageInfo{}, nil, err
	}
	p := &accountPage{endpoint: e, account: a, filter: filter, limit: limit, start: start, keys: keys}
	list, sized, err := c.fetchPage(ctx, p)
	traits, now := &c.traits[e], c.Now()
	if start.guessed && rest.Refused(err) { // the client had only guessed that this page exists
		traits.recordIgnoredOffset(now)
		return rest.RowList{}, pageInfo{}, nil, nil
	}
	if err != nil {
		return rest.RowList{}, pageInfo{}, nil, rest.BadIfNotFound(e, err)
	}
	if start.isRepeated(list.Rows) {
		respects, err := rest.WithBackoff(c.Client, e, c.AccountKey(ctx, a), func() (bool, error) {
			return c.respectsOffset(ctx, p.query(traits.omitsOptions(now), sized), list.Rows, keys...)
		})
		switch {
		case err != nil:
			return rest.RowList{}, pageInfo{}, nil, err
		case !respects:
			traits.recordIgnoredOffset(now)
			return rest.RowList{Object: list.Object}, pageInfo{}, rest.Drift{"repeated page"}, nil
		}
	}
	size := limit
	if n := len(list.Rows); !sized && n%roundCount == 0 {
		size = min(size, n) // the request had no page size, so the venue's page size may be less than limit
	}
	t, err := pageInfoOf(e, list, start, size)
	if err != nil {
		return rest.RowList{}, pageInfo{}, nil, err
	}
	traits.trustCount(&t, start)
	switch {
	case t.guessed && traits.isWhole(now):
		t.next, t.guessed = pageStart{}, false
	case !t.next.isStart() && !t.guessed, start.guessed && len(list.Rows) > 0:
		traits.setPaged()
	}
	t.numbering, err = market.ParseNumbering(start.numbering)
	return list, t, nil, err
}

// fetchPage requests a page. If the request has a filter or a page size, and the venue refuses a parameter, fetchPage requests the
// page once more without filter and page size. If the second request succeeds, fetchPage remembers the refusal. sized reports
// whether the last request had a page size.
func (c *Client) fetchPage(ctx context.Context, p *accountPage) (list rest.RowList, sized bool, err error) {
	traits, now := &c.traits[p.endpoint], c.Now()
	plain := traits.omitsOptions(now)
	sized = !plain && traits.sendsLimit()
	rq := p.query(plain, sized)
	hasOptions := rq.Query.Len() > p.query(true, false).Query.Len()
	payload, err := c.sendPage(ctx, p, rq)
	if hasOptions && rest.RefusesParameter(err) {
		first := err
		if payload, err = c.sendPage(ctx, p, p.query(true, false)); err == nil {
			traits.recordRefusedOptions(now)
			c.Log().Info("the venue refuses optional parameters of a list: they are omitted", "endpoint", p.endpoint.String())
		} else if rest.RefusesParameter(err) {
			err = first // the venue also refuses the request without optional parameters, so these parameters are not the reason
		}
		sized = false
	}
	if err != nil {
		return rest.RowList{}, sized, err
	}
	list, ok := rest.RowsOf(payload, p.keys...)
	if !ok {
		return rest.RowList{}, sized, rest.UnknownForm(p.endpoint, "no list of rows")
	}
	return list, sized, nil
}

// sendPage adds the cursor or the offset of the page to rq and makes one call.
func (c *Client) sendPage(ctx context.Context, p *accountPage, rq *rest.Request) (wire.Value, error) {
	p.start.setQuery(&rq.Query)
	return rest.WithBackoff(c.Client, p.endpoint, c.AccountKey(ctx, p.account), func() (wire.Value, error) { return c.Get(ctx, rq) })
}
