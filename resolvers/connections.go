package resolvers

import (
	"context"

	"oddsgraph/graph/exec"
	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
)

// page is a part of a list with what Relay says of it.
type page[T any] struct {
	items []T
	// cursor returns the cursor of an item.
	cursor func(i int) string
	info   model.PageInfo
	total  *int
}

// cut is which part of a list that is read whole a page is to be.
type cut struct {
	list  uint64
	first int
	after place
}

// cutOf checks the arguments of a connection, before anything is read for it.
func cutOf(list uint64, first *int, after *string) (c cut, err error) {
	c.list = list
	if c.first, err = pageSize(first, defaultPage, maxPage); err == nil {
		c.after, err = parsePlace(list, after)
	}
	return c, err
}

// cutPage cuts a page out of a list, for the connection that the present field returns.
func cutPage[T any](ctx context.Context, items []T, key func(*T) string, c cut) page[T] {
	hashes := newKeyHashes(len(items), func(i int) string { return key(&items[i]) })
	start := c.after.start(hashes)
	end := min(start+c.first, len(items))
	total := len(items)
	p := page[T]{items: items[start:end], total: &total, cursor: func(i int) string { return listCursor(c.list, hashes, start+i) }}
	p.info = model.PageInfo{HasNextPage: end < len(items), HasPreviousPage: start > 0}
	if selects(ctx, "pageInfo") { // cursors of which take work
		p.bound(nil)
	}
	return p
}

// bound sets the cursors of the page's ends; empty is that of an empty page that others follow.
func (p *page[T]) bound(empty *string) {
	p.info.EndCursor = empty
	if n := len(p.items); n > 0 {
		first, last := p.cursor(0), p.cursor(n-1)
		p.info.StartCursor, p.info.EndCursor = &first, &last
	}
}

// maxPages bounds the upstream pages that are read for one answer.
const maxPages = 5

// venuePage is one page of a list that the venue pages.
type venuePage[T any] struct {
	rows    []T
	next    string
	total   *int
	leftOut market.LeftOut
}

// readPages reads a page of a list that the venue pages. It follows the venue's pages where rows are left out, up to
// maxPages, and then returns a short page that says that more follows.
func readPages[T any](ctx context.Context, read func(page string, limit int) (venuePage[T], error), key func(*T) string, list uint64, first int, after *string) (page[T], error) {
	at, err := parsePageCursor(list, after, first, maxUpstreamPage)
	if err != nil {
		return page[T]{}, err
	}
	out := page[T]{info: model.PageInfo{HasPreviousPage: after != nil && *after != ""}}
	var rows []T
	var cursors []pageCursor
	current, limit, seeking, next := at.Page, at.Limit, at.Element, ""
	for range maxPages {
		p, err := read(current, limit)
		if err != nil {
			return page[T]{}, err
		}
		addLeftOut(ctx, p.leftOut)
		if out.total == nil {
			out.total = p.total
		}
		next = p.next
		for i := range p.rows {
			hash := keyHash(key(&p.rows[i]))
			if seeking != 0 && hash == seeking {
				seeking, rows, cursors = 0, nil, nil // what stands before it has been shown
				continue
			}
			// A page that is longer than asked for is to hold the element when it is read again, too.
			c := pageCursor{list, current, max(limit, min(len(p.rows), maxUpstreamPage)), hash, i}
			if i == len(p.rows)-1 && next != "" {
				c = pageCursor{List: list, Page: next, Limit: first} // going on there takes one call, not two
			}
			rows, cursors = append(rows, p.rows[i]), append(cursors, c)
		}
		if next == "" || seeking == 0 && len(rows) >= first {
			break
		}
		if current = next; seeking == 0 {
			limit = first
		}
	}
	if seeking != 0 { // the element has gone: go on where it stood
		skip := min(at.Index, len(rows))
		rows, cursors = rows[skip:], cursors[skip:]
	}
	out.info.HasNextPage = len(rows) > first || next != ""
	n := min(first, len(rows))
	out.items, out.cursor = rows[:n], func(i int) string { return cursors[i].String() }
	var empty *string
	if n == 0 && next != "" {
		beginning := pageCursor{List: list, Page: next, Limit: first}.String()
		empty = &beginning
	}
	out.bound(empty)
	return out, nil
}

// edgesOf builds the edges of a page, if they are selected.
func edgesOf[N, E, T any](ctx context.Context, p page[T], nodes []N, edge func(cursor string, node N) E) []E {
	if !selects(ctx, "edges") {
		return nil
	}
	edges := make([]E, len(nodes))
	for i := range nodes {
		edges[i] = edge(p.cursor(i), nodes[i])
	}
	return edges
}

// selects reports whether a field is selected of the object that the present field returns. Without an execution every field is.
func selects(ctx context.Context, name string) bool {
	x := exec.From(ctx)
	return x == nil || x.Selects(name)
}
