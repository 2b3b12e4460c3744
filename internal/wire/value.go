package wire

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"oddsgraph/internal/market"
)

// IDOf returns an id given as a string or whole number. An empty string is no id, but not a bad one.
func IDOf(v any) (s string, ok bool) {
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
	if s != "" && market.CheckID(s) != nil {
		return "", false
	}
	return s, true
}

// DecimalOf reads a number or numeric string by its literal.
func DecimalOf(v any) (market.Decimal, bool) {
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

var one = market.NewDecimal(1, 0)

// InUnit tells whether d is from 0 to 1, both included.
func InUnit(d market.Decimal) bool { return d.Sign() >= 0 && d.Cmp(one) <= 0 }

// Uint reads a whole number of at least 0, or a string of one; what is not there is 0.
func Uint(v any) (uint64, bool) {
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

// ListOf returns v as a list; a string that holds a JSON list counts as one.
func ListOf(v any) ([]any, bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case string:
		if s := strings.TrimSpace(v); strings.HasPrefix(s, "[") {
			inside, err := Parse([]byte(s))
			list, ok := inside.([]any)
			return list, err == nil && ok
		}
	}
	return nil, false
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

// TimeOf reads ISO 8601, or seconds or milliseconds since 1970 as number or string. 0 is no time, but not a bad one.
func TimeOf(v any) (time.Time, bool) {
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
