package rest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/wire"
)

// CallFailure is the cause of a failed call. Its text contains fixed words, numbers and the venue's redacted message, so it may
// be logged.
type CallFailure struct {
	Kind   FailureKind
	Status int
	Text   string
	// Transient reports that the same call may succeed a moment later.
	Transient bool
}

// FailureKind classifies failed calls by what they show about the venue.
type FailureKind uint8

const (
	// KindConnection means that there was no complete response.
	KindConnection FailureKind = iota
	// KindRefused means that the venue does not accept the request.
	KindRefused
	// KindUnclear means that the venue reports an error of unknown meaning.
	KindUnclear
	// KindReported means that the venue reports an internal error, a timeout, its rate limit, or a problem with the credentials. It
	// also means a redirect, or a 404 or 410 response that is not JSON.
	KindReported
	// KindShape means that the response is JSON of an unknown form.
	KindShape
	// KindUnreadable means that the response is not JSON, is too large or has an unknown encoding.
	KindUnreadable
	// KindCaller means that the deadline of the calling function's context passed before the client's timeout.
	KindCaller
	// KindCircuitOpen means that the circuit is open and the call was not sent.
	KindCircuitOpen
)

// Error returns the text for the log.
func (c *CallFailure) Error() string {
	if c.Status == 0 {
		return c.Text
	}
	return "status " + strconv.Itoa(c.Status) + ": " + c.Text
}

// RefusesForm reports whether err may mean that the venue does not support a parameter of the call. It returns true if the venue
// has refused the request, reported an error of unknown meaning, or sent JSON of an unknown form.
func RefusesForm(err error) bool {
	c, ok := errors.AsType[*CallFailure](err)
	return ok && (c.Kind == KindRefused || c.Kind == KindUnclear || c.Kind == KindShape)
}

// RefusesParameter reports whether the venue has refused the request, other than with a 404 or 410 response.
func RefusesParameter(err error) bool {
	c, ok := errors.AsType[*CallFailure](err)
	return ok && c.Kind == KindRefused && c.Status != http.StatusNotFound && c.Status != http.StatusGone
}

// Refused reports whether the venue has refused the request, for example because of a parameter or an unknown id.
func Refused(err error) bool {
	c, ok := errors.AsType[*CallFailure](err)
	return ok && c.Kind == KindRefused
}

// messages are the error messages that GraphQL clients see, by code. newError adds the endpoint.
var messages = map[market.Code]string{
	market.CodeUnauthenticated:     "the venue refused the credentials",
	market.CodeForbidden:           "the address does not belong to the credentials",
	market.CodeRateLimited:         "the venue's rate limit is reached",
	market.CodeUpstreamUnavailable: "the venue is not available",
	market.CodeUpstreamTimeout:     "the venue did not answer in time",
	market.CodeUpstreamBadResponse: "the venue's answer could not be used",
	market.CodeNotFound:            "the venue does not know it",
}

const messageRefused = "the venue refused the request"

func newError(e upstream.Endpoint, code market.Code, why *CallFailure) *market.Error {
	sentence := messages[code]
	if why.Kind == KindRefused && code == market.CodeUpstreamBadResponse {
		sentence = messageRefused
	}
	return market.Errorf(code, "%s (%s)", sentence, e).Because(why)
}

// UnknownForm returns the error of a response that is JSON of an unknown form.
func UnknownForm(e upstream.Endpoint, text string) *market.Error {
	return newError(e, market.CodeUpstreamBadResponse, &CallFailure{Kind: KindShape, Text: text})
}

// BadElement returns the error of a bad element of a response.
func BadElement(e upstream.Endpoint, err error) *market.Error {
	return market.Errorf(market.CodeUpstreamBadResponse, "the venue's answer for this id could not be read (%s)", e).Because(err)
}

// BadInput returns the error of a request with an invalid argument. The client does not send such a request.
func BadInput(e upstream.Endpoint, what string) *market.Error {
	return market.Errorf(market.CodeBadUserInput, "%s (%s)", what, e)
}

// CheckID returns BAD_USER_INPUT if s is not a valid id.
func CheckID(e upstream.Endpoint, s string) error {
	if err := market.CheckID(s); err != nil {
		return BadInput(e, "an id has 1 to 256 bytes and no comma, slash or control character")
	}
	return nil
}

// NilIfNotFound turns NOT_FOUND into nil.
func NilIfNotFound(err error) error {
	if market.CodeOf(err) == market.CodeNotFound {
		return nil
	}
	return err
}

// BadIfNotFound turns NOT_FOUND into UPSTREAM_BAD_RESPONSE. It is for endpoints that return an empty list if there is no data.
func BadIfNotFound(e upstream.Endpoint, err error) error {
	if market.CodeOf(err) == market.CodeNotFound {
		return market.Errorf(market.CodeUpstreamBadResponse, "%s (%s)", messageRefused, e).Because(errors.Unwrap(err))
	}
	return err
}

func contextFailure(ctx context.Context, e upstream.Endpoint) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return newError(e, market.CodeUpstreamTimeout, &CallFailure{Kind: KindCaller, Text: "the caller's deadline passed"})
	}
	why := context.Cause(ctx)
	if errors.Is(why, context.Canceled) {
		return fmt.Errorf("venue: %s: %w", e, why)
	}
	return fmt.Errorf("venue: %s: %w: %w", e, context.Canceled, why)
}

func circuitOpenError(e upstream.Endpoint, wait time.Duration) error {
	return withRetryAfter(newError(e, market.CodeUpstreamUnavailable, &CallFailure{Kind: KindCircuitOpen, Text: "the circuit is open after failures in a row"}), wait)
}

// connectionFailure returns the error of a call without a complete response. The second context is ctx with the client's timeout.
// Errors of transports contain URLs, so the returned error contains no text of err except the texts of system errors.
func connectionFailure(ctx, call context.Context, e upstream.Endpoint, err error) error {
	if ctx.Err() != nil {
		return contextFailure(ctx, e)
	}
	var timeout net.Error
	if call.Err() != nil || errors.As(err, &timeout) && timeout.Timeout() {
		return newError(e, market.CodeUpstreamTimeout, &CallFailure{Kind: KindConnection, Text: "no whole answer within the timeout"})
	}
	text, transient := describeConnectionError(err)
	return newError(e, market.CodeUpstreamUnavailable, &CallFailure{Kind: KindConnection, Text: text, Transient: transient})
}

func describeConnectionError(err error) (text string, transient bool) {
	var (
		number      syscall.Errno
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		op          *net.OpError
	)
	switch {
	case errors.Is(err, errUnprocessed):
		return "the connection was closed before the call was processed", true
	case errors.As(err, &number):
		return "connection: " + number.Error(), true
	case errors.As(err, &dns):
		return "the host name cannot be resolved", true
	case errors.As(err, &certificate), errors.As(err, &authority):
		return "the venue's certificate is not trusted", false
	case errors.As(err, &record), errors.As(err, &alert):
		return "no TLS connection", false
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed before the answer was whole", true
	case strings.Contains(err.Error(), "ENHANCE_YOUR_CALM"): // the types of the errors of HTTP/2 are not exported
		return "the venue asks for fewer calls", false
	case errors.As(err, &op), strings.HasPrefix(err.Error(), "http2: "), strings.HasPrefix(err.Error(), "stream error: "):
		return "the connection failed", true
	}
	return "the HTTP exchange failed", false
}

// statusFailure returns the error of a response whose status is not 2xx. isJSON and text are the results of errorText.
func (c *Client) statusFailure(e upstream.Endpoint, resp *http.Response, isJSON bool, text string) *market.Error {
	why := &CallFailure{Kind: KindReported, Status: resp.StatusCode, Text: text}
	code := market.CodeUpstreamBadResponse
	switch s := resp.StatusCode; {
	case s < 400:
		why.Text = "a redirect, which is never followed"
	case s == http.StatusUnauthorized && e.User():
		code = market.CodeUnauthenticated
	case s == http.StatusForbidden && e.User():
		code = market.CodeForbidden
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		// Public calls have no credentials that could be wrong, so the venue or a firewall blocks this service.
		code = market.CodeUpstreamUnavailable
	case s == http.StatusNotFound || s == http.StatusGone:
		// The venue's own 404 or 410 has a JSON body. Without JSON, the base URL is probably wrong.
		if isJSON {
			code, why.Kind = market.CodeNotFound, KindRefused
		}
	case s == http.StatusTooManyRequests:
		code = market.CodeRateLimited
	case s == http.StatusRequestTimeout, s == http.StatusGatewayTimeout, s == 522, s == 524:
		code = market.CodeUpstreamTimeout
	case s == http.StatusTooEarly, s >= 500:
		code = market.CodeUpstreamUnavailable
		if s == http.StatusNotImplemented {
			why.Kind = KindRefused
		}
	default:
		why.Kind = KindRefused
	}
	switch resp.StatusCode {
	case http.StatusTooEarly, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		why.Transient = true
	}
	err := newError(e, code, why)
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusTooEarly, http.StatusServiceUnavailable:
		err.RetryAfter = wire.RetryAfter(resp.Header, c.cfg.Clock.Now())
	}
	return err
}

// reportedFailure returns the error that the body of a 2xx response reports, or nil.
func (c *Client) reportedFailure(e upstream.Endpoint, resp *http.Response, body wire.Value, redact func(string) string) *market.Error {
	if !isBool(body.Member("success"), wire.False, "false") && !isError(body.Member("error")) {
		return nil
	}
	code, kind := codeOf(reportedCode(body))
	err := newError(e, code, &CallFailure{Kind: kind, Status: resp.StatusCode, Text: redact(messageOf(body))})
	if (code == market.CodeUnauthenticated || code == market.CodeForbidden) && !e.User() {
		err = newError(e, market.CodeUpstreamUnavailable, &CallFailure{Kind: KindReported, Status: resp.StatusCode, Text: redact(messageOf(body))})
	}
	if code == market.CodeRateLimited {
		err.RetryAfter = wire.RetryAfter(resp.Header, c.cfg.Clock.Now())
	}
	return err
}

// isBool reports whether a value is the boolean of the given kind, or its text as a string, such as "False".
func isBool(v wire.Value, kind wire.Kind, text string) bool {
	return v.Kind() == kind || v.Kind() == wire.String && strings.EqualFold(v.Text(), text)
}

func isError(v wire.Value) bool {
	switch v.Kind() {
	case wire.String:
		return !v.Is("")
	case wire.Object:
		return len(v.Members()) > 0
	}
	return v.Kind() == wire.True
}

// reportedCode returns the error code of a body in upper case with underscores. If the body has no code, reportedCode returns "".
func reportedCode(body wire.Value) string {
	for _, v := range []wire.Value{body.Member("code"), body.Member("error").Member("code"), body.Member("errorCode")} {
		switch v.Kind() {
		case wire.String:
			return strings.ToUpper(strings.NewReplacer("-", "_", " ", "_").Replace(v.Text()))
		case wire.Number:
			return v.Text()
		}
	}
	return ""
}

// codeOf maps the error code of a body to a market.Code and a kind of failure. A missing or unknown code becomes
// UPSTREAM_UNAVAILABLE with KindUnclear, because the venue may have failed or may have refused the request.
func codeOf(reported string) (market.Code, FailureKind) {
	switch reported {
	case "RATE_LIMITED", "RATE_LIMIT", "RATE_LIMIT_EXCEEDED", "TOO_MANY_REQUESTS", "429":
		return market.CodeRateLimited, KindReported
	case "UNAUTHENTICATED", "UNAUTHORIZED", "INVALID_CREDENTIALS", "MISSING_CREDENTIALS", "INVALID_API_KEY", "401":
		return market.CodeUnauthenticated, KindReported
	case "FORBIDDEN", "ACCESS_DENIED", "PERMISSION_DENIED", "403":
		return market.CodeForbidden, KindReported
	case "TIMEOUT", "GATEWAY_TIMEOUT", "UPSTREAM_TIMEOUT", "504":
		return market.CodeUpstreamTimeout, KindReported
	case "UNAVAILABLE", "SERVICE_UNAVAILABLE", "INTERNAL", "INTERNAL_ERROR", "INTERNAL_SERVER_ERROR", "MAINTENANCE", "500", "502", "503":
		return market.CodeUpstreamUnavailable, KindReported
	case "BAD_REQUEST", "INVALID_REQUEST", "INVALID_PARAMETER", "INVALID_PARAMETERS", "INVALID_ARGUMENT", "VALIDATION_ERROR",
		"BAD_USER_INPUT", "UNSUPPORTED", "NOT_IMPLEMENTED", "400", "405", "422", "501":
		return market.CodeUpstreamBadResponse, KindRefused
	case "NOT_FOUND", "404":
		return market.CodeNotFound, KindRefused
	}
	if strings.HasSuffix(reported, "_NOT_FOUND") {
		return market.CodeNotFound, KindRefused
	}
	return market.CodeUpstreamUnavailable, KindUnclear
}

// messageOf returns the error text of a body. The text must be redacted before it is logged.
func messageOf(body wire.Value) string {
	reported := body.Member("error")
	for _, v := range []wire.Value{reported, reported.Member("message"), body.Member("message"), body.Member("msg"), body.Member("errorMessage")} {
		if v.Kind() == wire.String && !v.Is("") {
			return v.Text()
		}
	}
	return "no message"
}
