package limits

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// count is a number of items that depends on a variable.
type count struct {
	variable string
	quantity
	// otherwise is the number if the variable is null or missing.
	otherwise int64
}

// items returns the number of items for a value of the variable.
func (c *count) items(v any) int64 {
	n := c.otherwise
	switch {
	case v == nil:
	case c.list:
		n = length(v)
	default:
		n = integer(v)
	}
	return min(max(n, 0), c.limit)
}

// literal returns the number of items for a value in a document. If the value is null, it returns fallback.
func (q quantity) literal(v *ast.Value, fallback int64) int64 {
	switch {
	case v.Kind == ast.NullValue:
		return fallback
	case !q.list:
		return parse(v.Raw)
	case v.Kind == ast.ListValue:
		return int64(len(v.Children))
	}
	return 1
}

// length returns the length of a list. Any other value counts as a list with one item.
func length(v any) int64 {
	switch list := v.(type) {
	case []any:
		return int64(len(list))
	case []string:
		return int64(len(list))
	}
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice {
		return int64(list.Len())
	}
	return 1
}

// integer returns the value of an integer variable in any form that gqlparser accepts. For any other value, it returns tooMany.
func integer(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case int:
		return int64(v)
	case json.Number:
		return parse(string(v))
	case string:
		return parse(v)
	case float64:
		return int64(min(max(v, 0), tooMany))
	default:
		return tooMany
	}
}

// tooMany is greater than each quantity.limit.
const tooMany = 1 << 40

func parse(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil && strings.HasPrefix(digits, "-") {
		return 0
	}
	if err != nil {
		return tooMany
	}
	return n
}
