package httpapi

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

var simpleSchema = gqlparser.MustLoadSchema(&ast.Source{Input: `
	scalar Own
	enum Word { A B }
	input Object { a: String }
	type Query { a: Int }
`})

// simpleOperation returns an operation with the declared variables.
func simpleOperation(t testing.TB, declared string) *ast.OperationDefinition {
	t.Helper()
	if declared != "" {
		declared = "(" + declared + ")"
	}
	doc, err := parser.ParseQuery(&ast.Source{Input: "query" + declared + " { a }"})
	if err != nil {
		t.Fatal(declared, err)
	}
	for _, v := range doc.Operations[0].VariableDefinitions {
		v.Definition = simpleSchema.Types[v.Type.Name()]
	}
	return doc.Operations[0]
}

// asAnyList converts a []string to []any, the type that the general decoder returns for a list.
func asAnyList(v any) any {
	list, ok := v.([]string)
	if !ok {
		return v
	}
	out := make([]any, len(list))
	for i, text := range list {
		out[i] = text
	}
	return out
}

// compareVariables fails the test if fastVariables and the general decoder return different values. simple is true if fastVariables
// supports the values.
func compareVariables(t *testing.T, op *ast.OperationDefinition, declared, raw string) (simple bool) {
	t.Helper()
	got, ok := newFastVariables(simpleSchema, op).read(raw)
	if !ok {
		return false
	}
	want, err := variables(simpleSchema, op, raw)
	if err != nil {
		t.Fatalf("(%s) %s: the fast decoder returned %v, the library the error %v", declared, raw, got, err)
	}
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if string(a) != string(b) {
		t.Fatalf("(%s) %s: the fast decoder returned %s, the library %s", declared, raw, a, b)
	}
	for name := range got {
		got[name] = asAnyList(got[name])
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("(%s) %s: the fast decoder returned %#v, the library %#v", declared, raw, got, want)
	}
	return true
}

func TestFastVariables(t *testing.T) {
	for _, test := range []struct {
		declared, raw string
		simple        bool
	}{
		{"", "", true},
		{"", "{}", true},
		{"", ` { } `[1:4], true},
		{"", `{"a":1}`, false},
		{"$a: String", "", true},
		{"$a: String", "{}", true},
		{"$a: String!", "{}", false},
		{`$a: String = "b"`, "{}", false},
		{`$a: String = "b"`, `{"a":""}`, true},
		{"$a: String", `{"a":"b"}`, true},
		{"$a: String", "{\n\t\"a\" :\r \"b, }\" }", true},
		{"$a: String", `{"a":"<&>é🏃"}`, true},
		{"$a: String", `{"a":"b","a":"c"}`, false},
		{"$a: String", `{"b":"c"}`, false},
		{"$a: String", `{"a":null}`, false},
		{"$a: String", `{"a":"\u0062"}`, false},
		{"$a: String", `{"\u0061":"b"}`, false},
		{"$a: String", `{"a":1}`, false},
		{"$a: String", `{"a":["b"]}`, false},
		{"$a: ID!, $b: Own", `{"b":"1.50","a":"c"}`, true},
		{"$a: ID!", `{"a":1}`, false},
		{"$a: Own", `{"a":1.50}`, false},
		{"$a: Own", `{"a":{"b":"c"}}`, false},
		{"$a: Int", `{"a":-7}`, true},
		{"$a: Int, $b: Int", `{ "a" : 0 , "b":2147483647 }`, true},
		{"$a: Int", `{"a":2147483648}`, false},
		{"$a: Int", `{"a":-2147483648}`, true},
		{"$a: Int", `{"a":-2147483649}`, false},
		{"$a: Int", `{"a":9223372036854775808}`, false},
		{"$a: Int", `{"a":-0}`, true},
		{"$a: Int", `{"a":1.0}`, false},
		{"$a: Int", `{"a":1e3}`, false},
		{"$a: Int", `{"a":"1"}`, false},
		{"$a: Int", `{"a":[1]}`, false},
		{"$a: Int", `{"a":true}`, false},
		{"$a: [Int]", `{"a":[1]}`, false},
		{"$a: Float", `{"a":1}`, false},
		{"$a: Boolean!, $b: Boolean", `{"a":true,"b":false}`, true},
		{"$a: Boolean", `{"a":"true"}`, false},
		{"$a: Boolean", `{"a":0}`, false},
		{"$a: [Boolean]", `{"a":[true]}`, false},
		{"$a: [String!]!", `{"a":["b","c,]","", "d" ,"e"]}`, true},
		{"$a: [ID]", `{"a":[]}`, true},
		{"$a: [Own!]", `{"a":[ ]}`, true},
		{"$a: [String]", `{"a":["b",null]}`, false},
		{"$a: [String]", `{"a":["b",1]}`, false},
		{"$a: [String]", `{"a":"b"}`, false},
		{"$a: [String]", `{"a":[["b"]]}`, false},
		{"$a: [[String]]", `{"a":[["b"]]}`, false},
		{"$a: Word", `{"a":"A"}`, true},
		{"$a: Word", `{"a":"a"}`, false},
		{"$a: Word", `{"a":"C"}`, false},
		{"$a: [Word!]", `{"a":["A","B"]}`, true},
		{"$a: [Word!]", `{"a":["A","b"]}`, false},
		{"$a: Object", `{"a":{"a":"b"}}`, false},
		{"$a: Object", `{}`, false},
	} {
		if got := compareVariables(t, simpleOperation(t, test.declared), test.declared, test.raw); got != test.simple {
			t.Errorf("(%s) %s: the fast decoder accepts the variables: %t, want %t", test.declared, test.raw, got, test.simple)
		}
	}
	subscription := simpleOperation(t, "")
	subscription.Operation = ast.Subscription
	if _, ok := newFastVariables(simpleSchema, subscription).read(""); ok {
		t.Error("variables of a subscription share memory with the request's body")
	}
}

// randomJSON returns an object of variables with random values, some of them invalid.
func randomJSON(r *rand.Rand) string {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	space := func() string { return pick("", "", "", " ", "\n\t", "\r\n ") }
	var value func(depth int) string
	value = func(depth int) string {
		switch n := r.IntN(14); {
		case n < 5:
			return pick(`""`, `"A"`, `"b"`, `"B"`, `"1"`, `"x y"`, `"],}"`, `":{["`, `"\n"`, `"\""`, `"\\"`, `"\ud800"`, `"é"`, `"true"`, `"7"`)
		case n < 8:
			return pick("0", "-0", "1", "-17", "9223372036854775807", "9223372036854775808", "1.0", "1e2", "-1.5E-3")
		case n < 10:
			return pick("true", "false", "null")
		case n < 13 && depth > 0:
			items := make([]string, r.IntN(4))
			for i := range items {
				items[i] = space() + value(depth-1) + space()
			}
			return "[" + space() + strings.Join(items, ",") + "]"
		default:
			return pick(`{}`, `{"a":"b"}`)
		}
	}
	members := make([]string, r.IntN(4))
	for i := range members {
		members[i] = space() + `"` + pick("a", "a", "b", "c", "d", `\u0061`) + `"` + space() + ":" + space() + value(2) + space()
	}
	return "{" + strings.Join(members, ",") + space() + "}"
}

// randomDeclaration returns declarations of variables with random types.
func randomDeclaration(r *rand.Rand) string {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	declared := make([]string, r.IntN(4))
	for i := range declared {
		of := pick("String", "ID", "Int", "Boolean", "Own", "Word", "Float", "Object") + pick("", "!")
		if r.IntN(3) == 0 {
			of = "[" + of + "]" + pick("", "!")
		}
		declared[i] = fmt.Sprintf("$%c: %s", 'a'+i, of)
		if !strings.HasSuffix(of, "!") && r.IntN(4) == 0 {
			declared[i] += " = null"
		}
	}
	return strings.Join(declared, ", ")
}

// TestFastVariablesEqualTheLibrarys compares fastVariables with the general decoder for random declarations and values.
func TestFastVariablesEqualTheLibrarys(t *testing.T) {
	r, simple := rand.New(rand.NewPCG(1, 2)), 0
	for range 60_000 {
		declared, raw := randomDeclaration(r), randomJSON(r)
		if !json.Valid([]byte(raw)) {
			t.Fatal(raw)
		}
		if compareVariables(t, simpleOperation(t, declared), declared, raw) {
			simple++
		}
	}
	if simple < 2000 {
		t.Errorf("the fast decoder accepted only %d inputs", simple)
	}
}

// FuzzFastVariables compares fastVariables with the general decoder for any JSON object.
func FuzzFastVariables(f *testing.F) {
	for _, seed := range []string{`{"a":"b","b":["c"],"c":1,"d":true,"e":"A"}`, `{"b":[" ","]"] , "c" : -0}`, `{"e":"a"}`, `{"d":null}`} {
		f.Add(seed)
	}
	const declared = "$a: String, $b: [ID!], $c: Int, $d: Boolean, $e: Word, $f: [Word], $g: Own"
	op := simpleOperation(f, declared)
	f.Fuzz(func(t *testing.T, raw string) {
		if json.Valid([]byte(raw)) && strings.HasPrefix(raw, "{") && strings.HasSuffix(raw, "}") {
			compareVariables(t, op, declared, raw)
		}
	})
}

// TestFastVariablesAllocateLittle bounds the allocations for a list of 500 strings.
func TestFastVariablesAllocateLittle(t *testing.T) {
	op := simpleOperation(t, "$ids: [String!]!")
	raw, err := json.Marshal(map[string]any{"ids": strings.Split(strings.Repeat("71321045679252212594626385532706912750332728571942532289631379312455583992563,", 500), ",")})
	if err != nil {
		t.Fatal(err)
	}
	s := newFastVariables(simpleSchema, op)
	if n := testing.AllocsPerRun(100, func() { _, _ = s.read(string(raw)) }); n > 6 {
		t.Errorf("decoding needs %v allocations, want at most 6", n)
	}
}
