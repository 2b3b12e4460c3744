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

func (k *tokenDecoder[T]) decode(payload wire.Value, requested []string, note func(string)) (batchValues[T], error) {
	if list, ok := rest.RowsOf(payload, k.list); ok {
		return k.rows(list.Rows, requested, note), nil
	}
	if payload.Kind() != wire.Object {
		return batchValues[T]{}, rest.UnknownForm(k.endpoint, "neither a list nor an object")
	}
	if k.isRow(payload) {
		if len(requested) > 1 {
			return batchValues[T]{}, rest.UnknownForm(k.endpoint, "one element for several ids")
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
		return batchValues[T]{}, rest.UnknownForm(k.endpoint, "an object of another form")
	}
	return k.fromMap(m, requested, note), nil
}

func (k *tokenDecoder[T]) isRow(object wire.Value) bool {
	return wire.FieldTokenID.PresentIn(object) || slices.ContainsFunc(k.rowFields, func(f wire.Field) bool {
		return f.PresentIn(object) && f.Of(object).Kind() != wire.Object
	})
}

// isMap reports whether m maps ids to values. enveloped reports whether the venue sent the map in a member with a known name. Such
// a map may be empty.
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

// rows reads a list of rows. If several rows have the same id, the last row is used. If the call was for one id, and the only row
// has no id, the row belongs to this id.
func (k *tokenDecoder[T]) rows(list []wire.Value, requested []string, note func(string)) batchValues[T] {
	out := newBatchValues[T](len(requested))
	for _, v := range list {
		r := wire.NewRow(v, note)
		token := r.Of(wire.FieldTokenID)
		id, ok := token.ID()
		if r.Err == nil && token.IsNull() && len(requested) == 1 && len(list) == 1 {
			id, ok = wire.Intern(requested[0]), true
		}
		switch {
		case !ok || id == "":
			out.unattributed = true
			note("element without a readable id")
		case !slices.Contains(requested, id):
			out.otherIDs = true
		default:
			out.byID[id] = k.read(r, id)
		}
	}
	return out
}

// fromMap reads an object that maps ids to rows or numbers. An id with the value null has no result.
func (k *tokenDecoder[T]) fromMap(m map[string]wire.Value, requested []string, note func(string)) batchValues[T] {
	out := newBatchValues[T](len(requested))
	for _, id := range requested {
		v := m[id]
		if v.IsNull() {
			continue
		}
		id = wire.Intern(id)
		if v.Kind() == wire.Object {
			out.byID[id] = k.read(wire.NewRow(v, note), id)
			continue
		}
		out.byID[id] = k.number(v, id, note)
	}
	out.otherIDs = len(out.byID) < len(m)
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

func (k *tokenDecoder[T]) read(r *wire.Row, id string) upstream.Result[*T] {
	value := k.row(r, id)
	if r.Err != nil {
		r.Note("bad element")
		return upstream.Result[*T]{Err: rest.BadElement(k.endpoint, r.Err)}
	}
	return upstream.Result[*T]{Value: value}
}
