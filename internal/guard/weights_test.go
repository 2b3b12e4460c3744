package guard

import (
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// TestEveryFieldHasAWeight fails when the schema has a field that the table lacks, or the other way round.
func TestEveryFieldHasAWeight(t *testing.T) {
	if _, err := weigh(schema()); err != nil {
		t.Error(err)
	}
}

// TestWeightsAreHeldAgainstTheSchema changes the schema.
func TestWeightsAreHeldAgainstTheSchema(t *testing.T) {
	text := schema().Types["Query"].Position.Src.Input
	for _, test := range []struct{ old, changed, says string }{
		{"type Freshness {", "type Freshness {\n  open: Int\n", "Freshness.open has no weight"},
		{"type Freshness {", "type Fresh { a: Int }\ntype Freshness {", "Fresh.a has no weight"},
		{"  serviceStatus: ServiceStatus!", "  status: ServiceStatus!", "the schema has no Query.serviceStatus"},
		{"    marketIds: [String!]!", "    ids: [String!]!", "Query.markets has no argument marketIds"},
	} {
		if !strings.Contains(text, test.old) {
			t.Fatalf("the schema has no %q", test.old)
		}
		changed := gqlparser.MustLoadSchema(&ast.Source{Input: strings.Replace(text, test.old, test.changed, 1)})
		if _, err := New(Default(), changed); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%v; it should say %q", err, test.says)
		}
	}
}
