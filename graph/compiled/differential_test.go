package compiled_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"

	"oddsgraph/graph"
	"oddsgraph/graph/compiled"
	"oddsgraph/graph/model"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// both executes documents over a universe in both ways.
type both struct {
	t        testing.TB
	universe *universe
	sources  loaders.Sources
	schema   *ast.Schema
	exec     *executor.Executor
	compiler *compiled.Compiler
	ctx      context.Context
	// panics has serviceStatus panic.
	panics bool
}

func newBoth(t testing.TB, u *universe) *both {
	t.Helper()
	b := &both{t: t, universe: u, sources: u.sources()}
	cfg := graph.Config{Resolvers: &resolvers.Resolver{Status: b.status, Clock: heldClock{}, Feed: feed.New(feed.Config{}), Sources: b.sources}}
	es := graph.NewExecutableSchema(cfg)
	b.schema, b.compiler, b.exec = es.Schema(), graph.NewCompiler(cfg), executor.New(es)
	log := slog.New(slog.DiscardHandler)
	b.exec.SetErrorPresenter(resolvers.Presenter(log, func(context.Context) string { return "" }))
	b.exec.SetRecoverFunc(resolvers.Recover)
	b.exec.AroundResponses(func(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
		ctx, _, _ = loaders.With(ctx, b.sources)
		resolvers.Ahead(ctx)
		resp := next(ctx)
		resolvers.SortErrors(resp.Errors)
		return resp
	})
	c, err := market.ParseCredentials([]byte(`{"apiKey":"k","secret":"s","passphrase":"p","address":"` + string(wallets[0]) + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	b.ctx = market.WithCredentials(context.Background(), c)
	return b
}

func (b *both) status(ctx context.Context) model.ServiceStatus {
	if b.panics {
		panic("boom")
	}
	return status(ctx)
}

func decode(t testing.TB, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// operation is a valid operation with its variables.
type operation struct {
	*both
	doc       *ast.QueryDocument
	variables map[string]any
	compiled  *compiled.Operation
}

// parse returns the operation of a document, or an error when it is not valid.
func (b *both) parse(document string, variables map[string]any) (*operation, error) {
	doc, errs := gqlparser.LoadQueryWithRules(b.schema, document, nil)
	if errs != nil {
		return nil, errs
	}
	text, err := json.Marshal(variables)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text)) // as they come
	d.UseNumber()
	var given map[string]any
	if err := d.Decode(&given); err != nil {
		return nil, err
	}
	o := &operation{both: b, doc: doc, compiled: b.compiler.Operation(doc, doc.Operations[0], func(int) {})}
	if o.variables, err = validator.VariableValues(b.schema, doc.Operations[0], given); err != nil {
		return nil, err
	}
	return o, nil
}

func (b *both) mustParse(document string, variables map[string]any) *operation {
	b.t.Helper()
	o, err := b.parse(document, variables)
	if err != nil {
		b.t.Fatalf("%v in %s", err, document)
	}
	return o
}

// library executes by gqlgen.
func (o *operation) library() *graphql.Response {
	next, ctx := o.exec.DispatchOperation(o.ctx, &graphql.OperationContext{
		Doc: o.doc, Operation: o.doc.Operations[0], Variables: o.variables, RecoverFunc: resolvers.Recover,
		ResolverMiddleware:     func(ctx context.Context, next graphql.Resolver) (any, error) { return next(ctx) },
		RootResolverMiddleware: func(ctx context.Context, next graphql.RootResolver) graphql.Marshaler { return next(ctx) },
	})
	return next(ctx)
}

// fromMemoryKey is that of a context in which nothing may be fetched.
type fromMemoryKey struct{}

// fromMemory executes from memory.
func (o *operation) fromMemory() (data []byte, ok bool) {
	ctx, set, _ := loaders.FromMemory(context.WithValue(o.ctx, fromMemoryKey{}, true), o.sources)
	defer set.Release()
	data, ok = o.compiled.Execute(ctx, o.variables, nil)
	return data, ok && !set.Missed()
}

// byAttempts executes by attempts, each of which sends for what it lacks.
func (o *operation) byAttempts() (data []byte, ok bool) {
	ctx, set, _ := loaders.With(o.ctx, o.sources)
	set.Gather()
	for n := 0; ; n++ {
		data, ok, again := o.compiled.Attempt(ctx, o.variables, nil)
		if ok && !set.Lacks() {
			return data, true
		}
		if !again || !set.Lacks() || !set.Advance(time.Minute) {
			return nil, false
		}
		if n > 20 {
			o.t.Fatal("attempts find no end")
		}
	}
}

// compare executes in all ways, gqlgen where there is no other result, and reports which way it went.
func (o *operation) compare(document string) (fromMemory bool, resp *graphql.Response) {
	o.t.Helper()
	before := o.universe.fetched.Load()
	data, ok := o.fromMemory()
	if o.universe.fetched.Load() != before {
		o.t.Errorf("what is not in memory was fetched for %s", document)
	}
	resp = o.library()
	switch gathered, whole := o.byAttempts(); {
	case whole && (len(resp.Errors) > 0 || !bytes.Equal(gathered, resp.Data)):
		o.t.Errorf("%s\n%v\ngives by attempts\n%s\ninstead of\n%s\n%v", document, o.variables, gathered, resp.Data, resp.Errors)
	case ok && !whole, !whole && len(resp.Errors) == 0 && o.universe.failures == 0:
		o.t.Errorf("%s\n%v\nhas no result by attempts, and %s by gqlgen", document, o.variables, resp.Data)
	}
	if ok && (len(resp.Errors) > 0 || !bytes.Equal(data, resp.Data)) {
		o.t.Errorf("%s\n%v\ngives\n%s\ninstead of\n%s\n%v", document, o.variables, data, resp.Data, resp.Errors)
	}
	return ok, resp
}

// random compares random documents over a random universe, and returns how many were compared and how many of them were
// answered from memory.
func random(t testing.TB, seed uint64, documents int) (compared, fromMemory int) {
	r := rand.New(rand.NewPCG(seed, 1))
	u := &universe{seed: seed, absences: r.IntN(20)}
	if seed%2 == 1 {
		u.misses, u.failures, u.spoilt = r.IntN(10), r.IntN(5), r.IntN(10)
	}
	b := newBoth(t, u)
	w := &writer{Rand: r, schema: b.schema, values: valuesOf(u)}
	for range documents {
		document, variables := w.document()
		o, err := b.parse(document, variables)
		if err != nil {
			continue
		}
		compared++
		ok, resp := o.compare(document)
		if ok {
			fromMemory++
		}
		if ok && strings.Contains(document, "orderbook") { // sides are kept when they are written again, and copied then
			_, _ = o.compare(document)
			_, _ = o.compare(document)
		}
		whole := u.misses == 0 && u.failures == 0
		if whole && !ok && len(resp.Errors) == 0 {
			t.Errorf("seed %d: %s\n%v\nis answered by gqlgen alone: %s", seed, document, o.variables, resp.Data)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	return compared, fromMemory
}

// TestRandomDocuments compares what gqlgen and compiled selections make of random documents over random data, with and without
// values that are missing, fail or are spoilt.
func TestRandomDocuments(t *testing.T) {
	var compared, fromMemory int
	for seed := range uint64(40) {
		n, m := random(t, seed, 25)
		compared, fromMemory = compared+n, fromMemory+m
	}
	t.Logf("%d documents were compared, %d of them answered from memory", compared, fromMemory)
	if compared < 600 || fromMemory < compared/3 {
		t.Error("too few are valid, or answered from memory, to say much")
	}
}

func FuzzDocuments(f *testing.F) {
	f.Add(uint64(1000))
	f.Fuzz(func(t *testing.T, seed uint64) { random(t, seed, 5) })
}

// TestEveryField holds that whatever a query can reach is known, except introspection.
func TestEveryField(t *testing.T) {
	b := newBoth(t, &universe{})
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
			if len(f.Name) > 1 && f.Name[:2] == "__" {
				continue
			}
			if d.Kind == ast.Object && !b.compiler.Knows(d.Name, f.Name) {
				t.Errorf("%s.%s is not known", d.Name, f.Name)
			}
			if of := b.schema.Types[f.Type.Name()]; of.IsCompositeType() {
				reach(of)
			}
		}
	}
	reach(b.schema.Query)
	if len(seen) < 25 {
		t.Errorf("only %d types were reached", len(seen))
	}
}
