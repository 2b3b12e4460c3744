package resolvers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"oddsgraph/graph/exec"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/loaders"
)

// readTurn reads one page of a search at the venue whose ids begin with name. list is the listHash of the search.
type readTurn[T any] func(ctx context.Context, name string, q queries.Search, list uint64, n int, after *string) (page[T], reads.Meta, error)

// turns reads a search over several venues. Its pages have one row of each venue in turn.
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
	meta  reads.Meta
	err   error
	taken int
}

// inTurn reads one page of a search at the venues with the given titles. It also returns the meta of each row. It reports the error of a
// venue that fails, whose position in the cursor stays. If all fail, it returns one of the errors.
func inTurn[T any](ctx context.Context, r *Resolver, titles []string, kind string, q queries.Search, first int, after *string, read readTurn[T]) (p page[T], metas []reads.Meta, err error) {
	var t turns[T]
	if t.venues, err = venueTurns[T](r, titles); err != nil {
		return p, nil, err
	}
	list := listHash(kind, strings.Join(titles, ",")+fmt.Sprintf("\n%+v", q))
	if t.at, err = parseTurnCursor(list, after, len(titles)); err != nil {
		return p, nil, err
	}
	for i := range t.venues { // all of them before an error, so that they are asked together
		if v := &t.venues[i]; !t.isDone(i) {
			v.page, v.meta, v.err = read(ctx, v.name, q, list, first, &t.at.At[i])
		}
	}
	if err := t.report(ctx); err != nil {
		return p, nil, err
	}
	p.items, metas = t.take(first)
	p.cursor = func(i int) string { return t.position(i + 1) }
	p.info.HasPreviousPage = after != nil && *after != ""
	if p.total, p.info.HasNextPage = t.rest(); selects(ctx, "pageInfo") {
		var empty *string
		if p.info.HasNextPage {
			empty = new(t.position(0))
		}
		p.setEndCursors(empty)
	}
	return p, metas, nil
}

func venueTurns[T any](r *Resolver, titles []string) ([]venueTurn[T], error) {
	if len(titles) == 0 {
		return nil, badInput("venues is empty; null is the first venue")
	}
	out := make([]venueTurn[T], 0, len(titles))
	for i, title := range titles {
		if slices.Contains(titles[:i], title) {
			return nil, badInput("venues has %q twice", title)
		}
		name, err := r.nameInIDs(&title)
		if err != nil {
			return nil, err
		}
		out = append(out, venueTurn[T]{name: name})
	}
	return out, nil
}

func (t *turns[T]) isDone(venue int) bool { return t.at.Done&(1<<venue) != 0 }

// report reports the errors of venues. If all venues that were asked have failed, it returns one of them instead: the first that can end,
// because a client does not retry the others. A venue that cannot search so is done.
func (t *turns[T]) report(ctx context.Context) error {
	var failures []error
	asked, first := 0, -1
	for i := range t.venues {
		if t.isDone(i) {
			continue
		}
		asked++
		if err := t.venues[i].err; err != nil && err != loaders.ErrPending {
			failures = append(failures, market.AtVenue(t.venues[i].name, err))
			if code := market.CodeOf(err); code == market.CodeUnsupported || code == market.CodeBadUserInput {
				t.at.end(i, nil)
			} else if first < 0 {
				first = len(failures) - 1
			}
		}
	}
	var all error
	if asked > 0 && len(failures) == asked {
		all = failures[max(first, 0)]
	}
	for _, err := range failures {
		if err != all {
			exec.Report(ctx, err)
		}
	}
	return all
}

// take returns the rows of the page and their metas. A venue whose page is pending has its turns, but no rows. So the pass reads what
// is below those rows of the other venues that the final page will have.
func (t *turns[T]) take(first int) (rows []T, metas []reads.Meta) {
	n := len(t.venues)
	for turn, count, idle := t.at.Turn, 0, 0; count < first && idle < n; turn = (turn + 1) % n {
		v := &t.venues[turn]
		if v.err != loaders.ErrPending && v.taken == len(v.page.items) {
			idle++
			continue
		}
		count, idle = count+1, 0
		if v.err == nil {
			rows, metas, t.order = append(rows, v.page.items[v.taken]), append(metas, v.meta), append(t.order, turn)
			v.taken++
		}
	}
	return rows, metas
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
		if t.isDone(i) || v.err != nil {
			continue
		}
		switch last := taken == len(v.page.items); {
		case last && !v.page.info.HasNextPage:
			c.end(i, v.page.total)
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
		if v := &t.venues[i]; !t.isDone(i) {
			sum = addTotal(sum, v.page.total)
			hasMore = hasMore || v.err != nil || v.taken < len(v.page.items) || v.page.info.HasNextPage
		}
	}
	if sum >= 0 {
		total = &sum
	}
	return total, hasMore
}
