package venue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"oddsgraph/internal/market"
)

// maxValues bounds the number of values in one answer, since a decoded value takes many times the memory of its text.
const maxValues = 500_000

// decode parses one JSON value into nil, bool, string, json.Number, []any and map[string]any. It is the only place
// that knows the JSON library. Errors do not quote the input.
func decode(b []byte) (any, error) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, errors.New("the body is empty")
	}
	if bytes.Count(b, []byte{','})+bytes.Count(b, []byte{'['})+bytes.Count(b, []byte{'{'}) > maxValues {
		return nil, errors.New("the body has too many values")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, errors.New("the body is not JSON")
	}
	if len(bytes.TrimSpace(b[d.InputOffset():])) > 0 {
		return nil, errors.New("the body is more than one JSON value")
	}
	return v, nil
}

// field is one piece of an answer and the names that venues have for it, the contract's first.
type field []string

// names returns a field; every name is also known in snake case.
func names(camel ...string) field {
	f := make(field, 0, 2*len(camel))
	for _, name := range camel {
		f = append(f, name)
		if s := snake(name); s != name {
			f = append(f, s)
		}
	}
	return f
}

func snake(camel string) string {
	var b strings.Builder
	for _, r := range camel {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// of returns the first value that is there and not null.
func (f field) of(m map[string]any) any {
	for _, name := range f {
		if v := m[name]; v != nil {
			return v
		}
	}
	return nil
}

// in tells whether the field is there, be it null.
func (f field) in(m map[string]any) bool {
	return slices.ContainsFunc(f, func(name string) bool {
		_, ok := m[name]
		return ok
	})
}

// notes collects what was not quite right in an answer that could be used all the same.
type notes []string

func (n *notes) add(what string) { *n = append(*n, what) }

// report hands the notes on a used answer to the Observer.
func (c *Client) report(e Endpoint, n notes) {
	for _, what := range n {
		c.observer.Drift(e.String(), what)
	}
	if len(n) > 0 {
		c.log.Debug("the venue's answer drifts from the contract", "endpoint", e.String(), "count", len(n), "first", n[0])
	}
}

// row reads the fields of one element. The first thing that makes the element bad is kept in err; what is read after
// that does not matter.
type row struct {
	fields map[string]any
	notes  *notes
	err    error
}

// newRow returns the row of an element; one that is not an object is bad.
func newRow(v any, n *notes) *row {
	m, ok := v.(map[string]any)
	r := &row{fields: m, notes: n}
	if !ok {
		r.err = errors.New("the element is not an object")
	}
	return r
}

func (r *row) bad(f field, why string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s %s", f[0], why)
	}
}

func (r *row) note(f field) { r.notes.add(f[0] + " unreadable") }

// text reads an optional text; one of another type is taken as missing.
func (r *row) text(f field) string {
	switch v := f.of(r.fields).(type) {
	case nil:
	case string:
		return v
	default:
		r.note(f)
	}
	return ""
}

// id reads an optional id, which may be a number; one that could not be asked about again makes the element bad.
func (r *row) id(f field) string {
	v := f.of(r.fields)
	s, ok := idOf(v)
	if v != nil && !ok {
		r.bad(f, "is not an id")
	}
	return s
}

// requireID reads an id that must be there.
func (r *row) requireID(f field) string {
	s := r.id(f)
	if s == "" {
		r.bad(f, "is missing")
	}
	return s
}

// idOf returns an id given as a string or whole number. An empty string is no id, but not a bad one.
func idOf(v any) (s string, ok bool) {
	switch v := v.(type) {
	case string:
		s = v
	case json.Number:
		if s = v.String(); strings.ContainsAny(s, ".eE-") {
			return "", false
		}
	default:
		return "", false
	}
	if s != "" && !validID(s) {
		return "", false
	}
	return s, true
}

// decimal reads an optional number; a bad literal makes the element bad. An empty string is a missing number.
func (r *row) decimal(f field) *market.Decimal {
	v := f.of(r.fields)
	if v == nil || v == "" {
		return nil
	}
	d, ok := decimalOf(v)
	if !ok {
		r.bad(f, "is not a number")
		return nil
	}
	return &d
}

// decimalOf reads a number or numeric string by its literal.
func decimalOf(v any) (market.Decimal, bool) {
	var s string
	switch v := v.(type) {
	case json.Number:
		s = v.String()
	case string:
		s = strings.TrimSpace(v)
	default:
		return market.Decimal{}, false
	}
	d, err := market.ParseDecimal(s)
	return d, err == nil
}

// number reads a number that must be there.
func (r *row) number(f field) market.Decimal {
	d := r.decimal(f)
	if d == nil {
		r.bad(f, "is missing")
		return market.Decimal{}
	}
	return *d
}

// unit reads an optional number from 0 to 1.
func (r *row) unit(f field) *market.Decimal {
	d := r.decimal(f)
	if d != nil && !inUnit(*d) {
		r.bad(f, "is not from 0 to 1")
	}
	return d
}

// price reads a number from 0 to 1 that must be there.
func (r *row) price(f field) market.Decimal {
	d := r.number(f)
	if !inUnit(d) {
		r.bad(f, "is not from 0 to 1")
	}
	return d
}

// size reads a number of at least 0 that must be there.
func (r *row) size(f field) market.Decimal {
	d := r.number(f)
	if d.Sign() < 0 {
		r.bad(f, "is negative")
	}
	return d
}

var one = market.NewDecimal(1, 0)

func inUnit(d market.Decimal) bool { return d.Sign() >= 0 && d.Cmp(one) <= 0 }

// flag reads an optional boolean.
func (r *row) flag(f field) *bool {
	var b bool
	switch v := f.of(r.fields).(type) {
	case nil:
		return nil
	case bool:
		b = v
	case string:
		p, err := strconv.ParseBool(strings.ToLower(v))
		if err != nil {
			r.note(f)
			return nil
		}
		b = p
	default:
		r.note(f)
		return nil
	}
	return &b
}

// time reads an optional time; an unreadable one is taken as missing.
func (r *row) time(f field) time.Time {
	v := f.of(r.fields)
	if v == nil || v == "" {
		return time.Time{}
	}
	t, ok := timeOf(v)
	if !ok {
		r.note(f)
	}
	return t
}

// instant reads a time that must be there.
func (r *row) instant(f field) time.Time {
	t, ok := timeOf(f.of(r.fields))
	if !ok || t.IsZero() {
		r.bad(f, "is not a time")
	}
	return t
}

// The forms of ISO 8601 that venues write; a time without zone is UTC.
var layouts = []string{
	time.RFC3339Nano,
	"2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04:05Z07",
	"2006-01-02T15:04:05",
	"2006-01-02T15:04Z07:00",
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05Z0700",
	"2006-01-02 15:04:05Z07",
	"2006-01-02 15:04:05",
	"2006-01-02",
}

const (
	// millisecondsFrom is where epoch numbers stop to be seconds.
	millisecondsFrom = 1_000_000_000_000
	// maxMilliseconds is the end of the year 9999.
	maxMilliseconds = 253_402_300_799_999
)

// timeOf reads ISO 8601, or seconds or milliseconds since 1970 as number or string. 0 is no time, but not a bad one.
func timeOf(v any) (time.Time, bool) {
	switch v := v.(type) {
	case json.Number:
		return epoch(v.String())
	case string:
		s := strings.TrimSpace(v)
		for _, layout := range layouts {
			if t, err := time.Parse(layout, s); err == nil && t.Year() > 0 && t.Year() < 10000 {
				return t.UTC(), true
			}
		}
		return epoch(s)
	}
	return time.Time{}, false
}

func epoch(literal string) (time.Time, bool) {
	d, err := market.ParseDecimal(literal)
	if err != nil || d.Sign() < 0 || d.Cmp(market.NewDecimal(maxMilliseconds, 0)) > 0 {
		return time.Time{}, false
	}
	if d.IsZero() {
		return time.Time{}, true
	}
	perUnit := market.NewDecimal(int64(time.Second), 0)
	if d.Cmp(market.NewDecimal(millisecondsFrom, 0)) >= 0 {
		perUnit = market.NewDecimal(int64(time.Millisecond), 0)
	}
	ns := d.Mul(perUnit).Round(0).String()
	// Nanoseconds since 1970 leave int64 in the year 2262, so they are cut in two.
	if len(ns) <= 9 {
		n, err := strconv.ParseInt(ns, 10, 64)
		return time.Unix(0, n).UTC(), err == nil
	}
	sec, err1 := strconv.ParseInt(ns[:len(ns)-9], 10, 64)
	n, err2 := strconv.ParseInt(ns[len(ns)-9:], 10, 64)
	t := time.Unix(sec, n).UTC()
	return t, err1 == nil && err2 == nil && t.Year() < 10000
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

// listOf returns v as a list; a string that holds a JSON list counts as one.
func listOf(v any) ([]any, bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case string:
		if s := strings.TrimSpace(v); strings.HasPrefix(s, "[") {
			inside, err := decode([]byte(s))
			list, ok := inside.([]any)
			return list, err == nil && ok
		}
	}
	return nil, false
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
