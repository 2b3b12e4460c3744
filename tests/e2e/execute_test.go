package e2e

import (
	"context"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"

	"oddsgraph/graph"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// execute executes a query without variables with the given sources, as the HTTP API does.
func execute(t *testing.T, s *service, ctx context.Context, sources loaders.Sources, query string) *graphql.Response {
	t.Helper()
	compiler := graph.NewCompiler(graph.Config{Resolvers: &resolvers.Resolver{Status: s.Status, Clock: s.clock}})
	doc, invalid := gqlparser.LoadQueryWithRules(compiler.Schema(), query, nil)
	if invalid != nil {
		t.Fatal(invalid)
	}
	values, err := validator.VariableValues(compiler.Schema(), doc.Operations[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	operation := compiler.Operation(doc, doc.Operations[0], func(int) {})
	ctx, set, _ := loaders.With(ctx, sources)
	defer set.Done()
	resp := &graphql.Response{}
	set.Complete(ctx, func() {
		data, errs := operation.Execute(ctx, values, nil, nil)
		resp = &graphql.Response{Data: data}
		for i := range errs {
			resp.Errors = append(resp.Errors, gqlerror.WrapPath(errs[i].Path(), errs[i].Err))
		}
	})
	return resp
}
