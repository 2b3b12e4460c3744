package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/graph/exec"
	"oddsgraph/httpapi/limits"
	"oddsgraph/httpapi/persisted"
	"oddsgraph/httpapi/quota"
	"oddsgraph/httpapi/respcache"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// engine makes operations of what clients ask and responses of operations, for every transport alike. It is safe for
// concurrent use.
type engine struct {
	cfg        Config
	identities *identities
	guard      *limits.Guard
	schema     *ast.Schema
	documents  *documentCache
	// compiling bounds how many unknown documents are parsed, validated and compiled at once.
	compiling *gate
	// responses are those that are kept; nil where none are.
	responses *respcache.Cache
	// producing bounds how many events are executed at once.
	producing *gate
	// outgoing is the room for what clients have not read yet.
	outgoing *quota.Memory
	// leftUnread counts the responses and event streams that had no room because their client left too much unread, by transport.
	leftUnread [len(transportNames)]atomic.Uint64
	present    graphql.ErrorPresenterFunc
	recover    graphql.RecoverFunc
}

func newEngine(cfg Config, who *identities) *engine {
	cfg.MaxResponse, cfg.MaxOutput = cmp.Or(cfg.MaxResponse, 8<<20), cmp.Or(cfg.MaxOutput, 64<<20)
	cfg.EventsPerSecond = cmp.Or(cfg.EventsPerSecond, 16<<20)
	e := &engine{
		cfg:        cfg,
		identities: who,
		schema:     cfg.Compiler.Schema(),
		guard:      cfg.Guard,
		documents:  newDocumentCache(cfg),
		compiling:  newGate(runtime.GOMAXPROCS(0), cfg.Operations, min(cfg.QueueTimeout, cfg.Timeout)),
		responses:  newResponses(cfg),
		outgoing:   quota.NewMemory(cfg.MaxOutput),
		producing:  newGate(runtime.GOMAXPROCS(0), math.MaxInt32, time.Hour), // subscriptions are bounded elsewhere
		present:    resolvers.Presenter(cfg.Log, cfg.RequestID),
		recover:    resolvers.Recover,
	}
	return e
}

// operation is a request that was found good. It is executed once.
type operation struct {
	// turn is the one in which it executes.
	turn     turn
	document *document
	plan     *plan
	// name is what the client says of which operation of the document it means; may be "" for the only one.
	name       string
	definition *ast.OperationDefinition
	// given is the text of the variables, a JSON object or ""; variables are what it says, with defaults filled in.
	given     string
	variables map[string]any
	// simple tells that the variables hold on to their whole text, so that nothing of them must be kept for long.
	simple bool
	// points are its cost, calls the upstream calls that executing it took.
	points int64
	calls  int

	// deadline is when executing it ends at the latest; zero where its context says that.
	deadline time.Time
	// buffer is where the response may be made, which is the caller's; nil for memory of its own. ready tells that the whole
	// response is in it.
	buffer *bytes.Buffer
	ready  bool
	// room is what the response takes until its client has it.
	room room

	canonical []byte
	// recorder holds what the response of a query rests on, once that is there.
	recorder *reqctx.Dependencies
}

// kind returns query, mutation or subscription.
func (o *operation) kind() ast.Operation { return o.definition.Operation }

// canonicalVariables returns the variables, defaults filled in and those that are not declared left out, as JSON with sorted
// keys: equal variables are equal bytes. The caller must not change them.
func (o *operation) canonicalVariables() []byte {
	if o.canonical == nil {
		b, err := json.Marshal(o.variables)
		if err != nil {
			panic("httpapi: variables that came as JSON: " + err.Error())
		}
		o.canonical = b
	}
	return o.canonical
}

// prepare makes an operation of what a client asks, or the response that refuses it, which has no data. The operation's turn must be
// ended. It begins when the document is known: what waits to be compiled keeps no place of those that execute. prepare reads nothing
// of the venue. What is known of the operation is noted in j.
func (e *engine) prepare(ctx context.Context, j *reqctx.Log, p *params, enter func(context.Context, *turn) error) (op *operation, refusal *graphql.Response) {
	op = &operation{}
	named, doc, err := e.find(ctx, p)
	if err == nil {
		err = enter(ctx, &op.turn)
	}
	if err != nil {
		return nil, e.refuse(ctx, err)
	}
	if errs := e.compile(ctx, j, p, named, doc, op); len(errs) > 0 {
		op.turn.end()
		return nil, e.refuse(ctx, errs...)
	}
	return op, nil
}

// find returns the document that a client asks for.
func (e *engine) find(ctx context.Context, p *params) (named persisted.Document, doc *document, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = e.recover(ctx, v)
		}
	}()
	named, err = e.cfg.Documents.Resolve(persisted.Request{Query: p.Query, DocumentID: p.DocumentID, Extensions: p.Extensions})
	if err != nil {
		return named, nil, err
	}
	doc, err = e.load(ctx, named)
	return named, doc, err
}

// compile makes op an operation of a document that a client has named so. Its turn has begun.
func (e *engine) compile(ctx context.Context, j *reqctx.Log, p *params, named persisted.Document, doc *document, op *operation) (errs []error) {
	defer func() {
		if v := recover(); v != nil {
			errs = []error{e.recover(ctx, v)}
		}
	}()
	if len(doc.errs) > 0 {
		return doc.errs
	}
	named.Register()
	definition := doc.ast.Operations.ForName(p.OperationName)
	if definition == nil {
		if p.OperationName == "" {
			return validationErrors(gqlerror.Errorf("the document holds several operations; say which one in operationName"))
		}
		return validationErrors(gqlerror.Errorf("operation %.128s not found", p.OperationName))
	}
	op.room, op.document, op.plan = e.newRoom(identityFrom(ctx).client, j.Transport), doc, doc.plans[definition]
	op.name, op.definition, op.given = p.OperationName, definition, p.Variables
	j.Info, j.Trusted = op.plan.asked, named.Name
	var err error
	if err = e.guard.Variables(p.Variables); err != nil {
		return []error{err}
	}
	if op.variables, op.simple = op.plan.simple.read(p.Variables); !op.simple {
		if op.variables, err = variables(e.schema, definition, p.Variables); err != nil {
			return validationErrors(err)
		}
	}
	if op.points, err = op.plan.cost.Cost(op.variables); err != nil {
		return []error{err}
	}
	j.Points = op.points
	return nil
}

// load returns a document. One that is not kept waits until it may be compiled.
func (e *engine) load(ctx context.Context, named persisted.Document) (*document, error) {
	if doc := e.documents.find(named.Text); doc != nil {
		return doc, nil
	}
	leave, err := e.compiling.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return e.documents.load(named.Text, named.Name != ""), nil
}

// execute returns the response of a query; if its time is over before that begins, it says so.
func (e *engine) execute(ctx context.Context, op *operation) *graphql.Response {
	if resp := e.executeInTime(ctx, op); resp != nil {
		return resp
	}
	if cause := context.Cause(ctx); cause != nil {
		return e.refuse(ctx, cause)
	}
	return e.refuse(ctx, context.DeadlineExceeded)
}

// executeInTime returns the response of a query, nil where its time was over before that began.
func (e *engine) executeInTime(ctx context.Context, op *operation) (resp *graphql.Response) {
	defer func() {
		if v := recover(); v != nil {
			resp = e.refuse(ctx, e.recover(ctx, v))
		}
	}()
	if ctx.Err() != nil {
		return nil
	}
	ctx, set, recorder := loaders.With(ctx, e.cfg.Sources)
	defer set.Done()
	op.recorder = recorder
	into := op.prefix()
	guessed := func(bool) {}
	begin := func(ctx context.Context) (err error) {
		if recorder.ReadsAccount() {
			if guessed, err = e.identities.guess(ctx); err != nil {
				guessed = func(bool) {}
				return &refusal{http.StatusTooManyRequests, err}
			}
		}
		return awaitVenue(ctx)
	}
	defer func() { guessed(recorder.AnsweredAccount() && !unauthenticated(resp)) }()
	data, errs, ok := passes(ctx, op.deadline, set, &op.room, begin, func() ([]byte, []exec.Error) {
		return op.plan.executable.Execute(ctx, op.variables, into, &op.room)
	})
	if op.calls = set.Calls(); !ok {
		return nil
	}
	if err := set.Refused(); err != nil {
		return e.tooManyCalls(ctx, err, errs)
	}
	if op.room.crowded() {
		return e.refuse(ctx, op.room.refused)
	}
	return e.respond(ctx, op, into, data, errs)
}

// tooManyCalls returns the response of a query that would take too many calls, which has no data. Its error has the path of the first
// field that could not be read.
func (e *engine) tooManyCalls(ctx context.Context, cause error, errs []exec.Error) *graphql.Response {
	for i := range errs {
		if errors.Is(&errs[i], cause) {
			cause = &errs[i]
			break
		}
	}
	return e.refuse(ctx, cause)
}

// prefix returns what stands before the data of the response, in the caller's buffer where there is one.
func (o *operation) prefix() []byte {
	if o.buffer == nil {
		return nil
	}
	return append(o.buffer.AvailableBuffer(), `{"data":`...)
}

// respond returns the response with data that were appended to into, and with errors. Where it is in the caller's buffer, its Data
// only say whether there are any.
func (e *engine) respond(ctx context.Context, op *operation, into, data []byte, errs []exec.Error) *graphql.Response {
	if len(errs) == 0 {
		if op.buffer != nil {
			op.buffer.Write(append(data, '}'))
			op.ready = true
		}
		return &graphql.Response{Data: data[len(into):]}
	}
	resp := &graphql.Response{Errors: e.presented(ctx, errs)}
	if data != nil {
		resp.Data = data[len(into):]
	}
	e.identities.note(ctx, resp)
	if op.buffer == nil {
		return resp
	}
	whole := getBuffer()
	defer putBuffer(whole)
	whole.Write(appendResponse(whole.AvailableBuffer(), resp))
	switch size := whole.Len(); { // errors were counted before they were written
	case size > op.room.most:
		resp = &graphql.Response{Data: json.RawMessage("null"), Errors: gqlerror.List{e.present(ctx, op.room.tooLarge())}}
		whole.Reset()
		whole.Write(appendResponse(whole.AvailableBuffer(), resp))
	case !op.room.hold(size):
		return e.refuse(ctx, op.room.refused)
	}
	op.buffer.Write(whole.Bytes()) // where the data were until now
	if op.ready = true; data != nil {
		resp.Data = op.buffer.Bytes()
	}
	return resp
}

// presented returns the errors of an execution as clients see them.
func (e *engine) presented(ctx context.Context, errs []exec.Error) gqlerror.List {
	list := make(gqlerror.List, len(errs))
	for i := range errs {
		list[i] = e.present(ctx, &errs[i])
	}
	resolvers.SortErrors(list)
	return list
}

// passes executes an operation until a pass finds all that it reads. When the time is over, a last pass turns what is missing
// into errors. A response that has no room is not executed again. ok is false where the time was over before anything could be
// fetched. begin is called before the first fetch; a refusal of it ends the operation. A zero deadline is that of ctx.
func passes(ctx context.Context, deadline time.Time, set *loaders.Set, room *room, begin func(context.Context) error, execute func() ([]byte, []exec.Error)) (data []byte, errs []exec.Error, ok bool) {
	if data, errs = execute(); !set.Pending() || room.refused != nil {
		return data, errs, true
	}
	if !deadline.IsZero() { // which a response from memory does not need
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	if err := begin(ctx); errors.As(err, new(*refusal)) {
		room.refused = err
		return data, errs, true
	}
	if ctx.Err() != nil {
		return nil, nil, false
	}
	for set.Pending() && room.refused == nil {
		if err := set.Fetch(ctx); err != nil {
			set.Fail(err)
		}
		data, errs = execute()
	}
	return data, errs, true
}

// catch, deferred, makes a refusal of a panic on a goroutine that nobody else guards.
func (e *engine) catch(ctx context.Context, refuse func(*graphql.Response)) {
	if v := recover(); v != nil {
		refuse(e.refuse(ctx, e.recover(ctx, v)))
	}
}

// refuse returns the response of a request that is not executed. Its errors hold their causes, which clients do not see.
func (e *engine) refuse(ctx context.Context, errs ...error) *graphql.Response {
	resp := &graphql.Response{Errors: make(gqlerror.List, len(errs))}
	for i, err := range errs {
		resp.Errors[i] = e.present(ctx, err)
		resp.Errors[i].Err = err
	}
	resolvers.SortErrors(resp.Errors)
	resp.Errors = bounded(resp.Errors)
	return resp
}

// problem returns the response for a problem of a subscription: its data are null while the subscription goes on, and missing at
// its end.
func (e *engine) problem(ctx context.Context, turn resolvers.StreamEvent) *graphql.Response {
	resp := &graphql.Response{Errors: gqlerror.List{e.present(ctx, turn.Problem)}}
	if !turn.Ended {
		resp.Data = json.RawMessage("null")
	}
	return resp
}

func codeOf(err *gqlerror.Error) string {
	code, _ := err.Extensions["code"].(string)
	return code
}

// badInput is a refusal of what cannot be an operation.
func badInput(format string, args ...any) error {
	return market.Errorf(market.CodeBadUserInput, format, args...)
}
