package venue

import (
	"errors"
	"maps"
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/wire"
)

// keyed is how values that belong to tokens are read out of an answer. Venues write them as a list of rows, as one row,
// or as an object from id to row or number.
type keyed[T any] struct {
	endpoint market.Endpoint
	// list is the key of the list of rows.
	list string
	// marks are the fields of which a row has at least one.
	marks []wire.Field
	// row reads a row; the id is known already.
	row func(r *wire.Row, id string) *T
	// scalar makes a value of a single number; nil where a number alone means nothing.
	scalar func(d market.Decimal, id string) *T
}

func (k *keyed[T]) decode(payload any, asked []string, n *notes) (answers[T], error) {
	if list, ok := rowsOf(payload, k.list); ok {
		return k.rows(list.rows, asked, n), nil
	}
	m, ok := payload.(map[string]any)
	if !ok {
		return answers[T]{}, unknownForm(k.endpoint, "neither a list nor an object")
	}
	if k.isRow(m) {
		if len(asked) > 1 {
			return answers[T]{}, unknownForm(k.endpoint, "one element for several ids")
		}
		return k.rows([]any{m}, asked, n), nil
	}
	inside, enveloped := m, false
	for _, key := range []string{k.list, "data", "results"} {
		if v, ok := m[key].(map[string]any); ok && !enveloped {
			inside, enveloped = v, true
		}
	}
	if enveloped && k.isRow(inside) {
		return k.decode(inside, asked, n)
	}
	if !k.isMap(inside, asked, enveloped) {
		return answers[T]{}, unknownForm(k.endpoint, "an object of another form")
	}
	return k.fromMap(inside, asked, n), nil
}

func (k *keyed[T]) isRow(m map[string]any) bool {
	return wire.FieldTokenID.In(m) || slices.ContainsFunc(k.marks, func(f wire.Field) bool {
		_, isMap := f.Of(m).(map[string]any)
		return f.In(m) && !isMap
	})
}

// isMap tells whether m is an object from id to value. An empty one is, if it lies under a key that says so.
func (k *keyed[T]) isMap(m map[string]any, asked []string, enveloped bool) bool {
	if len(m) == 0 {
		return enveloped
	}
	if slices.ContainsFunc(asked, func(id string) bool { _, ok := m[id]; return ok }) {
		return true
	}
	for v := range maps.Values(m) {
		row, isObject := v.(map[string]any)
		_, isNumber := wire.DecimalOf(v)
		if !(isObject && k.isRow(row)) && !(isNumber && k.scalar != nil) {
			return false
		}
	}
	return true
}

// rows reads a list of rows. Of several rows for one id the last counts.
func (k *keyed[T]) rows(list []any, asked []string, n *notes) answers[T] {
	out := newAnswers[T](len(asked))
	for _, v := range list {
		r := wire.NewRow(v, n.add)
		id, ok := wire.IDOf(wire.FieldTokenID.Of(r.Fields))
		if r.Err == nil && wire.FieldTokenID.Of(r.Fields) == nil && len(asked) == 1 && len(list) == 1 {
			id, ok = asked[0], true
		}
		switch {
		case !ok || id == "":
			out.lost = true
			n.add("element without a readable id")
		case !slices.Contains(asked, id):
			out.foreign = true
		default:
			id = wire.Intern(id)
			out.of[id] = k.read(r, id)
		}
	}
	return out
}

func (k *keyed[T]) fromMap(m map[string]any, asked []string, n *notes) answers[T] {
	out := newAnswers[T](len(asked))
	for _, id := range asked {
		v := m[id]
		if v == nil {
			continue
		}
		id = wire.Intern(id)
		switch v := v.(type) {
		case map[string]any:
			out.of[id] = k.read(wire.NewRow(v, n.add), id)
		default:
			out.of[id] = k.number(v, id, n)
		}
	}
	out.foreign = len(out.of) < len(m)
	return out
}

// number reads a value that is a number alone.
func (k *keyed[T]) number(v any, id string, n *notes) market.Result[*T] {
	d, ok := wire.DecimalOf(v)
	if !ok || k.scalar == nil || !wire.InUnit(d) {
		n.add("bad element")
		return market.Result[*T]{Err: badElement(k.endpoint, errors.New("the value is not a number from 0 to 1"))}
	}
	return market.Result[*T]{Value: k.scalar(d, id)}
}

// read reads a row whose id is known.
func (k *keyed[T]) read(r *wire.Row, id string) market.Result[*T] {
	value := k.row(r, id)
	if r.Err != nil {
		r.Note("bad element")
		return market.Result[*T]{Err: badElement(k.endpoint, r.Err)}
	}
	return market.Result[*T]{Value: value}
}
