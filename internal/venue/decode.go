package venue

import (
	"math"
	"strconv"

	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/wire"
)

// drift collects the differences between a response and the contract, if the response is usable in spite of them.
type drift []string

func (n *drift) add(what string) { *n = append(*n, what) }

// report passes the drift of a response to the Observer.
func (c *Client) report(e reqctx.Endpoint, n drift) {
	for _, what := range n {
		c.cfg.Observer.Drift(e.String(), what)
	}
	if len(n) > 0 {
		c.cfg.Log.Debug("the venue's answer drifts from the contract", "endpoint", e.String(), "count", len(n), "first", n[0])
	}
}

// parseCount reads an optional number of items. It returns nil for an unreadable number.
func parseCount(v wire.Value) *int {
	n, err := strconv.ParseInt(v.Text(), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return nil
	}
	i := int(n)
	return &i
}

// rowList is the list of rows in a response. object is the object that contains the list and usually the paging information.
type rowList struct {
	rows   []wire.Value
	object wire.Value
}

// rowsOf finds the rows of a response. The response is a list, or contains a list under one of keys or a common key, at most
// two objects deep.
func rowsOf(payload wire.Value, keys ...string) (rowList, bool) {
	for depth := 0; payload.Kind() == wire.Object; depth++ {
		var inside, empty wire.Value
		for _, key := range append(keys[:len(keys):len(keys)], "data", "results", "items") {
			switch v := payload.Member(key); v.Kind() {
			case wire.List:
				if rows := v.Elements(); len(rows) > 0 {
					return rowList{rows: rows, object: payload}, true
				}
				empty = v
			case wire.Object:
				if inside.IsNull() {
					inside = v
				}
			}
		}
		if !empty.IsNull() {
			return rowList{object: payload}, true
		}
		if depth == 2 {
			return rowList{}, false
		}
		payload = inside
	}
	return rowList{rows: payload.Elements()}, payload.Kind() == wire.List
}

// singleObject finds the object of a response about one thing. The object may be the only element of a list, or the member
// under a key.
func singleObject(payload wire.Value, keys ...string) (wire.Value, bool) {
	for range 3 {
		switch payload.Kind() {
		case wire.List:
			list := payload.Elements()
			if len(list) != 1 {
				return wire.Value{}, false
			}
			payload = list[0]
		case wire.Object:
			inside, ok := innerObject(payload, keys)
			if !ok {
				return payload, true
			}
			payload = inside
		}
	}
	return payload, payload.Kind() == wire.Object
}

// innerObject returns the first member under one of keys that is an object or a list with one element.
func innerObject(object wire.Value, keys []string) (wire.Value, bool) {
	for _, key := range append(keys[:len(keys):len(keys)], "data") {
		v := object.Member(key)
		if v.Kind() == wire.Object || len(v.Elements()) == 1 {
			return v, true
		}
	}
	return wire.Value{}, false
}
