package generic

import (
	"context"
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
	// previousHash is the fingerprint of the previous page. If the page that starts here has the same fingerprint, the venue may
	// ignore offsets. It is computed from previousRows when it is needed, because most pages have no next page.
	previousHash string
	previousRows []wire.Value
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
			p.offset, p.previousHash, p.guessed = n, previous, kind == "g"
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
		return counted + "g:" + strconv.Itoa(p.offset) + ":" + p.hash()
	case p.offset > 0:
		return counted + "o:" + strconv.Itoa(p.offset) + ":" + p.hash()
	}
	return ""
}

func (p pageStart) hash() string {
	if p.previousHash == "" && len(p.previousRows) > 0 {
		return fingerprint(p.previousRows)
	}
	return p.previousHash
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
	// guessed reports that only the length of the page suggests that there is a next page. It is false if the response has a JSON
	// field "offset".
	guessed bool
	// countsPage reports that the JSON field "count" equals the number of rows on this page. countIsTotal reports that this field
	// is greater, so it contains the number of rows on all pages.
	countsPage, countIsTotal bool
	// numbering gives different numbers to rows that look the same. Only lists of accounts use this field.
	numbering market.Numbering
}

// nextToken returns the token of the next page, or "" if there is no next page. The token contains the numbering.
func (t *pageInfo) nextToken() string {
	t.next.numbering = t.numbering.String()
	return t.next.token()
}

// pageInfoOf reads the paging information of a page. p is the start of the page. If p is a cursor and the response has no cursor,
// the page is the last one. If p is not a cursor, the response may not say whether there is a next page. In this case, pageInfoOf
// assumes a next page if the page has at least limit rows. It also sets the field guessed to true. But if the response has a JSON
// field "offset", the venue supports offsets, and guessed stays false.
func pageInfoOf(e upstream.Endpoint, list rest.RowList, p pageStart, limit int) (pageInfo, error) {
	page := pagingOf(list.Object)
	n := len(list.Rows)
	t := pageInfo{total: rest.ParseCount(page.valueOf(fieldTotal))}
	if rows := rest.ParseCount(page.valueOf(fieldCount)); t.total == nil && rows != nil && *rows >= n {
		if t.countsPage = *rows == n; !t.countsPage { // some venues count the rows of the page, other venues count all rows
			t.total, t.countIsTotal = rows, true
		}
	}
	cursor, ok := cursorOf(page.valueOf(fieldNextCursor))
	switch {
	case !ok:
		return pageInfo{}, rest.UnknownForm(e, "the cursor is not a text of at most 1024 bytes")
	case cursor != "" && cursor == p.cursor:
		return pageInfo{}, rest.UnknownForm(e, "the venue repeats its cursor")
	case cursor != "":
		t.next = pageStart{cursor: cursor}
		return t, nil
	case p.cursor != "" || n == 0:
		return t, nil
	}
	nextByOffset := func() pageStart { return pageStart{offset: p.offset + n, previousRows: list.Rows} }
	hasMore := page.valueOf(fieldHasMore).Kind()
	announced := hasMore == wire.True || hasMore == wire.False
	switch {
	case hasMore == wire.True, !announced && t.total != nil && *t.total > p.offset+n:
		t.next = nextByOffset()
	case announced, t.total != nil, page.has(fieldNextCursor):
	case n >= limit:
		t.next, t.guessed = nextByOffset(), !page.has(fieldOffset)
		t.next.guessed = t.guessed
	}
	return t, nil
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

// isRepeated reports whether the rows of the page that starts at p have the fingerprint of the previous page. If there are no rows,
// or the previous page is unknown, isRepeated returns false.
func (p pageStart) isRepeated(rows []wire.Value) bool {
	previous := p.hash()
	return previous != "" && len(rows) > 0 && previous == fingerprint(rows)
}

// identity contains the names of the members that identify a row: ids, and other members that never change.
var identity = wire.NewField(slices.Concat([]string{"id", "orderId", "tradeId", "marketId", "conditionId", "tokenId", "slug", "outcome",
	"transactionHash", "type", "side", "price", "size", "quantity", "currentSize", "shares", "amount", "usdcSize", "avgPrice", "averagePrice"},
	wire.FieldTradeAt.Names())...).Names()

// fingerprint returns a hash of the identities of rows.
func fingerprint(rows []wire.Value) string {
	h := fnv.New64a()
	write := func(v wire.Value) {
		_, _ = h.Write(v.JSON())
		_, _ = h.Write([]byte{'\n'})
	}
	for _, row := range rows {
		if row.Kind() != wire.Object {
			write(row)
			continue
		}
		for _, name := range identity {
			write(row.Member(name))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// allAlike reports whether all rows have the same identity. If all rows of a page have the same identity, the next page may have
// the same fingerprint although it contains other rows.
func allAlike(rows []wire.Value) bool {
	for i := range rows {
		if fingerprint(rows[i:i+1]) != fingerprint(rows[:1]) {
			return false
		}
	}
	return true
}

// respectsOffset reports whether the venue respects the offset in a request for an account's list. Its arguments are the request
// without paging parameters, and the rows of a page that equals an earlier page. respectsOffset makes one call with the offset
// maxOffset. A venue that ignores offsets responds with the same rows. Any other venue refuses this offset, or responds with other
// rows.
func (c *Client) respectsOffset(ctx context.Context, rq *rest.Request, rows []wire.Value, keys ...string) (bool, error) {
	rq.Query.Set("offset", strconv.Itoa(maxOffset))
	payload, err := c.Get(ctx, rq)
	switch {
	case err != nil && (rest.RefusesForm(err) || market.CodeOf(err) == market.CodeNotFound):
		return true, nil
	case err != nil:
		return false, rest.BadIfNotFound(rq.Endpoint, err)
	}
	far, ok := rest.RowsOf(payload, keys...)
	return !ok || fingerprint(far.Rows) != fingerprint(rows), nil
}
