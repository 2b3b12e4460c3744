package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"oddsgraph/internal/market"
)

// maxValues bounds the number of values in one frame, since a decoded value takes many times the memory of its text.
const maxValues = 500_000

// parse reads one JSON value into nil, bool, string, json.Number, []any and map[string]any. It is the only place that
// knows the JSON library.
func parse(b []byte) (any, bool) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if bytes.Count(b, []byte{','})+bytes.Count(b, []byte{'['})+bytes.Count(b, []byte{'{'}) > maxValues {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, false
	}
	return v, len(bytes.TrimSpace(b[d.InputOffset():])) == 0
}

// field is one piece of a frame and the names that venues have for it, the contract's first.
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

// row reads the fields of a frame or of an element in one. The first thing that makes it bad is kept in err; what is read
// after that does not matter. note takes what is not quite right but can be done without.
type row struct {
	fields map[string]any
	note   func(what string)
	err    error
}

// inner returns the row of an element; one that is not an object is bad.
func (r *row) inner(v any) *row {
	m, ok := v.(map[string]any)
	in := &row{fields: m, note: r.note}
	if !ok {
		in.err = errors.New("the element is not an object")
	}
	return in
}

func (r *row) bad(f field, why string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s %s", f[0], why)
	}
}

func (r *row) unreadable(f field) { r.note(f[0] + " unreadable") }

// text reads an optional text; one of another type is taken as missing.
func (r *row) text(f field) string {
	switch v := f.of(r.fields).(type) {
	case nil:
	case string:
		return v
	default:
		r.unreadable(f)
	}
	return ""
}

// requireText reads a text that must be there.
func (r *row) requireText(f field) string {
	s := r.text(f)
	if s == "" {
		r.bad(f, "is missing")
	}
	return s
}

// label reads an optional text that may be a number.
func (r *row) label(f field) string {
	if v, ok := f.of(r.fields).(json.Number); ok {
		return v.String()
	}
	return r.text(f)
}

// id reads an optional id, which may be a number; one that could not be asked about makes the element bad.
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

// maxID is the greatest length of an id in bytes.
const maxID = 256

// validID tells whether s can be an id, here and in the venue's REST API.
func validID(s string) bool {
	if s == "" || len(s) > maxID || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r == ',' || r == '/' || r < ' ' || r >= 0x7f && r <= 0x9f {
			return false
		}
	}
	return true
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

// sequence reads an optional sequence number. One that is there and unreadable makes the frame bad, since the frame can't
// be put in its place.
func (r *row) sequence(f field) uint64 {
	n, ok := sequenceOf(f.of(r.fields))
	if !ok {
		r.bad(f, "is not a sequence number")
	}
	return n
}

func sequenceOf(v any) (uint64, bool) {
	var s string
	switch v := v.(type) {
	case nil:
		return 0, true
	case json.Number:
		s = v.String()
	case string:
		s = v
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

// count reads an optional whole number of things; 0 where there is none or it makes no sense.
func (r *row) count(f field) int {
	v := f.of(r.fields)
	if v == nil {
		return 0
	}
	n, ok := sequenceOf(v)
	if !ok || n == 0 || n > 1<<30 {
		r.unreadable(f)
		return 0
	}
	return int(n)
}

// time reads an optional time; an unreadable one is taken as missing.
func (r *row) time(f field) time.Time {
	v := f.of(r.fields)
	if v == nil || v == "" {
		return time.Time{}
	}
	t, ok := timeOf(v)
	if !ok {
		r.unreadable(f)
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
		return sinceEpoch(v.String())
	case string:
		s := strings.TrimSpace(v)
		for _, layout := range layouts {
			if t, err := time.Parse(layout, s); err == nil && t.Year() > 0 && t.Year() < 10000 {
				return t.UTC(), true
			}
		}
		return sinceEpoch(s)
	}
	return time.Time{}, false
}

func sinceEpoch(literal string) (time.Time, bool) {
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

// listOf returns v as a list; a string that holds a JSON list counts as one.
func listOf(v any) ([]any, bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case string:
		if s := strings.TrimSpace(v); strings.HasPrefix(s, "[") {
			inside, ok := parse([]byte(s))
			list, isList := inside.([]any)
			return list, ok && isList
		}
	}
	return nil, false
}
