package validation

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/internal/market"
)

// Variables decodes the variables of an operation from a JSON object or "", adds default values, and coerces all values to their
// types. It is as strict as the validation of literals. gqlparser's VariableValues is not: it accepts numbers for String, texts for
// Int, fractions for ID, and input objects that violate @oneOf (https://github.com/vektah/gqlparser/issues/126).
//
// In the result, an Int is an int64. An ID, a String and a word of an enum are strings. A list is a []any, and an input object a
// map[string]any. The value of a custom scalar is as it was sent, with numbers as json.Number; package scalar parses it.
func Variables(schema *ast.Schema, op *ast.OperationDefinition, raw string) (map[string]any, error) {
	var given map[string]any
	if raw != "" {
		dec := json.NewDecoder(strings.NewReader(raw))
		dec.UseNumber()
		if err := dec.Decode(&given); err != nil {
			return nil, gqlerror.Errorf("the variables are not a JSON object")
		}
	}
	values := make(map[string]any, len(op.VariableDefinitions))
	for _, v := range op.VariableDefinitions {
		value, ok := given[v.Variable]
		var failure *gqlerror.Error
		switch {
		case !ok && v.DefaultValue != nil:
			var err error
			if value, err = v.DefaultValue.Value(nil); err != nil {
				failure = gqlerror.Errorf("the default value is no %s", v.Type)
			}
		case !ok && v.Type.NonNull:
			failure = gqlerror.Errorf("must be defined")
		case !ok:
			continue
		}
		if failure == nil {
			value, failure = coerce(schema, v.Type, value)
		}
		if failure != nil {
			return nil, below(ast.PathName("variable"), below(ast.PathName(v.Variable), failure))
		}
		values[v.Variable] = value
	}
	return values, nil
}

// below prepends an element to the path of an error.
func below(at ast.PathElement, err *gqlerror.Error) *gqlerror.Error {
	err.Path = slices.Insert(err.Path, 0, at)
	return err
}

// coerce coerces a value that was decoded from JSON, or a default value. It may change lists and objects in place. The path of the
// error begins at the value.
func coerce(schema *ast.Schema, t *ast.Type, value any) (any, *gqlerror.Error) {
	switch {
	case value == nil && t.NonNull:
		return nil, gqlerror.Errorf("cannot be null")
	case value == nil:
		return nil, nil
	case t.Elem != nil:
		return coerceList(schema, t.Elem, value)
	}
	switch def := schema.Types[t.NamedType]; def.Kind {
	case ast.InputObject:
		return coerceObject(schema, def, value)
	case ast.Enum:
		word, ok := value.(string)
		if ok && def.EnumValues.ForName(word) == nil {
			return nil, gqlerror.Errorf("%s is not a valid %s", word, def.Name)
		}
		return valueIf(ok, value, def.Name)
	default:
		return coerceScalar(def, value)
	}
}

// coerceList coerces a list. A value that is no list becomes a list with this value.
func coerceList(schema *ast.Schema, elem *ast.Type, value any) (any, *gqlerror.Error) {
	list, ok := value.([]any)
	if !ok {
		item, err := coerce(schema, elem, value)
		return []any{item}, err
	}
	for i, item := range list {
		var err *gqlerror.Error
		if list[i], err = coerce(schema, elem, item); err != nil {
			return nil, below(ast.PathIndex(i), err)
		}
	}
	return list, nil
}

func coerceObject(schema *ast.Schema, def *ast.Definition, value any) (any, *gqlerror.Error) {
	object, ok := value.(map[string]any)
	if !ok {
		return valueIf(false, nil, def.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if def.Fields.ForName(name) == nil {
			return nil, below(ast.PathName(name), gqlerror.Errorf("unknown field"))
		}
	}
	for _, f := range def.Fields {
		member, ok := object[f.Name]
		if !ok && f.Type.NonNull && f.DefaultValue == nil {
			return nil, below(ast.PathName(f.Name), gqlerror.Errorf("must be defined"))
		}
		if !ok {
			continue // gqlgen adds the default
		}
		var err *gqlerror.Error
		if object[f.Name], err = coerce(schema, f.Type, member); err != nil {
			return nil, below(ast.PathName(f.Name), err)
		}
	}
	if def.Directives.ForName("oneOf") != nil && !setsOne(object) {
		return nil, gqlerror.Errorf("must have exactly one field, which is not null")
	}
	return object, nil
}

// setsOne reports whether an object has one member, and this member is not null.
func setsOne(object map[string]any) bool {
	for _, member := range object {
		return len(object) == 1 && member != nil
	}
	return false
}

func coerceScalar(def *ast.Definition, value any) (any, *gqlerror.Error) {
	switch def.Name {
	case "Int":
		n, ok := wholeNumber(value)
		return valueIf(ok, n, "Int, an integer of 32 bits")
	case "Float":
		n, ok := value.(json.Number)
		if !ok {
			return valueIf(false, nil, def.Name)
		}
		f, err := n.Float64()
		return valueIf(err == nil, f, def.Name)
	case "String":
		_, ok := value.(string)
		return valueIf(ok, value, def.Name)
	case "Boolean":
		_, ok := value.(bool)
		return valueIf(ok, value, def.Name)
	case "ID":
		id, ok := idOf(value)
		return valueIf(ok, id, "ID, a string or an integer below 2^53")
	case "_Any":
		return value, nil
	}
	_, isList := value.([]any) // ownScalars refuses these literals, too
	_, isObject := value.(map[string]any)
	return valueIf(!isList && !isObject, value, def.Name)
}

func valueIf(ok bool, value any, typeName string) (any, *gqlerror.Error) {
	if !ok {
		return nil, gqlerror.Errorf("the value is no %s", typeName)
	}
	return value, nil
}

// wholeNumber returns the value of an Int. JSON has no integers, and serializers whose only numbers are floats write 10 as 10.0 or
// 1e1, so these are integers too.
func wholeNumber(value any) (n int64, ok bool) {
	switch value := value.(type) {
	case int64: // a default value
		return value, value == int64(int32(value))
	case json.Number:
		if n, err := strconv.ParseInt(string(value), 10, 32); err == nil {
			return n, true
		}
		d, err := market.ParseDecimal(string(value))
		if err != nil || d.Cmp(d.Round(0)) != 0 {
			return 0, false
		}
		n, err := strconv.ParseInt(d.Round(0).String(), 10, 32)
		return n, err == nil
	}
	return 0, false
}

// maxExact is the greatest integer that JavaScript stores exactly like its neighbours. A greater number may have lost digits before
// it was sent.
const maxExact = 1<<53 - 1

func idOf(value any) (id string, ok bool) {
	var digits string
	switch value := value.(type) {
	case string:
		return value, true
	case int64: // a default value
		digits = strconv.FormatInt(value, 10)
	case json.Number:
		digits = string(value)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return strconv.FormatInt(n, 10), err == nil && n >= -maxExact && n <= maxExact
}
