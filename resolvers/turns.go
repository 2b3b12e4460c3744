package resolvers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"oddsgraph/graph/exec"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/loaders"
)

// readTurn reads one page of a search at the venue whose ids begin with name. list is the listHash of the search.
type readTurn[T any] func(ctx context.Context, name string, q queries.Search, list uint64, n int, after *string) (page[T], error)

// turns is a page of a search over several venues. It has one row of each venue in turn.
type turns[T any] struct {
	// at is the position after the previous page.
	at     turnCursor
	venues []venueTurn[T]
	// order contains the index of the venue of each row.
	order []int
}

// venueTurn is the part of one venue in a page.
type venueTurn[T any] struct {
	name  string
	page  page[T]
	err   error
	taken int
}

// search reads one page of a search at the venues with the given titles. nil is the first venue. It reports the error of a
// venue that fails, whose position in the cursor stays. If all fail, it returns one of the errors.
func search[T any](ctx context.Context, r *Resolver, titles []string, kind string, q queries.Search, first int, after *string, read readTurn[T]) (p page[T], err error) {
	if titles == nil {
		return read(ctx, "", q, listHash(kind, fmt.Sprintf("%+v", q)), first, after)
	}
	if len(titles) == 0 {
		return p, badInput("venues is empty; null is the first venue")
	}
	t := turns[T]{venues: make([]venueTurn[T], len(titles))}
	for i, title := range titles {
		if slices.Contains(titles[:i], title) {
			return p, badInput("venues has %q twice", title)
		}
		if t.venues[i].name, err = r.nameInIDs(&title); err != nil {
			return p, err
		}
	}
	list := listHash(kind, strings.Join(titles, ",")+fmt.Sprintf("\n%+v", q))
	if t.at, err = parseTurnCursor(list, after, len(titles)); err != nil {
		return p, err
	}
	for i := range t.venues { // all of them before an error, so that they are asked together
		if v := &t.venues[i]; !t.ended(i) {
			v.page, v.err = read(ctx, v.name, q, list, first, &t.at.At[i])
		}
	}
	if err := t.report(ctx); err != nil {
		return p, err
	}
	t.take(&p, first)
	p.cursor = func(i int) string { return t.position(i + 1) }
	p.info.HasPreviousPage = after != nil && *after != ""
	var empty *string
	if p.total, p.info.HasNextPage = t.rest(); p.info.HasNextPage {
		empty = new(t.position(0))
	}
	p.setEndCursors(empty)
	return p, nil
}

func (t *turns[T]) ended(venue int) bool { return t.at.At[venue] == atEnd }

// report reports the errors of venues. If all venues that were asked have failed, it returns one of them instead: one after which a
// client tries again, if there is one.
func (t *turns[T]) report(ctx context.Context) (all error) {
	var failures []error
	asked := 0
	for i := range t.venues {
		v := &t.venues[i]
		if t.ended(i) {
			continue
		}
		asked++
		switch code := market.CodeOf(v.err); {
		case v.err == nil || v.err == loaders.ErrPending:
		case code == market.CodeUnsupported || code == market.CodeBadUserInput: // otherwise the list would never end
			t.at.At[i], t.at.Total = atEnd, -1
			failures = append(failures, market.AtVenue(v.name, v.err))
		default:
			failures = slices.Insert(failures, 0, market.AtVenue(v.name, v.err))
		}
	}
	if asked > 0 && len(failures) == asked {
		all, failures = failures[0], failures[1:]
	}
	for _, err := range failures {
		exec.Report(ctx, err)
	}
	return all
}

// take sets the rows of the page and their metas. A venue whose page is pending has its turns, but no rows. So the pass reads what
// is below those rows of the other venues that the final page will have.
func (t *turns[T]) take(p *page[T], first int) {
	n := len(t.venues)
	for turn, count, idle := t.at.Turn, 0, 0; count < first && idle < n; turn = (turn + 1) % n {
		v := &t.venues[turn]
		if v.err != loaders.ErrPending && v.taken == len(v.page.items) {
			idle++
			continue
		}
		count, idle = count+1, 0
		if v.err == nil {
			p.items, p.metas, t.order = append(p.items, v.page.items[v.taken]), append(p.metas, v.page.meta), append(t.order, turn)
			v.taken++
		}
	}
}

// position returns the cursor after the first n rows of the page.
func (t *turns[T]) position(n int) string {
	c := t.at
	c.At = slices.Clone(c.At)
	taken := make([]int, len(t.venues))
	for _, venue := range t.order[:n] {
		taken[venue]++
		c.Turn = (venue + 1) % len(t.venues)
	}
	for i, taken := range taken {
		v := &t.venues[i]
		if t.ended(i) || v.err != nil {
			continue
		}
		switch last := taken == len(v.page.items); {
		case last && !v.page.info.HasNextPage:
			c.At[i], c.Total = atEnd, addTotal(c.Total, v.page.total)
		case last && v.page.info.EndCursor != nil: // also after a page without rows
			c.At[i] = *v.page.info.EndCursor
		case taken > 0:
			c.At[i] = v.page.cursor(taken - 1)
		}
	}
	return encodeCursor(c)
}

// rest returns the number of rows of all venues, or nil if that of a venue is unknown. hasMore reports whether a venue has more rows, or
// has to be asked again.
func (t *turns[T]) rest() (total *int, hasMore bool) {
	sum := t.at.Total
	for i := range t.venues {
		if v := &t.venues[i]; !t.ended(i) {
			sum = addTotal(sum, v.page.total)
			hasMore = hasMore || v.err != nil || v.taken < len(v.page.items) || v.page.info.HasNextPage
		}
	}
	if sum >= 0 {
		total = &sum
	}
	return total, hasMore
}
