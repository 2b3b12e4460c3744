package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"oddsgraph/graph"
	"oddsgraph/graph/sdl"
	"oddsgraph/httpapi"
	"oddsgraph/httpapi/limits"
	"oddsgraph/internal/demo/faults"
)

// TestSchemaDescribesEverything checks that each type, field, argument, input field and enum value has a description.
func TestSchemaDescribesEverything(t *testing.T) {
	const file = "schema.graphqls"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: file, Input: string(text)})
	if err != nil {
		t.Fatal(err)
	}

	wantDescription := func(description string, path ...string) {
		t.Helper()
		if strings.TrimSpace(description) == "" {
			t.Errorf("%s has no description", strings.Join(path, "."))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Types)) {
		def := schema.Types[name]
		if def.BuiltIn || strings.HasPrefix(name, "__") {
			continue
		}
		wantDescription(def.Description, name)
		for _, field := range def.Fields {
			if strings.HasPrefix(field.Name, "__") {
				continue
			}
			wantDescription(field.Description, name, field.Name)
			for _, arg := range field.Arguments {
				wantDescription(arg.Description, name, field.Name, arg.Name)
			}
		}
		for _, value := range def.EnumValues {
			wantDescription(value.Description, name, value.Name)
		}
	}
}

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
		questions(first: 1) { totalCount }
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
		"Query.event": fmt.Sprintf("(eventId: %q)", event), "Query.token": fmt.Sprintf("(tokenId: %q)", token), "Query.question": `(questionId: "none")`, "Question.best": "(side: BUY)",
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

func hashOf(text string) string {
	hash := sha256.Sum256([]byte(text))
	return hex.EncodeToString(hash[:])
}

func (s *service) getQuery(t *testing.T, path string, parameters ...string) response {
	t.Helper()
	values := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		values.Set(parameters[i], parameters[i+1])
	}
	return s.get(t, httpapi.PathGraphQL+path+"?"+values.Encode())
}

func TestTrustedDocuments(t *testing.T) {
	const query, other = `query Trusted { __typename }`, `query Other { __typename }`
	manifest := write(t, t.TempDir(), "manifest.json", asJSON(vars{"trusted-1": query}))
	for mode, code := range map[string]string{"allow": "", "require": "FORBIDDEN"} { // maps each mode to the expected error for a document that is not trusted
		s := start(t, "--documents-trusted="+mode, "--documents-manifest="+manifest)
		for i, got := range []response{s.getQuery(t, "/trusted-1"), s.getQuery(t, "", "query", query), s.getQuery(t, "", "query", other)} {
			refused := i == 2 && code != ""
			if (got.body != `{"data":{"__typename":"Query"}}`) != refused || (got.status == http.StatusForbidden) != refused || refused && !strings.Contains(got.body, code) {
				t.Errorf("--documents-trusted=%s, request %d: got %+v, want refused = %v", mode, i, got, refused)
			}
		}
	}
}
