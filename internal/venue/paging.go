package venue

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"strconv"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/wire"
)

var (
	fieldNextCursor = wire.Names("nextCursor", "next")
	fieldHasMore    = wire.Names("hasMore", "hasNextPage")
	fieldTotal      = wire.Names("totalCount", "total", "totalResults")
	fieldCount      = wire.Names("count")
	fieldOffset     = wire.Names("offset")
	fieldPagination = wire.Names("pagination", "pageInfo", "meta")
)

// keepPaging copies what an outer object says about the page into the inner one that holds the rows.
func keepPaging(inside, outside map[string]any) {
	for _, f := range []wire.Field{fieldNextCursor, fieldHasMore, fieldTotal, fieldCount, fieldOffset, fieldPagination} {
		for _, name := range f {
			if v, ok := outside[name]; ok && !f.In(inside) {
				inside[name] = v
			}
		}
	}
}

// place is where a page starts: at a cursor of the venue or at an offset.
type place struct {
	cursor string
	offset int
	// before is the fingerprint of the page before, by which a venue is caught that ignores offsets.
	before string
}

const (
	// maxCursor bounds the venue's cursors.
	maxCursor = 1024
	// maxOffset bounds the offsets that are asked for.
	maxOffset = 1_000_000
)

// parsePlace reads a page token; the empty one is the start.
func parsePlace(e market.Endpoint, token string) (place, error) {
	kind, rest, _ := strings.Cut(token, ":")
	switch kind {
	case "":
		if token == "" {
			return place{}, nil
		}
	case "c":
		if market.CheckID(rest) == nil {
			return place{cursor: rest}, nil
		}
	case "b":
		b, err := base64.RawURLEncoding.DecodeString(rest)
		if err == nil && len(b) > 0 && len(b) <= maxCursor {
			return place{cursor: string(b)}, nil
		}
	case "o":
		digits, before, _ := strings.Cut(rest, ":")
		n, err := strconv.Atoi(digits)
		if err == nil && n > 0 && n <= maxOffset && len(before) <= 16 {
			return place{offset: n, before: before}, nil
		}
	}
	return place{}, badInput(e, "the page is not one that was given out here")
}

// token is the opposite of parsePlace. A cursor that is no id, because it has a slash or is long, is written in base64.
func (p place) token() string {
	switch {
	case p.cursor != "" && market.CheckID(p.cursor) == nil:
		return "c:" + p.cursor
	case p.cursor != "":
		return "b:" + base64.RawURLEncoding.EncodeToString([]byte(p.cursor))
	case p.offset > 0:
		return "o:" + strconv.Itoa(p.offset) + ":" + p.before
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
}

// turnOf reads the paging of an answer that was asked for at p with a limit.
func turnOf(e market.Endpoint, list found, p place, limit int) (turn, error) {
	page := list.page
	if inside, ok := fieldPagination.Of(page).(map[string]any); ok {
		keepPaging(page, inside)
	}
	n := len(list.rows)
	t := turn{total: count(fieldTotal.Of(page))}
	if rows := count(fieldCount.Of(page)); t.total == nil && rows != nil && *rows > n {
		t.total = rows // count is the page's rows with some venues, all rows with others
	}
	cursor, ok := cursorOf(fieldNextCursor.Of(page))
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
	more, said := fieldHasMore.Of(page).(bool)
	switch {
	case said && more, !said && t.total != nil && *t.total > p.offset+n:
		t.next = after()
	case said, t.total != nil, fieldNextCursor.In(page):
	case n >= limit:
		t.next, t.guessed = after(), !fieldOffset.In(page)
	}
	return t, nil
}

func cursorOf(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, len(v) <= maxCursor
	case json.Number:
		return v.String(), true
	}
	return "", false
}

// repeats tells whether rows are those of the page before p.
func (p place) repeats(rows []any) bool {
	return p.before != "" && len(rows) > 0 && p.before == fingerprint(rows)
}

// identity is what tells rows apart while their figures move.
var identity = append(wire.Names("id", "orderId", "tradeId", "marketId", "conditionId", "tokenId", "slug", "outcome", "transactionHash"), wire.FieldTradeAt...)

// fingerprint is a short text that differs between lists of different rows.
func fingerprint(rows []any) string {
	h := fnv.New64a()
	to := json.NewEncoder(h)
	for _, v := range rows {
		m, ok := v.(map[string]any)
		if !ok {
			_ = to.Encode(v)
			continue
		}
		for _, name := range identity {
			_ = to.Encode(m[name])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
