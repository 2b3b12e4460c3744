package generic

import (
	"encoding/base64"
	"encoding/hex"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

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

// valueOf returns the value of a field in the first object that has the field.
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
	cursor string
	offset int
	// previous is a hash of the first row on the previous page. A venue that ignores the offset sends this row again.
	previous string
	// guessed reports that only the length of the previous page suggests that this page exists.
	guessed bool
	// numbering is the market.Numbering after the previous page, as a text.
	numbering string
}

const (
	// maxCursor is the greatest length of a venue's cursor in bytes.
	maxCursor = 1024
	maxOffset = 1_000_000
)

// parsePageToken reads the token of a page. An empty token means the first page.
func parsePageToken(e upstream.Endpoint, token string) (pageStart, error) {
	var p pageStart
	if rest, ok := strings.CutPrefix(token, "t:"); ok {
		p.numbering, token, _ = strings.Cut(rest, ":")
		if _, err := market.ParseNumbering(p.numbering); err != nil || token == "" {
			return pageStart{}, badPageToken(e)
		}
	}
	kind, rest, _ := strings.Cut(token, ":")
	switch kind {
	case "":
		if token == "" {
			return pageStart{}, nil
		}
	case "c":
		if market.CheckID(rest) == nil {
			p.cursor = rest
			return p, nil
		}
	case "b":
		b, err := base64.RawURLEncoding.DecodeString(rest)
		if err == nil && len(b) > 0 && len(b) <= maxCursor {
			p.cursor = string(b)
			return p, nil
		}
	case "o", "g":
		digits, previous, _ := strings.Cut(rest, ":")
		n, err := strconv.Atoi(digits)
		if err == nil && n > 0 && n <= maxOffset && len(previous) <= 16 {
			p.offset, p.previous, p.guessed = n, previous, kind == "g"
			return p, nil
		}
	}
	return pageStart{}, badPageToken(e)
}

func badPageToken(e upstream.Endpoint) error {
	return rest.BadInput(e, "the cursor is not from this service")
}

// token returns the token that parsePageToken reads. The token of the first page is empty. A cursor that is not a valid id is
// written in base64.
func (p pageStart) token() string {
	counted := ""
	if p.numbering != "" {
		counted = "t:" + p.numbering + ":"
	}
	switch {
	case p.cursor != "" && market.CheckID(p.cursor) == nil:
		return counted + "c:" + p.cursor
	case p.cursor != "":
		return counted + "b:" + base64.RawURLEncoding.EncodeToString([]byte(p.cursor))
	case p.offset > 0 && p.guessed:
		return counted + "g:" + strconv.Itoa(p.offset) + ":" + p.previous
	case p.offset > 0:
		return counted + "o:" + strconv.Itoa(p.offset) + ":" + p.previous
	}
	return ""
}

func (p pageStart) isStart() bool { return p.cursor == "" && p.offset == 0 }

func (p pageStart) setQuery(q *rest.Query) {
	q.Set("cursor", p.cursor)
	if p.offset > 0 {
		q.Set("offset", strconv.Itoa(p.offset))
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
	t.next.numbering = t.numbering.String()
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
	case cursor != "" && cursor == p.cursor:
		return pageInfo{}, rest.UnknownForm(l.endpoint, "the venue repeats its cursor")
	case cursor != "" && (mode == "" || mode == byCursor):
		t.next = pageStart{cursor: cursor}
		return t, nil
	case cursor != "":
		return pageInfo{}, c.contradiction(l.endpoint, l.paging, "the venue sends a cursor")
	case p.cursor != "" || n == 0:
		return t, nil
	}
	hasMore := page.valueOf(fieldHasMore).Kind()
	said := hasMore == wire.True || hasMore == wire.False
	more := hasMore == wire.True || !said && t.total != nil && *t.total > p.offset+n
	next := func(guessed bool) pageStart {
		return pageStart{offset: p.offset + n, previous: l.hashOf(rows.Rows), guessed: guessed}
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

// hashOf returns a hash of the id of the first row, or of the row if it has no id. Without rows, it returns "".
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
	return p.previous != "" && p.previous == l.hashOf(rows)
}

func (c reading) repeatedPage(e upstream.Endpoint, paging setting) error {
	const why = "the venue repeats its pages"
	if c.decided(paging) {
		return c.contradiction(e, paging, why)
	}
	return rest.UnknownForm(e, why)
}

// cursorOf reads a cursor, which may be missing. If the cursor is too long, or is neither a text nor a number, the second result is
// false.
func cursorOf(v wire.Value) (string, bool) {
	switch v.Kind() {
	case wire.Missing, wire.Null, wire.Number:
		return v.Text(), true
	case wire.String:
		s := v.Text()
		return s, len(s) <= maxCursor
	}
	return "", false
}
