package wire

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"oddsgraph/internal/market"
)

// Row reads the fields of one object. The first thing that makes the object bad is kept in Err; what is read after that
// does not matter.
type Row struct {
	// Object is the zero Value in a row of which all fields are set.
	Object Value
	// Note takes what is not quite right but can be done without, in one of a bounded set of fixed texts.
	Note func(what string)
	Err  error
	set  []cell
}

// cell is a field that is given a value.
type cell struct {
	field string
	value Value
}

// NewRow returns the row of an element; one that is not an object is bad.
func NewRow(v Value, note func(what string)) *Row {
	r := &Row{Object: v, Note: note}
	if v.Kind() != Object {
		r.Err = errNoObject
	}
	return r
}

var errNoObject = errors.New("the element is not an object")

// Inner returns the row of an element of this one.
func (r *Row) Inner(v Value) *Row { return NewRow(v, r.Note) }

// Set gives a field a value, whatever the object has there.
func (r *Row) Set(f Field, v Value) { r.set = append(r.set, cell{f.String(), v}) }

// Of returns what the row has for a field: the first member, in the order of the names, that is there and not null.
func (r *Row) Of(f Field) Value {
	for _, c := range r.set {
		if c.field == f.String() {
			return c.value
		}
	}
	return f.Of(r.Object)
}

// In tells whether the field is there, be it null.
func (r *Row) In(f Field) bool {
	return f.In(r.Object) || slices.ContainsFunc(r.set, func(c cell) bool { return c.field == f.String() })
}

// Bad makes the row bad.
func (r *Row) Bad(f Field, why string) {
	if r.Err == nil {
		r.Err = fmt.Errorf("%s %s", f, why)
	}
}

// Unreadable notes that a field is taken as missing.
func (r *Row) Unreadable(f Field) { r.Note(f.String() + " unreadable") }

// Text reads an optional text; one of another type is taken as missing.
func (r *Row) Text(f Field) string {
	v := r.Of(f)
	switch v.Kind() {
	case Missing, Null:
	case String:
		return textOf(v.bytes(), f.shared)
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
	if v := r.Of(f); v.Kind() == Number {
		return textOf(v.bytes(), f.shared)
	}
	return r.Text(f)
}

// ID reads an optional id, which may be a number; one that could not be asked about again makes the row bad.
func (r *Row) ID(f Field) string {
	v := r.Of(f)
	id, ok := v.id(f.shared)
	if !ok && !v.IsNull() {
		r.Bad(f, "is not an id")
	}
	return id
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
	v := r.Of(f)
	if v.IsNull() || v.Is("") {
		return nil
	}
	d, ok := v.Decimal()
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
	v := r.Of(f)
	b := v.Kind() == True
	switch v.Kind() {
	case Missing, Null:
		return nil
	case True, False:
	case String:
		p, err := strconv.ParseBool(strings.ToLower(v.Text()))
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
	v := r.Of(f)
	if v.IsNull() || v.Is("") {
		return time.Time{}
	}
	t, ok := v.Time()
	if !ok {
		r.Unreadable(f)
	}
	return t
}

// Instant reads a time that must be there.
func (r *Row) Instant(f Field) time.Time {
	t, ok := r.Of(f).Time()
	if !ok || t.IsZero() {
		r.Bad(f, "is not a time")
	}
	return t
}
