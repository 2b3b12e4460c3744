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

	"oddsgraph/httpapi/respcache"
	"oddsgraph/httpapi/writev"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// statusOf returns the status of a response: 200 where there are data, else what its first error says.
func statusOf(resp *graphql.Response) int {
	if resp.Data != nil || len(resp.Errors) == 0 {
		return http.StatusOK
	}
	var known *refusal
	if errors.As(resp.Errors[0], &known) {
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

// reply is a response that is ready to be sent.
type reply struct {
	*note
	body []byte
	// kept makes codings and tags once for all who want them; nil for a response of one request.
	kept *respcache.Response
	// buffer holds the body where that is of one request.
	buffer *bytes.Buffer
	// retryAfter is when the client had better come again, cacheable whether caches may keep the response, if it was not posted.
	retryAfter time.Duration
	cacheable  bool
}

// write writes a response, which takes its room until the caller gives it back. op is nil where nothing was executed.
func (g *graphQL) write(w http.ResponseWriter, r *request, j *reqctx.Log, media string, status int, resp *graphql.Response, op *operation, room *room) {
	g.engine.made(r.Context(), j, resp.Errors)
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
	buf = room.fit(buf)
	out := reply{
		note: &note{status: status, media: media, contentType: contentType(media), contentLength: [1]string{strconv.Itoa(buf.Len())}},
		body: buf.Bytes(), buffer: buf, retryAfter: retryAfterOf(resp),
	}
	if op != nil && len(resp.Errors) == 0 && !j.Explained && !asksForCost(r) {
		out.cacheable, out.policy = true, op.plan.policy
	}
	g.send(w, r, j, &out, room)
	putBuffer(out.buffer)
}

// writeKept writes a response that may go to others, too, and takes its room until the caller gives it back.
func (g *graphQL) writeKept(w http.ResponseWriter, r *request, j *reqctx.Log, kept *respcache.Response, room *room) {
	out := reply{note: noteOf(kept), body: kept.Body, kept: kept, cacheable: true}
	var errs gqlerror.List
	if out.refused != nil {
		errs, out.retryAfter, out.cacheable = out.refused.Errors, retryAfterOf(out.refused), false
	}
	g.engine.made(r.Context(), j, errs)
	g.send(w, r, j, &out, room)
}

// The values of headers that are the same in all responses. They are shared and must not be changed.
var (
	variesHeader  = []string{varies}
	noStoreHeader = []string{noStore}

	contentJSON     = []string{typeJSON + "; charset=utf-8"}
	contentResponse = []string{typeResponse + "; charset=utf-8"}
)

func contentType(media string) []string {
	if media == typeJSON {
		return contentJSON
	}
	return contentResponse
}

// send sends a response, and notes it right before. What the client is sent keeps its room, and nothing else is kept while it reads.
func (g *graphQL) send(w http.ResponseWriter, r *request, j *reqctx.Log, out *reply, room *room) {
	h := w.Header()
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
	encoding := ""
	if len(out.body) >= minCompressed {
		encoding = negotiateEncoding(r.Header["Accept-Encoding"], encodings)
	}
	if out.cacheable && out.status == http.StatusOK && r.Method != http.MethodPost {
		h.Set("Cache-Control", out.policy.header(r.credentials != nil))
		if !out.policy.noStore {
			tag := out.tagOf(out.body)
			if encoding != "" {
				tag = "W/" + tag // the coded bytes are others each, though they say the same
			}
			h.Set("ETag", tag)
			if matches(r.Header.Values("If-None-Match"), tag) {
				h.Del("Content-Type")
				j.Status = http.StatusNotModified
				g.engine.end(r.Context(), j, 0)
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
	}
	body := out.body
	switch {
	case encoding == "":
		h["Content-Length"] = out.contentLength[:]
	case out.kept != nil:
		body = out.kept.Encoded(encoding)
	default:
		coded := getBuffer()
		compress(coded, body, encoding)
		putBuffer(out.buffer)
		out.buffer = room.fit(coded)
		body = out.buffer.Bytes()
	}
	out.body = nil
	if out.kept != nil {
		room.settle(len(body))
		out.kept = nil
	}
	if encoding != "" {
		h.Set("Content-Encoding", encoding)
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	j.Status = out.status
	taken := j.Started.Add(j.Elapsed + writeTimeout)
	g.engine.end(r.Context(), j, len(body))
	_ = http.NewResponseController(w).SetWriteDeadline(taken)
	w.WriteHeader(out.status)
	_, _ = writev.Write(r.Context(), w, body) // who does not read it has gone
}

// retryAfterOf returns how long the first error wants the client to wait.
func retryAfterOf(resp *graphql.Response) time.Duration {
	if len(resp.Errors) == 0 {
		return 0
	}
	ms, _ := resp.Errors[0].Extensions["retryAfterMs"].(int64)
	return time.Duration(ms) * time.Millisecond
}

// entityTag returns the strong tag of a response before it is compressed.
func entityTag(media string, body []byte) string {
	h := sha256.New()
	_, _ = io.WriteString(h, media+"\n")
	_, _ = h.Write(body)
	return `"` + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16]) + `"`
}

// matches reports whether an If-None-Match header names a tag, in the weak comparison that is meant there.
func matches(lines []string, tag string) bool {
	tag = strings.TrimPrefix(tag, "W/")
	return slices.ContainsFunc(slices.Collect(elements(lines)), func(element string) bool {
		return element == "*" || strings.TrimPrefix(element, "W/") == tag
	})
}
