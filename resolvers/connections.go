package resolvers

import (
	"context"
	"slices"

	"oddsgraph/graph/exec"
	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
)

type page[T any] struct {
	items  []T
	cursor func(i int) string
	info   model.PageInfo
	total  *int
	// meta is that of all items, unless metas has that of each.
	meta  reads.Meta
	metas []reads.Meta
}

func (p *page[T]) metaOf(i int) reads.Meta {
	if p.metas != nil {
		return p.metas[i]
	}
	return p.meta
}

// pageArguments contains the checked arguments of a connection whose list is read as a whole, the listHash of this list, and the
// place of its order.
type pageArguments struct {
	list  uint64
	first int
	after listPosition
	order listOrderPlace
}

// parsePageArguments checks the arguments of a connection. Call it before reading the list, so that bad arguments cause no upstream
// call.
func parsePageArguments(list uint64, first *int, after *string) (c pageArguments, err error) {
	c.list = list
	if c.first, err = pageSize(first, defaultPage, maxPage); err == nil {
		c.after, err = parseListCursor(list, after)
	}
	return c, err
}

// cutPage returns the page that the page arguments select from a whole list. Cursors in the page's info are set only if the
// client selects pageInfo. If the client can read a second page, cutPage keeps the order of the list for this page.
func cutPage[T any](ctx context.Context, items []T, hash func(*T) uint64, c pageArguments) page[T] {
	hashes := newKeyHashes(len(items), func(i int) uint64 { return hash(&items[i]) })
	if len(c.after) > 0 {
		items, hashes = arrange(items, hashes, c.order)
	} else if c.order.in != nil && len(items) > c.first && (selects(ctx, "pageInfo") || selects(ctx, "edges")) {
		c.order.in.keep(c.order.key, hashes.all())
	}
	start := c.after.start(hashes)
	end := min(start+c.first, len(items))
	p := page[T]{items: items[start:end], total: new(len(items)), cursor: func(i int) string { return listCursor(c.list, hashes, start+i) }}
	p.info = model.PageInfo{HasNextPage: end < len(items), HasPreviousPage: start > 0}
	if selects(ctx, "pageInfo") { // otherwise nobody needs the cursors, which are expensive to compute
		p.setEndCursors(nil)
	}
	return p
}

// setEndCursors sets StartCursor and EndCursor. If the page has no items, setEndCursors sets EndCursor to fallback, which is nil if
// there is no next page.
func (p *page[T]) setEndCursors(fallback *string) {
	p.info.EndCursor = fallback
	if n := len(p.items); n > 0 {
		p.info.StartCursor, p.info.EndCursor = new(p.cursor(0)), new(p.cursor(n-1))
	}
}

// maxPages is the greatest number of pages of the venue that are read for one page of a connection.
const maxPages = 5

// venuePage is one page of a list as the venue sends it. On the last page, next is empty.
type venuePage[T any] struct {
	rows    []T
	next    string
	total   *int
	leftOut market.LeftOut
}

// place is the cursor of a row, and the hash of its key.
type place struct {
	pageCursor
	hash uint64
}

// readPages reads one page of a connection whose list the venue sends in pages. A page of the venue may contain fewer rows than
// requested, so readPages reads up to maxPages pages of the venue. If these pages contain fewer rows than the client has requested
// and the venue has more pages, readPages returns a short page with HasNextPage set. If an element moves to a later page of the venue
// while the pages are read, the page of the connection has it once.
func readPages[T any](ctx context.Context, read func(page string, limit int) (venuePage[T], error), key func(*T) string, list uint64, first int, after *string) (page[T], error) {
	position, err := parsePageCursor(list, after, first, maxUpstreamPage)
	if err != nil {
		return page[T]{}, err
	}
	out := page[T]{info: model.PageInfo{HasPreviousPage: after != nil && *after != ""}}
	var rows []T
	var places []place
	current, limit, seeking, next := position.Page, position.Limit, position.Element, ""
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
				seeking, rows, places = 0, nil, nil // the page of the connection begins after this row
				continue
			}
			if slices.ContainsFunc(places, func(p place) bool { return p.hash == hash }) {
				continue
			}
			// The venue may return more rows than limit. The Limit of the cursor must be great enough to get this row again.
			c := pageCursor{list, current, max(limit, min(len(p.rows), maxUpstreamPage)), hash, i}
			if i == len(p.rows)-1 && next != "" {
				c = pageCursor{List: list, Page: next, Limit: first} // the same position, but the next read needs only the next page
			}
			rows, places = append(rows, p.rows[i]), append(places, place{c, hash})
		}
		if next == "" || seeking == 0 && len(rows) >= first {
			break
		}
		if current = next; seeking == 0 {
			limit = first
		}
	}
	if seeking != 0 { // the element that the cursor names was removed, so the page begins at its old index
		skip := min(position.Index, len(rows))
		rows, places = rows[skip:], places[skip:]
	}
	out.info.HasNextPage = len(rows) > first || next != ""
	n := min(first, len(rows))
	out.items, out.cursor = rows[:n], func(i int) string { return places[i].String() }
	var empty *string
	if n == 0 && next != "" {
		empty = new(pageCursor{List: list, Page: next, Limit: first}.String())
	}
	out.setEndCursors(empty)
	return out, nil
}

// edgesOf returns the edges of a page, or nil if the client does not select edges.
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

// selects reports whether the client selects the field with the given name in the object that the current field returns. It returns
// true if exec.From finds no execution in ctx.
func selects(ctx context.Context, name string) bool {
	x := exec.From(ctx)
	return x == nil || x.Selects(name)
}
