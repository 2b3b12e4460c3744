package graph

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/graph/exec"
	"oddsgraph/graph/model"
	"oddsgraph/graph/sdl"
	"oddsgraph/internal/market"
)

// maxRepresentations is the greatest number of representations in the arguments of one _entities field.
const maxRepresentations = 500

// subgraph is the schema with the fields of Apollo Federation. public is the schema without these fields. The generated code can
// execute both schemas.
var subgraph, public = parsedSchema, gqlparser.MustLoadSchema(sources[0])

func init() {
	parsedSchema = public // the generated code uses this schema for a Config without a schema
	for _, schema := range []*ast.Schema{subgraph, public} {
		delete(schema.Directives, "defer") // the server does not support @defer
	}
}

// Schema returns the schema of schema.graphqls. If federation is true, the schema also has the fields of a Federation 2 subgraph.
// The schema must not be changed.
func Schema(federation bool) *ast.Schema {
	if federation {
		return subgraph
	}
	return public
}

var subgraphSDL = sync.OnceValues(func() (string, error) {
	return sdl.Print(SDL(), sdl.Options{Federation: true})
})

// __resolve__service resolves Query._service. The generated code calls it by this name.
func (ec *executionContext) __resolve__service(context.Context) (model.Subgraph, error) {
	text, err := subgraphSDL()
	return model.Subgraph{SDL: text}, err
}

// __resolve_entities resolves Query._entities. It finds each entity by its global id, like Query.nodes, so all entities of a type
// are read in one batch. If a representation is invalid or its entity cannot be read, the entity is null and has an error. If there
// are more than maxRepresentations representations, all entities are null and the field has one error.
func (ec *executionContext) __resolve_entities(ctx context.Context, representations []any) []model.Node {
	entities := make([]model.Node, len(representations))
	if len(representations) > maxRepresentations {
		exec.Report(ctx, market.Errorf(market.CodeBadUserInput, "representations holds %d objects; at most %d are accepted", len(representations), maxRepresentations))
		return entities
	}
	query := ec.Resolvers.Query()
	for i, representation := range representations {
		id, err := entityID(representation)
		if err == nil {
			entities[i], err = query.Node(ctx, id)
		}
		if err != nil {
			exec.ReportAt(ctx, i, err)
		}
	}
	return entities
}

// entityID returns the global id in the representation of an entity. It returns an error if the representation is invalid, or if
// its id is not a global id of the type that __typename names.
func entityID(representation any) (string, error) {
	fields, ok := representation.(map[string]any)
	if !ok {
		return "", market.Errorf(market.CodeBadUserInput, "a representation is not an object")
	}
	typename, ok := fields["__typename"].(string)
	if !ok {
		return "", market.Errorf(market.CodeBadUserInput, "a representation has no __typename")
	}
	if !slices.Contains(subgraph.Types["_Entity"].Types, typename) {
		return "", market.Errorf(market.CodeBadUserInput, "the type of a representation is no entity of this subgraph; its entities are %s", strings.Join(subgraph.Types["_Entity"].Types, ", "))
	}
	id, ok := fields["id"].(string)
	if !ok {
		return "", market.Errorf(market.CodeBadUserInput, "a representation of %s has no id, which is its key", typename)
	}
	if kind, ok := model.TypeOf(id); !ok || kind != typename {
		return "", market.Errorf(market.CodeBadUserInput,
			"the id in a representation of %[1]s is not a global id of the type %[1]s", typename)
	}
	return id, nil
}
