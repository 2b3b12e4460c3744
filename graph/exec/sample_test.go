package exec_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"

	"oddsgraph/graph/exec"
	"oddsgraph/graph/exec/internal/sample"
	"oddsgraph/resolvers"
)

// world resolves the fields of package sample. Some of its resolvers return null, return an error, report an error with
// exec.Report, or panic.
type world struct {
	seed uint64
	// trouble is the percentage of fields that are null, have an error or panic.
	trouble int
}

func (w *world) random(of ...any) *rand.Rand {
	return (&universe{seed: w.seed}).random(fmt.Sprint(of...))
}

// decide returns true for a value and false for null. It may also return an error, report an error with exec.Report, or panic.
func (w *world) decide(ctx context.Context, id, field string) (value bool, err error) {
	r := w.random("field ", id, field)
	if !percent(r, w.trouble) {
		return true, nil
	}
	switch r.IntN(4) {
	case 0:
		return false, nil
	case 1:
		return false, errors.New("no " + field + " of " + id)
	case 2:
		panic("at " + field + " of " + id)
	default:
		exec.Report(ctx, errors.New("half of "+field+" of "+id))
		return percent(r, 50), nil
	}
}

func (w *world) leafOf(id string) *sample.Leaf {
	r := w.random("leaf ", id)
	l := &sample.Leaf{Node: sample.Node{ID: id, Panics: percent(r, w.trouble/4)}, Grade: sample.Grade(pick(r, []string{"", "A", "\"b\""}))}
	cents := sample.Money(r.IntN(1000))
	if !percent(r, w.trouble) {
		l.Worth = &cents
	}
	if percent(r, 50) {
		c := pick(r, sample.AllColour)
		l.Colour, l.Weight, l.Any = &c, &cents, []any{"x", 1, nil, map[string]any{"a": true}}
	}
	if percent(r, 50) {
		l.Tags = []string{"a", "b"}[:r.IntN(3)]
	}
	if !strings.HasSuffix(id, "twin") {
		for range r.IntN(3) {
			l.Twins = append(l.Twins, w.leafOf(id+".twin"))
			if percent(r, w.trouble/2) {
				l.Twins[len(l.Twins)-1] = nil
			}
		}
	}
	return l
}

func (w *world) branchOf(id string) *sample.Branch {
	r := w.random("branch ", id)
	return &sample.Branch{Node: sample.Node{ID: id, Panics: percent(r, w.trouble/4)}}
}

func (w *world) thingOf(id string) interface {
	sample.Thing
	sample.Named
} {
	switch r := w.random("thing ", id); r.IntN(4) {
	case 0:
		return w.branchOf(id)
	case 1:
		return *w.branchOf(id)
	case 2:
		return w.leafOf(id)
	default:
		return *w.leafOf(id)
	}
}

// resolveList returns the value of a list field. Some elements are null, with or without an error.
func resolveList[T any](ctx context.Context, w *world, id, field string, element func(id string) T) ([]T, error) {
	value, err := w.decide(ctx, id, field)
	if !value {
		return nil, err
	}
	r := w.random("list ", id, field)
	out := make([]T, r.IntN(4))
	for i := range out {
		if at := fmt.Sprint(id, ".", field, i); !percent(r, w.trouble) {
			out[i] = element(at)
		} else if percent(r, 50) {
			exec.ReportAt(ctx, i, errors.New("no "+at))
		}
	}
	return out, nil
}

// resolveObject returns the value of an object field.
func resolveObject[T any](ctx context.Context, w *world, id, field string, of func(id string) T) (object T, err error) {
	value, err := w.decide(ctx, id, field)
	if !value {
		return object, err
	}
	return of(id + "." + field), nil
}

func (w *world) rows(id string) []*sample.Leaf {
	r := w.random("row ", id)
	out := make([]*sample.Leaf, r.IntN(3))
	for i := range out {
		if !percent(r, w.trouble) {
			out[i] = w.leafOf(fmt.Sprint(id, i))
		}
	}
	return out
}

func (w *world) thing(id string) sample.Thing { return w.thingOf(id) }
func (w *world) name(id string) sample.Named  { return w.thingOf(id) }

func (w *world) Query() sample.QueryResolver               { return worldQuery{w} }
func (w *world) Leaf() sample.LeafResolver                 { return worldLeaf{w} }
func (w *world) Branch() sample.BranchResolver             { return worldBranch{w} }
func (w *world) Subscription() sample.SubscriptionResolver { return worldSubscription{w} }

type worldQuery struct{ w *world }

func (q worldQuery) Branch(ctx context.Context, id string) (*sample.Branch, error) {
	return resolveObject(ctx, q.w, id, "branch", q.w.branchOf)
}
func (q worldQuery) MustBranch(ctx context.Context, id string) (*sample.Branch, error) {
	return resolveObject(ctx, q.w, id, "mustBranch", q.w.branchOf)
}
func (q worldQuery) Leaf(ctx context.Context) (*sample.Leaf, error) {
	return resolveObject(ctx, q.w, "q", "leaf", q.w.leafOf)
}
func (q worldQuery) Thing(ctx context.Context) (sample.Thing, error) {
	return resolveObject(ctx, q.w, "q", "thing", q.w.thing)
}
func (q worldQuery) Named(ctx context.Context) ([]sample.Named, error) {
	return resolveList(ctx, q.w, "q", "named", q.w.name)
}
func (q worldQuery) Echo(_ context.Context, filter *sample.Filter, a any, money sample.Money) (string, error) {
	var text strings.Builder
	for f := filter; f != nil; f = f.Nested {
		fmt.Fprint(&text, f.Colours, valueOrZero(f.Min), valueOrZero(f.Grade), ";")
	}
	return fmt.Sprint(&text, a, money), nil
}

func valueOrZero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

type worldLeaf struct{ w *world }

func (l worldLeaf) Branch(ctx context.Context, obj *sample.Leaf) (*sample.Branch, error) {
	return resolveObject(ctx, l.w, obj.ID, "branch", l.w.branchOf)
}
func (l worldLeaf) MustBranch(ctx context.Context, obj *sample.Leaf) (*sample.Branch, error) {
	return resolveObject(ctx, l.w, obj.ID, "mustBranch", l.w.branchOf)
}

type worldBranch struct{ w *world }

func (b worldBranch) Leaf(ctx context.Context, obj *sample.Branch) (*sample.Leaf, error) {
	return resolveObject(ctx, b.w, obj.ID, "leaf", b.w.leafOf)
}
func (b worldBranch) MustLeaf(ctx context.Context, obj *sample.Branch) (*sample.Leaf, error) {
	return resolveObject(ctx, b.w, obj.ID, "mustLeaf", b.w.leafOf)
}
func (b worldBranch) Leaves(ctx context.Context, obj *sample.Branch) ([]*sample.Leaf, error) {
	return resolveList(ctx, b.w, obj.ID, "leaves", b.w.leafOf)
}
func (b worldBranch) MustLeaves(ctx context.Context, obj *sample.Branch) ([]*sample.Leaf, error) {
	return resolveList(ctx, b.w, obj.ID, "mustLeaves", b.w.leafOf)
}
func (b worldBranch) Loose(ctx context.Context, obj *sample.Branch) ([]*sample.Leaf, error) {
	return resolveList(ctx, b.w, obj.ID, "loose", b.w.leafOf)
}
func (b worldBranch) MustLoose(ctx context.Context, obj *sample.Branch) ([]*sample.Leaf, error) {
	return resolveList(ctx, b.w, obj.ID, "mustLoose", b.w.leafOf)
}
func (b worldBranch) Grid(ctx context.Context, obj *sample.Branch) ([][]*sample.Leaf, error) {
	return resolveList(ctx, b.w, obj.ID, "grid", b.w.rows)
}
func (b worldBranch) LooseGrid(ctx context.Context, obj *sample.Branch) ([][]*sample.Leaf, error) {
	return resolveList(ctx, b.w, obj.ID, "looseGrid", b.w.rows)
}
func (b worldBranch) Thing(ctx context.Context, obj *sample.Branch) (sample.Thing, error) {
	return resolveObject(ctx, b.w, obj.ID, "thing", b.w.thing)
}
func (b worldBranch) MustThings(ctx context.Context, obj *sample.Branch) ([]sample.Thing, error) {
	return resolveList(ctx, b.w, obj.ID, "mustThings", b.w.thing)
}
func (b worldBranch) Named(ctx context.Context, obj *sample.Branch) ([]sample.Named, error) {
	return resolveList(ctx, b.w, obj.ID, "named", b.w.name)
}

type worldSubscription struct{ w *world }

// eventsOf returns three events, and some of them may be null. It may also return an error, or panic.
func eventsOf[T any](w *world, id string, of func(id string) T) (<-chan T, error) {
	r := w.random("events ", id)
	switch {
	case percent(r, w.trouble/2):
		return nil, errors.New("no events")
	case percent(r, w.trouble/2):
		panic("no events")
	}
	out := make(chan T, 3)
	for i := range cap(out) {
		var event T
		if !percent(r, w.trouble) {
			event = of(fmt.Sprint(id, i))
		}
		out <- event
	}
	close(out)
	return out, nil
}

func (s worldSubscription) Branches(_ context.Context, id string, _ *sample.Money) (<-chan *sample.Branch, error) {
	return eventsOf(s.w, id, s.w.branchOf)
}
func (s worldSubscription) Leaves(_ context.Context, id string) (<-chan *sample.Leaf, error) {
	return eventsOf(s.w, id, s.w.leafOf)
}
func (s worldSubscription) Things(_ context.Context, id string) (<-chan []sample.Thing, error) {
	return eventsOf(s.w, id, func(id string) []sample.Thing {
		things, _ := resolveList(exec.WithReporter(context.Background(), droppingReporter{}), &world{seed: s.w.seed}, id, "things", s.w.thing)
		return things
	})
}

// droppingReporter is an exec.Reporter that drops errors.
type droppingReporter struct{}

func (droppingReporter) Report(error)        {}
func (droppingReporter) ReportAt(int, error) {}

// sampleValues returns valid and invalid values for the arguments of package sample.
func sampleValues(w *writer, name string, t *ast.Type) any {
	if !t.NonNull && w.IntN(4) == 0 {
		return nil
	}
	if t.Elem != nil {
		return []any{sampleValues(w, name, t.Elem), sampleValues(w, name, t.Elem)}[:w.IntN(3)]
	}
	switch t.Name() {
	case "Colour":
		return pick(w.Rand, sample.AllColour).String()
	case "Money":
		return pick(w.Rand, []any{-1, 0, 5, 700})
	case "Grade":
		return pick(w.Rand, []any{"A", "", 3})
	case "Any":
		return pick(w.Rand, []any{"text", 1, true})
	case "Filter":
		object := map[string]any{}
		for _, f := range w.schema.Types["Filter"].Fields {
			if w.IntN(3) == 0 {
				object[f.Name] = sampleValues(w, f.Name, f.Type)
			}
		}
		return object
	default:
		return pick(w.Rand, []string{"a", "b", "c"})
	}
}

// trouble contains the parts of an error that the tests compare.
type trouble struct {
	path, text, locations string
}

// troubleOf returns the trouble of an error. gqlgen has two messages for a null in a non-null field. troubleOf replaces one message
// with the other, which package exec uses.
func troubleOf(err error, path ast.Path, locations []gqlerror.Location, argument string) trouble {
	for {
		var located *gqlerror.Error
		if !errors.As(err, &located) || located.Err == nil {
			break
		}
		err = located.Err
	}
	text := err.Error()
	var located *gqlerror.Error
	if errors.As(err, &located) {
		text = located.Message
	}
	text = strings.ReplaceAll(text, "the requested element is null which the schema does not allow", "must not be null")
	if argument != "" {
		text = argument + ": " + text
	}
	return trouble{path.String(), text, fmt.Sprint(locations)}
}

func sortTroubles(list []trouble) []trouble {
	slices.SortFunc(list, func(a, b trouble) int { return strings.Compare(a.path+" "+a.text, b.path+" "+b.text) })
	return list
}

type result struct {
	data     string
	troubles []trouble
}

// samples contains gqlgen's executor and the compiler of package exec for the schema of package sample.
type samples struct {
	schema   *ast.Schema
	exec     *executor.Executor
	compiler *exec.Compiler
}

func newSamples(w *world) *samples {
	cfg := sample.Config{Resolvers: w}
	s := &samples{compiler: sample.NewCompiler(cfg), exec: executor.New(sample.NewExecutableSchema(cfg))}
	s.schema = s.compiler.Schema()
	s.exec.SetRecoverFunc(resolvers.Recover)
	s.exec.SetErrorPresenter(func(ctx context.Context, err error) *gqlerror.Error {
		f := locate(ctx, err)
		presented := &gqlerror.Error{Err: err, Message: troubleOf(err, nil, nil, f.argument).text, Path: f.path}
		presented.Locations = append(presented.Locations, f.locations...)
		return presented
	})
	return s
}

func (s *samples) resultOfGqlgen(resp *graphql.Response) result {
	out := result{data: string(resp.Data)}
	for _, err := range resp.Errors {
		out.troubles = append(out.troubles, trouble{err.Path.String(), err.Message, fmt.Sprint(err.Locations)})
	}
	out.troubles = sortTroubles(out.troubles)
	return out
}

func resultOf(data []byte, errs []exec.Error) result {
	out := result{data: string(data)}
	for i := range errs {
		e := &errs[i]
		out.troubles = append(out.troubles, troubleOf(e.Err, e.Path(), e.Locations(), e.Argument()))
	}
	out.troubles = sortTroubles(out.troubles)
	return out
}

// equal compares the result of package exec (ours) with gqlgen's result (library). It ignores two differences. First, gqlgen has no
// locations for errors of list elements and of the root field of an event. Second, gqlgen writes null into the root field of an
// event even if the field is non-null.
func (ours result) equal(library result) bool {
	if library.data == `{"e":null}` && ours.data == "null" {
		library.data = "null"
	}
	return ours.data == library.data && slices.EqualFunc(ours.troubles, library.troubles, func(a, b trouble) bool {
		return a.path == b.path && a.text == b.text && (a.locations == b.locations || b.locations == "[]" && (strings.HasSuffix(b.path, "]") || b.path == "e"))
	})
}

// belowRoot adds the subscription's root field to the paths of an event's errors, because gqlgen's paths begin below this field.
func belowRoot(errs gqlerror.List) {
	for _, err := range errs {
		err.Path = append(ast.Path{ast.PathName("e")}, err.Path...)
	}
}

// run executes an operation with both executors and returns the results of each. A subscription has one result for each event. A
// query, or a subscription that fails, has one result.
func (s *samples) run(doc *ast.QueryDocument, variables map[string]any) (ours, library []result) {
	ctx := context.Background()
	o := (&operation{executorPair: &executorPair{exec: s.exec}, doc: doc, variables: variables}).reference()
	next, dispatched := s.exec.DispatchOperation(ctx, o)
	op := s.compiler.Operation(doc, doc.Operations[0], func(int) {})
	if doc.Operations[0].Operation == ast.Query {
		return []result{resultOf(op.Execute(ctx, variables, nil, nil))}, []result{s.resultOfGqlgen(next(dispatched))}
	}
	for resp := next(dispatched); resp != nil && len(library) < 4; resp = next(dispatched) {
		if resp.Data != nil {
			belowRoot(resp.Errors)
		}
		library = append(library, s.resultOfGqlgen(resp))
	}
	stream, errs := op.Subscribe(ctx, variables)
	if stream == nil {
		return []result{resultOf(nil, errs)}, library
	}
	for stream.Next(ctx) {
		ours = append(ours, resultOf(stream.Execute(ctx, nil, nil)))
	}
	return ours, library
}

// compareSamples executes random operations of package sample with both executors and compares the results. It returns the number
// of compared operations and the number of operations with errors.
func compareSamples(t *testing.T, seed uint64, documents int) (compared, failed int) {
	r := rand.New(rand.NewPCG(seed, 3))
	s := newSamples(&world{seed: seed, trouble: r.IntN(40)})
	w := &writer{Rand: r, schema: s.schema, values: sampleValues}
	for range documents {
		write := w.document
		if r.IntN(3) == 0 {
			write = w.subscription
		}
		text, given := write()
		doc, errs := gqlparser.LoadQueryWithRules(s.schema, text, nil)
		if errs != nil {
			continue
		}
		variables, err := validator.VariableValues(s.schema, doc.Operations[0], given)
		if err != nil {
			continue
		}
		compared++
		ours, library := s.run(doc, variables)
		if !slices.EqualFunc(ours, library, result.equal) {
			t.Fatalf("seed %d: the document\n%s\nwith the variables %v gives\n%v\nwant\n%v", seed, text, variables, ours, library)
		}
		if slices.ContainsFunc(library, func(r result) bool { return len(r.troubles) > 0 }) {
			failed++
		}
	}
	return compared, failed
}

// TestAnySchema checks that gqlgen and package exec give the same results for a schema with features that schema.graphqls lacks.
func TestAnySchema(t *testing.T) {
	compared, failed := 0, 0
	for seed := range uint64(100) {
		n, m := compareSamples(t, seed, 30)
		compared, failed = compared+n, failed+m
	}
	t.Logf("%d operations were compared, %d with errors", compared, failed)
	if compared < 1000 || failed < compared/3 {
		t.Error("too few operations were valid or had errors")
	}
}

func FuzzAnySchema(f *testing.F) {
	f.Add(uint64(1000))
	f.Fuzz(func(t *testing.T, seed uint64) { compareSamples(t, seed, 5) })
}
