package generic

import (
	"bytes"
	"context"
	"fmt"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// searchPair reads the market of a response that contains only the market's two tokens.
func (c reading) searchPair(ctx context.Context, q queries.Search, yes, no string) (*queries.SearchPage, error) {
	results, err := c.marketsByToken().read(ctx, []string{yes})
	if err != nil {
		return nil, err
	}
	m := results[0].Value
	switch {
	case results[0].Err != nil:
		return nil, results[0].Err
	case m == nil, m.OutcomeByToken(no) == nil:
		return nil, rest.UnknownForm(upstream.EndpointSearch, "two tokens that are not of one market")
	case !matchesFilters(m, q):
		return &queries.SearchPage{}, nil
	}
	return &queries.SearchPage{Markets: []*market.Market{m}}, nil
}

// tokenPair reads {yes,no} with the ids or objects of two tokens. A response with the market itself is no pair.
func tokenPair(payload wire.Value) (yes, no string, ok bool) {
	pair := pairObject(payload)
	if wire.FieldQuestion.PresentIn(pair) {
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

func pairObject(payload wire.Value) wire.Value {
	if inside := payload.Member("data"); inside.Kind() == wire.Object {
		return inside
	}
	return payload
}

// pairRows reads {yes,no} as the rows of two markets, or as the row of one market with two tokens. It may return nil.
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
	// The members of pair come after the members of yes, so that a member of pair overrides a member of yes with the same name.
	text := []byte{'{'}
	if inside := innerJSON(yes); len(inside) > 0 {
		text = append(append(text, inside...), ',')
	}
	text = fmt.Appendf(text, `%s,%q:[%s,%s]}`, innerJSON(pair), wire.FieldOutcomes, sideJSON(yes, "YES"), sideJSON(no, "NO"))
	m, err := wire.Parse(text)
	if err != nil {
		return nil // the new document has too many values
	}
	return []wire.Value{m}
}

func innerJSON(v wire.Value) []byte {
	if v.Kind() != wire.Object {
		return nil
	}
	text := v.JSON()
	return bytes.TrimSpace(text[1 : len(text)-1])
}

// sideJSON returns the JSON of an outcome, which is the id of its token or an object. It has the label unless v has one.
func sideJSON(v wire.Value, label string) []byte {
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
