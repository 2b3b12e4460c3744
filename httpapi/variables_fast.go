package httpapi

import (
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// fastVariables decodes the common forms of a query's variables: strings, lists of strings, booleans and integers. For all other
// forms, engine.compile calls the general decoder in variables.go, which also reports errors. Both decoders return equal values,
// with one exception: fastVariables returns a list of strings as a []string, and the general decoder returns it as a []any.
// fastVariables is immutable.
type fastVariables []fastVariable

type fastVariable struct {
	name string
	form fastKind
	// words are the allowed values of an enum; nil for other types.
	words ast.EnumValueList
	// needed is true if the variable is non-null or has a default value. If the value of a needed variable is missing,
	// fastVariables.read returns false.
	needed bool
}

// fastKind is the JSON form of a value.
type fastKind uint8

const (
	stringKind fastKind = iota
	stringsKind
	booleanKind
	intKind
)

// newFastVariables returns the decoder of a query, or nil if a variable has a type that the decoder does not support. It also
// returns nil for a mutation or a subscription. A subscription lasts long, and its decoded values would keep the text of all its
// variables in memory.
func newFastVariables(schema *ast.Schema, op *ast.OperationDefinition) fastVariables {
	if op.Operation != ast.Query {
		return nil
	}
	s := make(fastVariables, len(op.VariableDefinitions))
	for i, v := range op.VariableDefinitions {
		s[i] = fastVariable{name: v.Variable, needed: v.Type.NonNull || v.DefaultValue != nil}
		of := v.Type
		if of.Elem != nil {
			of, s[i].form = of.Elem, stringsKind
		}
		def := schema.Types[of.NamedType]
		switch {
		case def == nil || def.Kind != ast.Scalar && def.Kind != ast.Enum || def.Name == "Float":
			return nil // a list of lists, an object, or a type with several forms
		case def.Kind == ast.Enum:
			s[i].words = def.EnumValues
		case def.Name == "Boolean" && of == v.Type:
			s[i].form = booleanKind
		case def.Name == "Int" && of == v.Type:
			s[i].form = intKind
		case def.Name == "Boolean", def.Name == "Int":
			return nil
		}
	}
	return s
}

// read reads the variables from a JSON object or "". ok is false if s is nil, if the object contains a backslash, or if a needed
// variable is missing. ok is also false if a name is unknown or repeated, or if the decoder does not support a value. The strings
// in values share the memory of object.
func (s fastVariables) read(object string) (values map[string]any, ok bool) {
	if s == nil || strings.IndexByte(object, '\\') >= 0 {
		return nil, false
	}
	values = make(map[string]any, len(s))
	if object != "" {
		r := fastReader(object)
		if !s.members(&r, values) {
			return nil, false
		}
	}
	for i := range s {
		if _, given := values[s[i].name]; s[i].needed && !given {
			return nil, false
		}
	}
	return values, true
}

// members reads the members of an object into values. It returns false if a name is unknown or repeated, or if the decoder does not
// support a value.
func (s fastVariables) members(r *fastReader, values map[string]any) bool {
	if r.next('{'); r.next('}') {
		return true
	}
	for {
		name, _ := r.text()
		at := slices.IndexFunc(s, func(v fastVariable) bool { return v.name == name })
		if at < 0 || !r.next(':') {
			return false
		}
		v := &s[at]
		if _, twice := values[v.name]; twice {
			return false
		}
		value := v.read(r)
		if value == nil {
			return false
		}
		values[v.name] = value
		if r.next('}') {
			return true
		}
		r.next(',')
	}
}

// read reads a value. It returns nil if the decoder does not support the value, for example if the value is null.
func (v *fastVariable) read(r *fastReader) any {
	switch v.form {
	case stringKind:
		if text, ok := r.text(); ok && v.allows(text) {
			return text
		}
	case stringsKind:
		if list, ok := v.texts(r); ok {
			return list
		}
	case booleanKind:
		switch r.literal() {
		case "true":
			return true
		case "false":
			return false
		}
	case intKind:
		if n, err := strconv.ParseInt(r.literal(), 10, 32); err == nil {
			return n
		}
	}
	return nil
}

// texts reads a list of strings. ok is false if the value is not a list of strings, or if the variable does not allow one of the
// strings.
func (v *fastVariable) texts(r *fastReader) (list []string, ok bool) {
	if !r.next('[') {
		return nil, false
	}
	end := max(strings.IndexByte(string(*r), ']'), 0) // an estimate of the list's end, because a string may contain a bracket
	list = make([]string, 0, strings.Count(string((*r)[:end]), `"`)/2)
	for !r.next(']') {
		text, ok := r.text()
		if !ok || !v.allows(text) {
			return nil, false
		}
		list = append(list, text)
		r.next(',')
	}
	return list, true
}

// allows reports whether a text is a valid value of the variable: one of the words of an enum, or any text for other types.
func (v *fastVariable) allows(text string) bool {
	return v.words == nil || v.words.ForName(text) != nil
}

// fastReader is the unread rest of a valid JSON text without escapes.
type fastReader string

// next skips white space. If the next character is c, next also skips c and returns true.
func (r *fastReader) next(c byte) bool {
	s := *r
	for s != "" && (s[0] == ' ' || s[0] == '\t' || s[0] == '\n' || s[0] == '\r') {
		s = s[1:]
	}
	is := s != "" && s[0] == c
	if is {
		s = s[1:]
	}
	*r = s
	return is
}

// text reads a string. ok is false if no string follows.
func (r *fastReader) text() (text string, ok bool) {
	if !r.next('"') {
		return "", false
	}
	end := strings.IndexByte(string(*r), '"')
	if end < 0 {
		return "", false
	}
	text, *r = string((*r)[:end]), (*r)[end+1:]
	return text, true
}

// literal reads a number, true, false or null. For any other value it returns a text that is none of these.
func (r *fastReader) literal() string {
	r.next(0)
	end := max(strings.IndexAny(string(*r), ",]} \t\r\n"), 0)
	literal := string((*r)[:end])
	*r = (*r)[end:]
	return literal
}
