package venue

import (
	"math"
	"strconv"

	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/wire"
)

// notes collects what was not quite right in an answer that could be used all the same.
type notes []string

func (n *notes) add(what string) { *n = append(*n, what) }

// report hands the notes on a used answer to the Observer.
func (c *Client) report(e reqctx.Endpoint, n notes) {
	for _, what := range n {
		c.observer.Drift(e.String(), what)
	}
	if len(n) > 0 {
		c.log.Debug("the venue's answer drifts from the contract", "endpoint", e.String(), "count", len(n), "first", n[0])
	}
}

// count reads an optional number of things; an unreadable one is taken as missing.
func count(v wire.Value) *int {
	n, err := strconv.ParseInt(v.Text(), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return nil
	}
	i := int(n)
	return &i
}

// found is a list of rows in an answer and the object that it lies in, where the page's cursor is.
type found struct {
	rows []wire.Value
	page wire.Value
}

// rowsOf finds the rows of an answer: a bare list, or one under its own key or a common one, at most two objects deep.
func rowsOf(payload wire.Value, keys ...string) (found, bool) {
	for depth := 0; payload.Kind() == wire.Object; depth++ {
		var inside, empty wire.Value
		for _, key := range append(keys[:len(keys):len(keys)], "data", "results", "items") {
			switch v := payload.Member(key); v.Kind() {
			case wire.List:
				if rows := v.Elements(); len(rows) > 0 {
					return found{rows: rows, page: payload}, true
				}
				empty = v
			case wire.Object:
				if inside.IsNull() {
					inside = v
				}
			}
		}
		if !empty.IsNull() {
			return found{page: payload}, true
		}
		if depth == 2 {
			return found{}, false
		}
		payload = inside
	}
	return found{rows: payload.Elements()}, payload.Kind() == wire.List
}

// objectOf finds the object of a single-entity answer, which may be a list of one, or lie under a key.
func objectOf(payload wire.Value, keys ...string) (wire.Value, bool) {
	for range 3 {
		switch payload.Kind() {
		case wire.List:
			list := payload.Elements()
			if len(list) != 1 {
				return wire.Value{}, false
			}
			payload = list[0]
		case wire.Object:
			inside, ok := innerOf(payload, keys)
			if !ok {
				return payload, true
			}
			payload = inside
		}
	}
	return payload, payload.Kind() == wire.Object
}

func innerOf(object wire.Value, keys []string) (wire.Value, bool) {
	for _, key := range append(keys[:len(keys):len(keys)], "data") {
		v := object.Member(key)
		if v.Kind() == wire.Object || len(v.Elements()) == 1 {
			return v, true
		}
	}
	return wire.Value{}, false
}
