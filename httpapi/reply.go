package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/httpapi/content"
	"oddsgraph/httpapi/respcache"
	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
)

// statusOf returns 200 for a response with data or without errors, and otherwise the status of the first error.
func statusOf(resp *graphql.Response) int {
	if resp.Data != nil || len(resp.Errors) == 0 {
		return http.StatusOK
	}
	if known, ok := errors.AsType[*httpError](resp.Errors[0]); ok {
		return known.status
	}
	switch market.Code(codeOf(resp.Errors[0])) {
	case market.CodeUnauthenticated:
		return http.StatusUnauthorized
	case market.CodeForbidden:
		return http.StatusForbidden
	case market.CodeRateLimited:
		return http.StatusTooManyRequests
	case market.CodeUpstreamUnavailable, market.CodeUpstreamBadResponse:
		return http.StatusBadGateway
	case market.CodeUpstreamTimeout:
		return http.StatusGatewayTimeout
	case market.CodeInternal:
		return http.StatusInternalServerError
	default:
		return http.StatusBadRequest
	}
}

type reply struct {
	*responseMeta
	body []byte
	// cached is the cached response, or nil if the response is for this request only. Requests share the compressed forms of a cached
	// response.
	cached *respcache.Response
	// buffer contains the body if the response is for this request only.
	buffer     *bytes.Buffer
	retryAfter time.Duration // how long the client should wait before it retries
	cacheable  bool          // false if caches of clients and proxies must not store the response, for example because it has errors
}

// write sends a response. The parameter op is nil if no operation was executed. The calling function must call memory.settle(0)
// afterwards.
func (g *graphQL) write(w http.ResponseWriter, r *httpRequest, log *request.Log, media string, status int, resp *graphql.Response, op *operation, memory *reservation) {
	g.engine.setOutcome(r.Context(), log, resp.Errors)
	var buf *bytes.Buffer
	if op != nil {
		buf = op.buffer
	}
	if buf == nil {
		buf = getBuffer()
	}
	if op == nil || !op.ready {
		buf.Write(appendResponse(buf.AvailableBuffer(), resp))
	}
	buf = memory.fit(buf)
	out := reply{
		responseMeta: &responseMeta{status: status, media: media, contentType: contentType(media), contentLength: [1]string{strconv.Itoa(buf.Len())}},
		body:         buf.Bytes(), buffer: buf, retryAfter: retryAfterOf(resp),
	}
	if op != nil && len(resp.Errors) == 0 && !log.Explained && !wantsCost(r) {
		out.cacheable, out.policy = true, op.plan.policy
	}
	g.send(w, r, log, &out, memory)
	putBuffer(out.buffer)
}

// writeCached sends a response from the response cache. The calling function must call memory.settle(0) afterwards.
func (g *graphQL) writeCached(w http.ResponseWriter, r *httpRequest, log *request.Log, cached *respcache.Response, memory *reservation) {
	out := reply{responseMeta: metaOf(cached), body: cached.Body, cached: cached, cacheable: true}
	var errs gqlerror.List
	if out.errors != nil {
		errs, out.retryAfter, out.cacheable = out.errors.Errors, retryAfterOf(out.errors), false
	}
	g.engine.setOutcome(r.Context(), log, errs)
	g.send(w, r, log, &out, memory)
}

// The values of headers that many responses share. They must not be changed.
var (
	variesHeader  = []string{varies}
	noStoreHeader = []string{noStore}

	contentJSON     = []string{content.JSON + "; charset=utf-8"}
	contentResponse = []string{content.Response + "; charset=utf-8"}
)

func contentType(media string) []string {
	if media == content.JSON {
		return contentJSON
	}
	return contentResponse
}

// send logs and sends a response. While the client reads, send keeps only the encoded body in memory, and reserves memory only
// for this body.
func (g *graphQL) send(w http.ResponseWriter, r *httpRequest, log *request.Log, out *reply, memory *reservation) {
	h := w.Header()
	out.setHeader(h)
	encoding := ""
	if len(out.body) >= content.MinCompressed {
		encoding = content.Encoding(r.Header["Accept-Encoding"], content.Encodings)
	}
	if out.notModified(h, r, encoding) {
		log.Status = http.StatusNotModified
		g.engine.report(r.Context(), log, 0)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := out.body
	if encoding == "" {
		h["Content-Length"] = out.contentLength[:]
	} else {
		body = out.encode(encoding, memory)
		h.Set("Content-Encoding", encoding)
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	out.body, out.cached = nil, nil // can be garbage collected while the client reads
	log.Status = out.status
	deadline := log.Started.Add(log.Elapsed + writeTimeout)
	g.engine.report(r.Context(), log, len(body))
	_ = http.NewResponseController(w).SetWriteDeadline(deadline)
	w.WriteHeader(out.status)
	_, _ = w.Write(body) // an error means that the client has stopped reading
}

// setHeader sets the header fields that do not depend on the encoding.
func (out *reply) setHeader(h http.Header) {
	if h["Vary"] == nil {
		h["Vary"] = variesHeader
	} else {
		h.Add("Vary", varies)
	}
	h["Content-Type"], h["Cache-Control"] = out.contentType, noStoreHeader
	if out.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="oddsgraph"`)
	}
	if out.retryAfter > 0 && out.status >= 400 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(out.retryAfter.Seconds()))))
	}
}

// notModified sets the header fields for caches, and reports whether the client already has the response. If the reply is not
// cacheable or r is a POST request, it does nothing.
func (out *reply) notModified(h http.Header, r *httpRequest, encoding string) bool {
	if !out.cacheable || out.status != http.StatusOK || r.Method == http.MethodPost {
		return false
	}
	h.Set("Cache-Control", out.policy.header(r.credentials != nil))
	if out.policy.noStore {
		return false
	}
	tag := out.tagOf(out.body)
	if encoding != "" {
		tag = "W/" + tag // compressed forms of equal responses may differ in their bytes
	}
	h.Set("ETag", tag)
	if !matches(r.Header.Values("If-None-Match"), tag) {
		return false
	}
	h.Del("Content-Type")
	return true
}

// encode returns the body in a content coding, and adjusts the reservation to the size of the result.
func (out *reply) encode(encoding string, memory *reservation) (body []byte) {
	if out.cached != nil {
		body = out.cached.Encoded(encoding)
		memory.settle(len(body))
		return body
	}
	coded := getBuffer()
	content.Compress(coded, out.body, encoding)
	putBuffer(out.buffer)
	out.buffer = memory.fit(coded)
	return out.buffer.Bytes()
}

// retryAfterOf returns the delay in the first error of a response, or 0 if there is none.
func retryAfterOf(resp *graphql.Response) time.Duration {
	if len(resp.Errors) == 0 {
		return 0
	}
	ms, _ := resp.Errors[0].Extensions["retryAfterMs"].(int64)
	return time.Duration(ms) * time.Millisecond
}

// entityTag returns the strong entity tag of an uncompressed response.
func entityTag(media string, body []byte) string {
	h := sha256.New()
	_, _ = io.WriteString(h, media+"\n")
	_, _ = h.Write(body)
	return `"` + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16]) + `"`
}

// matches reports whether an If-None-Match header contains * or a tag, by weak comparison (RFC 9110, 13.1.2).
func matches(lines []string, tag string) bool {
	tag = strings.TrimPrefix(tag, "W/")
	return slices.ContainsFunc(slices.Collect(content.Elements(lines)), func(element string) bool {
		return element == "*" || strings.TrimPrefix(element, "W/") == tag
	})
}
