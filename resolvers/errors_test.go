package resolvers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
)

// failure is an error of the GraphQL field "price" of tokens[3]. The field has the alias p. The path of the error ends with suffix,
// for example a list index. The string argument is the path of the invalid argument, if there is one.
type failure struct {
	error
	suffix   ast.Path
	argument string
}

func (f failure) Unwrap() error { return f.error }
func (f failure) Path() ast.Path {
	return append(ast.Path{ast.PathName("tokens"), ast.PathIndex(3), ast.PathName("p")}, f.suffix...)
}
func (f failure) FieldPath() ast.Path {
	return ast.Path{ast.PathName("tokens"), ast.PathIndex(3), ast.PathName("price")}
}
func (f failure) Locations() []gqlerror.Location { return []gqlerror.Location{{Line: 2, Column: 5}} }
func (f failure) Argument() string               { return f.argument }

func failedField(err error) error { return failure{error: err} }

func TestPresenter(t *testing.T) {
	const secret = "dial tcp 10.0.0.1: hush"
	limited := market.Errorf(market.CodeRateLimited, "slow down").Because(errors.New(secret))
	limited.RetryAfter = 1500 * time.Millisecond
	library := func(message string, path ast.Path, code string) *gqlerror.Error {
		e := &gqlerror.Error{Message: message, Path: path}
		if code != "" {
			e.Extensions = map[string]any{"code": code}
		}
		return e
	}
	for _, test := range []struct {
		name   string
		err    error
		want   string
		logged string
	}{
		{"market error", failedField(market.Errorf(market.CodeForbidden, "not yours")), `tokens[3].p not yours FORBIDDEN <nil>`, ""},
		{"error of a venue", failedField(market.AtVenue("b", market.Errorf(market.CodeForbidden, "not yours"))), `tokens[3].p not yours FORBIDDEN <nil> at b`, ""},
		{"market error with a cause", failedField(fmt.Errorf("reading: %w", limited)), `tokens[3].p slow down RATE_LIMITED 1500`, "level=DEBUG"},
		{"error of an element", failure{error: market.Errorf(market.CodeBadUserInput, "bad id"), suffix: ast.Path{ast.PathIndex(7)}}, `tokens[3].p[7] bad id BAD_USER_INPUT <nil>`, ""},
		{"error of an argument", failure{error: gqlerror.WrapPath(ast.Path{ast.PathName("filter")}, market.Errorf(market.CodeBadUserInput, "no number")), argument: "filter.status[1]"},
			`tokens[3].p filter.status[1]: no number BAD_USER_INPUT <nil>`, ""},
		{"long message", failedField(market.Errorf(market.CodeBadUserInput, "%s", strings.Repeat("é", 4000))), `tokens[3].p ` + strings.Repeat("é", 512) + `… BAD_USER_INPUT <nil>`, ""},
		{"internal error", failedField(market.Errorf(market.CodeInternal, secret)), `tokens[3].p ` + internalMessage + ` INTERNAL_SERVER_ERROR <nil>`, "level=ERROR"},
		{"unknown error", failedField(errors.New(secret)), `tokens[3].p ` + internalMessage + ` INTERNAL_SERVER_ERROR <nil>`, "level=ERROR"},
		{"unknown error with a path", failedField(gqlerror.WrapPath(ast.Path{ast.PathName("elsewhere")}, errors.New(secret))), `tokens[3].p ` + internalMessage + ` INTERNAL_SERVER_ERROR <nil>`, "level=ERROR"},
		{"cancelled", failedField(fmt.Errorf("%s: %w", secret, context.Canceled)), `tokens[3].p the request was cancelled INTERNAL_SERVER_ERROR <nil>`, ""},
		{"deadline exceeded", failedField(fmt.Errorf("%s: %w", secret, context.DeadlineExceeded)), `tokens[3].p the request took too long UPSTREAM_TIMEOUT <nil>`, ""},
		{"parser", library("Expected Name", nil, "GRAPHQL_PARSE_FAILED"), ` Expected Name GRAPHQL_PARSE_FAILED <nil>`, ""},
		{"validator", library("Cannot query", nil, "GRAPHQL_VALIDATION_FAILED"), ` Cannot query GRAPHQL_VALIDATION_FAILED <nil>`, ""},
		{"variable", library("the value is no Int", ast.Path{ast.PathName("variable"), ast.PathName("a"), ast.PathIndex(1)}, "GRAPHQL_VALIDATION_FAILED"),
			` variable $a[1]: the value is no Int GRAPHQL_VALIDATION_FAILED <nil>`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log bytes.Buffer
			out := Presenter(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))(t.Context(), test.err)
			got := fmt.Sprint(out.Path.String(), " ", out.Message, " ", out.Extensions["code"], " ", out.Extensions["retryAfterMs"])
			if venue, ok := out.Extensions["venue"]; ok {
				got += fmt.Sprint(" at ", venue)
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if !strings.Contains(log.String(), test.logged) || test.logged == "" && log.Len() > 0 || test.logged != "" && !strings.Contains(log.String(), secret) {
				t.Errorf("the log is %q, want an entry that contains %q and the cause, or no entry", log.String(), test.logged)
			}
			if located := len(out.Locations) > 0; located != (out.Path != nil) {
				t.Errorf("the path is %v and the locations are %v, want both or neither", out.Path, out.Locations)
			}
			if log.Len() > 0 && !strings.Contains(log.String(), "field=tokens[3].price") {
				t.Errorf("the log %q lacks the field tokens[3].price", log.String())
			}
		})
	}
}

func TestSortErrors(t *testing.T) {
	list := gqlerror.List{}
	paths := []ast.Path{
		{ast.PathName("b")}, {ast.PathName("a"), ast.PathIndex(10)}, nil, {ast.PathName("a"), ast.PathIndex(9), ast.PathName("z")}, {ast.PathName("a")},
		{ast.PathName("a"), ast.PathIndex(9), ast.PathName("c")}, {ast.PathName("a"), ast.PathName("x")}, {ast.PathName("a"), ast.PathIndex(9)},
	}
	for _, p := range paths {
		list = append(list, &gqlerror.Error{Path: p})
	}
	SortErrors(list)
	var got []string
	for _, e := range list {
		got = append(got, e.Path.String())
	}
	const want = ",a,a[9],a[9].c,a[9].z,a[10],a.x,b"
	if strings.Join(got, ",") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestRecover checks that Presenter logs a panic once with its stack, and that the client gets the request id.
func TestRecover(t *testing.T) {
	var log bytes.Buffer
	err := Recover(t.Context(), "boom")
	ctx := request.With(t.Context(), func(r *request.Request) { r.ID = "request-7" })
	out := Presenter(slog.New(slog.NewTextHandler(&log, nil)))(ctx, gqlerror.Wrap(err))
	if out.Message != internalMessage || out.Extensions["code"] != "INTERNAL_SERVER_ERROR" || out.Extensions["requestId"] != "request-7" {
		t.Errorf("the client gets %+v, want the internal message with the request id", out)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "panic=boom") || !strings.Contains(log.String(), "TestRecover") {
		t.Errorf("the log is %q, want one line with the panic and its stack", log.String())
	}
}

// TestCancellationCause checks that the client sees why an operation was cancelled, if the cause is a market.Error.
func TestCancellationCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(market.Errorf(market.CodeUnauthenticated, "revoked"))
	present := Presenter(slog.New(slog.DiscardHandler))
	if out := present(ctx, fmt.Errorf("reading: %w", ctx.Err())); out.Message != "revoked" || out.Extensions["code"] != "UNAUTHENTICATED" {
		t.Errorf("the client gets %+v, want the cause of the cancellation", out)
	}
	if out := present(ctx, errors.New("another")); out.Message != internalMessage {
		t.Errorf("the client gets %+v for another error, want the internal message", out)
	}
}
