package demo

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// Bounds of the user endpoints.
const (
	maxRows       = 10_000 // positions or orders in one answer
	defaultTrades = 100
	maxTrades     = 500
)

func (v *Venue) wallet(c *call) *wallet {
	address, _ := parseAddress(c.get("address"))
	return v.walletOf(address)
}

func (v *Venue) answerBalance(c *call, b []byte) []byte {
	w := v.wallet(c)
	v.mu.RLock()
	defer v.mu.RUnlock()
	return w.appendBalance(b)
}

func (w *wallet) appendBalance(b []byte) []byte {
	portfolio := w.portfolioValue()
	b = appendFixed(append(b, `{"portfolioValue":`...), int64(portfolio), 6)
	b = addMoney(b, "cashBalance", w.cash)
	b = addMoney(b, "totalValue", portfolio+w.cash)
	b = addTime(b, "lastUpdated", w.updatedAt())
	return append(b, '}')
}

func (v *Venue) answerPositions(c *call, b []byte) []byte {
	w := v.wallet(c)
	return answerRows(v, c, b, "positions", func() []*position { return w.positions },
		func(p *position) uint64 { return p.number }, func(b []byte, p *position) []byte { return p.append(b) })
}

func (p *position) append(b []byte) []byte {
	b = appendText(append(b, `{"marketId":`...), p.token.market.id)
	b = addText(b, "tokenId", p.token.id)
	b = addText(b, "outcome", p.token.label)
	b = addSize(b, "size", p.size)
	b = addPrice(b, "avgPrice", p.avgPrice())
	b = addPrice(b, "currentPrice", p.token.price())
	b = addMoney(b, "unrealizedPnl", p.unrealizedPnl())
	return append(b, '}')
}

func (v *Venue) answerOrders(c *call, b []byte) []byte {
	w := v.wallet(c)
	return answerRows(v, c, b, "orders", func() []*order { return w.orders },
		func(o *order) uint64 { return o.number }, func(b []byte, o *order) []byte { return o.append(b, w) })
}

func (o *order) append(b []byte, w *wallet) []byte {
	b = append(append(b, `{"orderId":"ord-`...), appendHex(nil, hash(w.seed, 2, o.number))...)
	b = addText(append(b, '"'), "marketId", o.token.market.id)
	b = addText(b, "side", string(o.side))
	b = addText(b, "outcome", o.token.label)
	b = addPrice(b, "price", o.price)
	b = addSize(b, "size", o.size)
	b = addSize(b, "filledSize", o.filled)
	b = addText(b, "status", o.status())
	b = addTime(b, "createdAt", o.createdAt)
	return append(b, '}')
}

const (
	orderOpen         = "OPEN"
	orderPartlyFilled = "PARTIALLY_FILLED"
	orderFilled       = "FILLED"
	orderCancelled    = "CANCELLED"
)

func (o *order) status() string {
	if o.ended != "" {
		return o.ended
	}
	if o.filled > 0 {
		return orderPartlyFilled
	}
	return orderOpen
}

// answerRows serves a list whose elements have increasing numbers. A cursor contains the number of the last element of a page, so
// the next page continues correctly even if that element is removed. totalCount counts the elements of all pages.
func answerRows[T any](v *Venue, c *call, b []byte, name string, rows func() []T, number func(T) uint64, add func([]byte, T) []byte) []byte {
	limit := c.number("limit", 1, maxRows, maxRows)
	after, _ := c.cursor()
	v.mu.RLock()
	defer v.mu.RUnlock()
	list := rows()
	total := len(list)
	from, _ := slices.BinarySearchFunc(list, after+1, func(row T, n uint64) int { return int(int64(number(row) - n)) })
	list = list[from:]
	page := list[:min(limit, len(list))]
	b = appendList(append(append(append(b, `{"`...), name...), `":`...), page, add)
	if len(page) < len(list) {
		b = addText(b, "nextCursor", cursorAt(number(page[len(page)-1])))
	}
	b = strconv.AppendInt(addName(b, "totalCount"), int64(total), 10)
	return append(b, '}')
}

func cursorAt(number uint64) string {
	return base64.RawURLEncoding.EncodeToString(strconv.AppendUint([]byte("n"), number, 36))
}

// cursor returns the number in the request's cursor. It returns false if the request has no cursor.
func (c *call) cursor() (uint64, bool) {
	s := c.get("cursor")
	if s == "" {
		return 0, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(s)
	digits, ok := strings.CutPrefix(string(raw), "n")
	number, parseErr := strconv.ParseUint(digits, 36, 63)
	if err != nil || !ok || parseErr != nil {
		c.refuse("cursor is not valid")
		return 0, false
	}
	return number, true
}

func (v *Venue) answerTrades(c *call, b []byte) []byte {
	return v.answerRecords(c, b, "trades", []kind{kindTrade}, func(w *wallet, i int, b []byte) []byte {
		return w.appendTrade(b, i)
	})
}

func (w *wallet) appendTrade(b []byte, i int) []byte {
	r := &w.records[i]
	b = appendText(append(b, `{"tradeId":`...), w.tradeID(w.dropped+uint64(i)))
	b = addText(b, "marketId", r.token.market.id)
	b = addText(b, "tokenId", r.token.id)
	b = addText(b, "outcome", r.token.label)
	b = addText(b, "side", string(r.side()))
	b = addPrice(b, "price", r.price)
	b = addSize(b, "size", r.size)
	b = addMoney(b, "fee", r.fee)
	b = addTime(b, "timestamp", r.at)
	return w.appendTransaction(b, i)
}

// tradeID returns the id of a trade. index is the index of the trade among all records that the wallet ever had.
func (w *wallet) tradeID(index uint64) string {
	return string(appendHex([]byte("tr-"), hash(w.seed, 3, index)))
}

func (v *Venue) answerUserHistory(c *call, b []byte) []byte {
	var kinds []kind
	if c.get("type") != "" {
		for name := range strings.SplitSeq(c.get("type"), ",") {
			k := slices.Index(kindNames[:], strings.ToUpper(name))
			if k < 0 {
				return c.refuse("type is a list of " + strings.Join(kindNames[:], ", "))
			}
			kinds = append(kinds, kind(k))
		}
	}
	return v.answerRecords(c, b, "history", kinds, func(w *wallet, i int, b []byte) []byte {
		r := &w.records[i]
		b = append(append(b, `{"id":"act-`...), appendHex(nil, w.recordHash(i, 4))...)
		b = addText(append(b, '"'), "type", kindNames[r.kind])
		b = addTime(b, "timestamp", r.at)
		b = addMoney(b, "amount", r.amount)
		if r.token == nil {
			b = append(b, `,"marketId":null,"tokenId":null,"outcome":null,"side":null,"price":null,"size":null`...)
			return w.appendTransaction(b, i)
		}
		b = addText(b, "marketId", r.token.market.id)
		b = addText(b, "tokenId", r.token.id)
		b = addText(b, "outcome", r.token.label)
		if r.kind == kindTrade {
			b = addText(b, "side", string(r.side()))
		} else {
			b = append(b, `,"side":null`...)
		}
		if r.size > 0 {
			b = addPrice(b, "price", r.price)
			b = addSize(b, "size", r.size)
		} else {
			b = append(b, `,"price":null,"size":null`...)
		}
		return w.appendTransaction(b, i)
	})
}

// recordHash returns a hash that identifies the record at index i of w.records. Each purpose results in a different hash.
func (w *wallet) recordHash(i int, purpose uint64) uint64 {
	return hash(w.seed, purpose, w.dropped+uint64(i))
}

// appendTransaction appends the transaction hash and ends the object of a record.
func (w *wallet) appendTransaction(b []byte, i int) []byte {
	b = append(addName(b, "transactionHash"), `"0x`...)
	for part := range uint64(4) {
		b = appendHex(b, w.recordHash(i, 5+part))
	}
	return append(b, `"}`...)
}

// recordQuery selects records of a wallet's history. The bounds from and to are inclusive.
type recordQuery struct {
	from, to      millis
	limit, offset int
	before        uint64 // number in the cursor; if hasCursor, only records with smaller numbers match
	marketID      string
	kinds         []kind // all kinds if empty

	hasTo, hasCursor, hasOffset bool
}

func (c *call) recordQuery(kinds []kind) recordQuery {
	q := recordQuery{kinds: kinds, marketID: c.get("marketId"), hasOffset: c.query.Has("offset")}
	q.from, _ = c.instant("from")
	q.to, q.hasTo = c.instant("to")
	q.limit = c.number("limit", 1, maxTrades, defaultTrades)
	q.before, q.hasCursor = c.cursor()
	q.offset = c.number("offset", 0, 1_000_000, 0)
	if q.hasOffset && q.hasCursor {
		c.refuse("cursor and offset exclude each other")
	}
	return q
}

// matches reports whether the query selects the record at index i. It ignores limit and offset.
func (q *recordQuery) matches(w *wallet, i int) bool {
	r := &w.records[i]
	return (!q.hasCursor || w.dropped+uint64(i) < q.before) && (!q.hasTo || r.at <= q.to) && r.at >= q.from &&
		(len(q.kinds) == 0 || slices.Contains(q.kinds, r.kind)) &&
		(q.marketID == "" || r.token != nil && r.token.market.id == q.marketID)
}

// answerRecords serves the records of a wallet that the request selects, newest first. If the request has an offset, the answer
// also has the number of all matching records.
func (v *Venue) answerRecords(c *call, b []byte, name string, kinds []kind, add func(*wallet, int, []byte) []byte) []byte {
	q := c.recordQuery(kinds)
	w := v.wallet(c)
	v.mu.RLock()
	defer v.mu.RUnlock()
	var page []int
	matching, more := 0, false
	for i := len(w.records) - 1; i >= 0 && (!more || q.hasOffset); i-- {
		if !q.matches(w, i) {
			continue
		}
		if matching++; matching <= q.offset {
			continue
		}
		if more = len(page) == q.limit; !more {
			page = append(page, i)
		}
	}
	b = append(append(append(b, `{"`...), name...), `":`...)
	b = appendList(b, page, func(b []byte, i int) []byte { return add(w, i, b) })
	next := ""
	if more {
		next = cursorAt(w.dropped + uint64(page[len(page)-1]))
	}
	b = addTextOrNull(b, "nextCursor", next)
	if q.hasOffset {
		b = strconv.AppendInt(addName(b, "count"), int64(matching), 10)
	}
	return append(b, '}')
}
