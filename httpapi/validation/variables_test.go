package validation

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
)

var variableSchema = gqlparser.MustLoadSchema(&ast.Source{Input: `
	scalar Own
	scalar _Any
	enum Word { A B }
	input Object { a: String, b: [Int!], c: Word! = A, d: Object }
	input One @oneOf { a: String, b: Int }
	type Query { a: Int }
`})

// variableOperation returns an operation with the declared variables.
func variableOperation(t testing.TB, declared string) *ast.OperationDefinition {
	t.Helper()
	doc, err := parser.ParseQuery(&ast.Source{Input: "query(" + declared + ") { a }"})
	if err != nil {
		t.Fatal(declared, err)
	}
	return doc.Operations[0]
}

// TestVariables checks the values of variables of each type. The rules are those of section 3 of the specification.
func TestVariables(t *testing.T) {
	const (
		noInt    = "variable.a the value is no Int, an integer of 32 bits"
		noID     = "variable.a the value is no ID, a string or an integer below 2^53"
		noString = "variable.a the value is no String"
		notOne   = "variable.a must have exactly one field, which is not null"
	)
	for _, test := range []struct{ declared, raw, want string }{
		{"$a: String", ``, `map[]`},
		{"$a: String", `{}`, `map[]`},
		{"$a: String", `{"b":1}`, `map[]`},
		{"$a: String", `[]`, `the variables are not a JSON object`},
		{"$a: String", `{"a":"5"}`, `map[a:"5"]`},
		{"$a: String", `{"a":null}`, `map[a:<nil>]`},
		{"$a: String", `{"a":"\ud83d\ude00"}`, `map[a:"😀"]`},
		{"$a: String!", `{}`, `variable.a must be defined`},
		{"$a: String!", `{"a":null}`, `variable.a cannot be null`},
		{"$a: String", `{"a":5}`, noString},
		{"$a: String", `{"a":true}`, noString},
		{"$a: String", `{"a":["b"]}`, noString},
		{"$a: String", `{"a":{}}`, noString},
		{`$a: String! = "b"`, `{}`, `map[a:"b"]`},
		{`$a: String = "b"`, `{"a":null}`, `map[a:<nil>]`},
		{`$a: String! = "b"`, `{"a":null}`, `variable.a cannot be null`},

		{"$a: Int", `{"a":-7}`, `map[a:-7]`},
		{"$a: Int", `{"a":2147483647}`, `map[a:2147483647]`},
		{"$a: Int", `{"a":-2147483648}`, `map[a:-2147483648]`},
		{"$a: Int", `{"a":10.0}`, `map[a:10]`},
		{"$a: Int", `{"a":1e1}`, `map[a:10]`},
		{"$a: Int", `{"a":1E+1}`, `map[a:10]`},
		{"$a: Int", `{"a":0.1e2}`, `map[a:10]`},
		{"$a: Int", `{"a":-0.0}`, `map[a:0]`},
		{"$a: Int", `{"a":20000e-3}`, `map[a:20]`},
		{"$a: Int = 5", `{}`, `map[a:5]`},
		{"$a: Int", `{"a":1.5}`, noInt},
		{"$a: Int", `{"a":2147483648}`, noInt},
		{"$a: Int", `{"a":-2147483649}`, noInt},
		{"$a: Int", `{"a":1e10}`, noInt},
		{"$a: Int", `{"a":2147483646.99999999999999999999}`, noInt},
		{"$a: Int", `{"a":1e999999999}`, noInt},
		{"$a: Int", `{"a":"10"}`, noInt},
		{"$a: Int", `{"a":true}`, noInt},
		{"$a: Int = 2147483648", `{}`, noInt},
		{"$a: Int = 99999999999999999999", `{}`, `variable.a the default value is no Int`},

		{"$a: ID!", `{"a":"x"}`, `map[a:"x"]`},
		{"$a: ID!", `{"a":5}`, `map[a:"5"]`},
		{"$a: ID!", `{"a":9007199254740991}`, `map[a:"9007199254740991"]`},
		{"$a: ID! = 5", `{}`, `map[a:"5"]`},
		{"$a: ID!", `{"a":9007199254740992}`, noID},
		{"$a: ID!", `{"a":-9007199254740992}`, noID},
		{"$a: ID!", `{"a":2851044534032347000}`, noID},
		{"$a: ID!", `{"a":1.5}`, noID},
		{"$a: ID!", `{"a":10.0}`, noID},
		{"$a: ID!", `{"a":false}`, noID},

		{"$a: Boolean", `{"a":true}`, `map[a:true]`},
		{"$a: Boolean", `{"a":"true"}`, `variable.a the value is no Boolean`},
		{"$a: Boolean", `{"a":1}`, `variable.a the value is no Boolean`},
		{"$a: Float", `{"a":5}`, `map[a:5]`},
		{"$a: Float", `{"a":"5"}`, `variable.a the value is no Float`},
		{"$a: Float", `{"a":1e400}`, `variable.a the value is no Float`},
		{"$a: Word", `{"a":"A"}`, `map[a:"A"]`},
		{"$a: Word", `{"a":"a"}`, `variable.a a is not a valid Word`},
		{"$a: Word", `{"a":0}`, `variable.a the value is no Word`},
		{"$a: Word = B", ``, `map[a:"B"]`},
		{"$a: Own", `{"a":1.50}`, `map[a:"1.50"]`},
		{"$a: Own", `{"a":true}`, `map[a:true]`},
		{"$a: Own", `{"a":{"b":"c"}}`, `variable.a the value is no Own`},
		{"$a: Own", `{"a":["b"]}`, `variable.a the value is no Own`},
		{"$a: _Any", `{"a":{"b":[1.50]}}`, `map[a:map[b:["1.50"]]]`},

		{"$a: [String!]", `{"a":["b","c"]}`, `map[a:["b" "c"]]`},
		{"$a: [String!]", `{"a":"b"}`, `map[a:["b"]]`},
		{"$a: [String!]", `{"a":[]}`, `map[a:[]]`},
		{"$a: [String!]", `{"a":null}`, `map[a:<nil>]`},
		{"$a: [String!]", `{"a":["b",null]}`, `variable.a[1] cannot be null`},
		{"$a: [String]", `{"a":["b",null]}`, `map[a:["b" <nil>]]`},
		{"$a: [String!]", `{"a":["b",5]}`, `variable.a[1] the value is no String`},
		{"$a: [String!]", `{"a":5}`, noString},
		{"$a: [String!]", `{"a":[["b"]]}`, `variable.a[0] the value is no String`},
		{"$a: [[Int]]", `{"a":[1,[2.0]]}`, `map[a:[[1] [2]]]`},
		{"$a: [Word!] = A", `{}`, `map[a:["A"]]`},
		{"$a: [Word!]", `{"a":["A","b"]}`, `variable.a[1] b is not a valid Word`},

		{"$a: Object", `{"a":{}}`, `map[a:map[]]`},
		{"$a: Object", `{"a":{"a":null,"b":7.0,"c":"B","d":{"b":[8]}}}`, `map[a:map[a:<nil> b:[7] c:"B" d:map[b:[8]]]]`},
		{"$a: Object", `{"a":{"d":{"b":[8,9.5]}}}`, `variable.a.d.b[1] the value is no Int, an integer of 32 bits`},
		{"$a: Object", `{"a":{"c":null}}`, `variable.a.c cannot be null`},
		{"$a: Object", `{"a":{"A":"b"}}`, `variable.a.A unknown field`},
		{"$a: Object", `{"a":{"__typename":"Object"}}`, `variable.a.__typename unknown field`},
		{"$a: Object", `{"a":"b"}`, `variable.a the value is no Object`},
		{"$a: Object", `{"a":[{}]}`, `variable.a the value is no Object`},
		{`$a: Object = {a: "b", b: 5}`, ``, `map[a:map[a:"b" b:[5]]]`},
		{"$a: One", `{"a":{"a":"b"}}`, `map[a:map[a:"b"]]`},
		{"$a: One", `{"a":null}`, `map[a:<nil>]`},
		{"$a: One", `{"a":{}}`, notOne},
		{"$a: One", `{"a":{"a":null}}`, notOne},
		{"$a: One", `{"a":{"a":"b","b":null}}`, notOne},
		{"$a: One", `{"a":{"a":"b","b":1}}`, notOne},
		{`$a: One = {a: "b", b: 1}`, ``, notOne},
	} {
		got, err := Variables(variableSchema, variableOperation(t, test.declared), test.raw)
		shown := fmt.Sprint(quoted(got))
		if located, ok := errors.AsType[*gqlerror.Error](err); ok {
			shown = strings.TrimSpace(located.Path.String() + " " + located.Message)
		}
		if shown != test.want {
			t.Errorf("(%s) %s: got %s, want %s", test.declared, test.raw, shown, test.want)
		}
	}
}

// quoted returns a value with all its strings in quotes, so that its text shows types.
func quoted(v any) any {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%q", v)
	case json.Number:
		return fmt.Sprintf("%q", v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = quoted(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = quoted(member)
		}
		return out
	}
	return v
}
