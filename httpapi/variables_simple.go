package httpapi

import (
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// simpleVariables reads the variables of a query in the good case: all of them are texts, lists of texts, booleans and
// integers, and given in just that form. It reads what variables does, and leaves everything else to that, what is to be
// refused among it. It is immutable.
type simpleVariables []simpleVariable

type simpleVariable struct {
	name string
	form simpleForm
	// words are those that a text may be, where they are an enum's.
	words ast.EnumValueList
	// needed tells that something is wrong, or a default is to be filled in, where it is not given.
	needed bool
}

// simpleForm is how a value is written.
type simpleForm uint8

const (
	simpleText simpleForm = iota
	simpleTexts
	simpleBoolean
	simpleInteger
)

// newSimpleVariables returns what reads the variables of an operation, nil where they can't be simple. Those of subscriptions
// are not, since what is read holds on to the text that it was read from.
func newSimpleVariables(schema *ast.Schema, op *ast.OperationDefinition) simpleVariables {
	if op.Operation != ast.Query {
		return nil
	}
	s := make(simpleVariables, len(op.VariableDefinitions))
	for i, v := range op.VariableDefinitions {
		s[i] = simpleVariable{name: v.Variable, needed: v.Type.NonNull || v.DefaultValue != nil}
		of := v.Type
		if of.Elem != nil {
			of, s[i].form = of.Elem, simpleTexts
		}
		def := schema.Types[of.NamedType]
		switch {
		case def == nil || def.Kind != ast.Scalar && def.Kind != ast.Enum || def.Name == "Float":
			return nil // a list of lists, or an object, or what has many forms
		case def.Kind == ast.Enum:
			s[i].words = def.EnumValues
		case def.Name == "Boolean" && of == v.Type:
			s[i].form = simpleBoolean
		case def.Name == "Int" && of == v.Type:
			s[i].form = simpleInteger
		case def.Name == "Boolean", def.Name == "Int":
			return nil
		}
	}
	return s
}

// read reads the variables from a JSON object or "", or reports false. Texts are parts of the object's.
func (s simpleVariables) read(object string) (values map[string]any, ok bool) {
	if s == nil || strings.IndexByte(object, '\\') >= 0 {
		return nil, false
	}
	values = make(map[string]any, len(s))
	if object != "" {
		r := simpleReader(object)
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

// members reads the members of an object into values.
func (s simpleVariables) members(r *simpleReader, values map[string]any) bool {
	if r.next('{'); r.next('}') {
		return true
	}
	for {
		name, _ := r.text()
		at := slices.IndexFunc(s, func(v simpleVariable) bool { return v.name == name })
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

// read reads a value, or returns nil.
func (v *simpleVariable) read(r *simpleReader) any {
	switch v.form {
	case simpleText:
		if text, ok := r.text(); ok && v.allows(text) {
			return text
		}
	case simpleTexts:
		if list, ok := v.texts(r); ok {
			return list
		}
	case simpleBoolean:
		switch r.literal() {
		case "true":
			return true
		case "false":
			return false
		}
	case simpleInteger:
		if n, err := strconv.ParseInt(r.literal(), 10, 32); err == nil {
			return n
		}
	}
	return nil
}

// texts reads a list of texts.
func (v *simpleVariable) texts(r *simpleReader) (list []string, ok bool) {
	if !r.next('[') {
		return nil, false
	}
	end := max(strings.IndexByte(string(*r), ']'), 0) // or before, where a text has a bracket in it
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

// allows reports whether a text is one that the variable may have.
func (v *simpleVariable) allows(text string) bool {
	return v.words == nil || v.words.ForName(text) != nil
}

// simpleReader is what is left of a text that is known to be JSON and has no escapes in it.
type simpleReader string

// next passes over white space and then c, or reports that something else comes.
func (r *simpleReader) next(c byte) bool {
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

// text reads a string, or reports that something else comes.
func (r *simpleReader) text() (text string, ok bool) {
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

// literal reads a number, true, false or null; of anything else nothing or a part that is none of these.
func (r *simpleReader) literal() string {
	r.next(0)
	end := max(strings.IndexAny(string(*r), ",]} \t\r\n"), 0)
	literal := string((*r)[:end])
	*r = (*r)[end:]
	return literal
}
