package wire

import (
	"bytes"
	"math"
	"strconv"
	"time"

	"oddsgraph/internal/market"
)

// ID reads an id from a string or a whole number and interns the id. For an empty string, ID returns "" and true.
func (v Value) ID() (id string, ok bool) { return v.id(true) }

// textOf returns b as a string. If intern is true, textOf interns the string; see market.Intern.
func textOf(b []byte, intern bool) string {
	if intern {
		return market.Intern(b)
	}
	return string(b)
}

func (v Value) id(intern bool) (id string, ok bool) {
	b := v.bytes()
	if v.Kind() != String && v.Kind() != Number || v.Kind() == Number && bytes.ContainsAny(b, ".eE-") {
		return "", false
	}
	id = textOf(b, intern)
	if id != "" && market.CheckID(id) != nil {
		return "", false
	}
	return id, true
}

// Decimal reads a number, which may be in a string, without rounding.
func (v Value) Decimal() (market.Decimal, bool) {
	b := v.bytes()
	if v.Kind() == String {
		b = bytes.TrimSpace(b)
	}
	d, err := market.ParseDecimal(string(b))
	return d, err == nil
}

var one = market.NewDecimal(1, 0)

// InUnit reports whether 0 ≤ d ≤ 1.
func InUnit(d market.Decimal) bool { return d.Sign() >= 0 && d.Cmp(one) <= 0 }

// Uint reads a whole number that is not negative. The number may be in a string. A missing or null value is 0.
func (v Value) Uint() (uint64, bool) {
	if v.IsNull() {
		return 0, true
	}
	n, err := strconv.ParseUint(string(v.bytes()), 10, 64)
	return n, err == nil
}

// List returns the elements of a list. If the value is a string that contains a JSON list, List returns the elements of this list.
func (v Value) List() (elements []Value, ok bool) {
	if v.Kind() == String {
		if b := bytes.TrimSpace(v.bytes()); len(b) > 0 && b[0] == '[' {
			v, _ = Parse(b)
		}
	}
	return v.Elements(), v.Kind() == List
}

// layouts are the forms of ISO 8601 that venues use. A time without a zone is in UTC.
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
	// millisecondsFrom is the least number that counts as milliseconds since 1970. A smaller number counts as seconds.
	millisecondsFrom = 1_000_000_000_000
	// maxMilliseconds is the last millisecond of the year 9999.
	maxMilliseconds = 253_402_300_799_999
)

// Time reads a time from a number or a string. The time is in ISO 8601, or in seconds or milliseconds since 1970. For 0, Time
// returns the zero time and true. For a value that is not a time, or is not
// in the years 1 to 9999 of UTC, it returns the zero time and false.
func (v Value) Time() (time.Time, bool) {
	if v.Kind() != String {
		return sinceEpoch(string(v.bytes()))
	}
	b := bytes.TrimSpace(v.bytes())
	for _, layout := range layouts {
		if t, err := time.Parse(layout, string(b)); err == nil && t.UTC().Year() > 0 && t.UTC().Year() < 10000 {
			return t.UTC(), true
		}
	}
	return sinceEpoch(string(b))
}

// sinceEpoch reads seconds or milliseconds since 1970. It rounds fractions to microseconds.
func sinceEpoch(literal string) (time.Time, bool) {
	switch n, err := strconv.ParseUint(literal, 10, 64); {
	case err != nil: // the number may have a fraction
	case n >= millisecondsFrom && n <= maxMilliseconds:
		return time.UnixMilli(int64(n)).UTC(), true
	case n > 0 && n <= maxMilliseconds/1000:
		return time.Unix(int64(n), 0).UTC(), true
	}
	n, err := strconv.ParseFloat(literal, 64)
	if n < millisecondsFrom {
		n *= 1000
	}
	switch {
	case err != nil || !(n >= 0 && n <= maxMilliseconds):
		return time.Time{}, false
	case n == 0:
		return time.Time{}, true
	}
	whole, part := math.Modf(n)
	return time.UnixMilli(int64(whole)).Add(time.Duration(math.Round(part*1000)) * time.Microsecond).UTC(), true
}
