package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/graph"
	"oddsgraph/httpapi/limits"
)

// fieldPath is a document from which the selection set of one object is cut out. before is the part of the document in front of the
// cut, and after is the part behind the cut.
type fieldPath struct{ before, after string }

func (p fieldPath) document(selection string) string {
	return p.before + "{ __typename " + selection + " }" + p.after
}

// unserved are the fields that the demo venue does not serve.
var unserved = []string{"Market.trades", "Token.trades"}

// fieldPaths returns a path from Query to each object type. The parameter arguments maps a field to the arguments that it needs.
func fieldPaths(schema *ast.Schema, arguments map[string]string) map[string]fieldPath {
	paths := map[string]fieldPath{"Query": {}}
	for queue := []string{"Query"}; len(queue) > 0; queue = queue[1:] {
		parent := schema.Types[queue[0]]
		for _, f := range parent.Fields {
			child := schema.Types[f.Type.Name()]
			if strings.HasPrefix(f.Name, "__") || child.Kind != ast.Object || paths[child.Name] != (fieldPath{}) || slices.Contains(unserved, parent.Name+"."+f.Name) {
				continue
			}
			p := paths[parent.Name]
			paths[child.Name] = fieldPath{p.before + "{ " + f.Name + arguments[parent.Name+"."+f.Name], "}" + p.after}
			queue = append(queue, child.Name)
		}
	}
	return paths
}

// TestFieldsWithoutAWeightMakeNoCalls checks that a query makes no further calls for a field whose weight includes no calls.
func TestFieldsWithoutAWeightMakeNoCalls(t *testing.T) {
	t.Parallel()
	s := start(t)
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: graph.SDL()})
	token, marketID := s.openTokens(1)[0], s.openMarkets(1)[0]
	event := text(s.ask(t, fmt.Sprintf(`{ market(marketId: %q) { event { eventId } } }`, marketID), nil, anonymous), "market.event.eventId")
	arguments := map[string]string{
		"Query.node": fmt.Sprintf("(id: %q)", tokenNodes([]string{token})[0]), "Query.nodes": fmt.Sprintf("(ids: [%q])", tokenNodes([]string{token})[0]),
		"Query.user": fmt.Sprintf("(address: %q)", addressOf50), "Query.market": fmt.Sprintf("(marketId: %q)", marketID), "Query.markets": fmt.Sprintf("(marketIds: [%q])", marketID),
		"Query.event": fmt.Sprintf("(eventId: %q)", event), "Query.token": fmt.Sprintf("(tokenId: %q)", token),
		"Query.tokens": fmt.Sprintf("(tokenIds: [%q])", token), "Query.tokenPrices": fmt.Sprintf("(tokenIds: [%q])", token), "Query.spreads": fmt.Sprintf("(tokenIds: [%q])", token),
		"Token.fillEstimate": `(side: BUY, size: "1")`, "Market.token": `(outcome: "Yes")`,
	}
	ask := func(document string) calls {
		s.expireCaches()
		return s.callsDuring(func() { s.ask(t, document, nil, keyOf50) })
	}
	checked := 0
	for name, path := range fieldPaths(schema, arguments) {
		before := ask(path.document(""))
		for _, f := range schema.Types[name].Fields {
			if strings.HasPrefix(f.Name, "__") || slices.Contains(unserved, name+"."+f.Name) {
				continue
			}
			selection := f.Name + arguments[name+"."+f.Name]
			if kind := schema.Types[f.Type.Name()].Kind; kind != ast.Scalar && kind != ast.Enum {
				selection += " { __typename }"
			}
			if made := ask(path.document(selection)); !limits.MayCall(name+"."+f.Name) && !maps.Equal(made, before) {
				t.Errorf("the weight of %s.%s includes no calls, but a query with the field makes the calls %v, and a query without the field makes %v", name, f.Name, made, before)
			}
			checked++
		}
	}
	if checked < 150 {
		t.Errorf("the test has checked %d fields, want at least 150", checked)
	}
}
