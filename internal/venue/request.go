package venue

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/wire"
)

// request is one call that is to be made.
type request struct {
	endpoint reqctx.Endpoint
	query    query
	// keys is the number of ids asked for, for the Observer.
	keys int
	// account is whose data is asked for; empty for public data.
	account market.Address
}

// forAccount returns a request for the data of an account.
func forAccount(e reqctx.Endpoint, a market.Address) *request {
	rq := &request{endpoint: e, keys: 1, account: a}
	rq.query.set("address", string(a))
	return rq
}

// query builds a query string in a fixed order; values are escaped, the commas between ids are not.
type query struct{ b strings.Builder }

func (q *query) set(name, value string) *query {
	if value != "" {
		q.name(name)
		q.b.WriteString(url.QueryEscape(value))
	}
	return q
}

func (q *query) list(name string, values []string) *query {
	if len(values) == 0 {
		return q
	}
	q.name(name)
	for i, v := range values {
		if i > 0 {
			q.b.WriteByte(',')
		}
		q.b.WriteString(url.QueryEscape(v))
	}
	return q
}

func (q *query) instant(name string, t time.Time) *query {
	if t.IsZero() {
		return q
	}
	return q.set(name, t.UTC().Format(time.RFC3339Nano))
}

func (q *query) name(name string) {
	if q.b.Len() > 0 {
		q.b.WriteByte('&')
	}
	q.b.WriteString(name)
	q.b.WriteByte('=')
}

// get makes a call, and makes it again while that may help, and returns the payload of its answer: decoded JSON without the
// envelope. An enveloped null is no payload; the error is NOT_FOUND when the venue says so, and the caller decides what
// that means.
func (c *Client) get(ctx context.Context, rq *request) (wire.Value, error) {
	credentials, err := c.credentials(ctx, rq.endpoint)
	if err != nil {
		return wire.Value{}, err
	}
	for attempt := 0; ; attempt++ {
		started := time.Now()
		payload, sent, failure := c.attempt(ctx, rq, credentials)
		if err == nil || sent {
			err = failure // a retry that was not let through leaves the failure that it was to mend
		}
		wait, again := c.again(ctx, attempt, time.Since(started), err)
		if !sent || !again {
			return payload, err
		}
		if !sleep(ctx, wait) {
			return wire.Value{}, err
		}
	}
}

// attempt makes one HTTP call, if the calls under way, breaker and budget let it; sent is false when they do not. The wait
// for a slot ends with ctx, and nothing is spent and no time runs against the venue before it is over.
func (c *Client) attempt(ctx context.Context, rq *request, credentials *market.Credentials) (payload wire.Value, sent bool, err error) {
	if ctx.Err() != nil {
		return wire.Value{}, false, contextFailure(ctx, rq.endpoint)
	}
	line, came := c.lines[rq.endpoint], time.Now()
	if wait := line.breaker.refusal(); wait > 0 {
		return wire.Value{}, false, openCircuit(rq.endpoint, wait)
	}
	select {
	case line.slots <- struct{}{}:
		defer func() { <-line.slots }()
	case <-ctx.Done():
		return wire.Value{}, false, contextFailure(ctx, rq.endpoint)
	}
	if wait := line.breaker.refusal(); wait > 0 { // it may have opened meanwhile
		return wire.Value{}, false, openCircuit(rq.endpoint, wait)
	}
	if err := market.AdmitCall(ctx); err != nil {
		if ctx.Err() != nil {
			err = contextFailure(ctx, rq.endpoint)
		}
		return wire.Value{}, false, err
	}
	era, wait, ok := line.breaker.enter()
	if !ok {
		return wire.Value{}, false, openCircuit(rq.endpoint, wait)
	}
	call, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	read, _ := reqctx.CallFrom(ctx)
	x := reqctx.UpstreamCall{Endpoint: rq.endpoint.String(), Keys: rq.keys, Started: time.Now()}
	x.Waited = x.Started.Sub(came)
	if read != nil {
		x.Trace = read.Trace()
	}
	x.Status, x.Age, payload, err = c.exchange(ctx, call, rq, credentials, x.Trace)
	x.Elapsed, x.Outcome = time.Since(x.Started), outcomeOf(err)
	line.breaker.leave(era, verdictOn(err), c.subject(ctx, rq))
	if read != nil {
		read.NoteCall(x)
	}
	c.observer.Call(x.Endpoint, x.Keys, x.Status, x.Outcome, x.Elapsed)
	return payload, true, err
}

// subject names what a call is for, so that a breaker can tell whether one thing fails or many.
func (c *Client) subject(ctx context.Context, rq *request) string {
	if rq.endpoint.User() {
		return c.backoffs.account(ctx, rq.account)
	}
	return rq.query.b.String()
}

func outcomeOf(err error) string {
	var e *market.Error
	switch {
	case err == nil:
		return reqctx.OutcomeOK
	case errors.As(err, &e):
		return string(e.Code)
	}
	return reqctx.CallCancelled
}

// verdictOn says what the outcome of a call says about the venue: a failure of its own opens the circuit, its rate limit and
// the end of the caller's patience do not, and every other answer shows that it is there.
func verdictOn(err error) verdict {
	failure, sent := blames(err)
	var why *cause
	switch {
	case !sent:
		return undecided
	case failure == nil:
		return well
	case failure.Code == market.CodeRateLimited, errors.As(err, &why) && why.kind == causeUnclear:
		return undecided
	}
	return failing
}

// exchange goes through the transport itself rather than an http.Client, which would follow redirects, keep cookies and
// wrap errors with the URL. call is ctx with the client's own timeout, trace the place of the call in a trace; status is 0
// when no answer came, age zero unless the answer is a success.
func (c *Client) exchange(ctx, call context.Context, rq *request, credentials *market.Credentials, trace reqctx.TraceContext) (status int, age market.Age, payload wire.Value, err error) {
	resp, err := c.transport.RoundTrip(c.build(call, rq, credentials, trace))
	if err != nil {
		return 0, age, wire.Value{}, connectionFailure(ctx, call, rq.endpoint, err)
	}
	defer resp.Body.Close()
	defer func() { c.reportLimits(ctx, resp.Header, err) }()
	redact := redactor(credentials, rq)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		isJSON, text := errorText(resp, redact)
		return resp.StatusCode, age, wire.Value{}, c.statusFailure(rq.endpoint, resp, isJSON, text)
	}
	body, err := readBody(resp, c.maxBody)
	switch {
	case errors.Is(err, errTooLarge), errors.Is(err, errBomb), errors.Is(err, errEncoding):
		return resp.StatusCode, age, wire.Value{}, unreadable(rq.endpoint, resp, err)
	case err != nil:
		return resp.StatusCode, age, wire.Value{}, connectionFailure(ctx, call, rq.endpoint, err)
	}
	if payload, err = c.open(rq.endpoint, resp, body, redact); err == nil {
		age = ageOf(resp.Header)
	}
	return resp.StatusCode, age, payload, err
}

// credentials returns what a user call is made with; nil for public calls and in mode none.
func (c *Client) credentials(ctx context.Context, e reqctx.Endpoint) (*market.Credentials, error) {
	if !e.User() || c.mode == CredentialsNone {
		return nil, nil
	}
	credentials := reqctx.CredentialsFrom(ctx)
	if credentials == nil {
		return nil, market.Errorf(market.CodeUnauthenticated, "the venue's credentials are needed (%s)", e)
	}
	return credentials, nil
}

func (c *Client) build(ctx context.Context, rq *request, credentials *market.Credentials, trace reqctx.TraceContext) *http.Request {
	u := c.base
	u.Path += paths[rq.endpoint]
	header := http.Header{
		"Accept":          {"application/json"},
		"Accept-Encoding": {"gzip"},
		"User-Agent":      {c.userAgent},
	}
	if credentials != nil && c.mode == CredentialsHeader {
		header["X-Api-Credentials"] = []string{base64.StdEncoding.EncodeToString([]byte(credentials.Wire()))}
	}
	if !trace.IsZero() {
		header["Traceparent"] = []string{trace.Traceparent()}
	}
	u.RawQuery = rq.query.b.String()
	if credentials != nil && c.mode == CredentialsQuery {
		u.RawQuery += "&credentials=" + url.QueryEscape(credentials.Wire()) // an account's query is never empty
	}
	r := &http.Request{
		Method: http.MethodGet, URL: &u, Host: u.Host, Header: header, Body: once{},
		GetBody:          func() (io.ReadCloser, error) { return nil, errUnprocessed },
		TransferEncoding: asItIs,
		Proto:            "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	return r.WithContext(ctx)
}

// once is the body of a call, which has none. With a body, though it is empty, that cannot be had again the transport does not
// repeat a call by itself on another connection: whether and when it is repeated, the budget is asked.
type once struct{}

// Read implements io.Reader.
func (once) Read([]byte) (int, error) { return 0, io.EOF }

// WriteTo implements io.WriterTo: without it net/http would make a buffer of 32 KB to copy nothing.
func (once) WriteTo(io.Writer) (int64, error) { return 0, nil }

// Close implements io.Closer.
func (once) Close() error { return nil }

// asItIs says that a body is sent as it is read. It adds nothing to the call, and spares the transport from finding out, by a
// goroutine and a timer, whether a body of unknown length is empty.
var asItIs = []string{"identity"}

// errUnprocessed is the error of a call that the transport would repeat by itself: the venue has not processed it.
var errUnprocessed = errors.New("the call was not processed")

// errorText returns the venue's message in an answer that is an error, and whether the body is JSON or empty.
func errorText(resp *http.Response, redact func(string) string) (isJSON bool, text string) {
	body, err := readBody(resp, maxErrorBody)
	if err != nil {
		return false, "the body could not be read"
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return true, "no body"
	}
	v, err := wire.Parse(body)
	if err != nil {
		return false, "the body is not JSON"
	}
	return true, redact(messageOf(v))
}

// open decodes the body of a 2xx answer, finds out whether it reports a failure and takes it out of its envelope.
func (c *Client) open(e reqctx.Endpoint, resp *http.Response, body []byte, redact func(string) string) (wire.Value, error) {
	if !jsonType(resp.Header.Get("Content-Type")) {
		return wire.Value{}, unreadable(e, resp, errContentType)
	}
	v, err := wire.Parse(body)
	if err != nil {
		return wire.Value{}, unreadable(e, resp, err)
	}
	for range maxEnvelopes {
		if err := c.reportedFailure(e, resp, v, redact); err != nil {
			return wire.Value{}, err
		}
		data, enveloped := v.Member("data"), holds(v.Member("success"), wire.True, "true")
		if enveloped && data.Kind() == wire.Null {
			return wire.Value{}, nil
		}
		if !enveloped || data.Kind() != wire.Object {
			break // a list is found under its key beside the page's cursor
		}
		v = data
	}
	if v.IsNull() {
		return wire.Value{}, unknownForm(e, "the answer is null")
	}
	return v, nil
}

// maxEnvelopes bounds {success,data:{success,data:…}}.
const maxEnvelopes = 3

// jsonType accepts JSON types, and those that servers send when they do not know better.
func jsonType(contentType string) bool {
	t, _, _ := strings.Cut(contentType, ";")
	switch t = strings.ToLower(strings.TrimSpace(t)); t {
	case "", "application/json", "text/json", "text/plain":
		return true
	}
	return strings.HasSuffix(t, "+json")
}

var errContentType = errors.New("the content type is not JSON")

// unreadable is the error of an answer that is no JSON. One that was cut off may be whole the next time.
func unreadable(e reqctx.Endpoint, resp *http.Response, err error) *market.Error {
	return failed(e, market.CodeUpstreamBadResponse,
		&cause{kind: causeUnreadable, status: resp.StatusCode, text: err.Error(), passing: errors.Is(err, wire.ErrTruncated)})
}
