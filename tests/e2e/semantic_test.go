package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"oddsgraph/graph"
	"oddsgraph/graph/sdl"
	"oddsgraph/internal/demo/faults"
)

// TestSemanticNonNull checks every field with @semanticNonNull that the demo venue serves. If the venue works and the request has
// credentials, no such field may be null. Otherwise each such field that is null must have an error.
func TestSemanticNonNull(t *testing.T) {
	t.Parallel()
	text, err := sdl.Print(graph.SDL(), sdl.Options{Semantic: true})
	if err != nil {
		t.Fatal(err)
	}
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: text})
	s := start(t)
	token := s.openTokens(1)[0]
	eventID := ""
	for _, market := range list(s.ask(t, `{ searchMarkets(first: 100) { nodes { event { eventId } } } }`, nil, anonymous), "searchMarkets.nodes") {
		if id, ok := at(market, "event.eventId").(string); ok {
			eventID = id
			break
		}
	}
	const query = `query ($token: String!, $event: String!) {
		user(address: "` + addressOf50 + `") {
			id positions { totalCount } orders { totalCount } trades { totalCount } history { totalCount } portfolio { id }
		}
		markets(marketIds: ["unknown"]) { id }
		searchMarkets(first: 1) { totalCount }
		searchEvents(first: 1) { nodes { id } }
		categories { name }
		token(tokenId: $token) { price { token { id } } spread { token { id } } orderbook { token { id } } }
		tokens(tokenIds: [$token, "unknown"]) { id }
		tokenPrices(tokenIds: [$token, "unknown"]) { token { id } }
		spreads(tokenIds: [$token, "unknown"]) { token { id } }
		event(eventId: $event) { markets { nodes { id } } }
		serviceStatus { venue { driver } }
	}`
	doc, errs := gqlparser.LoadQueryWithRules(schema, query, rules.NewDefaultRules())
	if errs != nil {
		t.Fatal(errs)
	}
	variables := vars{"token": token, "event": eventID}
	seenFields := 0
	for name, fault := range map[string]*faults.Fault{"the venue works": nil, "the venue fails": {Kind: faults.Status}} {
		s.expireCaches()
		if fault != nil {
			s.setFaults(t, *fault)
		}
		for _, credentials := range []string{keyOf50, anonymous} {
			data, errors := s.query(t, query, variables, credentials)
			failed := map[string]bool{}
			for _, e := range errors {
				failed[asJSON(e.Path)] = true
			}
			w := semanticWalk{t: t, schema: schema, failed: failed, seen: map[string]bool{}}
			w.checkObject(doc.Operations[0].SelectionSet, data, nil)
			if fault == nil && credentials == keyOf50 {
				seenFields = len(w.seen)
				if w.nulls > 0 {
					t.Errorf("%s: with credentials, %d fields are null, want none; the errors are %v", name, w.nulls, errors)
				}
			} else if w.nulls == 0 {
				t.Errorf("%s: with the credentials %.20q, no field is null, want some", name, credentials)
			}
		}
		s.setFaults(t)
	}
	markedFields := 0
	for _, def := range schema.Types {
		for _, f := range def.Fields {
			if served := !slices.Contains(unserved, def.Name+"."+f.Name); served && f.Directives.ForName("semanticNonNull") != nil {
				markedFields++
			}
		}
	}
	if seenFields != markedFields {
		t.Errorf("the query selects %d of the %d fields with @semanticNonNull", seenFields, markedFields)
	}
}

// semanticWalk compares the null values of a response with the errors of the response.
type semanticWalk struct {
	t      *testing.T
	schema *ast.Schema
	failed map[string]bool // the paths of errors
	seen   map[string]bool // the fields with @semanticNonNull that are in the response
	nulls  int             // the number of null values at fields with @semanticNonNull
}

func (w *semanticWalk) checkObject(set ast.SelectionSet, v any, path []any) {
	object, ok := v.(map[string]any)
	if !ok {
		return
	}
	for _, s := range set {
		f := s.(*ast.Field)
		levels := ""
		if d := f.Definition.Directives.ForName("semanticNonNull"); d != nil {
			w.seen[f.ObjectDefinition.Name+"."+f.Name] = true
			levels = "0"
			if a := d.Arguments.ForName("levels"); a != nil {
				levels = a.Value.String()
			}
		}
		w.checkValue(f, levels, 0, object[f.Alias], append(path[:len(path):len(path)], f.Alias))
	}
}

func (w *semanticWalk) checkValue(f *ast.Field, levels string, level int, v any, path []any) {
	switch v := v.(type) {
	case nil:
		if !strings.Contains(levels, string(rune('0'+level))) {
			return
		}
		if w.nulls++; !w.failed[asJSON(path)] {
			w.t.Errorf("%s is null without an error", asJSON(path))
		}
	case []any:
		for i, item := range v {
			w.checkValue(f, levels, level+1, item, append(path[:len(path):len(path)], i))
		}
	default:
		w.checkObject(f.SelectionSet, v, path)
	}
}
