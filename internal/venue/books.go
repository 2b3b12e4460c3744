package venue

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"oddsgraph/internal/market"
)

var (
	fieldBids  = names("bids")
	fieldAsks  = names("asks")
	fieldSize  = names("size", "quantity", "amount")
	fieldSeq   = names("seq", "sequence")
	fieldEpoch = names("epoch")
	fieldHash  = names("hash")
)

// Book returns a token's order book with at most depth levels a side, or nil when the venue does not know the token. A
// book with two empty sides is a book without levels. Repeated levels of one price are summed, levels of size 0 left
// out. A level that cannot be read, and a best bid above the best ask, make the answer UPSTREAM_BAD_RESPONSE: a book is
// used as a whole.
func (c *Client) Book(ctx context.Context, tokenID string, depth int) (*market.Book, error) {
	if err := checkID(EndpointBook, tokenID); err != nil {
		return nil, err
	}
	if depth < 1 {
		return nil, badInput(EndpointBook, "depth is at least 1")
	}
	rq := &request{endpoint: EndpointBook, keys: 1}
	rq.query.set("tokenId", tokenID).set("depth", strconv.Itoa(depth))
	payload, err := c.get(ctx, rq)
	if err != nil || payload == nil {
		return nil, orAbsent(err)
	}
	var n notes
	b, err := decodeBook(payload, tokenID, depth, &n)
	c.report(EndpointBook, n)
	return b, err
}

func decodeBook(payload any, tokenID string, depth int, n *notes) (*market.Book, error) {
	m, ok := objectOf(payload, "orderbook", "book")
	if !ok {
		return nil, unknownForm(EndpointBook, "not an object")
	}
	r := newRow(m, n)
	if id := r.id(fieldTokenID); id != "" && id != tokenID {
		return nil, unknownForm(EndpointBook, "the book of another token")
	}
	b := &market.Book{
		TokenID:   tokenID,
		Bids:      r.side(fieldBids, fieldAsks),
		Asks:      r.side(fieldAsks, fieldBids),
		Timestamp: r.time(fieldTimestamp),
		Epoch:     r.label(fieldEpoch),
		Seq:       r.sequence(fieldSeq),
		Hash:      r.text(fieldHash),
		Depth:     depth,
	}
	slices.SortFunc(b.Bids, func(x, y market.Level) int { return y.Price.Cmp(x.Price) })
	slices.SortFunc(b.Asks, func(x, y market.Level) int { return x.Price.Cmp(y.Price) })
	b.Bids, b.Asks = r.merge(b.Bids), r.merge(b.Asks)
	b.Spread = r.spread(b)
	if r.err != nil {
		n.add("bad element")
		return nil, unknownForm(EndpointBook, r.err.Error())
	}
	return b.Cut(depth), nil
}

// side reads the levels of a side. A missing one makes the book bad; null is an empty side if the other one is a list.
func (r *row) side(f, other field) []market.Level {
	v := f.of(r.fields)
	list, ok := listOf(v)
	if !ok {
		if _, vouched := other.of(r.fields).([]any); v != nil || !f.in(r.fields) || !vouched {
			r.bad(f, "is not a list")
		}
		return nil
	}
	levels := make([]market.Level, 0, len(list))
	for _, v := range list {
		level, err := readLevel(v, r.notes)
		if err != nil {
			r.bad(f, "has a bad level: "+err.Error())
			return nil
		}
		if !level.Size.IsZero() {
			levels = append(levels, level)
		}
	}
	return levels
}

// readLevel reads {price,size} or [price,size].
func readLevel(v any, n *notes) (market.Level, error) {
	if pair, ok := v.([]any); ok {
		if len(pair) < 2 {
			return market.Level{}, errors.New("a pair without size")
		}
		v = map[string]any{fieldPrice[0]: pair[0], fieldSize[0]: pair[1]}
	}
	r := newRow(v, n)
	level := market.Level{Price: r.price(fieldPrice), Size: r.size(fieldSize)}
	return level, r.err
}

// merge sums neighbouring levels of the same price.
func (r *row) merge(levels []market.Level) []market.Level {
	out := levels[:0]
	for _, level := range levels {
		if last := len(out) - 1; last >= 0 && out[last].Price.Cmp(level.Price) == 0 {
			out[last].Size = out[last].Size.Add(level.Size)
			r.notes.add("repeated level")
			continue
		}
		out = append(out, level)
	}
	return out
}

// spread is the venue's figure, else the difference of the best prices; nil when a side is empty.
func (r *row) spread(b *market.Book) *market.Decimal {
	if len(b.Bids) == 0 || len(b.Asks) == 0 {
		return nil
	}
	if b.Bids[0].Price.Cmp(b.Asks[0].Price) > 0 {
		r.notes.add("crossed book")
		r.bad(fieldBids, "cross the asks")
		return nil
	}
	if stated := r.unit(fieldSpread); stated != nil {
		return stated
	}
	d := b.Asks[0].Price.Sub(b.Bids[0].Price).Reduce()
	return &d
}

// sequence reads an optional sequence number.
func (r *row) sequence(f field) uint64 {
	var s string
	switch v := f.of(r.fields).(type) {
	case nil:
		return 0
	case json.Number:
		s = v.String()
	case string:
		s = v
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		r.note(f)
		return 0
	}
	return n
}

// label reads an optional text that may be a number.
func (r *row) label(f field) string {
	if v, ok := f.of(r.fields).(json.Number); ok {
		return v.String()
	}
	return r.text(f)
}
