package resolvers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/graph/exec"
	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
)

// internalMessage is the message of every internal error that clients see.
const internalMessage = "internal error; the log describes it under the request id"

// fieldError is an error of a field, such as exec.Error.
type fieldError interface {
	error
	Path() ast.Path
	FieldPath() ast.Path
	Locations() []gqlerror.Location
	Argument() string
}

// Presenter returns a function that converts errors for clients. Clients see the message of a market.Error, except for CodeInternal
// and CodeNotFound. They see the message of a GraphQL library's error about the document, and a fixed message if the request was
// cancelled or took too long. All other errors are internal. The function logs an internal error, and clients see internalMessage
// and the id of the request. The log contains the names of fields in the schema, not the aliases that clients choose.
func Presenter(log *slog.Logger) graphql.ErrorPresenterFunc {
	return func(ctx context.Context, err error) (out *gqlerror.Error) {
		out = &gqlerror.Error{}
		located, ok := errors.AsType[*gqlerror.Error](err)
		if ok {
			out.Path, out.Locations = located.Path, located.Locations
		}
		var input string
		field := func() string { return "" }
		if place, ok := errors.AsType[fieldError](err); ok {
			out.Path, out.Locations, input = place.Path(), place.Locations(), place.Argument()
			field = func() string { return place.FieldPath().String() }
		} else if len(out.Path) > 1 && out.Path[0] == ast.PathName("variable") {
			out.Path, input = nil, "variable $"+out.Path[1:].String()
		}
		defer func() { out.Message = Bounded(out.Message) }()
		if input != "" {
			defer func() { out.Message = input + ": " + out.Message }()
		}
		if errors.Is(err, context.Canceled) {
			// The cause of the cancellation may be a market.Error for the client, for example that the account was revoked.
			if cause, ok := errors.AsType[*market.Error](context.Cause(ctx)); ok {
				err = cause
			}
		}
		describe(ctx, out, err, located, log, field)
		if at, ok := errors.AsType[*market.VenueError](err); ok {
			out.Extensions["venue"] = at.Venue
		}
		return out
	}
}

// describe sets the message and the extensions of out. It logs causes and internal errors, which clients do not see. The parameter
// located is the gqlerror.Error in the chain of err, or nil. The function field returns the path of the failed field.
func describe(ctx context.Context, out *gqlerror.Error, err error, located *gqlerror.Error, log *slog.Logger, field func() string) {
	var known *market.Error
	switch {
	case errors.As(err, &known) && known.Code != market.CodeInternal && known.Code != market.CodeNotFound:
		out.Message = known.Message
		out.Extensions = map[string]any{"code": string(known.Code)}
		if known.Code == market.CodeRateLimited && known.RetryAfter > 0 {
			out.Extensions["retryAfterMs"] = known.RetryAfter.Milliseconds()
		}
		if known.Err != nil {
			log.DebugContext(ctx, "field failed", "field", field(), "code", known.Code, "error", known)
		}
	case located != nil && located.Err == nil:
		// err is an error of the GraphQL library about the document or its variables.
		out.Message = located.Message
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
		if id := request.From(ctx).ID; id != "" {
			out.Extensions["requestId"] = id
		}
		if p, ok := errors.AsType[*exec.Panic](err); ok {
			log.ErrorContext(ctx, "panic in a resolver", "field", field(), "panic", fmt.Sprint(p.Value), "stack", string(p.Stack))
			break
		}
		log.ErrorContext(ctx, "internal error", "field", field(), "error", err)
	}
}

// maxMessage is the maximum size in bytes of an error's message in JSON. Without this bound, a message could quote a long input of
// the client.
const maxMessage = 1 << 10

// Bounded truncates a message to maxMessage bytes of JSON and appends … to a truncated message. It counts every character that JSON
// escapes as six bytes.
func Bounded(message string) string {
	if len(message) <= maxMessage/maxEscaped {
		return message
	}
	size := 0
	for i, c := range message {
		switch {
		case c < ' ' || c == utf8.RuneError || strings.ContainsRune("\"\\<>&\u2028\u2029", c):
			size += maxEscaped
		default:
			size += utf8.RuneLen(c)
		}
		if size > maxMessage {
			return message[:i] + "…"
		}
	}
	return message
}

// maxEscaped is the maximum size in bytes of a character that JSON escapes.
const maxEscaped = 6

// documentCode returns the code of an error of the GraphQL library about the document or its variables.
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

// SortErrors sorts errors by path, so that equal responses have their errors in the same order.
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

// Recover converts a panic to an error. Presenter logs the error with the stack.
func Recover(_ context.Context, p any) error { return exec.Recovered(p) }
