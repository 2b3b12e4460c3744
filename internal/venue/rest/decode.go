package rest

import (
	"math"
	"strconv"

	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/wire"
)

// Drift collects the differences between a usable response and its documented form.
type Drift []string

func (d *Drift) Add(what string) { *d = append(*d, what) }

// Report passes the drift of a response to the Observer.
func (c *Client) Report(e upstream.Endpoint, drift Drift) {
	for _, what := range drift {
		c.cfg.Observer.Drift(e.String(), what)
	}
	if len(drift) > 0 {
		c.cfg.Log.Debug("a response of the venue differs from its documented form", "endpoint", e.String(), "count", len(drift), "first", drift[0])
	}
}

// ParseCount reads an optional number of items. If v is not a whole number from 0 to math.MaxInt32, ParseCount returns nil.
func ParseCount(v wire.Value) *int {
	n, err := strconv.ParseInt(v.Text(), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return nil
	}
	i := int(n)
	return &i
}

// RowList is the list of rows in a response. Object is the object that contains the list, and usually also the paging information.
// If no object contains the list, Object is the zero Value.
type RowList struct {
	Rows   []wire.Value
	Object wire.Value
}

// RowsOf finds the rows of a response. The response is a list, or an object with a member that is the list. The name of the member
// is in keys, or is "data", "results" or "items". The list may also be nested in up to two further objects, which are members with
// such names. If an object has several such lists, RowsOf returns the first list that is not empty. If there is no list, the second
// result is false.
func RowsOf(payload wire.Value, keys ...string) (RowList, bool) {
	for depth := 0; payload.Kind() == wire.Object; depth++ {
		var inside, empty wire.Value
		for _, key := range append(keys[:len(keys):len(keys)], "data", "results", "items") {
			switch v := payload.Member(key); v.Kind() {
			case wire.List:
				if rows := v.Elements(); len(rows) > 0 {
					return RowList{Rows: rows, Object: payload}, true
				}
				empty = v
			case wire.Object:
				if inside.IsNull() {
					inside = v
				}
			}
		}
		if !empty.IsNull() {
			return RowList{Object: payload}, true
		}
		if depth == 2 {
			return RowList{}, false
		}
		payload = inside
	}
	return RowList{Rows: payload.Elements()}, payload.Kind() == wire.List
}

// SingleObject finds the one object that a response describes. This object may be the only element of a list, or the member of
// another object. The name of this member is in keys, or is "data". SingleObject removes up to three such layers.
func SingleObject(payload wire.Value, keys ...string) (wire.Value, bool) {
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

// innerObject returns the first member with a known name that is an object or a list with one element.
func innerObject(object wire.Value, keys []string) (wire.Value, bool) {
	for _, key := range append(keys[:len(keys):len(keys)], "data") {
		v := object.Member(key)
		if v.Kind() == wire.Object || len(v.Elements()) == 1 {
			return v, true
		}
	}
	return wire.Value{}, false
}
