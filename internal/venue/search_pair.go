package venue

import (
	"bytes"
	"context"
	"fmt"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/wire"
)

// searchPair makes a page of an answer that names nothing but the two tokens of one market, which takes a call more.
func (c *Client) searchPair(ctx context.Context, q market.Search, yes, no string) (*market.SearchPage, error) {
	results, err := c.MarketsByToken(ctx, []string{yes})
	if err != nil {
		return nil, err
	}
	m := results[0].Value
	switch {
	case results[0].Err != nil:
		return nil, results[0].Err
	case m == nil, m.OutcomeByToken(no) == nil:
		return nil, unknownForm(reqctx.EndpointSearch, "two tokens that are not of one market")
	case !fits(m, q):
		return &market.SearchPage{}, nil
	}
	return &market.SearchPage{Markets: []*market.Market{m}}, nil
}

// tokenPair reads {yes,no} of two tokens that come without their market's question, be they ids or objects.
func tokenPair(payload wire.Value) (yes, no string, ok bool) {
	pair := pairIn(payload)
	if fieldQuestion.PresentIn(pair) {
		return "", "", false
	}
	var ids [2]string
	for i, v := range []wire.Value{pair.Member("yes"), pair.Member("no")} {
		if isMarket(v) {
			return "", "", false
		}
		if v.Kind() == wire.Object {
			v = wire.FieldTokenID.Of(v)
		}
		if ids[i], ok = v.ID(); !ok || ids[i] == "" {
			return "", "", false
		}
	}
	return ids[0], ids[1], true
}

// pairIn returns the object that may have yes and no.
func pairIn(payload wire.Value) wire.Value {
	if inside := payload.Member("data"); inside.Kind() == wire.Object {
		return inside
	}
	return payload
}

// pairRows reads {yes,no}: two markets, or the two tokens of one.
func pairRows(pair wire.Value) []wire.Value {
	yes, no := pair.Member("yes"), pair.Member("no")
	if yes.IsNull() || no.IsNull() {
		return nil
	}
	if isMarket(yes) && isMarket(no) {
		if id, _ := fieldMarketID.Of(yes).ID(); fieldMarketID.Of(no).Is(id) {
			return []wire.Value{yes}
		}
		return []wire.Value{yes, no}
	}
	// What is said beside yes and no comes after what is said in yes, and so counts.
	text := []byte{'{'}
	if inside := inObject(yes); len(inside) > 0 {
		text = append(append(text, inside...), ',')
	}
	text = fmt.Appendf(text, `%s,%q:[%s,%s]}`, inObject(pair), fieldOutcomes, side(yes, "YES"), side(no, "NO"))
	m, err := wire.Parse(text)
	if err != nil {
		return nil // it has too many values now
	}
	return []wire.Value{m}
}

// inObject returns the text between the braces of an object; nothing for any other value.
func inObject(v wire.Value) []byte {
	if v.Kind() != wire.Object {
		return nil
	}
	text := v.JSON()
	return bytes.TrimSpace(text[1 : len(text)-1])
}

// side writes an outcome of one side of {yes,no}, which is a token's id or an object.
func side(v wire.Value, label string) []byte {
	text := fmt.Appendf(nil, `{%q:%q`, fieldOutcome, label)
	say := func(f wire.Field, v wire.Value) {
		if !v.IsNull() {
			text = fmt.Appendf(text, `,%q:%s`, f, v.JSON())
		}
	}
	if v.Kind() == wire.Object {
		say(fieldOutcomeToken, wire.FieldTokenID.Of(v))
		say(fieldOutcome, fieldOutcome.Of(v))
		say(wire.FieldPrice, wire.FieldPrice.Of(v))
		say(fieldWinner, fieldWinner.Of(v))
	} else {
		say(fieldOutcomeToken, v)
	}
	return append(text, '}')
}
