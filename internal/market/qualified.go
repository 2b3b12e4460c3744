package market

import (
	"reflect"
	"strings"
	"sync"
)

// QualifyAll returns a copy of a value of a further venue, in which all ids begin with the name of the venue and a colon. An id is a
// text, or a text in a field whose name ends in ID or Slug; the tag "id" of a field says otherwise. The errors in a LeftOut get the name
// as AtVenue gives it. The value itself never changes, because a driver may keep it or return it for several keys. If name is empty,
// QualifyAll returns the value itself.
func QualifyAll[T any](name string, value T) T {
	if name == "" {
		return value
	}
	return renamed(value, naming{func(id string) string { return Intern(Qualify(name, id)) }, name})
}

// CutAll is the opposite of QualifyAll. ok is false if an id does not begin with the name of the venue, or is nothing more; that id is
// empty then, and drivers take an empty id for none.
func CutAll[T any](name string, value T) (own T, ok bool) {
	if name == "" {
		return value, true
	}
	all := true
	own = renamed(value, naming{id: func(id string) string {
		id, ok := CutVenue(name, id)
		all = all && ok && id != ""
		return id
	}})
	return own, all
}

// naming says what becomes of an id, and which name the errors of a LeftOut get.
type naming struct {
	id    func(id string) string
	venue string
}

// renamed returns a copy of a value with other names.
func renamed[T any](value T, n naming) T {
	n.rename(reflect.ValueOf(&value).Elem())
	return value
}

// rename changes the names in a value that nobody else has. It copies what the value refers to.
func (n naming) rename(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.Len() > 0 {
			v.SetString(n.id(v.String()))
		}
	case reflect.Pointer:
		if !v.IsNil() && hasIDs(v.Type()) {
			old := v.Elem()
			v.Set(reflect.New(old.Type()))
			v.Elem().Set(old)
			n.rename(v.Elem())
		}
	case reflect.Slice:
		if v.Len() > 0 {
			old := v.Slice(0, v.Len())
			v.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			reflect.Copy(v, old)
			if rows, ok := v.Interface().(LeftOut); ok {
				for i, err := range rows {
					rows[i] = AtVenue(n.venue, err)
				}
				return
			}
			for i := range v.Len() {
				n.rename(v.Index(i))
			}
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[HistoryRecord]() {
			if h := v.Addr().Interface().(*HistoryRecord); h.ID == "" { // equal records of two venues would have the same key
				bare := *h
				bare.Ordinal = 0
				h.ID = bare.Key()
			}
		}
		for _, i := range fieldsWithIDs(v.Type()) {
			n.rename(v.Field(i))
		}
	}
}

// knownFields contains the results of fieldsWithIDs.
var knownFields sync.Map

// fieldsWithIDs returns the indexes of the fields of a struct that are or contain ids.
func fieldsWithIDs(t reflect.Type) []int {
	if known, ok := knownFields.Load(t); ok {
		return known.([]int)
	}
	var fields []int
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() || f.Anonymous {
			isID := strings.HasSuffix(f.Name, "ID") || strings.HasSuffix(f.Name, "Slug")
			if tag := f.Tag.Get("id"); tag != "" {
				isID = tag == "yes"
			}
			if f.Type.Kind() == reflect.String && isID || hasIDs(f.Type) {
				fields = append(fields, i)
			}
		}
	}
	knownFields.Store(t, fields)
	return fields
}

// hasIDs reports whether fields of values of a type are ids, or the errors of a LeftOut.
func hasIDs(t reflect.Type) bool {
	if t == reflect.TypeFor[LeftOut]() {
		return true
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return hasIDs(t.Elem())
	case reflect.Struct:
		return len(fieldsWithIDs(t)) > 0
	}
	return false
}
