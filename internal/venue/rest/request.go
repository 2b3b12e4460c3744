package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/wire"
)

// Request is one call to the venue.
type Request struct {
	Endpoint upstream.Endpoint
	Query    Query
	// Keys is the number of requested ids, for metrics and the operation log.
	Keys int
	// Account is the account whose data is requested. It is empty if the data is public.
	Account market.Address
	// Path replaces the path of the endpoint if Path is not empty. The call still uses the endpoint's circuit breaker.
	Path string
	// Body is the JSON of a POST request. A request without a body is a GET request. All requests only read, so they may be
	// retried.
	Body []byte
	// Sign returns further headers, such as a signature of the method and of the path with the prefix of BaseURL. It is called for
	// each attempt, because a signature contains its time. Sign may be nil.
	Sign func(method, path string) http.Header
}

// ForAccount returns a request for the data of an account.
func ForAccount(e upstream.Endpoint, a market.Address) *Request {
	rq := &Request{Endpoint: e, Keys: 1, Account: a}
	rq.Query.Set("address", string(a))
	return rq
}

// Query builds a query string. The parameters are in the order in which they were added. Values are escaped, but not the commas
// between the values of a list.
type Query struct{ b strings.Builder }

// String returns the query string.
func (q *Query) String() string { return q.b.String() }

// Set adds a parameter if the value is not empty.
func (q *Query) Set(name, value string) *Query {
	if value != "" {
		q.name(name)
		q.b.WriteString(url.QueryEscape(value))
	}
	return q
}

// List adds a parameter with several values. It adds nothing if there are no values.
func (q *Query) List(name string, values []string) *Query {
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

// CeilDiv returns n/size, rounded up. It is the number of calls for n keys if one call has at most size keys. A negative n counts
// as 0.
func CeilDiv(n, size int) int { return (max(n, 0) + size - 1) / size }

// Instant adds the instant of a bound. It adds nothing if there is no bound.
func (q *Query) Instant(name string, b queries.Bound) *Query {
	return q.Set(name, b.Format(time.RFC3339Nano))
}

func (q *Query) name(name string) {
	if q.b.Len() > 0 {
		q.b.WriteByte('&')
	}
	q.b.WriteString(name)
	q.b.WriteByte('=')
}

// Get makes a call and retries the call after a transient failure. It returns the decoded body. If the body is {success,data} and
// data is an object, Get returns this object. If the data of such a body is null, Get returns the zero Value. If the venue reports
// that the requested object does not exist, the error is NOT_FOUND.
func (c *Client) Get(ctx context.Context, call upstream.Call, rq *Request) (wire.Value, error) {
	credentials, err := c.credentials(call, rq.Endpoint)
	if err != nil {
		return wire.Value{}, err
	}
	for attempt := 0; ; attempt++ {
		started := time.Now()
		payload, sent, failure := c.attempt(ctx, call, rq, credentials)
		if err == nil || sent {
			err = failure // keep the error of the previous attempt if the retry was not sent
		}
		wait, again := c.retryWait(ctx, call, attempt, time.Since(started), err)
		if !sent || !again {
			return payload, err
		}
		if !sleep(ctx, wait) {
			return wire.Value{}, err
		}
	}
}

// attempt makes one HTTP call. Before the call, it waits until the rate limit admits the call: the first call of a read need not
// wait, further ones may. The reported duration of the call does not include this wait. If the circuit or the rate limit refuses the
// call, or ctx ends before the call, sent is false.
func (c *Client) attempt(ctx context.Context, call upstream.Call, rq *Request, credentials *market.Credentials) (payload wire.Value, sent bool, err error) {
	if ctx.Err() != nil {
		return wire.Value{}, false, contextFailure(ctx, rq.Endpoint)
	}
	circuit, queued := c.endpoints[rq.Endpoint], time.Now()
	if wait := circuit.refuse(); wait > 0 {
		return wire.Value{}, false, circuitOpenError(rq.Endpoint, wait)
	}
	if err := call.Admit(ctx); err != nil {
		if ctx.Err() != nil {
			err = contextFailure(ctx, rq.Endpoint)
		}
		return wire.Value{}, false, err
	}
	generation, wait, ok := circuit.acquire() // the circuit may have opened while the call waited
	if !ok {
		return wire.Value{}, false, circuitOpenError(rq.Endpoint, wait)
	}
	result := verdictNone // the verdict if the call panics
	defer func() { circuit.done(generation, result, c.subject(call, rq)) }()
	limited, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	x := upstream.HTTPCall{Endpoint: rq.Endpoint.String(), Keys: rq.Keys, Started: time.Now()}
	x.Waited = x.Started.Sub(queued)
	if call.Waiters != nil {
		x.Trace = call.Waiters.Trace()
	}
	payload, err = c.exchange(ctx, limited, call, rq, credentials, &x)
	x.Elapsed, x.Outcome = time.Since(x.Started), outcomeOf(err)
	result = verdictOf(err)
	if call.Waiters != nil {
		call.Waiters.NoteCall(x)
	}
	var failure error
	if result == verdictFailure {
		failure = errors.Unwrap(err) // a CallFailure
	}
	c.cfg.Observer.Call(x, failure)
	return payload, true, err
}

// subject identifies the account or the request of a call, so that a breaker can tell whether one request fails or many.
func (c *Client) subject(call upstream.Call, rq *Request) string {
	if rq.Endpoint.User() {
		return c.AccountKey(call, rq.Account)
	}
	return rq.Path + "?" + rq.Query.String() + string(rq.Body)
}

func outcomeOf(err error) string {
	if err == nil {
		return upstream.OutcomeOK
	}
	if e, ok := errors.AsType[*market.Error](err); ok {
		return string(e.Code)
	}
	return upstream.CallCancelled
}

// verdictOf returns the verdict on the venue after a call. The verdict is verdictNone in three cases: the context of the call has
// ended, the venue has reported its rate limit, or the meaning of the error is unknown. For other errors with UPSTREAM_UNAVAILABLE
// or UPSTREAM_TIMEOUT, the verdict is verdictFailure. Any other response shows that the venue works.
func verdictOf(err error) verdict {
	failure, sent := venueFailure(err)
	var why *CallFailure
	switch {
	case !sent:
		return verdictNone
	case failure == nil:
		return verdictOK
	case failure.Code == market.CodeRateLimited, errors.As(err, &why) && why.Kind == KindUnclear:
		return verdictNone
	}
	return verdictFailure
}

// exchange sends a request and reads the response. It calls the transport directly, because an http.Client would follow
// redirects, store cookies and add the URL to errors. The context limited is ctx with the client's timeout. exchange sets Status and
// Date of x.
func (c *Client) exchange(ctx, limited context.Context, call upstream.Call, rq *Request, credentials *market.Credentials, x *upstream.HTTPCall) (payload wire.Value, err error) {
	r := c.newRequest(limited, rq, credentials, x.Trace)
	var signature http.Header
	if rq.Sign != nil {
		signature = rq.Sign(r.Method, r.URL.EscapedPath())
		maps.Copy(r.Header, signature)
	}
	resp, err := c.cfg.Transport.RoundTrip(r)
	if err != nil {
		return wire.Value{}, connectionFailure(ctx, limited, rq.Endpoint, err)
	}
	x.Status = resp.StatusCode
	defer resp.Body.Close()
	defer func() { c.reportLimits(call, rq.Endpoint, resp, err) }()
	redact := newRedactor(credentials, rq, signature)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		isJSON, text := errorText(resp, redact)
		return wire.Value{}, c.statusFailure(rq.Endpoint, resp, isJSON, text)
	}
	body, err := readBody(resp, c.cfg.MaxBody)
	switch {
	case errors.Is(err, errTooLarge), errors.Is(err, errEncoding):
		return wire.Value{}, unreadableError(rq.Endpoint, resp, err)
	case err != nil:
		return wire.Value{}, connectionFailure(ctx, limited, rq.Endpoint, err)
	}
	if payload, err = c.decode(rq.Endpoint, resp, body, redact); err == nil {
		if resp.Header.Get("Age") == "" { // otherwise the date is that of a cached response
			x.Date, _ = http.ParseTime(resp.Header.Get("Date")) // the zero time if there is no date
		}
	}
	return payload, err
}

// credentials returns the credentials of a call. If the endpoint is public, or the mode is CredentialsNone, the call needs no
// credentials, and both results are nil. If a call needs credentials and has none, the error is UNAUTHENTICATED. If it has some despite
// Config.NoCredentials, the error is INTERNAL_SERVER_ERROR.
func (c *Client) credentials(call upstream.Call, e upstream.Endpoint) (*market.Credentials, error) {
	if c.cfg.NoCredentials && call.Credentials != nil {
		return nil, market.Errorf(market.CodeInternal, "the call has credentials, but the venue takes none (%s)", e)
	}
	if !e.User() || c.cfg.CredentialsMode == CredentialsNone {
		return nil, nil
	}
	if call.Credentials == nil {
		return nil, market.Errorf(market.CodeUnauthenticated, "the venue's credentials are needed (%s)", e)
	}
	return call.Credentials, nil
}

func (c *Client) newRequest(ctx context.Context, rq *Request, credentials *market.Credentials, trace upstream.TraceContext) *http.Request {
	u := c.base
	u.Path += cmp.Or(rq.Path, c.cfg.Paths[rq.Endpoint])
	header := http.Header{
		"Accept":          {"application/json"},
		"Accept-Encoding": {"gzip"},
		"User-Agent":      {c.cfg.UserAgent},
	}
	if credentials != nil && c.cfg.CredentialsMode == CredentialsHeader {
		header["X-Api-Credentials"] = []string{base64.StdEncoding.EncodeToString([]byte(credentials.Wire()))}
	}
	if !trace.IsZero() {
		header["Traceparent"] = []string{trace.Traceparent()}
	}
	u.RawQuery = rq.Query.String()
	if credentials != nil && c.cfg.CredentialsMode == CredentialsQuery {
		u.RawQuery += "&credentials=" + url.QueryEscape(credentials.Wire()) // the query is not empty: it has the account's address
	}
	r := &http.Request{
		Method: http.MethodGet, URL: &u, Host: u.Host, Header: header, Body: emptyBody{},
		GetBody:          func() (io.ReadCloser, error) { return nil, errUnprocessed },
		TransferEncoding: identityEncoding,
		Proto:            "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if rq.Body != nil {
		header["Content-Type"] = []string{"application/json"}
		r.Method, r.Body, r.ContentLength, r.TransferEncoding = http.MethodPost, io.NopCloser(bytes.NewReader(rq.Body)), int64(len(rq.Body)), nil
	}
	return r.WithContext(ctx)
}

// emptyBody is the empty body of a request. With http.NoBody, the transport would repeat a failed call on another connection, and
// the repeated call would bypass the rate limit.
type emptyBody struct{}

func (emptyBody) Read([]byte) (int, error) { return 0, io.EOF }

// WriteTo implements io.WriterTo. Without this method, net/http would allocate a buffer of 32 KB to copy the empty body.
func (emptyBody) WriteTo(io.Writer) (int64, error) { return 0, nil }

func (emptyBody) Close() error { return nil }

// identityEncoding is the transfer encoding of a request without a body. net/http does not send it in a header. Without
// identityEncoding, the transport would start a goroutine to find out whether the body is empty. If this goroutine were slow, the
// transport would send a chunked body.
var identityEncoding = []string{"identity"}

// errUnprocessed is the error of GetBody. The transport calls GetBody to repeat a call that the venue has not processed. Because of
// this error, the transport does not repeat the call.
var errUnprocessed = errors.New("the call was not processed")

// errorText returns the venue's message, or a fixed text if there is none. An empty body counts as JSON.
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

// decode decodes the body of a 2xx response. An envelope is {success,data}, where data is an object or null. decode replaces up to
// maxEnvelopes nested envelopes by their data. If this data is null, decode returns the zero Value. It returns an error if an
// envelope or the body reports a failure, or if the whole body is null or unreadable.
func (c *Client) decode(e upstream.Endpoint, resp *http.Response, body []byte, redact func(string) string) (wire.Value, error) {
	if !jsonType(resp.Header.Get("Content-Type")) {
		return wire.Value{}, unreadableError(e, resp, errContentType)
	}
	v, err := wire.Parse(body)
	if err != nil {
		return wire.Value{}, unreadableError(e, resp, err)
	}
	for range maxEnvelopes {
		if err := c.reportedFailure(e, resp, v, redact); err != nil {
			return wire.Value{}, err
		}
		data, enveloped := v.Member("data"), isBool(v.Member("success"), wire.True, "true")
		if enveloped && data.Kind() == wire.Null {
			return wire.Value{}, nil
		}
		if !enveloped || data.Kind() != wire.Object {
			break // a list stays in its object, which may contain the cursor of the page
		}
		v = data
	}
	if v.IsNull() {
		return wire.Value{}, UnknownForm(e, "the answer is null")
	}
	return v, nil
}

// maxEnvelopes bounds nested envelopes, such as {success,data:{success,data:…}}.
const maxEnvelopes = 3

// jsonType reports whether a content type is JSON, or a type that servers send by default.
func jsonType(contentType string) bool {
	t, _, _ := strings.Cut(contentType, ";")
	switch t = strings.ToLower(strings.TrimSpace(t)); t {
	case "", "application/json", "text/json", "text/plain":
		return true
	}
	return strings.HasSuffix(t, "+json")
}

var errContentType = errors.New("the content type is not JSON")

// unreadableError returns the error of a response that cannot be decoded. Only truncated JSON is retried.
func unreadableError(e upstream.Endpoint, resp *http.Response, err error) *market.Error {
	return newError(e, market.CodeUpstreamBadResponse,
		&CallFailure{Kind: KindUnreadable, Status: resp.StatusCode, Text: err.Error(), Transient: errors.Is(err, wire.ErrTruncated)})
}
