package generic

import (
	"encoding/hex"
	"hash/fnv"
	"slices"
	"strconv"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

var (
	fieldNextCursor = wire.NewField("nextCursor", "next")
	fieldHasMore    = wire.NewField("hasMore", "hasNextPage")
	fieldTotal      = wire.NewField("totalCount", "total", "totalResults")
	fieldCount      = wire.NewField("count")
	fieldOffset     = wire.NewField("offset")
	fieldPagination = wire.NewField("pagination", "pageInfo", "meta")
)

// paging contains the objects of a response in which venues send paging information.
type paging []wire.Value

// pagingOf returns first the object that contains the rows, then the objects around that object, from the inside out. Last comes
// the object pagination, pageInfo or meta, if one of these objects has such a member.
func pagingOf(page wire.Value) paging {
	var p paging
	for o := page; o.Kind() == wire.Object; o = o.Parent() {
		p = append(p, o)
	}
	if inside := p.valueOf(fieldPagination); inside.Kind() == wire.Object {
		p = append(p, inside)
	}
	return p
}

func (p paging) valueOf(f wire.Field) wire.Value {
	for _, o := range p {
		if f.PresentIn(o) {
			return f.Of(o)
		}
	}
	return wire.Value{}
}

func (p paging) has(f wire.Field) bool { return slices.ContainsFunc(p, f.PresentIn) }

// pageStart is the start of a page: a cursor of the venue or an offset.
type pageStart struct {
	Cursor string `json:"c,omitempty"`
	Offset int    `json:"o,omitempty"`
	// Previous is a hash of the first row on the previous page. A venue that ignores the offset sends this row again.
	Previous string `json:"p,omitempty"`
	// Guessed reports that only the length of the previous page suggests that this page exists.
	Guessed bool `json:"g,omitempty"`
	// Numbering is the numbering after the previous page of an account's records.
	Numbering market.Numbering `json:"n,omitzero"`
}

const maxOffset = 1_000_000

func parsePageToken(e upstream.Endpoint, token string) (p pageStart, err error) {
	if err = rest.ParsePage(e, token, &p); err == nil && (p.Offset < 0 || p.Offset > maxOffset) {
		err = rest.BadPage(e)
	}
	return p, err
}

func (p pageStart) token() string {
	if p.isStart() {
		return ""
	}
	return rest.PageToken(p)
}

func (p pageStart) isStart() bool { return p.Cursor == "" && p.Offset == 0 }

func (p pageStart) setQuery(q *rest.Query) {
	q.Set("cursor", p.Cursor)
	if p.Offset > 0 {
		q.Set("offset", strconv.Itoa(p.Offset))
	}
}

type pageInfo struct {
	// next is the zero value if there is no next page.
	next pageStart
	// total is the number of rows on all pages. It is nil if the venue does not send this number.
	total *int
	// numbering gives different numbers to rows that look the same. Only lists of accounts use this field.
	numbering market.Numbering
}

// nextToken returns the token of the next page, or "" if there is no next page. The token contains the numbering.
func (t *pageInfo) nextToken() string {
	t.next.Numbering = t.numbering
	return t.next.token()
}

// pagedList describes one of the venue's lists.
type pagedList struct {
	endpoint upstream.Endpoint
	// paging is the setting that says how the list continues.
	paging setting
	// id is the field that identifies a row. It may be the zero Field.
	id wire.Field
}

// pageInfo reads the paging information of the page that starts at p. limit is the number of rows from which a page counts as full.
//
// If the setting is decided, the answer must agree with it. Otherwise the list continues as the answer says. If the answer says
// nothing and the page is full, the next page is a guess. If the venue refuses this page or sends the same rows again, the list has
// ended before.
func (c reading) pageInfo(l *pagedList, rows rest.RowList, p pageStart, limit int) (t pageInfo, err error) {
	page, n, mode := pagingOf(rows.Object), len(rows.Rows), c.value(l.paging)
	t.total = rest.ParseCount(page.valueOf(fieldTotal))
	if count := rest.ParseCount(page.valueOf(fieldCount)); t.total == nil && count != nil && *count > n {
		t.total = count // some venues count the rows of the page, other venues count all rows
	}
	cursor, ok := cursorOf(page.valueOf(fieldNextCursor))
	switch {
	case !ok:
		return pageInfo{}, rest.UnknownForm(l.endpoint, "the cursor is not a text of at most 1024 bytes")
	case cursor != "" && cursor == p.Cursor:
		return pageInfo{}, rest.UnknownForm(l.endpoint, "the venue repeats its cursor")
	case cursor != "" && (mode == "" || mode == byCursor):
		t.next = pageStart{Cursor: cursor}
		return t, nil
	case cursor != "":
		return pageInfo{}, c.contradiction(l.endpoint, l.paging, "the venue sends a cursor")
	case p.Cursor != "" || n == 0:
		return t, nil
	}
	hasMore := page.valueOf(fieldHasMore).Kind()
	said := hasMore == wire.True || hasMore == wire.False
	more := hasMore == wire.True || !said && t.total != nil && *t.total > p.Offset+n
	next := func(guessed bool) pageStart {
		return pageStart{Offset: p.Offset + n, Previous: l.hashOf(rows.Rows), Guessed: guessed}
	}
	switch {
	case more && (mode == byCursor || mode == none):
		return pageInfo{}, c.contradiction(l.endpoint, l.paging, "the venue has more rows")
	case more:
		t.next = next(false)
	case said, t.total != nil, page.has(fieldNextCursor), n < limit, mode == byCursor, mode == none:
	case mode == byOffset, page.has(fieldOffset):
		t.next = next(false)
	default:
		t.next = next(true)
	}
	return t, nil
}

func (l *pagedList) hashOf(rows []wire.Value) string {
	if len(rows) == 0 {
		return ""
	}
	h := fnv.New64a()
	if id, ok := l.id.Of(rows[0]).ID(); ok && id != "" {
		_, _ = h.Write([]byte(id))
	} else {
		_, _ = h.Write(rows[0].JSON())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// repeats reports whether the page that starts at p has the same first row as the page before. Then the venue has ignored the offset.
func (l *pagedList) repeats(p pageStart, rows []wire.Value) bool {
	return p.Previous != "" && p.Previous == l.hashOf(rows)
}

func (c reading) repeatedPage(e upstream.Endpoint, paging setting) error {
	const why = "the venue repeats its pages"
	if c.decided(paging) {
		return c.contradiction(e, paging, why)
	}
	return rest.UnknownForm(e, why)
}

func cursorOf(v wire.Value) (string, bool) {
	switch v.Kind() {
	case wire.Missing, wire.Null, wire.Number:
		return v.Text(), true
	case wire.String:
		s := v.Text()
		return s, len(s) <= rest.MaxCursor
	}
	return "", false
}
