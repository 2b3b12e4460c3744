package resolvers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/internal/market"
)

// internalMessage is all that a client learns of an error that does not declare itself safe.
const internalMessage = "internal error; the request id finds it in the log"

// Presenter turns errors into what clients see. Only a market.Error, and what the GraphQL library says of the document,
// shows its text; any other error becomes one fixed sentence with the id of the request, which requestID returns, and one
// line in the log.
func Presenter(log *slog.Logger, requestID func(context.Context) string) graphql.ErrorPresenterFunc {
	return func(ctx context.Context, err error) (out *gqlerror.Error) {
		out = &gqlerror.Error{Path: graphql.GetPath(ctx)}
		var located *gqlerror.Error
		if errors.As(err, &located) {
			if located.Path != nil {
				out.Path = located.Path
			}
			out.Locations = located.Locations
		}
		var input string
		out.Path, input = responsePath(ctx, out.Path)
		if input != "" {
			defer func() { out.Message = input + ": " + out.Message }()
		}
		if field := graphql.GetFieldContext(ctx); out.Locations == nil && field != nil && field.Field.Field != nil && field.Field.Position != nil {
			out.Locations = []gqlerror.Location{{Line: field.Field.Position.Line, Column: field.Field.Position.Column}}
		}
		if errors.Is(err, context.Canceled) {
			// Why it was cancelled may concern the client, such as that its account was revoked.
			var cause *market.Error
			if errors.As(context.Cause(ctx), &cause) {
				err = cause
			}
		}
		var known *market.Error
		switch {
		case errors.As(err, &known) && known.Code != market.CodeInternal:
			out.Message = known.Message
			out.Extensions = map[string]any{"code": string(known.Code)}
			if known.Code == market.CodeRateLimited && known.RetryAfter > 0 {
				out.Extensions["retryAfterMs"] = known.RetryAfter.Milliseconds()
			}
			if known.Err != nil {
				log.DebugContext(ctx, "field failed", "field", fieldPath(ctx), "code", known.Code, "error", known)
			}
		case located != nil && located.Err == nil:
			// The GraphQL library's own words about the document or its variables.
			out.Message = located.Message
			out.Message = wrongValue.ReplaceAllString(out.Message, "the value is no $1")
			out.Extensions = map[string]any{"code": string(documentCode(located))}
		case errors.Is(err, context.Canceled):
			out.Message = "the request was cancelled"
			out.Extensions = map[string]any{"code": string(market.CodeInternal)}
		case errors.Is(err, context.DeadlineExceeded):
			out.Message = "the request took too long"
			out.Extensions = map[string]any{"code": string(market.CodeUpstreamTimeout)}
		default:
			out.Message = internalMessage
			out.Extensions = map[string]any{"code": string(market.CodeInternal)}
			if id := requestID(ctx); id != "" {
				out.Extensions["requestId"] = id
			}
			var p *panicked
			if errors.As(err, &p) {
				log.ErrorContext(ctx, "panic in a resolver", "field", fieldPath(ctx), "panic", fmt.Sprint(p.value), "stack", string(p.stack))
				break
			}
			log.ErrorContext(ctx, "internal error", "field", fieldPath(ctx), "error", err)
		}
		return out
	}
}

// wrongValue is what the library says of a number that is no Int or Float; it names another value than the one sent.
var wrongValue = regexp.MustCompile(`^cannot use value \S+ as (Int|Float)$`)

// responsePath cuts a path to what clients can follow in the response. The library appends the argument that it could not
// read, and gives errors of variables a path of their own; that is returned as input.
func responsePath(ctx context.Context, path ast.Path) (inResponse ast.Path, input string) {
	field := graphql.GetFieldContext(ctx)
	if field == nil {
		if len(path) > 1 && path[0] == ast.PathName("variable") {
			return nil, "variable $" + path[1:].String()
		}
		return path, ""
	}
	n := len(field.Path())
	if n > 0 && len(path) > n {
		if _, isName := path[n].(ast.PathName); isName {
			return path[:n:n], path[n:].String()
		}
	}
	return path, ""
}

// fieldPath returns where in the graph something failed, for the log: by the names of the fields, since aliases are words of
// the client.
func fieldPath(ctx context.Context) string {
	var path ast.Path
	for f := graphql.GetFieldContext(ctx); f != nil; f = f.Parent {
		switch {
		case f.Index != nil:
			path = append(path, ast.PathIndex(*f.Index))
		case f.Field.Field != nil:
			path = append(path, ast.PathName(f.Field.Name))
		}
	}
	slices.Reverse(path)
	return path.String()
}

// documentCode classifies an error of the GraphQL library.
func documentCode(err *gqlerror.Error) market.Code {
	switch err.Extensions["code"] {
	case "GRAPHQL_PARSE_FAILED":
		return market.CodeParseFailed
	case "GRAPHQL_VALIDATION_FAILED":
		return market.CodeValidationFailed
	default:
		return market.CodeBadUserInput
	}
}

// SortErrors orders errors by path, since fields are executed concurrently and a client should see a stable answer.
func SortErrors(list gqlerror.List) {
	slices.SortStableFunc(list, func(a, b *gqlerror.Error) int { return comparePaths(a.Path, b.Path) })
}

func comparePaths(a, b ast.Path) int {
	for i := range min(len(a), len(b)) {
		x, xIsIndex := a[i].(ast.PathIndex)
		y, yIsIndex := b[i].(ast.PathIndex)
		switch {
		case xIsIndex && yIsIndex && x != y:
			return int(x) - int(y)
		case xIsIndex != yIsIndex:
			if xIsIndex {
				return -1
			}
			return 1
		case !xIsIndex:
			if c := strings.Compare(string(a[i].(ast.PathName)), string(b[i].(ast.PathName))); c != 0 {
				return c
			}
		}
	}
	return len(a) - len(b)
}

// panicked is a panic as an error.
type panicked struct {
	value any
	stack []byte
}

// Error implements error.
func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// Recover turns a panic in a resolver into an error of its field, for which Presenter logs the stack.
func Recover(_ context.Context, p any) error { return &panicked{p, debug.Stack()} }
