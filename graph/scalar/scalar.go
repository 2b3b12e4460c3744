// Package scalar parses and formats the custom scalars of the schema.
package scalar

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"oddsgraph/graph/exec"
	"oddsgraph/internal/market"
)

// The executor calls the Append functions. gqlgen requires the Marshal functions, which write the same texts.

func jsonMarshaler(text []byte) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = w.Write(text) })
}

// AppendDecimal appends an exact number as a JSON string without an exponent.
func AppendDecimal(dst []byte, d market.Decimal) []byte {
	return append(d.Append(append(dst, '"')), '"')
}

// MarshalDecimal writes an exact number as a JSON string without an exponent.
func MarshalDecimal(d market.Decimal) graphql.Marshaler { return jsonMarshaler(AppendDecimal(nil, d)) }

// UnmarshalDecimal parses a string, or the literal of an Int or Float.
func UnmarshalDecimal(v any) (market.Decimal, error) {
	var literal string
	switch v := v.(type) {
	case string:
		literal = v
	case json.Number:
		literal = v.String()
	case int64:
		literal = strconv.FormatInt(v, 10)
	case int:
		literal = strconv.Itoa(v)
	case float64:
		literal = strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return market.Decimal{}, badInput("a Decimal is a number, or a string such as \"0.65\"")
	}
	d, err := market.ParseDecimal(literal)
	if err != nil {
		return market.Decimal{}, badInput("a Decimal is a base-10 number of at most %d characters with an exponent within ±%d",
			market.MaxDecimalLength, market.MaxDecimalExponent)
	}
	return d, nil
}

// AppendDateTime appends a time as RFC 3339 in UTC with milliseconds.
func AppendDateTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	dst = t.AppendFormat(append(dst, '"'), time.RFC3339) // package time has a fast path for RFC 3339
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(dst[:len(dst)-1], '.', '0'+byte(ms/100), '0'+byte(ms/10%10), '0'+byte(ms%10), 'Z', '"')
}

// MarshalDateTime writes a time in UTC with milliseconds.
func MarshalDateTime(t time.Time) graphql.Marshaler { return jsonMarshaler(AppendDateTime(nil, t)) }

// UnmarshalDateTime parses an RFC 3339 time with any offset. In UTC, its year must be 1 to 9999.
func UnmarshalDateTime(v any) (time.Time, error) {
	if s, ok := v.(string); ok {
		if t, err := time.Parse(time.RFC3339Nano, s); err == nil && t.UTC().Year() > 0 && t.UTC().Year() < 10_000 {
			return t.UTC(), nil
		}
	}
	return time.Time{}, badInput("a DateTime is an RFC 3339 instant such as \"2026-01-31T12:00:00Z\", in the years 1 to 9999 of UTC")
}

// AppendDate appends a day in the form YYYY-MM-DD.
func AppendDate(dst []byte, d market.Date) []byte {
	return append(d.Start().AppendFormat(append(dst, '"'), time.DateOnly), '"')
}

// MarshalDate writes a day in the form YYYY-MM-DD.
func MarshalDate(d market.Date) graphql.Marshaler { return jsonMarshaler(AppendDate(nil, d)) }

// UnmarshalDate parses a day in the form YYYY-MM-DD.
func UnmarshalDate(v any) (market.Date, error) {
	if s, ok := v.(string); ok {
		if d, err := market.ParseDate(s); err == nil {
			return d, nil
		}
	}
	return 0, badInput("a Date has the form YYYY-MM-DD")
}

// AppendAddress appends an address as a JSON string, without the name of a further venue.
func AppendAddress(dst []byte, a market.Address) []byte {
	return exec.AppendString(dst, ownAddress(a))
}

// MarshalAddress writes an address as a JSON string, without the name of a further venue.
func MarshalAddress(a market.Address) graphql.Marshaler { return graphql.MarshalString(ownAddress(a)) }

// ownAddress returns an address without the name of its venue. An address has no colon of its own.
func ownAddress(a market.Address) string { return string(a[strings.LastIndexByte(string(a), ':')+1:]) }

// UnmarshalAddress parses 0x and 40 hex digits in upper or lower case.
func UnmarshalAddress(v any) (market.Address, error) {
	s, ok := v.(string)
	if !ok {
		return "", badInput("an address is 0x and 40 hex digits")
	}
	return market.ParseAddress(s)
}

func badInput(format string, args ...any) *market.Error {
	return market.Errorf(market.CodeBadUserInput, format, args...)
}
