package wire

import (
	"bytes"
	"strconv"
	"time"

	"oddsgraph/internal/market"
)

// ID reads an id given as a string or whole number, and returns it as Intern does. An empty string is no id, but not a bad
// one.
func (v Value) ID() (id string, ok bool) { return v.id(true) }

func (v Value) id(shared bool) (id string, ok bool) {
	b := v.bytes()
	if v.Kind() != String && v.Kind() != Number || v.Kind() == Number && bytes.ContainsAny(b, ".eE-") {
		return "", false
	}
	id = textOf(b, shared)
	if id != "" && market.CheckID(id) != nil {
		return "", false
	}
	return id, true
}

// Decimal reads a number or numeric string by its literal.
func (v Value) Decimal() (market.Decimal, bool) {
	b := v.bytes()
	if v.Kind() == String {
		b = bytes.TrimSpace(b)
	}
	d, err := market.ParseDecimal(string(b))
	return d, err == nil
}

var one = market.NewDecimal(1, 0)

// InUnit tells whether d is from 0 to 1, both included.
func InUnit(d market.Decimal) bool { return d.Sign() >= 0 && d.Cmp(one) <= 0 }

// Uint reads a whole number of at least 0, or a string of one; what is not there is 0.
func (v Value) Uint() (uint64, bool) {
	if v.IsNull() {
		return 0, true
	}
	n, err := strconv.ParseUint(string(v.bytes()), 10, 64)
	return n, err == nil
}

// List returns the elements of a list; a string that holds a JSON list counts as one.
func (v Value) List() (elements []Value, ok bool) {
	if v.Kind() == String {
		if b := bytes.TrimSpace(v.bytes()); len(b) > 0 && b[0] == '[' {
			v, _ = Parse(b)
		}
	}
	return v.Elements(), v.Kind() == List
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

// Time reads ISO 8601, or seconds or milliseconds since 1970 as number or string. 0 is no time, but not a bad one.
func (v Value) Time() (time.Time, bool) {
	if v.Kind() != String {
		return sinceEpoch(string(v.bytes()))
	}
	b := bytes.TrimSpace(v.bytes())
	for _, layout := range layouts {
		if t, err := time.Parse(layout, string(b)); err == nil && t.Year() > 0 && t.Year() < 10000 {
			return t.UTC(), true
		}
	}
	return sinceEpoch(string(b))
}

func sinceEpoch(literal string) (time.Time, bool) {
	switch n, err := strconv.ParseUint(literal, 10, 64); {
	case err != nil: // a fraction, or nothing that is a time
	case n >= millisecondsFrom && n <= maxMilliseconds:
		return time.UnixMilli(int64(n)).UTC(), true
	case n > 0 && n < millisecondsFrom:
		t := time.Unix(int64(n), 0).UTC()
		return t, t.Year() < 10000
	}
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
