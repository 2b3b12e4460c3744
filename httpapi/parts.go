package httpapi

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"maps"

	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/internal/request"
	"oddsgraph/resolvers"
)

// maxParts is the maximum number of parts into which a subscription is split. A subscription with more ids is executed as a whole,
// because each part needs memory.
const maxParts = 100

// If each event of a subscription concerns one id, listVariable returns the name of the variable that contains the ids. Otherwise
// it returns "". It also returns "" if the document uses the variable more than once, because the list could then change the
// content of an event.
func listVariable(doc *ast.QueryDocument, op *ast.OperationDefinition) string {
	if op.Operation != ast.Subscription || len(op.SelectionSet) != 1 {
		return ""
	}
	field, ok := op.SelectionSet[0].(*ast.Field)
	if !ok {
		return ""
	}
	list := field.Arguments.ForName(resolvers.ListOf(field.Name))
	if list == nil || list.Value.Kind != ast.Variable {
		return ""
	}
	uses := 0
	count := func(node any) {
		if v, ok := node.(*ast.Value); ok && v.Kind == ast.Variable && v.Raw == list.Value.Raw {
			uses++
		}
	}
	walkSelections(op.SelectionSet, count)
	for _, f := range doc.Fragments {
		walkSelections(f.SelectionSet, count)
	}
	if uses != 1 {
		return ""
	}
	return list.Value.Raw
}

// parts splits a subscription to a list of ids into one part for each id. Subscriptions whose lists contain the same id share the
// execution of its part. parts returns nil if the subscription must be executed as a whole, because the client has credentials or
// an event may concern several ids. It also returns nil if the list is empty, invalid or longer than maxParts.
func (s *subscriptions) parts(ctx context.Context, op *operation) []fanout.Part {
	name := op.plan.list
	if name == "" || request.CredentialsFrom(ctx) != nil {
		return nil
	}
	values, ok := op.variables[name].([]any)
	if !ok {
		return nil
	}
	ids := make([]string, len(values))
	for i, v := range values {
		if ids[i], ok = v.(string); !ok {
			return nil
		}
	}
	if ids = resolvers.DistinctIDs(ids); len(ids) == 0 || len(ids) > maxParts {
		return nil
	}
	others := maps.Clone(op.variables)
	delete(others, name)
	shape := s.key(ctx, op.withVariables(others))
	parts := make([]fanout.Part, len(ids))
	for i, id := range ids {
		parts[i] = fanout.Part{Key: s.partKey(shape, id), Execute: func(ctx context.Context, g *fanout.Group, deliver func(*fanout.Event)) (errors, event []byte) {
			own := maps.Clone(others)
			own[name] = []any{id}
			return s.executing(op.withVariables(own))(ctx, g, deliver)
		}}
	}
	return parts
}

func (o *operation) withVariables(variables map[string]any) *operation {
	return &operation{document: o.document, plan: o.plan, name: o.name, definition: o.definition, variables: variables}
}

// partKey returns the key of the group for one id. shape is the key of the subscription without its list of ids.
func (s *subscriptions) partKey(shape fanout.Key, id string) (key fanout.Key) {
	mac := hmac.New(sha256.New, s.secret[:])
	mac.Write(shape[:])
	mac.Write([]byte(id))
	mac.Sum(key[:0])
	return key
}
