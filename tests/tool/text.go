package tool

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Text returns a value as text. A time is in UTC. A pointer has the text of what it points to. The text of nil, of the zero time and of
// an empty string is "-".
func Text(value any) string {
	if t, ok := value.(time.Time); ok && !t.IsZero() {
		return t.UTC().Format(time.RFC3339Nano)
	}
	v := reflect.ValueOf(value)
	switch {
	case !v.IsValid(), v.Kind() == reflect.String && v.Len() == 0, v.Kind() == reflect.Pointer && v.IsNil(), v.Type() == reflect.TypeFor[time.Time]():
		return "-"
	case v.Kind() == reflect.Pointer:
		return Text(v.Elem().Interface())
	}
	return fmt.Sprint(value)
}

// Line returns the texts of values, separated by spaces.
func Line(values ...any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = Text(v)
	}
	return strings.Join(texts, " ")
}
