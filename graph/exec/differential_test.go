package exec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"

	"oddsgraph/graph"
	"oddsgraph/graph/exec"
	"oddsgraph/graph/model"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
	"oddsgraph/tests/tool"
)

// executorPair executes documents over a universe with gqlgen's executor and with package exec.
type executorPair struct {
	t        testing.TB
	universe *universe
	sources  loaders.Sources
	schema   *ast.Schema
	exec     *executor.Executor
	compiler *exec.Compiler
	ctx      context.Context
	present  graphql.ErrorPresenterFunc
	// panics makes serviceStatus panic.
	panics bool
}

func newExecutorPair(t testing.TB, u *universe) *executorPair {
	t.Helper()
	b := &executorPair{t: t, universe: u, sources: u.sources()}
	cfg := graph.Config{Resolvers: panicky{&resolvers.Resolver{Status: b.status, Clock: tool.NewClock(now), Venues: []resolvers.Venue{{}}, Feeds: []*feed.Feed{feed.New(feed.Config{})}, Sources: b.sources}, u}}
	es := graph.NewExecutableSchema(cfg)
	b.schema, b.compiler, b.exec = es.Schema(), graph.NewCompiler(cfg), executor.New(es)
	b.present = resolvers.Presenter(slog.New(slog.DiscardHandler))
	b.exec.SetErrorPresenter(func(ctx context.Context, err error) *gqlerror.Error { return b.present(ctx, locate(ctx, err)) })
	b.exec.SetRecoverFunc(resolvers.Recover)
	c, err := market.ParseCredentials([]byte(`{"apiKey":"k","secret":"s","passphrase":"p","address":"` + string(wallets[0]) + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	b.ctx = request.WithCredentials(context.Background(), c)
	return b
}

func (b *executorPair) status(ctx context.Context) model.ServiceStatus {
	if b.panics {
		panic("boom")
	}
	return status(ctx)
}

// operation is a valid operation with its variables.
type operation struct {
	*executorPair
	doc        *ast.QueryDocument
	variables  map[string]any
	executable *exec.Operation
}

// parse returns the operation of a document, or an error if the document or a variable is invalid.
func (b *executorPair) parse(document string, variables map[string]any) (*operation, error) {
	doc, errs := gqlparser.LoadQueryWithRules(b.schema, document, nil)
	if errs != nil {
		return nil, errs
	}
	text, err := json.Marshal(variables)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text)) // decode numbers as the server does
	d.UseNumber()
	var given map[string]any
	if err := d.Decode(&given); err != nil {
		return nil, err
	}
	o := &operation{executorPair: b, doc: doc, executable: b.compiler.Operation(doc, doc.Operations[0], func(int) {})}
	if o.variables, err = validator.VariableValues(b.schema, doc.Operations[0], given); err != nil {
		return nil, err
	}
	return o, nil
}

func (b *executorPair) mustParse(document string, variables map[string]any) *operation {
	b.t.Helper()
	o, err := b.parse(document, variables)
	if err != nil {
		b.t.Fatalf("the error %v in the document %s", err, document)
	}
	return o
}

// fromMemoryKey marks the contexts in which no value may be fetched.
type fromMemoryKey struct{}

// executeInOnePass executes the operation in one pass. ok is false if a value must be fetched.
func (o *operation) executeInOnePass() (data []byte, errs gqlerror.List, ok bool) {
	ctx, set, _ := loaders.With(context.WithValue(o.ctx, fromMemoryKey{}, true), o.sources)
	defer set.Done()
	data, failed := o.executable.Execute(ctx, o.variables, nil, nil)
	return data, o.presentAll(failed), !set.Pending()
}

// executeInPasses executes the operation in passes and fetches the missing values after each pass.
func (o *operation) executeInPasses() (data []byte, errs gqlerror.List) {
	_ = o.inPasses(func(ctx context.Context) {
		var failed []exec.Error
		data, failed = o.executable.Execute(ctx, o.variables, nil, nil)
		errs = o.presentAll(failed)
	})
	return data, errs
}

func (o *operation) presentAll(errs []exec.Error) (list gqlerror.List) {
	for i := range errs {
		list = append(list, o.present(o.ctx, &errs[i]))
	}
	resolvers.SortErrors(list)
	return list
}

// describeErrors returns a sorted list with one text for each error. The text contains the parts of the error that clients see.
func describeErrors(errs gqlerror.List) (texts []string) {
	for _, err := range errs {
		texts = append(texts, fmt.Sprint(err.Path, err.Locations, " ", err.Message, " ", err.Extensions))
	}
	slices.Sort(texts)
	return texts
}

// compare checks that package exec gives the same response as gqlgen, in passes and in a single pass. The single pass must fetch
// nothing. fromMemory reports whether all values were in memory. If fromMemory is false, the response of the single pass is not
// compared.
func (o *operation) compare(document string) (fromMemory bool, resp *graphql.Response) {
	o.t.Helper()
	before := o.universe.fetched.Load()
	data, errs, ok := o.executeInOnePass()
	if o.universe.fetched.Load() != before {
		o.t.Errorf("a missing value was fetched for %s", document)
	}
	resp = o.executeWithGqlgen()
	checkSame := func(way string, data []byte, errs gqlerror.List) {
		o.t.Helper()
		if !bytes.Equal(data, resp.Data) {
			o.t.Errorf("the document\n%s\nwith the variables %v gives, %s,\n%s\nwant\n%s", document, o.variables, way, data, resp.Data)
		}
		if got, want := describeErrors(errs), describeErrors(resp.Errors); !slices.Equal(got, want) {
			o.t.Errorf("the document\n%s\nwith the variables %v has, %s, the errors\n%s\nwant\n%s", document, o.variables, way, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	gathered, failed := o.executeInPasses()
	checkSame("in several passes", gathered, failed)
	if ok {
		checkSame("in one pass", data, errs)
	}
	return ok, resp
}

// tally counts the compared documents, those whose values were all in memory, and those with errors.
type tally struct{ compared, fromMemory, failed int }

// compareRandom executes random documents over a random universe with both executors and compares the responses.
func compareRandom(t testing.TB, seed uint64, documents int) (n tally) {
	r := rand.New(rand.NewPCG(seed, 1))
	u := &universe{seed: seed, absences: r.IntN(20)}
	if seed%2 == 1 {
		u.misses, u.failures, u.damaged, u.panics, u.hangs = r.IntN(10), r.IntN(24), r.IntN(10), r.IntN(4), r.IntN(6)
	}
	b := newExecutorPair(t, u)
	w := &writer{Rand: r, schema: b.schema, values: valuesOf(u)}
	for range documents {
		document, variables := w.document()
		o, err := b.parse(document, variables)
		if err != nil {
			continue
		}
		n.compared++
		ok, resp := o.compare(document)
		if ok {
			n.fromMemory++
		}
		if len(resp.Errors) > 0 {
			n.failed++
		}
		if ok && strings.Contains(document, "orderbook") { // compare again, because package exec does not cache the first two texts of a book
			_, _ = o.compare(document)
			_, _ = o.compare(document)
		}
		if t.Failed() {
			t.Fatalf("the executors differ for the seed %d", seed)
		}
	}
	return n
}

// TestRandomDocuments checks that gqlgen and package exec give the same responses to random documents. Some values are missing or
// damaged, some fetches fail or never return, and some resolvers panic.
func TestRandomDocuments(t *testing.T) {
	var sum tally
	for seed := range uint64(80) {
		synctest.Test(t, func(t *testing.T) { // a fetch that never returns is cancelled after a minute of fake time
			n := compareRandom(t, seed, 25)
			sum.compared, sum.fromMemory, sum.failed = sum.compared+n.compared, sum.fromMemory+n.fromMemory, sum.failed+n.failed
		})
	}
	t.Logf("%d documents were compared, %d of them answered from memory, %d with errors", sum.compared, sum.fromMemory, sum.failed)
	if sum.compared < 1200 || sum.fromMemory < sum.compared/4 || sum.failed < sum.compared/4 {
		t.Error("too few documents were valid, were answered from memory or had errors")
	}
}

func FuzzDocuments(f *testing.F) {
	f.Add(uint64(1000))
	f.Add(uint64(1001))
	f.Fuzz(func(t *testing.T, seed uint64) { synctest.Test(t, func(t *testing.T) { compareRandom(t, seed, 5) }) })
}

// TestEveryField checks that package exec can compile every field that an operation can reach.
func TestEveryField(t *testing.T) {
	b := newExecutorPair(t, &universe{})
	seen := map[string]bool{}
	var reach func(d *ast.Definition)
	reach = func(d *ast.Definition) {
		if seen[d.Name] {
			return
		}
		seen[d.Name] = true
		for _, possible := range b.schema.GetPossibleTypes(d) {
			if possible != d {
				reach(possible)
			}
		}
		for _, f := range d.Fields {
			if d.Kind == ast.Object && !b.compiler.Knows(d.Name, f.Name) {
				t.Errorf("package exec does not know the field %s.%s", d.Name, f.Name)
			}
			if of := b.schema.Types[f.Type.Name()]; of.IsCompositeType() {
				reach(of)
			}
		}
	}
	reach(b.schema.Query)
	reach(b.schema.Subscription)
	if len(seen) < 25 {
		t.Errorf("the test reached only %d types, want at least 25", len(seen))
	}
}
