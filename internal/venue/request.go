package venue

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/wire"
)

// request is one call that is to be made.
type request struct {
	endpoint Endpoint
	query    query
	// keys is the number of ids asked for, for the Observer.
	keys int
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

// get makes one call and returns the payload of its answer: decoded JSON without the envelope. An enveloped null is a
// nil payload; the error is NOT_FOUND when the venue says so, and the caller decides what that means.
func (c *Client) get(ctx context.Context, rq *request) (any, error) {
	if ctx.Err() != nil {
		return nil, contextFailure(ctx, rq.endpoint)
	}
	credentials, err := c.credentials(ctx, rq.endpoint)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	status, payload, err := c.exchange(ctx, rq, credentials)
	outcome := "ok"
	if err != nil {
		var e *market.Error
		if outcome = "CANCELLED"; errors.As(err, &e) {
			outcome = string(e.Code)
		}
	}
	c.observer.Call(rq.endpoint.String(), rq.keys, status, outcome, time.Since(started))
	return payload, err
}

// exchange goes through the transport itself rather than an http.Client, which would follow redirects, keep cookies and
// wrap errors with the URL. status is 0 when no answer came.
func (c *Client) exchange(ctx context.Context, rq *request, credentials *market.Credentials) (status int, payload any, err error) {
	call, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	resp, err := c.transport.RoundTrip(c.build(call, rq, credentials))
	if err != nil {
		return 0, nil, connectionFailure(ctx, call, rq.endpoint, err)
	}
	defer resp.Body.Close()
	redact := redactor(credentials)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		isJSON, text := errorText(resp, redact)
		return resp.StatusCode, nil, c.statusFailure(rq.endpoint, resp, isJSON, text)
	}
	body, err := readBody(resp, c.maxBody)
	switch {
	case errors.Is(err, errTooLarge), errors.Is(err, errBomb), errors.Is(err, errEncoding):
		return resp.StatusCode, nil, unreadable(rq.endpoint, resp, err.Error())
	case err != nil:
		return resp.StatusCode, nil, connectionFailure(ctx, call, rq.endpoint, err)
	}
	payload, err = c.open(rq.endpoint, resp, body, redact)
	return resp.StatusCode, payload, err
}

// credentials returns what a user call is made with; nil for public calls and in mode none.
func (c *Client) credentials(ctx context.Context, e Endpoint) (*market.Credentials, error) {
	if !endpoints[e].user || c.mode == CredentialsNone {
		return nil, nil
	}
	credentials := market.CredentialsFrom(ctx)
	if credentials == nil {
		return nil, market.Errorf(market.CodeUnauthenticated, "the venue's credentials are needed (%s)", e)
	}
	return credentials, nil
}

func (c *Client) build(ctx context.Context, rq *request, credentials *market.Credentials) *http.Request {
	u := c.base
	u.Path += endpoints[rq.endpoint].path
	header := http.Header{
		"Accept":          {"application/json"},
		"Accept-Encoding": {"gzip"},
		"User-Agent":      {c.userAgent},
	}
	if credentials != nil && c.mode == CredentialsHeader {
		header["X-Api-Credentials"] = []string{base64.StdEncoding.EncodeToString([]byte(credentials.Wire()))}
	}
	if credentials != nil && c.mode == CredentialsQuery {
		rq.query.set("credentials", credentials.Wire())
	}
	u.RawQuery = rq.query.b.String()
	r := &http.Request{
		Method: http.MethodGet, URL: &u, Host: u.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	return r.WithContext(ctx)
}

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
	m, _ := v.(map[string]any)
	return true, redact(messageOf(m))
}

// open decodes the body of a 2xx answer, finds out whether it reports a failure and takes it out of its envelope.
func (c *Client) open(e Endpoint, resp *http.Response, body []byte, redact func(string) string) (any, error) {
	if !jsonType(resp.Header.Get("Content-Type")) {
		return nil, unreadable(e, resp, "the content type is not JSON")
	}
	v, err := wire.Parse(body)
	if err != nil {
		return nil, unreadable(e, resp, err.Error())
	}
	for range maxEnvelopes {
		m, ok := v.(map[string]any)
		if !ok {
			break
		}
		if err := c.reportedFailure(e, resp, m, redact); err != nil {
			return nil, err
		}
		data, enveloped := m["data"]
		if !enveloped || !isTrue(m["success"]) {
			return v, nil
		}
		switch data := data.(type) {
		case nil:
			return nil, nil
		case map[string]any:
			keepPaging(data, m)
			v = data
		default:
			return v, nil // a list, which is found under its key beside the page's cursor
		}
	}
	if v == nil {
		return nil, unknownForm(e, "the answer is null")
	}
	return v, nil
}

// maxEnvelopes bounds {success,data:{success,data:…}}.
const maxEnvelopes = 3

func isTrue(v any) bool {
	s, _ := v.(string)
	return v == true || strings.EqualFold(s, "true")
}

// jsonType accepts JSON types, and those that servers send when they do not know better.
func jsonType(contentType string) bool {
	t, _, _ := strings.Cut(contentType, ";")
	switch t = strings.ToLower(strings.TrimSpace(t)); t {
	case "", "application/json", "text/json", "text/plain":
		return true
	}
	return strings.HasSuffix(t, "+json")
}

func unreadable(e Endpoint, resp *http.Response, text string) *market.Error {
	return failed(e, market.CodeUpstreamBadResponse, &cause{kind: causeUnreadable, status: resp.StatusCode, text: text})
}
