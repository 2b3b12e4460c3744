package generic

import (
	"errors"
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// tokenDecoder reads values that belong to tokens. Venues send a list of rows, one row, or an object that maps ids to rows or
// numbers.
type tokenDecoder[T any] struct {
	endpoint upstream.Endpoint
	// list is the name of the member that contains the list of rows.
	list string
	// rowFields are the fields by which isRow recognizes a row without a token id.
	rowFields []wire.Field
	// row reads a row whose id is known.
	row func(r *wire.Row, id string) *T
	// fromNumber returns the value if the venue sends a number instead of a row. It is nil if the venue must send a row.
	fromNumber func(d market.Decimal, id string) *T
}

func (k *tokenDecoder[T]) decode(payload wire.Value, requested []string, note func(string)) (rest.Values[T], error) {
	if list, ok := rest.RowsOf(payload, k.list); ok {
		return k.rows(list.Rows, requested, note), nil
	}
	if payload.Kind() != wire.Object {
		return nil, rest.UnknownForm(k.endpoint, "neither a list nor an object")
	}
	if k.isRow(payload) {
		if len(requested) > 1 {
			return nil, rest.UnknownForm(k.endpoint, "one element for several ids")
		}
		return k.rows([]wire.Value{payload}, requested, note), nil
	}
	inside, enveloped := payload, false
	for _, key := range []string{k.list, "data", "results"} {
		if v := payload.Member(key); v.Kind() == wire.Object && !enveloped {
			inside, enveloped = v, true
		}
	}
	if enveloped && k.isRow(inside) {
		return k.decode(inside, requested, note)
	}
	m := inside.Members()
	if !k.isMap(m, requested, enveloped) {
		return nil, rest.UnknownForm(k.endpoint, "an object of another form")
	}
	return k.fromMap(m, requested, note), nil
}

func (k *tokenDecoder[T]) isRow(object wire.Value) bool {
	return wire.FieldTokenID.PresentIn(object) || slices.ContainsFunc(k.rowFields, func(f wire.Field) bool {
		return f.PresentIn(object) && f.Of(object).Kind() != wire.Object
	})
}

// isMap reports whether m maps ids to values. A map in a member with a known name (enveloped) may be empty.
func (k *tokenDecoder[T]) isMap(m map[string]wire.Value, requested []string, enveloped bool) bool {
	if len(m) == 0 {
		return enveloped
	}
	if slices.ContainsFunc(requested, func(id string) bool { _, ok := m[id]; return ok }) {
		return true
	}
	for _, v := range m {
		_, isNumber := v.Decimal()
		if !(v.Kind() == wire.Object && k.isRow(v)) && !(isNumber && k.fromNumber != nil) {
			return false
		}
	}
	return true
}

// rows reads a list of rows. If the call was for one id, and the only row has no id, the row belongs to this id.
func (k *tokenDecoder[T]) rows(list []wire.Value, requested []string, note func(string)) rest.Values[T] {
	if len(list) == 1 && len(requested) == 1 && list[0].Kind() == wire.Object && wire.FieldTokenID.Of(list[0]).IsNull() {
		r, id := wire.NewRow(list[0], note), market.Intern(requested[0])
		out := make(rest.Values[T], 1)
		out.Put(id, k.row(r, id), r)
		return out
	}
	return rest.ReadByID(list, wire.FieldTokenID, note, k.row)
}

func (k *tokenDecoder[T]) fromMap(m map[string]wire.Value, requested []string, note func(string)) rest.Values[T] {
	out := make(rest.Values[T], len(requested))
	for _, id := range requested {
		v := m[id]
		if v.IsNull() {
			continue
		}
		id = market.Intern(id)
		if v.Kind() == wire.Object {
			r := wire.NewRow(v, note)
			out.Put(id, k.row(r, id), r)
			continue
		}
		out[id] = k.number(v, id, note)
	}
	if len(out) < len(m) {
		out[rest.OtherID] = upstream.Result[*T]{}
	}
	return out
}

func (k *tokenDecoder[T]) number(v wire.Value, id string, note func(string)) upstream.Result[*T] {
	d, ok := v.Decimal()
	if !ok || k.fromNumber == nil || !wire.InUnit(d) {
		note("bad element")
		return upstream.Result[*T]{Err: rest.BadElement(k.endpoint, errors.New("the value is not a number from 0 to 1"))}
	}
	return upstream.Result[*T]{Value: k.fromNumber(d, id)}
}
