package venue

import (
	"context"
	"strconv"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/wire"
)

const (
	// wholePage is the page size that a venue is asked for that is known to page a list.
	wholePage = 500
	// maxRows bounds what is followed.
	maxRows = 10_000
	// maxPages bounds the calls of one read, whatever the venue makes of the page size.
	maxPages = 200
	// roundPage: a list of a multiple of so many rows, without a word on the next page, may have been cut by the venue.
	roundPage = 10
	// maxReads bounds how often a list that changes between its pages is read.
	maxReads = 3
	// maxAlike bounds the pages that are followed while each equals one before.
	maxAlike = 20
)

// wholeList is a wallet's list that is read to its end.
type wholeList[T any, K comparable] struct {
	endpoint reqctx.Endpoint
	name     string
	read     func(*wire.Row) T
	key      func(*T) K
	// unique says that no two rows have one key: the second is the first one again.
	unique bool
}

// follow reads every page of a list. moved reports that two pages have rows of one key. A page that equals an earlier one is
// the end where only its predecessor's length spoke for it, and an error otherwise, unless it may be another page of lots.
func (l wholeList[T, K]) follow(ctx context.Context, c *Client, a market.Address) (all []T, moved bool, err error) {
	all = []T{}
	seen, pages := make(map[K]int), make(map[string]bool) // seen is the number of the page that a key was on
	habit := &c.habits[l.endpoint]
	page, err := l.first(ctx, c, a)
	limited := page.limited
	at, guessed := place{}, false
	for n := range maxPages {
		if n > 0 {
			page, err = wholePageAt(ctx, c, l, a, at, limited)
		}
		if guessed && refused(err) {
			l.ends(c, n)
			return all, moved, nil // nothing but its length spoke for another page, and the venue knows of none
		}
		if err != nil {
			return nil, false, err
		}
		last := page.next.isStart()
		var print string
		if n > 0 || !last { // a list of one page repeats nothing
			print = fingerprint(page.raw)
		}
		repeated := len(page.rows) > 0 && pages[print]
		if repeated && !l.unique {
			if repeated, err = l.repeats(ctx, c, a, at, guessed, page.raw, n); err != nil {
				return nil, false, err
			}
		}
		pages[print] = true
		if repeated && guessed {
			l.ends(c, n)
			return all, moved, nil
		}
		fresh, again := l.fresh(page.rows, seen, n)
		moved = moved || again
		switch {
		case guessed && len(fresh) == 0:
			if len(page.raw) > 0 {
				l.ends(c, n)
			}
			return all, moved, nil
		case repeated, len(fresh) == 0 && !(last && len(page.raw) == 0):
			return nil, false, unknownForm(l.endpoint, "the venue repeats its pages")
		case len(all)+len(fresh) > maxRows:
			return nil, false, unknownForm(l.endpoint, "the list has more than 10000 rows")
		}
		if n > 0 {
			habit.paged()
		}
		if all = append(all, fresh...); last {
			return all, moved, nil
		}
		at, guessed = page.next, page.guessed
	}
	return nil, false, unknownForm(l.endpoint, "the list has too many pages")
}

// ends notes that the venue has no page n. Only the length of the page before suggested one.
func (l wholeList[T, K]) ends(c *Client, n int) {
	if n == 1 {
		c.habits[l.endpoint].ignoresOffset(c.clock.Now())
	}
}

// fresh returns the rows of page n that count. again reports that an earlier page, as noted in seen, has rows of the same key.
func (l wholeList[T, K]) fresh(rows []T, seen map[K]int, n int) (fresh []T, again bool) {
	fresh = rows[:0]
	for i := range rows {
		key := l.key(&rows[i])
		on, known := seen[key]
		if !known {
			seen[key] = n
		}
		again = again || known && on != n
		if !known || !l.unique {
			fresh = append(fresh, rows[i])
		}
	}
	return fresh, again
}

// repeats reports whether page n, whose rows equal those of an earlier page, is that page again. Lots that are all alike
// may fill several pages.
func (l wholeList[T, K]) repeats(ctx context.Context, c *Client, a market.Address, at place, guessed bool, rows []wire.Value, n int) (bool, error) {
	uniform := alike(rows)
	switch {
	case n > maxAlike, !uniform && (guessed || at.cursor != ""):
		return true, nil
	case at.cursor != "":
		return false, nil
	}
	heeds, err := c.heedsOffset(ctx, forAccount(l.endpoint, a), rows, l.name)
	return !heeds, err
}

// first reads the first page of a list: without a page size, unless the venue is known to page it.
func (l wholeList[T, K]) first(ctx context.Context, c *Client, a market.Address) (page[T], error) {
	habit := &c.habits[l.endpoint]
	if !habit.limits() {
		return wholePageAt(ctx, c, l, a, place{}, false)
	}
	first, err := wholePageAt(ctx, c, l, a, place{}, true)
	if err == nil || !refusesParameter(err) {
		return first, err
	}
	if first, err = wholePageAt(ctx, c, l, a, place{}, false); err == nil {
		habit.refuseLimit()
	}
	return first, err
}

// page is one page of a wallet's list.
type page[T any] struct {
	turn
	rows []T
	// raw are the rows as the venue wrote them.
	raw []wire.Value
	// limited says that the page was asked for with a page size.
	limited bool
}

// wholePageAt reads one page. Every row must be good.
func wholePageAt[T any, K comparable](ctx context.Context, c *Client, l wholeList[T, K], a market.Address, at place, limited bool) (page[T], error) {
	e, rq := l.endpoint, forAccount(l.endpoint, a)
	if limited {
		rq.query.set("limit", strconv.Itoa(wholePage))
	}
	at.apply(&rq.query)
	payload, err := c.get(ctx, rq)
	if err != nil {
		return page[T]{}, orBad(e, err)
	}
	list, ok := rowsOf(payload, l.name)
	if !ok {
		return page[T]{}, unknownForm(e, "no list of "+l.name)
	}
	t, err := turnOf(e, list, at, max(len(list.rows), 1)) // the venue may have a limit of its own
	if err != nil {
		return page[T]{}, err
	}
	habit, now := &c.habits[e], c.clock.Now()
	if t.guessed && !habit.doubts(now, t, at, len(list.rows), limited) {
		t.next, t.guessed = place{}, false
	}
	habit.note(now, t, len(list.rows), limited)
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
	return page[T]{turn: t, rows: rows, raw: list.rows, limited: limited}, nil
}
