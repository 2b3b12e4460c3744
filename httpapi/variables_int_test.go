package httpapi

import (
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// TestIntVariablesHave32Bits checks that variables of type Int have 32 bits, also in lists.
func TestIntVariablesHave32Bits(t *testing.T) {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: "type Query { a(a: Int, b: [Int]): Int }"})
	doc := gqlparser.MustLoadQueryWithRules(schema, "query($a: Int, $b: [Int]) { a(a: $a, b: $b) }", nil)
	for raw, good := range map[string]bool{
		`{"a":2147483647}`: true, `{"a":-2147483648}`: true, `{"a":2147483648}`: false, `{"a":-2147483649}`: false, `{"a":1e10}`: false,
		`{"b":[1,2147483648]}`: false, `{"b":2147483648}`: false, `{"b":[1,2147483647]}`: true,
	} {
		if _, err := variables(schema, doc.Operations[0], raw); (err == nil) != good {
			t.Errorf("%s: got the error %v, want the variables accepted: %v", raw, err, good)
		}
	}
}
