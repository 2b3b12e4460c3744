package venue

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
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

// paging are the objects that say which page an answer is, the one with the rows first.
type paging []wire.Value

// pagingOf returns the object with the rows and those around it, from the inside out, and at last the one that is about
// nothing but pages.
func pagingOf(page wire.Value) paging {
	var p paging
	for o := page; o.Kind() == wire.Object; o = o.Parent() {
		p = append(p, o)
	}
	if inside := p.of(fieldPagination); inside.Kind() == wire.Object {
		p = append(p, inside)
	}
	return p
}

// of returns what the first object that has a field says.
func (p paging) of(f wire.Field) wire.Value {
	for _, o := range p {
		if f.PresentIn(o) {
			return f.Of(o)
		}
	}
	return wire.Value{}
}

func (p paging) has(f wire.Field) bool { return slices.ContainsFunc(p, f.PresentIn) }

// place is where a page starts: at a cursor of the venue or at an offset.
type place struct {
	cursor string
	offset int
	// before is the fingerprint of the page before, by which a venue is caught that ignores offsets.
	before string
	// guessed reports that nothing but the length of the page before suggests this one.
	guessed bool
	// counted are the rows of the instant at which the page before ended; see market.Numbering.
	counted string
}

const (
	// maxCursor bounds the venue's cursors.
	maxCursor = 1024
	// maxOffset bounds the offsets that are asked for.
	maxOffset = 1_000_000
)

// parsePlace reads a page token; the empty one is the start.
func parsePlace(e reqctx.Endpoint, token string) (place, error) {
	var p place
	if rest, ok := strings.CutPrefix(token, "t:"); ok {
		p.counted, token, _ = strings.Cut(rest, ":")
		if _, err := market.ParseNumbering(p.counted); err != nil || token == "" {
			return place{}, badPage(e)
		}
	}
	kind, rest, _ := strings.Cut(token, ":")
	switch kind {
	case "":
		if token == "" {
			return place{}, nil
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
		digits, before, _ := strings.Cut(rest, ":")
		n, err := strconv.Atoi(digits)
		if err == nil && n > 0 && n <= maxOffset && len(before) <= 16 {
			p.offset, p.before, p.guessed = n, before, kind == "g"
			return p, nil
		}
	}
	return place{}, badPage(e)
}

func badPage(e reqctx.Endpoint) error {
	return badInput(e, "the page is not one that was given out here")
}

// token is the opposite of parsePlace. A cursor that is no id, because it has a slash or is long, is written in base64.
func (p place) token() string {
	counted := ""
	if p.counted != "" {
		counted = "t:" + p.counted + ":"
	}
	switch {
	case p.cursor != "" && market.CheckID(p.cursor) == nil:
		return counted + "c:" + p.cursor
	case p.cursor != "":
		return counted + "b:" + base64.RawURLEncoding.EncodeToString([]byte(p.cursor))
	case p.offset > 0 && p.guessed:
		return counted + "g:" + strconv.Itoa(p.offset) + ":" + p.before
	case p.offset > 0:
		return counted + "o:" + strconv.Itoa(p.offset) + ":" + p.before
	}
	return ""
}

func (p place) isStart() bool { return p.cursor == "" && p.offset == 0 }

// apply sets the query parameters of the page.
func (p place) apply(q *query) {
	q.set("cursor", p.cursor)
	if p.offset > 0 {
		q.set("offset", strconv.Itoa(p.offset))
	}
}

// turn is what a page says about the pages around it.
type turn struct {
	// next is the start where there is no next page.
	next place
	// total is nil where the venue does not say how many rows there are on all pages.
	total *int
	// guessed tells that nothing in the answer says that there is a next page: only its length suggests one.
	guessed bool
	// counted reports that the venue counts as many rows as there are on this page, countsAll that it counts more.
	counted, countsAll bool
	// carry numbers the page's rows that look like others; a user's list has one.
	carry market.Numbering
}

// following returns the token of the next page, on which the rows are numbered further; empty where there is none.
func (t *turn) following() string {
	t.next.counted = t.carry.String()
	return t.next.token()
}

// turnOf reads the paging of an answer that was asked for at p with a limit.
func turnOf(e reqctx.Endpoint, list found, p place, limit int) (turn, error) {
	page := pagingOf(list.page)
	n := len(list.rows)
	t := turn{total: count(page.of(fieldTotal))}
	if rows := count(page.of(fieldCount)); t.total == nil && rows != nil && *rows >= n {
		if t.counted = *rows == n; !t.counted { // count is the page's rows with some venues, all rows with others
			t.total, t.countsAll = rows, true
		}
	}
	cursor, ok := cursorOf(page.of(fieldNextCursor))
	switch {
	case !ok:
		return turn{}, unknownForm(e, "the cursor is not a text of at most 1024 bytes")
	case cursor != "" && cursor == p.cursor:
		return turn{}, unknownForm(e, "the venue repeats its cursor")
	case cursor != "":
		t.next = place{cursor: cursor}
		return t, nil
	case p.cursor != "" || n == 0:
		return t, nil
	}
	after := func() place { return place{offset: p.offset + n, before: fingerprint(list.rows)} }
	more := page.of(fieldHasMore).Kind()
	said := more == wire.True || more == wire.False
	switch {
	case more == wire.True, !said && t.total != nil && *t.total > p.offset+n:
		t.next = after()
	case said, t.total != nil, page.has(fieldNextCursor):
	case n >= limit:
		t.next, t.guessed = after(), !page.has(fieldOffset)
		t.next.guessed = t.guessed
	}
	return t, nil
}

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

// repeats tells whether rows are those of the page before p.
func (p place) repeats(rows []wire.Value) bool {
	return p.before != "" && len(rows) > 0 && p.before == fingerprint(rows)
}

// identity are the names of the members by which rows differ: ids, and the figures of rows without ids that never change.
var identity = wire.NewField(slices.Concat([]string{"id", "orderId", "tradeId", "marketId", "conditionId", "tokenId", "slug", "outcome",
	"transactionHash", "type", "side", "price", "size", "quantity", "currentSize", "shares", "amount", "usdcSize", "avgPrice", "averagePrice"},
	wire.FieldTradeAt.Names())...).Names()

// fingerprint is a short text that differs between lists of different rows.
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

// alike reports whether all rows have one identity, so that the page behind them may equal theirs.
func alike(rows []wire.Value) bool {
	for i := range rows {
		if fingerprint(rows[i:i+1]) != fingerprint(rows[:1]) {
			return false
		}
	}
	return true
}

// heedsOffset reports whether the venue reads the offset of a wallet's list. rq asks for the list without a page; rows are a
// page of it that equals the one before. It costs one call, for an offset behind the end of every list: a venue that reads
// offsets refuses that or answers with other rows.
func (c *Client) heedsOffset(ctx context.Context, rq *request, rows []wire.Value, keys ...string) (bool, error) {
	rq.query.set("offset", strconv.Itoa(maxOffset))
	payload, err := c.get(ctx, rq)
	switch {
	case err != nil && (refusesForm(err) || market.CodeOf(err) == market.CodeNotFound):
		return true, nil
	case err != nil:
		return false, orBad(rq.endpoint, err)
	}
	far, ok := rowsOf(payload, keys...)
	return !ok || fingerprint(far.rows) != fingerprint(rows), nil
}
