package httpapi

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"
)

// variables decodes the variables of an operation from a JSON object or "". It adds default values and validates all values. A
// number for a custom scalar is decoded to a json.Number.
func variables(schema *ast.Schema, op *ast.OperationDefinition, raw string) (map[string]any, error) {
	var given map[string]any
	if raw != "" {
		dec := json.NewDecoder(strings.NewReader(raw))
		dec.UseNumber()
		if err := dec.Decode(&given); err != nil {
			return nil, gqlerror.Errorf("the variables are not a JSON object")
		}
	}
	values, err := validator.VariableValues(schema, op, given)
	if err != nil {
		return nil, err
	}
	for _, v := range op.VariableDefinitions {
		if err := checkValues(schema, v.Type, values[v.Variable], ast.Path{ast.PathName("variable"), ast.PathName(v.Variable)}); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// checkValues rejects values that gqlparser wrongly accepts: enum values in the wrong case and integers of more than 32 bits.
func checkValues(schema *ast.Schema, t *ast.Type, value any, path ast.Path) *gqlerror.Error {
	if schema.Types[t.Name()].Kind == ast.Scalar && t.Name() != "Int" {
		return nil
	}
	switch value := value.(type) {
	case json.Number:
		if _, err := strconv.ParseInt(value.String(), 10, 32); t.Name() == "Int" && err != nil {
			return gqlerror.ErrorPathf(path, "%.32s is not an integer of 32 bits", value)
		}
	case int64: // gqlparser's form of a number outside a list
		if t.Name() == "Int" && value != int64(int32(value)) {
			return gqlerror.ErrorPathf(path, "%d is not an integer of 32 bits", value)
		}
	case []json.Number: // gqlparser's form of a single number for a list
		return checkItems(schema, t, value, path)
	case string:
		d := schema.Types[t.Name()]
		if d.Kind == ast.Enum && d.EnumValues.ForName(value) == nil {
			return gqlerror.ErrorPathf(path, "%s is not a valid %s", value, d.Name)
		}
	case []string: // gqlparser's form of a single string for a list
		return checkItems(schema, t, value, path)
	case []any:
		return checkItems(schema, t, value, path)
	case map[string]any:
		for _, f := range schema.Types[t.Name()].Fields {
			if err := checkValues(schema, f.Type, value[f.Name], append(path[:len(path):len(path)], ast.PathName(f.Name))); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkItems[T any](schema *ast.Schema, list *ast.Type, items []T, path ast.Path) *gqlerror.Error {
	if list.Elem == nil {
		return nil
	}
	for i, item := range items {
		if err := checkValues(schema, list.Elem, item, append(path[:len(path):len(path)], ast.PathIndex(i))); err != nil {
			return err
		}
	}
	return nil
}
