package venue

import (
	"encoding/json"
	"math"
	"strconv"

	"oddsgraph/internal/market"
)

// notes collects what was not quite right in an answer that could be used all the same.
type notes []string

func (n *notes) add(what string) { *n = append(*n, what) }

// report hands the notes on a used answer to the Observer.
func (c *Client) report(e market.Endpoint, n notes) {
	for _, what := range n {
		c.observer.Drift(e.String(), what)
	}
	if len(n) > 0 {
		c.log.Debug("the venue's answer drifts from the contract", "endpoint", e.String(), "count", len(n), "first", n[0])
	}
}

// count reads an optional number of things; an unreadable one is taken as missing.
func count(v any) *int {
	var s string
	switch v := v.(type) {
	case json.Number:
		s = v.String()
	case string:
		s = v
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return nil
	}
	i := int(n)
	return &i
}

// found is a list of rows in an answer and the object that it lies in, where the page's cursor is.
type found struct {
	rows []any
	page map[string]any
}

// rowsOf finds the rows of an answer: a bare list, or one under its own key or a common one, at most two objects deep.
func rowsOf(payload any, keys ...string) (found, bool) {
	for depth := 0; ; depth++ {
		m, isObject := payload.(map[string]any)
		if !isObject {
			rows, ok := payload.([]any)
			return found{rows: rows}, ok
		}
		var inside map[string]any
		var empty []any
		for _, key := range append(keys[:len(keys):len(keys)], "data", "results", "items") {
			switch v := m[key].(type) {
			case []any:
				if len(v) > 0 {
					return found{rows: v, page: m}, true
				}
				empty = v
			case map[string]any:
				if inside == nil {
					inside = v
				}
			}
		}
		if empty != nil {
			return found{rows: empty, page: m}, true
		}
		if inside == nil || depth == 2 {
			return found{}, false
		}
		keepPaging(inside, m)
		payload = inside
	}
}

// objectOf finds the object of a single-entity answer, which may be a list of one, or lie under a key.
func objectOf(payload any, keys ...string) (map[string]any, bool) {
	for range 3 {
		switch v := payload.(type) {
		case []any:
			if len(v) != 1 {
				return nil, false
			}
			payload = v[0]
			continue
		case map[string]any:
			inside, ok := innerOf(v, keys)
			if !ok {
				return v, true
			}
			payload = inside
			continue
		}
		return nil, false
	}
	m, ok := payload.(map[string]any)
	return m, ok
}

func innerOf(m map[string]any, keys []string) (any, bool) {
	for _, key := range append(keys[:len(keys):len(keys)], "data") {
		switch v := m[key].(type) {
		case map[string]any:
			return v, true
		case []any:
			if len(v) == 1 {
				return v, true
			}
		}
	}
	return nil, false
}
