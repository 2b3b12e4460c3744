package guard

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// aspect is what of a value counts.
type aspect uint8

const (
	// magnitude is an integer itself.
	magnitude aspect = iota
	// length is that of a list; what is no list is a list of one.
	length
	// unbatched is the number of the global ids that are read by a call of their own.
	unbatched
)

// unbatchedKinds are the kinds of objects that no batch can read. A global id is the kind and more, in base64.
var unbatchedKinds = []string{"Event\n", "Position\n", "Order\n"}

func isUnbatched(id string) bool {
	text, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		return false
	}
	for _, kind := range unbatchedKinds {
		if strings.HasPrefix(string(text), kind) {
			return true
		}
	}
	return false
}

// ofLiteral returns an aspect of a value in a document, or otherwise for null. A variable in a list counts as much as it can.
func ofLiteral(v *ast.Value, of aspect, otherwise int64) int64 {
	if v.Kind == ast.NullValue {
		return otherwise
	}
	switch of {
	case magnitude:
		return parse(v.Raw)
	case length:
		if v.Kind == ast.ListValue {
			return int64(len(v.Children))
		}
		return 1
	default:
		if v.Kind == ast.ListValue {
			var n int64
			for _, c := range v.Children {
				n += ofLiteral(c.Value, of, 0)
			}
			return n
		}
		return count(v.Kind == ast.Variable || isUnbatched(v.Raw))
	}
}

// ofVariable returns an aspect of the value of a variable, or otherwise for null.
func ofVariable(v any, of aspect, otherwise int64) int64 {
	if v == nil {
		return otherwise
	}
	switch of {
	case magnitude:
		return integer(v)
	case length:
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
	default:
		switch v := v.(type) {
		case []any:
			var n int64
			for _, id := range v {
				n += ofVariable(id, of, 0)
			}
			return n
		case []string:
			var n int64
			for _, id := range v {
				n += count(isUnbatched(id))
			}
			return n
		case string:
			return count(isUnbatched(v))
		default:
			return 0 // ids that are numbers name nothing
		}
	}
}

// integer returns the value of an integer variable, in any of the forms that the library accepts.
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

// tooMany is a number past all limits.
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

func count(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
