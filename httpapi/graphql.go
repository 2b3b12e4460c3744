package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/httpapi/quota"
	"oddsgraph/httpapi/respcache"
	"oddsgraph/internal/market/reqctx"
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
	gates  gates
	// incoming is the room for what clients send.
	incoming *quota.Memory
	cfg      Config
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

// serve answers a request.
func (g *graphQL) serve(w http.ResponseWriter, r *request) {
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
	if r.media == "" {
		g.refuse(w, r, refuseAs(http.StatusNotAcceptable, "responses are %s or %s; accept one of them", typeResponse, typeJSON))
		return
	}
	text, err := g.readText(w, r)
	if err != nil {
		g.refuse(w, r, err)
		return
	}
	defer text.Release()
	j := g.engine.begin(r.Context(), transportHTTP, r.Header)
	if kept := g.engine.repeat(r, j, text.Bytes()); kept != nil {
		if room := g.engine.newRoom(r.client, transportHTTP); room.hold(len(kept.Body)) {
			defer room.settle(0)
			g.writeKept(w, r, j, kept, &room)
		} else {
			g.turnDown(w, r, j, room.refused)
		}
		return
	}
	p, err := g.parseText(r, text.Bytes())
	if err != nil {
		g.turnDown(w, r, j, err)
		return
	}
	done, err := g.perform(r, j, p)
	room := done.leave() // so that the operation is garbage while the client reads
	defer room.settle(0)
	switch op := done.operation; {
	case err != nil:
		room.settle(0)
		if op != nil && op.kind() == ast.Mutation {
			w.Header().Set("Allow", "POST")
		}
		g.turnDown(w, r, j, err)
	case done.kept != nil:
		g.engine.remember(r, j, text.Bytes(), p, op, done.kept)
		g.writeKept(w, r, j, done.kept, &room)
	case op == nil:
		status := statusOf(done.response)
		if r.media == typeJSON && status == http.StatusBadRequest {
			status = http.StatusOK // the request itself was well-formed, and that's all that this type's status can say
		}
		room = g.engine.newRoom(r.client, transportHTTP)
		g.write(w, r, j, r.media, status, done.response, nil, &room)
	default:
		if asksForCost(r) {
			done.response.Extensions = withCost(done.response.Extensions, op)
		}
		g.write(w, r, j, r.media, room.status(statusOf(done.response)), done.response, op, &room)
	}
}

// performed is what became of a request: a response in either form, with the operation unless it was refused.
type performed struct {
	operation *operation
	response  *graphql.Response
	kept      *respcache.Response
}

// leave returns the room that the response has taken, which the operation does not have any more.
func (p *performed) leave() (left room) {
	if p.operation != nil {
		left, p.operation.room = p.operation.room, room{}
	}
	return left
}

// perform makes the response of an operation in its turn, in the time that it has. An error is one of the request. The turn has ended
// when it returns: what the client has still to read is in the room of the operation, which must be released.
func (g *graphQL) perform(r *request, j *reqctx.Log, p *params) (done performed, err error) {
	ctx, deadline := g.engine.identities.reading(r.Context()), j.Started.Add(g.cfg.Timeout)
	op, refusal := g.engine.prepare(ctx, j, p, g.gates.enter)
	if refusal != nil {
		done.response = refusal
		return done, nil
	}
	defer op.turn.end()
	ctx = &op.turn
	done.operation = op
	switch {
	case op.kind() == ast.Subscription:
		err = refuseAs(http.StatusBadRequest, "a subscription needs a WebSocket, or accepts %s and nothing else", typeEvents)
	case op.kind() == ast.Mutation && r.Method != http.MethodPost:
		err = refuseAs(http.StatusMethodNotAllowed, "a mutation is sent by POST")
	case j.Explained:
		j.Response, op.deadline = verdictBypass, deadline
		done.response = g.engine.explained(g.engine.noting(ctx, j), j, op, r.media)
	case g.engine.keeps(op) && !asksForCost(r):
		ctx, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		if done.kept, err = g.engine.answer(g.engine.noting(ctx, j), j, op, r.media); err == nil && !op.room.hold(len(done.kept.Body)) {
			err = op.room.refused
		}
	default:
		if g.engine.keeps(op) {
			j.Response = verdictBypass
		}
		op.deadline = deadline
		if !asksForCost(r) {
			op.buffer = getBuffer()
		}
		done.response = g.engine.execute(g.engine.noting(ctx, j), op)
	}
	return done, err
}

// withCost returns extensions with the cost of an operation that was executed.
func withCost(extensions map[string]any, op *operation) map[string]any {
	out := map[string]any{"cost": map[string]int64{"points": op.points, "upstreamCalls": int64(op.calls)}}
	maps.Copy(out, extensions)
	return out
}

// readText reads what a request asks as it was sent: the body, or the query string of the URL. The text must be released. The
// error is a refusal.
func (g *graphQL) readText(w http.ResponseWriter, r *request) (text *quota.Body, err error) {
	if r.Method == http.MethodPost {
		return g.readBody(w, r)
	}
	if text, err = g.incoming.Read(r.client, strings.NewReader(r.URL.RawQuery)); err != nil {
		err = busy()
	}
	return text, err
}

// parseText reads what a request asks from its text. The error is a refusal.
func (g *graphQL) parseText(r *request, text []byte) (p *params, err error) {
	if r.Method != http.MethodPost {
		p, err = parseQueryString(string(text))
	} else if p, err = parseParams(text); err != nil {
		err = &refusal{http.StatusBadRequest, err}
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

// readBody reads a body of the size that one may have. The server ends what takes too long.
func (g *graphQL) readBody(w http.ResponseWriter, r *request) (*quota.Body, error) {
	if err := checkContentType(r.said("Content-Type")); err != nil {
		return nil, err
	}
	switch coding := r.said("Content-Encoding"); {
	case coding != "" && !strings.EqualFold(coding, "identity"):
		w.Header().Set("Accept-Encoding", "identity")
		return nil, refuseAs(http.StatusUnsupportedMediaType, "send the body without a Content-Encoding")
	case r.ContentLength > g.cfg.MaxBody:
		w.Header().Set("Connection", "close") // rather than to read what nobody needs
		return nil, refuseAs(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", g.cfg.MaxBody)
	}
	var body io.Reader = r.Body
	if r.ContentLength < 0 { // else the server reads no more than that
		body = http.MaxBytesReader(w, r.Body, g.cfg.MaxBody)
	}
	text, err := g.incoming.Read(r.client, body)
	if err == nil {
		_ = r.Body.Close() // so that the server does not look for more of it
		return text, nil
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, quota.ErrNoRoom):
		w.Header().Set("Connection", "close")
		return nil, busy()
	case errors.As(err, &tooLarge):
		return nil, refuseAs(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", g.cfg.MaxBody)
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return nil, refuseAs(http.StatusRequestTimeout, "the body took longer than %s", g.cfg.BodyTimeout)
	default:
		w.Header().Set("Connection", "close")
		return nil, refuseAs(http.StatusBadRequest, "the body could not be read")
	}
}

// checkContentType refuses bodies that are no JSON in UTF-8.
func checkContentType(value string) error {
	if value == typeJSON {
		return nil
	}
	media, params, err := mime.ParseMediaType(value)
	switch {
	case err != nil || media != typeJSON:
		return refuseAs(http.StatusUnsupportedMediaType, "send the query in a JSON object, with the header Content-Type: application/json")
	case !utf8Charset(params):
		return refuseAs(http.StatusUnsupportedMediaType, "send the query in UTF-8")
	}
	return nil
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
	var extensions string
	for name, into := range map[string]*string{"variables": &p.Variables, "extensions": &extensions} {
		if err := parameter(values, name, into); err != nil {
			return nil, err
		}
		if *into = strings.TrimSpace(*into); *into == "null" {
			*into = ""
		}
		if *into != "" && ((*into)[0] != '{' || !json.Valid([]byte(*into))) {
			return nil, refuseAs(http.StatusBadRequest, "the parameter %s is not a JSON object", name)
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
		return refuseAs(http.StatusBadRequest, "the parameter %s was sent %d times; send it once", name, len(list))
	case len(list) == 1 && !utf8.ValidString(list[0]):
		return refuseAs(http.StatusBadRequest, "the parameter %s is not UTF-8", name)
	case len(list) == 1:
		*into = list[0]
	}
	return nil
}

// refuse answers a request of which nothing was noted so far.
func (g *graphQL) refuse(w http.ResponseWriter, r *request, err error) {
	g.turnDown(w, r, g.engine.begin(r.Context(), transportHTTP, r.Header), err)
}

// turnDown answers a request that is not executed.
func (g *graphQL) turnDown(w http.ResponseWriter, r *request, j *reqctx.Log, err error) {
	resp := g.engine.refuse(r.Context(), err)
	media := r.media
	if media == "" {
		media = typeJSON
	}
	room := g.engine.newRoom(r.client, transportHTTP)
	defer room.settle(0)
	g.write(w, r, j, media, statusOf(resp), resp, nil, &room)
}
