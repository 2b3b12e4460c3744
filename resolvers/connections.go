package resolvers

import (
	"context"

	"oddsgraph/graph/exec"
	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
)

// page is one page of a Relay connection.
type page[T any] struct {
	items []T
	// cursor returns the cursor of an item.
	cursor func(i int) string
	info   model.PageInfo
	total  *int
}

// pageArguments are the checked arguments of a connection whose whole list is read. list is the listHash.
type pageArguments struct {
	list  uint64
	first int
	after listPosition
}

// parsePageArguments checks the arguments of a connection. Call it before the list is read.
func parsePageArguments(list uint64, first *int, after *string) (c pageArguments, err error) {
	c.list = list
	if c.first, err = pageSize(first, defaultPage, maxPage); err == nil {
		c.after, err = parseListCursor(list, after)
	}
	return c, err
}

// cutPage returns the page of a whole list that the arguments of the current field select.
func cutPage[T any](ctx context.Context, items []T, key func(*T) string, c pageArguments) page[T] {
	hashes := newKeyHashes(len(items), func(i int) string { return key(&items[i]) })
	start := c.after.start(hashes)
	end := min(start+c.first, len(items))
	total := len(items)
	p := page[T]{items: items[start:end], total: &total, cursor: func(i int) string { return listCursor(c.list, hashes, start+i) }}
	p.info = model.PageInfo{HasNextPage: end < len(items), HasPreviousPage: start > 0}
	if selects(ctx, "pageInfo") { // computing the cursors is expensive
		p.setEndCursors(nil)
	}
	return p
}

// setEndCursors sets the cursors of the page's first and last items. empty is the end cursor of a page without items; nil if
// the page has no next page.
func (p *page[T]) setEndCursors(empty *string) {
	p.info.EndCursor = empty
	if n := len(p.items); n > 0 {
		first, last := p.cursor(0), p.cursor(n-1)
		p.info.StartCursor, p.info.EndCursor = &first, &last
	}
}

// maxPages bounds the number of the venue's pages that are read for one page of a connection.
const maxPages = 5

// venuePage is one page of a list as the venue sends it. next is empty on the last page.
type venuePage[T any] struct {
	rows    []T
	next    string
	total   *int
	leftOut market.LeftOut
}

// readPages reads one page of a connection whose list the venue sends in pages. A page of the venue may contain fewer rows than
// requested, so readPages reads up to maxPages pages. If these pages contain fewer rows than the argument first, readPages returns
// a shorter page with HasNextPage set.
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
				seeking, rows, cursors = 0, nil, nil // rows up to this one belong to the previous page of the connection
				continue
			}
			// The venue may return more rows than limit. The cursor's limit must include this row when the page is read again.
			c := pageCursor{list, current, max(limit, min(len(p.rows), maxUpstreamPage)), hash, i}
			if i == len(p.rows)-1 && next != "" {
				c = pageCursor{List: list, Page: next, Limit: first} // a cursor to the start of the next page saves a call
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
	if seeking != 0 { // the element of the cursor was removed: continue at its old index
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
	out.setEndCursors(empty)
	return out, nil
}

// edgesOf returns the edges of a page, or nil if the client does not select them.
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

// selects reports whether the client selects a field of the object that the current field returns. It returns true if ctx has
// no execution.
func selects(ctx context.Context, name string) bool {
	x := exec.From(ctx)
	return x == nil || x.Selects(name)
}
