package market

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Code classifies an Error for clients; the codes are part of the public contract.
type Code string

// The codes of errors. CodeNotFound stays inside: to a client what is absent is null without an error.
const (
	CodeParseFailed         Code = "GRAPHQL_PARSE_FAILED"
	CodeValidationFailed    Code = "GRAPHQL_VALIDATION_FAILED"
	CodeBadUserInput        Code = "BAD_USER_INPUT"
	CodeUnauthenticated     Code = "UNAUTHENTICATED"
	CodeForbidden           Code = "FORBIDDEN"
	CodePersistedNotFound   Code = "PERSISTED_QUERY_NOT_FOUND"
	CodeRateLimited         Code = "RATE_LIMITED"
	CodeResponseTooLarge    Code = "RESPONSE_TOO_LARGE"
	CodeUpstreamUnavailable Code = "UPSTREAM_UNAVAILABLE"
	CodeUpstreamTimeout     Code = "UPSTREAM_TIMEOUT"
	CodeUpstreamBadResponse Code = "UPSTREAM_BAD_RESPONSE"
	CodeUnsupported         Code = "UNSUPPORTED"
	CodeInternal            Code = "INTERNAL_SERVER_ERROR"
	CodeNotFound            Code = "NOT_FOUND"
)

// Error is a failure that may be shown to a client: Message never holds a secret, a URL or an upstream body. What
// caused it is for the log only.
type Error struct {
	Code    Code
	Message string
	// RetryAfter is how long to wait before asking again; 0 when unknown. Shown as retryAfterMs with CodeRateLimited.
	RetryAfter time.Duration
	// Err is the cause; it is logged, never shown.
	Err error
}

// Errorf returns an Error with a message for clients. It does not wrap; see Error.Because.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Because returns a copy of e with its cause.
func (e *Error) Because(err error) *Error {
	c := *e
	c.Err = err
	return &c
}

// Error returns code, message and cause; it is meant for logs.
func (e *Error) Error() string {
	s := string(e.Code) + ": " + e.Message
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first Error in err's chain. A deadline that passed is CodeUpstreamTimeout, any other
// error is CodeInternal, and no error is the empty code.
func CodeOf(err error) Code {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	case errors.Is(err, context.DeadlineExceeded):
		return CodeUpstreamTimeout
	default:
		return CodeInternal
	}
}
