package venue

import (
	"errors"
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/wire"
)

// keyed is how values that belong to tokens are read out of an answer. Venues write them as a list of rows, as one row,
// or as an object from id to row or number.
type keyed[T any] struct {
	endpoint reqctx.Endpoint
	// list is the key of the list of rows.
	list string
	// marks are the fields of which a row has at least one.
	marks []wire.Field
	// row reads a row; the id is known already.
	row func(r *wire.Row, id string) *T
	// scalar makes a value of a single number; nil where a number alone means nothing.
	scalar func(d market.Decimal, id string) *T
}

func (k *keyed[T]) decode(payload wire.Value, asked []string, n *notes) (answers[T], error) {
	if list, ok := rowsOf(payload, k.list); ok {
		return k.rows(list.rows, asked, n), nil
	}
	if payload.Kind() != wire.Object {
		return answers[T]{}, unknownForm(k.endpoint, "neither a list nor an object")
	}
	if k.isRow(payload) {
		if len(asked) > 1 {
			return answers[T]{}, unknownForm(k.endpoint, "one element for several ids")
		}
		return k.rows([]wire.Value{payload}, asked, n), nil
	}
	inside, enveloped := payload, false
	for _, key := range []string{k.list, "data", "results"} {
		if v := payload.Member(key); v.Kind() == wire.Object && !enveloped {
			inside, enveloped = v, true
		}
	}
	if enveloped && k.isRow(inside) {
		return k.decode(inside, asked, n)
	}
	m := inside.Members()
	if !k.isMap(m, asked, enveloped) {
		return answers[T]{}, unknownForm(k.endpoint, "an object of another form")
	}
	return k.fromMap(m, asked, n), nil
}

func (k *keyed[T]) isRow(object wire.Value) bool {
	return wire.FieldTokenID.PresentIn(object) || slices.ContainsFunc(k.marks, func(f wire.Field) bool {
		return f.PresentIn(object) && f.Of(object).Kind() != wire.Object
	})
}

// isMap tells whether m is an object from id to value. An empty one is, if it lies under a key that says so.
func (k *keyed[T]) isMap(m map[string]wire.Value, asked []string, enveloped bool) bool {
	if len(m) == 0 {
		return enveloped
	}
	if slices.ContainsFunc(asked, func(id string) bool { _, ok := m[id]; return ok }) {
		return true
	}
	for _, v := range m {
		_, isNumber := v.Decimal()
		if !(v.Kind() == wire.Object && k.isRow(v)) && !(isNumber && k.scalar != nil) {
			return false
		}
	}
	return true
}

// rows reads a list of rows. Of several rows for one id the last counts.
func (k *keyed[T]) rows(list []wire.Value, asked []string, n *notes) answers[T] {
	out, note := newAnswers[T](len(asked)), n.add
	for _, v := range list {
		r := wire.NewRow(v, note)
		token := r.Of(wire.FieldTokenID)
		id, ok := token.ID()
		if r.Err == nil && token.IsNull() && len(asked) == 1 && len(list) == 1 {
			id, ok = wire.Intern(asked[0]), true
		}
		switch {
		case !ok || id == "":
			out.lost = true
			n.add("element without a readable id")
		case !slices.Contains(asked, id):
			out.foreign = true
		default:
			out.of[id] = k.read(r, id)
		}
	}
	return out
}

func (k *keyed[T]) fromMap(m map[string]wire.Value, asked []string, n *notes) answers[T] {
	out := newAnswers[T](len(asked))
	for _, id := range asked {
		v := m[id]
		if v.IsNull() {
			continue
		}
		id = wire.Intern(id)
		if v.Kind() == wire.Object {
			out.of[id] = k.read(wire.NewRow(v, n.add), id)
			continue
		}
		out.of[id] = k.number(v, id, n)
	}
	out.foreign = len(out.of) < len(m)
	return out
}

// number reads a value that is a number alone.
func (k *keyed[T]) number(v wire.Value, id string, n *notes) market.Result[*T] {
	d, ok := v.Decimal()
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
