package limits

import (
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// TestWeightsFitTheSchema checks that New refuses a schema that the weights do not fit.
func TestWeightsFitTheSchema(t *testing.T) {
	text := schema().Types["Query"].Position.Src.Input
	for _, test := range []struct{ old, changed, says string }{
		{"type Freshness {", "type Freshness {\n  all: [Market!]\n", "Freshness.all gives a list and has no weight"},
		{"type Freshness {", "type Fresh { a: [Node!]! }\ntype Freshness {", "Fresh.a gives a list and has no weight"},
		{"  recentPrices: ", "  lastPrices: ", "the schema has no Token.recentPrices"},
		{"    marketIds: [String!]!", "    ids: [String!]!", "Query.markets has no argument marketIds"},
	} {
		if !strings.Contains(text, test.old) {
			t.Fatalf("the schema has no %q", test.old)
		}
		changed := gqlparser.MustLoadSchema(&ast.Source{Input: strings.Replace(text, test.old, test.changed, 1)})
		if _, err := New(Default(), changed); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("New returned the error %v, want an error that contains %q", err, test.says)
		}
	}
}
