package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/httpapi/admission"
	"oddsgraph/httpapi/content"
	"oddsgraph/httpapi/quota"
	"oddsgraph/httpapi/respcache"
	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
)

// CostHeader requests the cost of an operation in the extensions of its response.
const CostHeader = "X-Oddsgraph-Cost"

const (
	allowedMethods = "GET, HEAD, POST, OPTIONS"
	// varies lists the request headers that a response depends on.
	varies = "Accept, Accept-Encoding, Authorization, " + CredentialsHeader
	// writeTimeout limits how long a client may take to read a response.
	writeTimeout = 30 * time.Second
)

// graphQL serves GraphQL over HTTP with one response for each request, as https://graphql.github.io/graphql-over-http/draft/
// specifies.
type graphQL struct {
	engine *engine
	places *admission.Limiter
	// incoming bounds the memory of clients' bodies and messages.
	incoming *quota.Memory
}

type httpError struct {
	status int
	error
}

func httpErrorf(status int, format string, args ...any) error {
	return &httpError{status, badInput(format, args...)}
}

func (r *httpError) Unwrap() error { return r.error }

// retryAfter is how long a refused client should wait before its next attempt.
const retryAfter = time.Second

// errBusy refuses a request or an operation for which no place or no memory is left.
var errBusy = unavailable("the service has too much to do; try again in a moment")

// unavailable returns the error of a client that should try again soon.
func unavailable(text string) error {
	err := market.Errorf(market.CodeRateLimited, "%s", text)
	err.RetryAfter = retryAfter
	return &httpError{http.StatusServiceUnavailable, err}
}

func (g *graphQL) serve(w http.ResponseWriter, r *httpRequest) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	case http.MethodOptions:
		w.Header().Set("Allow", allowedMethods)
		w.Header().Set("Accept-Post", content.JSON)
		w.WriteHeader(http.StatusNoContent)
		return
	default:
		w.Header().Set("Allow", allowedMethods)
		g.reject(w, r, httpErrorf(http.StatusMethodNotAllowed, "send the query by POST or GET"))
		return
	}
	if r.Media == "" {
		g.reject(w, r, httpErrorf(http.StatusNotAcceptable, "responses are %s or %s; accept one of them", content.Response, content.JSON))
		return
	}
	text, err := g.readText(w, r)
	if err != nil {
		g.reject(w, r, err)
		return
	}
	defer text.Release()
	log := g.engine.newLog(r.Context(), transportHTTP, r.Header)
	if cached := g.engine.findByBytes(r, log, text.Bytes()); cached != nil {
		var memory reservation
		if len(cached.Body) > quota.FreeBytes {
			memory = g.engine.newReservation(g.engine.identities.counted(r.identity), transportHTTP)
			if !memory.hold(len(cached.Body)) {
				g.writeError(w, r, log, memory.err)
				return
			}
			defer memory.settle(0)
		}
		g.writeCached(w, r, log, cached, &memory)
		return
	}
	p, err := g.parseText(r, text.Bytes())
	if err != nil {
		g.writeError(w, r, log, err)
		return
	}
	done, err := g.perform(r, log, p)
	g.writeResult(w, r, log, text.Bytes(), p, &done, err)
}

// writeResult sends the result of perform. The parameter text is the body or the query string of the request.
func (g *graphQL) writeResult(w http.ResponseWriter, r *httpRequest, log *request.Log, text []byte, p *params, done *result, err error) {
	memory, op := done.takeReservation(), done.operation
	done.operation = nil // the operation can be garbage collected while the client reads
	defer memory.settle(0)
	switch {
	case err != nil:
		memory.settle(0)
		if op != nil && op.kind() == ast.Mutation {
			w.Header().Set("Allow", "POST")
		}
		g.writeError(w, r, log, err)
	case done.cached != nil:
		g.engine.storeByBytes(r, log, text, p, op, done.cached)
		g.writeCached(w, r, log, done.cached, &memory)
	case op == nil:
		status := statusOf(done.response)
		if r.Media == content.JSON && status == http.StatusBadRequest {
			status = http.StatusOK // for this media type, the status says only that the HTTP request was valid
		}
		memory = g.engine.newReservation(g.engine.identities.counted(r.identity), transportHTTP)
		g.write(w, r, log, r.Media, status, done.response, nil, &memory)
	default:
		if wantsCost(r) {
			if done.response.Extensions == nil {
				done.response.Extensions = map[string]any{}
			}
			done.response.Extensions["cost"] = map[string]int64{"points": op.points, "upstreamCalls": int64(op.calls)}
		}
		g.write(w, r, log, r.Media, statusOf(done.response), done.response, op, &memory)
	}
}

// result is the result of perform: a response or a cached response. operation is nil if engine.prepare has rejected the request.
type result struct {
	operation *operation
	response  *graphql.Response
	cached    *respcache.Response
}

func (p *result) takeReservation() (left reservation) {
	if p.operation != nil {
		left, p.operation.memory = p.operation.memory, reservation{}
	}
	return left
}

// perform executes the operation of a request within Config.Timeout. It ends the operation's slot before it returns. The calling
// function must settle the reservation of the operation after the response was sent.
func (g *graphQL) perform(r *httpRequest, log *request.Log, p *params) (done result, err error) {
	ctx, deadline := g.engine.identities.reading(r.Context(), log), log.Started.Add(g.engine.cfg.Timeout)
	op, rejected := g.engine.prepare(ctx, log, p, g.places.Begin)
	if rejected != nil {
		done.response = rejected
		return done, nil
	}
	defer op.slot.End()
	done.operation = op
	switch {
	case op.kind() == ast.Subscription:
		err = httpErrorf(http.StatusBadRequest, "a subscription needs a WebSocket, or accepts %s and nothing else", content.Events)
	case op.kind() == ast.Mutation && r.Method != http.MethodPost:
		err = httpErrorf(http.StatusMethodNotAllowed, "a mutation is sent by POST")
	case log.Explained:
		log.Response, op.deadline = verdictBypass, deadline
		done.response = g.engine.explained(ctx, log, op, r.Media)
	case g.engine.cacheable(op) && !wantsCost(r):
		ctx, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		if done.cached, err = g.engine.cachedOrExecuted(ctx, log, op, r.Media); err == nil && !op.memory.hold(len(done.cached.Body)) {
			err = op.memory.err
		}
	default:
		if g.engine.cacheable(op) {
			log.Response = verdictBypass
		}
		op.deadline = deadline
		if !wantsCost(r) {
			op.buffer = getBuffer()
		}
		done.response = g.engine.execute(ctx, op)
	}
	return done, err
}

// parseText parses the body or the query string. The error is an httpError.
func (g *graphQL) parseText(r *httpRequest, text []byte) (p *params, err error) {
	if r.Method != http.MethodPost {
		p, err = parseQueryString(string(text))
	} else if p, err = parseParams(text); err != nil {
		err = &httpError{http.StatusBadRequest, err}
	}
	if err != nil {
		return nil, err
	}
	if id := r.PathValue("documentId"); id != "" {
		if p.Query != "" || p.DocumentID != "" {
			return nil, httpErrorf(http.StatusBadRequest, "the document is named by the URL; send no other")
		}
		p.DocumentID = id
	}
	if p.Query == "" && p.DocumentID == "" && p.Extensions == nil {
		return nil, httpErrorf(http.StatusBadRequest, "the request has no query")
	}
	return p, nil
}

// readText reads the query string of a request, or its JSON body of at most Config.MaxBody bytes. The server's read timeout bounds the
// time. The calling function must release the text. The error is an httpError.
func (g *graphQL) readText(w http.ResponseWriter, r *httpRequest) (text *quota.Body, err error) {
	if r.Method != http.MethodPost {
		if text, err = g.incoming.Read(r.address, strings.NewReader(r.URL.RawQuery)); err != nil {
			err = errBusy
		}
		return text, err
	}
	if err = checkContentType(r.header("Content-Type")); err != nil {
		return nil, err
	}
	switch coding := r.header("Content-Encoding"); {
	case coding != "" && !strings.EqualFold(coding, "identity"):
		w.Header().Set("Accept-Encoding", "identity")
		return nil, httpErrorf(http.StatusUnsupportedMediaType, "send the body without a Content-Encoding")
	case r.ContentLength > g.engine.cfg.MaxBody:
		w.Header().Set("Connection", "close") // with this header the server does not read the rest of the body
		return nil, httpErrorf(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", g.engine.cfg.MaxBody)
	}
	var body io.Reader = r.Body
	if r.ContentLength < 0 { // otherwise the server reads at most ContentLength
		body = http.MaxBytesReader(w, r.Body, g.engine.cfg.MaxBody)
	}
	if text, err = g.incoming.Read(r.address, body); err == nil {
		_ = r.Body.Close() // after this the server does not try to read more
		return text, nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, httpErrorf(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", g.engine.cfg.MaxBody)
	}
	w.Header().Set("Connection", "close")
	switch {
	case errors.Is(err, quota.ErrNoMemory):
		return nil, errBusy
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, httpErrorf(http.StatusRequestTimeout, "the body took longer than %s", g.engine.cfg.BodyTimeout)
	default:
		return nil, httpErrorf(http.StatusBadRequest, "the body could not be read")
	}
}

func checkContentType(value string) error {
	if value == content.JSON {
		return nil
	}
	media, params, err := mime.ParseMediaType(value)
	switch {
	case err != nil || media != content.JSON:
		return httpErrorf(http.StatusUnsupportedMediaType, "send the query in a JSON object, with the header Content-Type: application/json")
	case !content.IsUTF8(params):
		return httpErrorf(http.StatusUnsupportedMediaType, "send the query in UTF-8")
	}
	return nil
}

// parseQueryString parses the query string of a URL. It ignores unknown parameters, which clients may add to bypass caches. The
// error is an httpError.
func parseQueryString(raw string) (*params, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, httpErrorf(http.StatusBadRequest, "the query string of the URL is malformed")
	}
	p := &params{}
	for name, into := range map[string]*string{"query": &p.Query, "operationName": &p.OperationName, "documentId": &p.DocumentID} {
		if err := parameter(values, name, into); err != nil {
			return nil, err
		}
	}
	var extensions string
	for name, into := range map[string]*string{"variables": &p.Variables, "extensions": &extensions} {
		if err := parameter(values, name, into); err != nil {
			return nil, err
		}
		if *into = strings.TrimSpace(*into); *into == "null" {
			*into = ""
		}
		if *into != "" && ((*into)[0] != '{' || !json.Valid([]byte(*into))) {
			return nil, httpErrorf(http.StatusBadRequest, "the parameter %s is not a JSON object", name)
		}
	}
	if extensions != "" {
		p.Extensions = json.RawMessage(extensions)
	}
	return p, nil
}

func parameter(values url.Values, name string, into *string) error {
	switch list := values[name]; {
	case len(list) > 1:
		return httpErrorf(http.StatusBadRequest, "the parameter %s was sent %d times; send it once", name, len(list))
	case len(list) == 1 && !utf8.ValidString(list[0]):
		return httpErrorf(http.StatusBadRequest, "the parameter %s is not UTF-8", name)
	case len(list) == 1:
		*into = list[0]
	}
	return nil
}

// reject starts the log of a request and sends an error response.
func (g *graphQL) reject(w http.ResponseWriter, r *httpRequest, err error) {
	g.writeError(w, r, g.engine.newLog(r.Context(), transportHTTP, r.Header), err)
}

func (g *graphQL) writeError(w http.ResponseWriter, r *httpRequest, log *request.Log, err error) {
	resp := g.engine.errorResponse(r.Context(), err)
	media := r.Media
	if media == "" {
		media = content.JSON
	}
	memory := g.engine.newReservation(g.engine.identities.counted(r.identity), transportHTTP)
	defer memory.settle(0)
	g.write(w, r, log, media, statusOf(resp), resp, nil, &memory)
}
