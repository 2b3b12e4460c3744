package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"oddsgraph/internal/market"
)

// Row reads the fields of one object. The first thing that makes the object bad is kept in Err; what is read after that
// does not matter.
type Row struct {
	Fields map[string]any
	// Note takes what is not quite right but can be done without, in one of a bounded set of fixed texts.
	Note func(what string)
	Err  error
}

// NewRow returns the row of an element; one that is not an object is bad.
func NewRow(v any, note func(what string)) *Row {
	m, ok := v.(map[string]any)
	r := &Row{Fields: m, Note: note}
	if !ok {
		r.Err = errors.New("the element is not an object")
	}
	return r
}

// Inner returns the row of an element of this one.
func (r *Row) Inner(v any) *Row { return NewRow(v, r.Note) }

// Bad makes the row bad.
func (r *Row) Bad(f Field, why string) {
	if r.Err == nil {
		r.Err = fmt.Errorf("%s %s", f[0], why)
	}
}

// Unreadable notes that a field is taken as missing.
func (r *Row) Unreadable(f Field) { r.Note(f[0] + " unreadable") }

// Text reads an optional text; one of another type is taken as missing.
func (r *Row) Text(f Field) string {
	switch v := f.Of(r.Fields).(type) {
	case nil:
	case string:
		return v
	default:
		r.Unreadable(f)
	}
	return ""
}

// RequireText reads a text that must be there.
func (r *Row) RequireText(f Field) string {
	s := r.Text(f)
	if s == "" {
		r.Bad(f, "is missing")
	}
	return s
}

// Label reads an optional text that may be a number.
func (r *Row) Label(f Field) string {
	if v, ok := f.Of(r.Fields).(json.Number); ok {
		return v.String()
	}
	return r.Text(f)
}

// ID reads an optional id, which may be a number; one that could not be asked about again makes the row bad.
func (r *Row) ID(f Field) string {
	v := f.Of(r.Fields)
	s, ok := IDOf(v)
	if v != nil && !ok {
		r.Bad(f, "is not an id")
	}
	return s
}

// RequireID reads an id that must be there.
func (r *Row) RequireID(f Field) string {
	s := r.ID(f)
	if s == "" {
		r.Bad(f, "is missing")
	}
	return s
}

// Decimal reads an optional number; a bad literal makes the row bad. An empty string is a missing number.
func (r *Row) Decimal(f Field) *market.Decimal {
	v := f.Of(r.Fields)
	if v == nil || v == "" {
		return nil
	}
	d, ok := DecimalOf(v)
	if !ok {
		r.Bad(f, "is not a number")
		return nil
	}
	return &d
}

// Number reads a number that must be there.
func (r *Row) Number(f Field) market.Decimal {
	d := r.Decimal(f)
	if d == nil {
		r.Bad(f, "is missing")
		return market.Decimal{}
	}
	return *d
}

// Unit reads an optional number from 0 to 1.
func (r *Row) Unit(f Field) *market.Decimal {
	d := r.Decimal(f)
	if d != nil && !InUnit(*d) {
		r.Bad(f, "is not from 0 to 1")
	}
	return d
}

// Price reads a number from 0 to 1 that must be there.
func (r *Row) Price(f Field) market.Decimal {
	d := r.Number(f)
	if !InUnit(d) {
		r.Bad(f, "is not from 0 to 1")
	}
	return d
}

// Size reads a number of at least 0 that must be there.
func (r *Row) Size(f Field) market.Decimal {
	d := r.Number(f)
	if d.Sign() < 0 {
		r.Bad(f, "is negative")
	}
	return d
}

// Flag reads an optional boolean; an unreadable one is taken as missing.
func (r *Row) Flag(f Field) *bool {
	var b bool
	switch v := f.Of(r.Fields).(type) {
	case nil:
		return nil
	case bool:
		b = v
	case string:
		p, err := strconv.ParseBool(strings.ToLower(v))
		if err != nil {
			r.Unreadable(f)
			return nil
		}
		b = p
	default:
		r.Unreadable(f)
		return nil
	}
	return &b
}

// Time reads an optional time; an unreadable one is taken as missing.
func (r *Row) Time(f Field) time.Time {
	v := f.Of(r.Fields)
	if v == nil || v == "" {
		return time.Time{}
	}
	t, ok := TimeOf(v)
	if !ok {
		r.Unreadable(f)
	}
	return t
}

// Instant reads a time that must be there.
func (r *Row) Instant(f Field) time.Time {
	t, ok := TimeOf(f.Of(r.Fields))
	if !ok || t.IsZero() {
		r.Bad(f, "is not a time")
	}
	return t
}
