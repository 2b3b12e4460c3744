package venue

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
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/wire"
)

// cause is what a call failed of, for the log. Its text is made of fixed words, numbers and the venue's own message
// with the credentials cut out, so that it can be printed anywhere.
type cause struct {
	kind   causeKind
	status int
	text   string
	// passing tells that the same call may well succeed a moment later.
	passing bool
}

type causeKind uint8

const (
	// causeConnection: no whole answer came.
	causeConnection causeKind = iota
	// causeRefused: the venue says that it does not take the request.
	causeRefused
	// causeUnclear: the venue says that something went wrong, but not what.
	causeUnclear
	// causeReported: the venue says that it failed, or who the caller is.
	causeReported
	// causeShape: the answer is JSON of a form that is not known.
	causeShape
	// causeUnreadable: the answer is no JSON.
	causeUnreadable
	// causeCaller: the caller's own time was up.
	causeCaller
	// causeOpen: the circuit is open, and nothing was sent.
	causeOpen
)

// Error returns the text for the log.
func (c *cause) Error() string {
	if c.status == 0 {
		return c.text
	}
	return "status " + strconv.Itoa(c.status) + ": " + c.text
}

// refusesForm tells whether err may mean that the venue does not know the parameter it was asked with.
func refusesForm(err error) bool {
	var c *cause
	return errors.As(err, &c) && (c.kind == causeRefused || c.kind == causeUnclear || c.kind == causeShape)
}

// refusesParameter reports whether err may be about a parameter rather than about the data.
func refusesParameter(err error) bool {
	var c *cause
	return errors.As(err, &c) && c.kind == causeRefused && c.status != http.StatusNotFound && c.status != http.StatusGone
}

// refused reports whether the venue says that it does not take the request: it may be for a parameter, or for an id in it.
func refused(err error) bool {
	var c *cause
	return errors.As(err, &c) && c.kind == causeRefused
}

// sentences are all that a client of the graph reads about a failed call.
var sentences = map[market.Code]string{
	market.CodeUnauthenticated:     "the venue refused the credentials",
	market.CodeForbidden:           "the address does not belong to the credentials",
	market.CodeRateLimited:         "the venue's rate limit is reached",
	market.CodeUpstreamUnavailable: "the venue is not available",
	market.CodeUpstreamTimeout:     "the venue did not answer in time",
	market.CodeUpstreamBadResponse: "the venue's answer could not be used",
	market.CodeNotFound:            "the venue does not know it",
}

const sentenceRefused = "the venue refused the request"

// failed returns the error of a call.
func failed(e reqctx.Endpoint, code market.Code, why *cause) *market.Error {
	sentence := sentences[code]
	if why.kind == causeRefused && code == market.CodeUpstreamBadResponse {
		sentence = sentenceRefused
	}
	return market.Errorf(code, "%s (%s)", sentence, e).Because(why)
}

// unknownForm is the error of an answer that is JSON but not of any form that the endpoint is known to answer in.
func unknownForm(e reqctx.Endpoint, text string) *market.Error {
	return failed(e, market.CodeUpstreamBadResponse, &cause{kind: causeShape, text: text})
}

// badElement is the error of one element of an answer.
func badElement(e reqctx.Endpoint, err error) *market.Error {
	return market.Errorf(market.CodeUpstreamBadResponse, "the venue's answer for this id could not be read (%s)", e).Because(err)
}

// badInput is the error of a request that is not sent.
func badInput(e reqctx.Endpoint, what string) *market.Error {
	return market.Errorf(market.CodeBadUserInput, "%s (%s)", what, e)
}

// orAbsent turns a NOT_FOUND into absence.
func orAbsent(err error) error {
	if market.CodeOf(err) == market.CodeNotFound {
		return nil
	}
	return err
}

// orBad turns a NOT_FOUND into an error, for what exists even when it is empty.
func orBad(e reqctx.Endpoint, err error) error {
	if market.CodeOf(err) == market.CodeNotFound {
		return market.Errorf(market.CodeUpstreamBadResponse, "%s (%s)", sentenceRefused, e).Because(errors.Unwrap(err))
	}
	return err
}

// contextFailure is the error of a call that ended with its caller's context.
func contextFailure(ctx context.Context, e reqctx.Endpoint) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failed(e, market.CodeUpstreamTimeout, &cause{kind: causeCaller, text: "the caller's deadline passed"})
	}
	why := context.Cause(ctx)
	if errors.Is(why, context.Canceled) {
		return fmt.Errorf("venue: %s: %w", e, why)
	}
	return fmt.Errorf("venue: %s: %w: %w", e, context.Canceled, why)
}

// openCircuit is the error of a call that is not made because the circuit is open for so long.
func openCircuit(e reqctx.Endpoint, wait time.Duration) error {
	return after(failed(e, market.CodeUpstreamUnavailable, &cause{kind: causeOpen, text: "the circuit is open after failures in a row"}), wait)
}

// connectionFailure is the error of a call that got no whole answer. ctx is the caller's, call is the one with the
// client's own timeout. Nothing of err is kept but words of ours and system error texts: errors of transports print URLs.
func connectionFailure(ctx, call context.Context, e reqctx.Endpoint, err error) error {
	if ctx.Err() != nil {
		return contextFailure(ctx, e)
	}
	var timeout net.Error
	if call.Err() != nil || errors.As(err, &timeout) && timeout.Timeout() {
		return failed(e, market.CodeUpstreamTimeout, &cause{kind: causeConnection, text: "no whole answer within the timeout"})
	}
	text, passing := describe(err)
	return failed(e, market.CodeUpstreamUnavailable, &cause{kind: causeConnection, text: text, passing: passing})
}

// goingAway is how net/http's error for an HTTP/2 connection that ends while a call is under way begins, which has no type.
const goingAway = "http2: server sent GOAWAY and closed the connection"

// streamReset takes in net/http's error for an HTTP/2 stream that was reset: its own type is not exported, and converts itself
// to any other of these fields.
type streamReset struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

// Error implements error.
func (r streamReset) Error() string {
	return fmt.Sprintf("the HTTP/2 stream was reset with code %d", r.Code)
}

// passing tells whether a code says nothing against the call itself: NO_ERROR, INTERNAL_ERROR, REFUSED_STREAM and CANCEL.
func (r streamReset) passing() bool {
	switch r.Code {
	case 0x0, 0x2, 0x7, 0x8:
		return true
	}
	return false
}

// describe says in words of ours why there is no whole answer, and whether there may be one the next time.
func describe(err error) (text string, passing bool) {
	var (
		number      syscall.Errno
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		op          *net.OpError
		reset       streamReset
	)
	switch {
	case errors.Is(err, errUnprocessed):
		return "the connection was closed before the call was processed", true
	case errors.As(err, &reset):
		return reset.Error(), reset.passing()
	case strings.HasPrefix(err.Error(), goingAway):
		return "the connection was closed before the answer was whole", strings.Contains(err.Error(), "ErrCode=NO_ERROR,")
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
	case errors.As(err, &op):
		return "the connection failed", true
	}
	return "the HTTP exchange failed", false
}

// statusFailure is the error of an answer whose status is not 2xx. text is the venue's message, already redacted.
func (c *Client) statusFailure(e reqctx.Endpoint, resp *http.Response, isJSON bool, text string) *market.Error {
	why := &cause{kind: causeReported, status: resp.StatusCode, text: text}
	code := market.CodeUpstreamBadResponse
	switch s := resp.StatusCode; {
	case s < 400:
		why.text = "a redirect, which is never followed"
	case s == http.StatusUnauthorized && e.User():
		code = market.CodeUnauthenticated
	case s == http.StatusForbidden && e.User():
		code = market.CodeForbidden
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		// Public reads carry no credentials that could be wrong: the venue, or a wall before it, shuts this service out.
		code = market.CodeUpstreamUnavailable
	case s == http.StatusNotFound || s == http.StatusGone:
		// A 404 that is no JSON was not written by the venue: the base URL leads elsewhere.
		if isJSON {
			code, why.kind = market.CodeNotFound, causeRefused
		}
	case s == http.StatusTooManyRequests:
		code = market.CodeRateLimited
	case s == http.StatusRequestTimeout, s == http.StatusGatewayTimeout, s == 522, s == 524:
		code = market.CodeUpstreamTimeout
	case s == http.StatusTooEarly, s >= 500:
		code = market.CodeUpstreamUnavailable
		if s == http.StatusNotImplemented {
			why.kind = causeRefused
		}
	default:
		why.kind = causeRefused
	}
	switch resp.StatusCode {
	case http.StatusTooEarly, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		why.passing = true
	}
	err := failed(e, code, why)
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusTooEarly, http.StatusServiceUnavailable:
		err.RetryAfter = wire.RetryAfter(resp.Header, c.clock.Now())
	}
	return err
}

// reportedFailure returns the error that a 2xx answer reports in its body, or nil when it reports none.
func (c *Client) reportedFailure(e reqctx.Endpoint, resp *http.Response, body wire.Value, redact func(string) string) *market.Error {
	if !holds(body.Member("success"), wire.False, "false") && !isError(body.Member("error")) {
		return nil
	}
	code, kind := codeOf(reportedCode(body))
	err := failed(e, code, &cause{kind: kind, status: resp.StatusCode, text: redact(messageOf(body))})
	if (code == market.CodeUnauthenticated || code == market.CodeForbidden) && !e.User() {
		err = failed(e, market.CodeUpstreamUnavailable, &cause{kind: causeReported, status: resp.StatusCode, text: redact(messageOf(body))})
	}
	if code == market.CodeRateLimited {
		err.RetryAfter = wire.RetryAfter(resp.Header, c.clock.Now())
	}
	return err
}

// holds tells whether a value is a boolean or its name in a string.
func holds(v wire.Value, kind wire.Kind, name string) bool {
	return v.Kind() == kind || v.Kind() == wire.String && strings.EqualFold(v.Text(), name)
}

// isError tells whether the value of an error field says that there is one.
func isError(v wire.Value) bool {
	switch v.Kind() {
	case wire.String:
		return !v.Is("")
	case wire.Object:
		return len(v.Members()) > 0
	}
	return v.Kind() == wire.True
}

// reportedCode returns the code of an error body in upper case with underscores.
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

// codeOf maps the code of an error body. A venue that answers 200 and reports a failure without saying which is taken
// to be out of order, but may as well have meant that it does not take the request.
func codeOf(reported string) (market.Code, causeKind) {
	switch reported {
	case "RATE_LIMITED", "RATE_LIMIT", "RATE_LIMIT_EXCEEDED", "TOO_MANY_REQUESTS", "429":
		return market.CodeRateLimited, causeReported
	case "UNAUTHENTICATED", "UNAUTHORIZED", "INVALID_CREDENTIALS", "MISSING_CREDENTIALS", "INVALID_API_KEY", "401":
		return market.CodeUnauthenticated, causeReported
	case "FORBIDDEN", "ACCESS_DENIED", "PERMISSION_DENIED", "403":
		return market.CodeForbidden, causeReported
	case "TIMEOUT", "GATEWAY_TIMEOUT", "UPSTREAM_TIMEOUT", "504":
		return market.CodeUpstreamTimeout, causeReported
	case "UNAVAILABLE", "SERVICE_UNAVAILABLE", "INTERNAL", "INTERNAL_ERROR", "INTERNAL_SERVER_ERROR", "MAINTENANCE", "500", "502", "503":
		return market.CodeUpstreamUnavailable, causeReported
	case "BAD_REQUEST", "INVALID_REQUEST", "INVALID_PARAMETER", "INVALID_PARAMETERS", "INVALID_ARGUMENT", "VALIDATION_ERROR",
		"BAD_USER_INPUT", "UNSUPPORTED", "NOT_IMPLEMENTED", "400", "405", "422", "501":
		return market.CodeUpstreamBadResponse, causeRefused
	case "NOT_FOUND", "404":
		return market.CodeNotFound, causeRefused
	}
	if strings.HasSuffix(reported, "_NOT_FOUND") {
		return market.CodeNotFound, causeRefused
	}
	return market.CodeUpstreamUnavailable, causeUnclear
}

// messageOf returns the text of an error body; it is for the log only and must be redacted first.
func messageOf(body wire.Value) string {
	reported := body.Member("error")
	for _, v := range []wire.Value{reported, reported.Member("message"), body.Member("message"), body.Member("msg"), body.Member("errorMessage")} {
		if v.Kind() == wire.String && !v.Is("") {
			return v.Text()
		}
	}
	return "no message"
}
