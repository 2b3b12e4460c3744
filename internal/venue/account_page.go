package venue

import (
	"context"
	"strconv"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/wire"
)

// accountPage is a page of a wallet's list that is asked for.
type accountPage struct {
	endpoint reqctx.Endpoint
	account  market.Address
	// filter sets the parameters by which the venue may leave rows out.
	filter func(to *query)
	limit  int
	at     place
	// keys are the names that the list of rows may have.
	keys []string
}

// query returns the request for the page. It is plain without a filter and a page size, and has a page size only where the venue is
// known to page the list.
func (p *accountPage) query(plain, sized bool) *request {
	rq := forAccount(p.endpoint, p.account)
	if !plain {
		p.filter(&rq.query)
	}
	if !plain && sized {
		rq.query.set("limit", strconv.Itoa(p.limit))
	}
	return rq
}

// pageOf asks for one page of a wallet's list; filter sets the parameters by which the venue may leave rows out, and the caller
// leaves them out anyway. A page that repeats the one before is the end where the venue ignores offsets; elsewhere its rows look like
// those before.
func (c *Client) pageOf(ctx context.Context, e reqctx.Endpoint, a market.Address, filter func(to *query), limit int, token string, keys ...string) (found, turn, notes, error) {
	if limit < 0 || limit > maxLimit {
		return found{}, turn{}, nil, badInput(e, "a page has 1 to 100 rows")
	}
	if limit == 0 {
		limit = maxLimit
	}
	at, err := parsePlace(e, token)
	if err != nil {
		return found{}, turn{}, nil, err
	}
	p := &accountPage{endpoint: e, account: a, filter: filter, limit: limit, at: at, keys: keys}
	list, sized, err := c.fetchPage(ctx, p)
	habit, now := &c.habits[e], c.clock.Now()
	if at.guessed && refused(err) { // nothing but its length spoke for another page, and the venue knows of none
		habit.ignoresOffset(now)
		return found{}, turn{}, nil, nil
	}
	if err != nil {
		return found{}, turn{}, nil, orBad(e, err)
	}
	if at.repeats(list.rows) {
		heeds, err := guarded(c, e, c.backoffs.account(ctx, a), func() (bool, error) {
			return c.heedsOffset(ctx, p.query(habit.plain(now), sized), list.rows, keys...)
		})
		switch {
		case err != nil:
			return found{}, turn{}, nil, err
		case !heeds:
			habit.ignoresOffset(now)
			return found{page: list.page}, turn{}, notes{"repeated page"}, nil
		}
	}
	size := limit
	if n := len(list.rows); !sized && n%roundPage == 0 {
		size = min(size, n) // the venue may have a page size of its own
	}
	t, err := turnOf(e, list, at, size)
	if err != nil {
		return found{}, turn{}, nil, err
	}
	habit.trustCount(&t, at)
	switch {
	case t.guessed && habit.whole(now):
		t.next, t.guessed = place{}, false
	case !t.next.isStart() && !t.guessed, at.guessed && len(list.rows) > 0:
		habit.paged()
	}
	t.carry, err = market.ParseNumbering(at.counted)
	return list, t, nil, err
}

// fetchPage asks for a page, and once more without a filter and a page size where the venue refuses a parameter, which is
// remembered. sized reports whether the page was asked for with a page size.
func (c *Client) fetchPage(ctx context.Context, p *accountPage) (list found, sized bool, err error) {
	habit, now := &c.habits[p.endpoint], c.clock.Now()
	plain := habit.plain(now)
	sized = !plain && habit.limits()
	rq := p.query(plain, sized)
	options := rq.query.b.Len() > p.query(true, false).query.b.Len()
	payload, err := c.sendPage(ctx, p, rq)
	if options && refusesParameter(err) {
		first := err
		if payload, err = c.sendPage(ctx, p, p.query(true, false)); err == nil {
			habit.refuseOptions(now)
			c.log.Info("the venue refuses parameters of a list and is asked without", "endpoint", p.endpoint.String())
		} else if refusesParameter(err) {
			err = first // the parameters were not why
		}
		sized = false
	}
	if err != nil {
		return found{}, sized, err
	}
	list, ok := rowsOf(payload, p.keys...)
	if !ok {
		return found{}, sized, unknownForm(p.endpoint, "no list of rows")
	}
	return list, sized, nil
}

// sendPage makes one call for a page.
func (c *Client) sendPage(ctx context.Context, p *accountPage, rq *request) (wire.Value, error) {
	p.at.apply(&rq.query)
	return guarded(c, p.endpoint, c.backoffs.account(ctx, p.account), func() (wire.Value, error) { return c.get(ctx, rq) })
}
