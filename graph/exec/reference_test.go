package exec_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/graph/exec"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// failure is an error of gqlgen's executor with the path, argument and locations that package exec would report.
type failure struct {
	error
	fieldContext *graphql.FieldContext
	path         ast.Path
	argument     string
	locations    []gqlerror.Location
}

func (f failure) Unwrap() error                  { return f.error }
func (f failure) Path() ast.Path                 { return f.path }
func (f failure) Argument() string               { return f.argument }
func (f failure) Locations() []gqlerror.Location { return f.locations }

// FieldPath is like Path, but contains field names instead of aliases.
func (f failure) FieldPath() (path ast.Path) {
	for c := f.fieldContext; c != nil; c = c.Parent {
		switch {
		case c.Index != nil:
			path = append(path, ast.PathIndex(*c.Index))
		case c.Field.Field != nil:
			path = append(path, ast.PathName(c.Field.Name))
		}
	}
	slices.Reverse(path)
	return path
}

// locate adds the path, argument and locations to an error of gqlgen's executor. gqlgen appends the name of an invalid argument to
// the path of the field. locate separates the name from the path.
func locate(ctx context.Context, err error) failure {
	f := failure{error: err, fieldContext: graphql.GetFieldContext(ctx), path: graphql.GetPath(ctx)}
	var located *gqlerror.Error
	if errors.As(err, &located) {
		if located.Path != nil {
			f.path = located.Path
		}
		f.locations = located.Locations
	}
	if f.fieldContext == nil {
		return f
	}
	if n := len(f.fieldContext.Path()); n > 0 && len(f.path) > n {
		if _, isName := f.path[n].(ast.PathName); isName {
			f.path, f.argument = f.path[:n:n], f.path[n:].String()
		}
	}
	if f.locations == nil && f.fieldContext.Field.Field != nil {
		f.locations = []gqlerror.Location{{Line: f.fieldContext.Field.Position.Line, Column: f.fieldContext.Field.Position.Column}}
	}
	return f
}

// reporter gives gqlgen the errors that a resolver reports in addition to its value.
type reporter struct{ ctx context.Context }

func (r reporter) Report(err error) { graphql.AddError(r.ctx, err) }

func (r reporter) ReportAt(index int, err error) {
	position := graphql.GetFieldContext(r.ctx).Field.Position
	graphql.AddError(r.ctx, &gqlerror.Error{
		Err: err, Message: "element failed", Path: append(append(ast.Path{}, graphql.GetPath(r.ctx)...), ast.PathIndex(index)),
		Locations: []gqlerror.Location{{Line: position.Line, Column: position.Column}},
	})
}

// reference returns an OperationContext with which gqlgen's executor runs the operation's resolvers one after the other.
func (o *operation) reference() *graphql.OperationContext {
	var one sync.Mutex
	return &graphql.OperationContext{
		Doc: o.doc, Operation: o.doc.Operations[0], Variables: o.variables, RecoverFunc: resolvers.Recover,
		ResolverMiddleware: func(ctx context.Context, next graphql.Resolver) (any, error) {
			one.Lock()
			defer one.Unlock()
			return next(exec.WithReporter(ctx, reporter{ctx}))
		},
		RootResolverMiddleware: func(ctx context.Context, next graphql.RootResolver) graphql.Marshaler { return next(ctx) },
	}
}

// executeWithGqlgen executes the operation with gqlgen in passes.
func (o *operation) executeWithGqlgen() (resp *graphql.Response) {
	_ = o.inPasses(func(ctx context.Context) {
		next, ctx := o.exec.DispatchOperation(context.WithoutCancel(ctx), o.reference())
		resp = next(ctx)
	})
	resolvers.SortErrors(resp.Errors)
	return resp
}

// inPasses runs passes until a pass finds all values in memory. It returns the number of passes.
func (o *operation) inPasses(pass func(ctx context.Context)) (n int) {
	ctx, cancel := context.WithTimeout(o.ctx, time.Minute)
	defer cancel()
	ctx, set, _ := loaders.With(ctx, o.sources)
	defer set.Done()
	set.Complete(ctx, func() {
		if n++; n > 20 {
			panic("the passes do not end") // t.Fatal must not be called on other goroutines
		}
		pass(ctx)
	})
	return n
}
