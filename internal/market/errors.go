package market

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Code classifies an Error for clients. The codes are part of the public API.
type Code string

// The error codes; the schema's enum ErrorCode describes them. Clients never get CodeNotFound: queries return null for an absent
// value, and subscriptions report CodeBadUserInput.
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

// Error is an error whose Code and Message clients may see. Message never contains a secret, a URL or a response of the venue.
type Error struct {
	Code    Code
	Message string
	// RetryAfter is the wait before a retry, or 0 if it is unknown. For CodeRateLimited, clients see it as retryAfterMs.
	RetryAfter time.Duration
	// Err is the cause. It is logged, but never shown to clients.
	Err error
}

// Errorf returns an Error with a message for clients. It does not wrap errors. Error.Because adds a cause.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Because returns a copy of e with a cause.
func (e *Error) Because(err error) *Error {
	c := *e
	c.Err = err
	return &c
}

// Error returns code, message and cause, for logs.
func (e *Error) Error() string {
	s := string(e.Code) + ": " + e.Message
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// VenueError is an error of one of several venues. Clients see the name of the venue as extensions.venue.
type VenueError struct {
	Venue string
	Err   error
}

// AtVenue returns err with the name of its venue. It returns err itself if err is nil or has a venue, or venue is empty.
func AtVenue(venue string, err error) error {
	if err == nil || venue == "" {
		return err
	}
	if at := (*VenueError)(nil); errors.As(err, &at) {
		return err
	}
	return &VenueError{venue, err}
}

// Error returns the name of the venue and the error, for logs.
func (e *VenueError) Error() string { return e.Venue + ": " + e.Err.Error() }

// Unwrap returns the error without the name.
func (e *VenueError) Unwrap() error { return e.Err }

// CodeOf returns the code of the first Error in err's chain. If the chain contains no Error, CodeOf returns CodeUpstreamTimeout
// for context.DeadlineExceeded and CodeInternal for any other error. It returns "" for nil.
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
