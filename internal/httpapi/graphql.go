package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/internal/guard"
	"oddsgraph/internal/market"
)

// CostHeader asks for the cost of an operation in the extensions of its response.
const CostHeader = "X-Oddsgraph-Cost"

const (
	allowedMethods = "GET, HEAD, POST, OPTIONS"
	// varies are the headers that a response depends on.
	varies = "Accept, Accept-Encoding, Authorization, " + CredentialsHeader
	// writeTimeout is how long a client may take to take a response.
	writeTimeout = 30 * time.Second
)

// graphQL serves GraphQL over HTTP as https://graphql.github.io/graphql-over-http/draft/ has it, one response for each request.
type graphQL struct {
	engine *engine
	gate   *gate
	cfg    Config
}

// refusal is an error with the status of its response.
type refusal struct {
	status int
	error
}

// refuseAs returns a refusal of a request that is not a good one over HTTP.
func refuseAs(status int, format string, args ...any) error {
	return &refusal{status, badInput(format, args...)}
}

// Unwrap returns the error itself.
func (r *refusal) Unwrap() error { return r.error }

// ServeHTTP implements http.Handler.
func (g *graphQL) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	media := parseAccept(r.Header.Values("Accept")).response()
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	case http.MethodOptions:
		w.Header().Set("Allow", allowedMethods)
		w.Header().Set("Accept-Post", typeJSON)
		w.WriteHeader(http.StatusNoContent)
		return
	default:
		w.Header().Set("Allow", allowedMethods)
		g.refuse(w, r, refuseAs(http.StatusMethodNotAllowed, "send the query by POST or GET"))
		return
	}
	if media == "" {
		g.refuse(w, r, refuseAs(http.StatusNotAcceptable, "responses are %s or %s; accept one of them", typeResponse, typeJSON))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), g.cfg.Timeout)
	defer cancel()
	p, err := g.read(w, r)
	if err != nil {
		g.refuse(w, r, err)
		return
	}
	op, resp, err := g.perform(ctx, r.Method, p)
	switch {
	case err != nil:
		if op != nil && op.kind == ast.Mutation {
			w.Header().Set("Allow", "POST")
		}
		g.refuse(w, r, err)
	case op == nil:
		status := statusOf(resp)
		if media == typeJSON && status == http.StatusBadRequest {
			status = http.StatusOK // the request itself was well-formed, and that's all that this type's status can say
		}
		g.write(w, r, media, status, resp, nil)
	default:
		if r.Header.Get(CostHeader) != "" {
			resp.Extensions = withCost(resp.Extensions, op.cost)
		}
		g.write(w, r, media, statusOf(resp), resp, op)
	}
}

// perform makes the response of an operation when there is room for it. There is no operation with a response that refuses
// it. An error is one of the request. The room is free again when it returns, however long the client takes to read.
func (g *graphQL) perform(ctx context.Context, method string, p *params) (*operation, *graphql.Response, error) {
	leave, err := g.gate.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	op, refusal := g.engine.prepare(ctx, p)
	switch {
	case refusal != nil:
		return nil, refusal, nil
	case op.kind == ast.Subscription:
		return op, nil, refuseAs(http.StatusBadRequest, "a subscription needs a WebSocket, or accepts %s and nothing else", typeEvents)
	case op.kind == ast.Mutation && method != http.MethodPost:
		return op, nil, refuseAs(http.StatusMethodNotAllowed, "a mutation is sent by POST")
	}
	return op, g.engine.execute(ctx, op), nil
}

// withCost returns extensions with the cost of an operation.
func withCost(extensions map[string]any, cost guard.Cost) map[string]any {
	out := map[string]any{"cost": map[string]int64{"points": cost.Points, "upstreamCalls": cost.Calls}}
	maps.Copy(out, extensions)
	return out
}

// read reads what a request asks. The error is a refusal.
func (g *graphQL) read(w http.ResponseWriter, r *http.Request) (p *params, err error) {
	if r.Method == http.MethodPost {
		p, err = g.readBody(w, r)
	} else {
		p, err = parseQueryString(r.URL.RawQuery)
	}
	if err != nil {
		return nil, err
	}
	if id := r.PathValue("documentId"); id != "" {
		if p.Query != "" || p.DocumentID != "" {
			return nil, refuseAs(http.StatusBadRequest, "the document is named by the URL; send no other")
		}
		p.DocumentID = id
	}
	if p.Query == "" && p.DocumentID == "" && p.Extensions == nil {
		return nil, refuseAs(http.StatusBadRequest, "the request has no query")
	}
	return p, nil
}

// readBody reads what a body asks, which must be there within the time and the size that a body may have.
func (g *graphQL) readBody(w http.ResponseWriter, r *http.Request) (*params, error) {
	media, mediaParams, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil || media != typeJSON:
		return nil, refuseAs(http.StatusUnsupportedMediaType, "send the query in a JSON object, with the header Content-Type: application/json")
	case !utf8Charset(mediaParams):
		return nil, refuseAs(http.StatusUnsupportedMediaType, "send the query in UTF-8")
	case r.Header.Get("Content-Encoding") != "" && !strings.EqualFold(r.Header.Get("Content-Encoding"), "identity"):
		w.Header().Set("Accept-Encoding", "identity")
		return nil, refuseAs(http.StatusUnsupportedMediaType, "send the body without a Content-Encoding")
	case r.ContentLength > g.cfg.MaxBody:
		w.Header().Set("Connection", "close") // rather than to read what nobody needs
		return nil, refuseAs(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", g.cfg.MaxBody)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(g.cfg.BodyTimeout)) // the server lifts it at the body's end
	buf := getBuffer()
	defer putBuffer(buf)
	_, err = buf.ReadFrom(http.MaxBytesReader(w, r.Body, g.cfg.MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, refuseAs(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", g.cfg.MaxBody)
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return nil, refuseAs(http.StatusRequestTimeout, "the body took longer than %s", g.cfg.BodyTimeout)
	case err != nil:
		w.Header().Set("Connection", "close")
		return nil, refuseAs(http.StatusBadRequest, "the body could not be read")
	}
	p, err := parseParams(buf.Bytes())
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, err}
	}
	return p, nil
}

// parseQueryString reads what the query string of a URL asks. Parameters of other names are passed over, such as those that
// keep caches apart. The error is a refusal.
func parseQueryString(raw string) (*params, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, refuseAs(http.StatusBadRequest, "the query string of the URL is malformed")
	}
	p := &params{}
	for name, into := range map[string]*string{"query": &p.Query, "operationName": &p.OperationName, "documentId": &p.DocumentID} {
		if err := parameter(values, name, into); err != nil {
			return nil, err
		}
	}
	for name, into := range map[string]*json.RawMessage{"variables": &p.Variables, "extensions": &p.Extensions} {
		var text string
		if err := parameter(values, name, &text); err != nil {
			return nil, err
		}
		if text = strings.TrimSpace(text); text == "" || text == "null" {
			continue
		}
		if text[0] != '{' || !json.Valid([]byte(text)) {
			return nil, refuseAs(http.StatusBadRequest, "the parameter %s is not a JSON object", name)
		}
		*into = json.RawMessage(text)
	}
	return p, nil
}

func parameter(values url.Values, name string, into *string) error {
	switch list := values[name]; {
	case len(list) > 1:
		return refuseAs(http.StatusBadRequest, "the parameter %s was sent %d times; send it once", name, len(list))
	case len(list) == 1 && !utf8.ValidString(list[0]):
		return refuseAs(http.StatusBadRequest, "the parameter %s is not UTF-8", name)
	case len(list) == 1:
		*into = list[0]
	}
	return nil
}

// refuse answers a request that is not executed.
func (g *graphQL) refuse(w http.ResponseWriter, r *http.Request, err error) {
	resp := g.engine.refuse(r.Context(), err)
	status := statusOf(resp)
	var known *refusal
	if errors.As(err, &known) {
		status = known.status
	}
	media := parseAccept(r.Header.Values("Accept")).response()
	if media == "" {
		media = typeJSON
	}
	g.write(w, r, media, status, resp, nil)
}

// statusOf returns the status of a response: 200 where there are data, else what its first error says.
func statusOf(resp *graphql.Response) int {
	if resp.Data != nil || len(resp.Errors) == 0 {
		return http.StatusOK
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

// write writes a response. op is nil where nothing was executed.
func (g *graphQL) write(w http.ResponseWriter, r *http.Request, media string, status int, resp *graphql.Response, op *operation) {
	buf := getBuffer()
	defer putBuffer(buf)
	buf.Write(appendResponse(buf.AvailableBuffer(), resp))
	body := buf.Bytes()

	h := w.Header()
	h.Add("Vary", varies)
	h.Set("Content-Type", media+"; charset=utf-8")
	h.Set("Cache-Control", noStore)
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="oddsgraph"`)
	}
	if wait := retryAfterOf(resp); wait > 0 && status >= 400 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	encoding := ""
	if len(body) >= minCompressed {
		encoding = negotiateEncoding(r.Header.Values("Accept-Encoding"))
	}
	if op != nil && status == http.StatusOK && r.Method != http.MethodPost && len(resp.Errors) == 0 && r.Header.Get(CostHeader) == "" {
		h.Set("Cache-Control", op.policy.header(identified(r.Context())))
		if !op.policy.noStore {
			tag := entityTag(media, body)
			if encoding != "" {
				tag = "W/" + tag // the coded bytes are others each, though they say the same
			}
			h.Set("ETag", tag)
			if matches(r.Header.Values("If-None-Match"), tag) {
				h.Del("Content-Type")
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
	}
	if encoding != "" {
		coded := getBuffer()
		defer putBuffer(coded)
		compress(coded, body, encoding)
		body = coded.Bytes()
		h.Set("Content-Encoding", encoding)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	w.WriteHeader(status)
	_, _ = w.Write(body) // who does not read it has gone
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
