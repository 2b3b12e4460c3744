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

// Row reads the fields of one object. If Err is not nil, the row is bad, and the values that were read from the row must not be
// used.
type Row struct {
	// Object is the object whose fields the row reads. It is the zero Value if all values of the row come from Set.
	Object Value
	// Note reports a difference from the documented form. The number of different texts must be bounded, because the text becomes a
	// label of a metric.
	Note func(difference string)
	// Err is the first reason why the row is bad.
	Err error
	set []override
}

// override is a value from Set.
type override struct {
	field string
	value Value
}

// NewRow returns the row of v. The row is bad if v is not an object.
func NewRow(v Value, note func(difference string)) *Row {
	r := &Row{Object: v, Note: note}
	if v.Kind() != Object {
		r.Err = errNoObject
	}
	return r
}

var errNoObject = errors.New("the element is not an object")

// Child returns the row of a value in this row. Both rows have the same Note.
func (r *Row) Child(v Value) *Row { return NewRow(v, r.Note) }

// Set makes v the value of a field. The row then ignores the field's value in the object.
func (r *Row) Set(f Field, v Value) { r.set = append(r.set, override{f.String(), v}) }

// Of returns the value of a field: the value from Set, or the result of Field.Of.
func (r *Row) Of(f Field) Value {
	for _, c := range r.set {
		if c.field == f.String() {
			return c.value
		}
	}
	return f.Of(r.Object)
}

// Has reports whether the row has the field. The value of the field may be null.
func (r *Row) Has(f Field) bool {
	return f.PresentIn(r.Object) || slices.ContainsFunc(r.set, func(c override) bool { return c.field == f.String() })
}

// Fail makes the row bad. If the row is already bad, Fail keeps the earlier reason.
func (r *Row) Fail(f Field, why string) {
	if r.Err == nil {
		r.Err = fmt.Errorf("%s %s", f, why)
	}
}

// Unreadable reports that a field is unreadable and counts as missing.
func (r *Row) Unreadable(f Field) { r.Note(f.String() + " unreadable") }

// Text reads an optional text. A value of another type counts as missing.
func (r *Row) Text(f Field) string {
	v := r.Of(f)
	switch v.Kind() {
	case Missing, Null:
	case String:
		return textOf(v.bytes(), f.interned)
	default:
		r.Unreadable(f)
	}
	return ""
}

// RequireText reads a text. If the text is missing or empty, the row is bad.
func (r *Row) RequireText(f Field) string {
	s := r.Text(f)
	if s == "" {
		r.Fail(f, "is missing")
	}
	return s
}

// TextOrNumber reads an optional text. A number is returned as its literal.
func (r *Row) TextOrNumber(f Field) string {
	if v := r.Of(f); v.Kind() == Number {
		return textOf(v.bytes(), f.interned)
	}
	return r.Text(f)
}

// ID reads an optional id. The id may be a whole number. An empty string counts as missing. If the value is not a valid id, the row
// is bad.
func (r *Row) ID(f Field) string {
	v := r.Of(f)
	id, ok := v.id(f.interned)
	if !ok && !v.IsNull() {
		r.Fail(f, "is not an id")
	}
	return id
}

// RequireID is like ID. If the id is missing, the row is bad.
func (r *Row) RequireID(f Field) string {
	s := r.ID(f)
	if s == "" {
		r.Fail(f, "is missing")
	}
	return s
}

// Decimal reads an optional number. An empty string counts as missing. If the value is not a number, the row is bad.
func (r *Row) Decimal(f Field) *market.Decimal {
	v := r.Of(f)
	if v.IsNull() || v.Is("") {
		return nil
	}
	d, ok := v.Decimal()
	if !ok {
		r.Fail(f, "is not a number")
		return nil
	}
	return &d
}

// RequireDecimal is like Decimal. If the number is missing, the row is bad.
func (r *Row) RequireDecimal(f Field) market.Decimal {
	d := r.Decimal(f)
	if d == nil {
		r.Fail(f, "is missing")
		return market.Decimal{}
	}
	return *d
}

// Unit reads an optional number from 0 to 1. If the number is out of range, the row is bad.
func (r *Row) Unit(f Field) *market.Decimal {
	d := r.Decimal(f)
	if d != nil && !InUnit(*d) {
		r.Fail(f, "is not from 0 to 1")
	}
	return d
}

// Price reads a required number from 0 to 1.
func (r *Row) Price(f Field) market.Decimal {
	d := r.RequireDecimal(f)
	if !InUnit(d) {
		r.Fail(f, "is not from 0 to 1")
	}
	return d
}

// Size reads a required number that is not negative.
func (r *Row) Size(f Field) market.Decimal {
	d := r.RequireDecimal(f)
	if d.Sign() < 0 {
		r.Fail(f, "is negative")
	}
	return d
}

// Bool reads an optional boolean, which may be a string. An unreadable value counts as missing.
func (r *Row) Bool(f Field) *bool {
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

// Labels reads an optional list of texts, or of objects with a text in the field label. It leaves out what is unreadable.
func (r *Row) Labels(f, label Field) []string {
	v := r.Of(f)
	if v.IsNull() || v.Is("") {
		return nil
	}
	list, ok := v.List()
	if !ok {
		r.Unreadable(f)
		return nil
	}
	labels := make([]string, 0, len(list))
	for _, v := range list {
		if v.Kind() == Object {
			v = label.Of(v)
		}
		if v.Kind() != String || v.Is("") {
			r.Unreadable(f)
			continue
		}
		labels = append(labels, v.Interned())
	}
	return labels
}

// Time reads an optional time. An unreadable value counts as missing.
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

// RequireTime reads a time. If the time is missing, zero or unreadable, the row is bad.
func (r *Row) RequireTime(f Field) time.Time {
	t, ok := r.Of(f).Time()
	if !ok || t.IsZero() {
		r.Fail(f, "is not a time")
	}
	return t
}
