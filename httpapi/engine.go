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

// engine turns requests into operations and executes them, in the same way for every transport. It is safe for concurrent use.
type engine struct {
	cfg        Config
	identities *identities
	guard      *limits.Guard
	schema     *ast.Schema
	documents  *documentCache
	// compileLimiter bounds the number of unknown documents that are parsed, validated and compiled at the same time.
	compileLimiter *limiter
	// responses caches responses; nil if the cache is off.
	responses *respcache.Cache
	// eventLimiter bounds the number of events that are executed at the same time.
	eventLimiter *limiter
	// outgoing bounds the output that clients have not read yet.
	outgoing *quota.Memory
	// leftUnread is the number of responses and event streams, by transport, that failed because clients did not read their
	// output.
	leftUnread [len(transportNames)]atomic.Uint64
	present    graphql.ErrorPresenterFunc
	recover    graphql.RecoverFunc
}

func newEngine(cfg Config, who *identities) *engine {
	cfg.MaxResponse, cfg.MaxOutput = cmp.Or(cfg.MaxResponse, 8<<20), cmp.Or(cfg.MaxOutput, 64<<20)
	cfg.EventsPerSecond = cmp.Or(cfg.EventsPerSecond, 16<<20)
	return &engine{
		cfg:            cfg,
		identities:     who,
		schema:         cfg.Compiler.Schema(),
		guard:          cfg.Guard,
		documents:      newDocumentCache(cfg),
		compileLimiter: newLimiter(runtime.GOMAXPROCS(0), cfg.Operations, min(cfg.QueueTimeout, cfg.Timeout)),
		responses:      newResponses(cfg),
		outgoing:       quota.NewMemory(cfg.MaxOutput),
		eventLimiter:   newLimiter(runtime.GOMAXPROCS(0), math.MaxInt32, time.Hour), // subscriptions are bounded elsewhere
		present:        resolvers.Presenter(cfg.Log, cfg.RequestID),
		recover:        resolvers.Recover,
	}
}

// operation is a valid request. It is executed once.
type operation struct {
	// slot is the context of the operation. The limiters count the operation until the slot ends.
	slot     slot
	document *document
	plan     *plan
	// name is the operation's name from the request; it may be "" if the document has one operation.
	name       string
	definition *ast.OperationDefinition
	// given is the JSON object of the variables, or "" if the request has none. variables are the decoded values with defaults.
	given     string
	variables map[string]any
	// shared reports whether the values of variables share the memory of given. Shared values must not be stored for long.
	shared bool
	// points is the cost of the operation. calls is the number of calls to the venue during the execution.
	points int64
	calls  int

	// deadline ends the execution. If deadline is zero, the deadline of the context applies.
	deadline time.Time
	// buffer is the caller's buffer for the response; nil means that execute allocates one. ready reports whether buffer contains
	// the whole response.
	buffer *bytes.Buffer
	ready  bool
	// room is the response's reservation in the output budget.
	room room

	canonical []byte
	// recorder contains the dependencies of the response after the execution.
	recorder *reqctx.Dependencies
}

// kind returns query, mutation or subscription.
func (o *operation) kind() ast.Operation { return o.definition.Operation }

// canonicalVariables returns the declared variables with defaults as JSON with sorted keys. Equal variables have equal bytes.
// The caller must not change the bytes.
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

// prepare returns the operation of a request, or an error response without data. The caller must end the operation's slot. prepare
// gets the document before the slot, so an operation whose document waits for compilation does not count as running. prepare reads
// nothing from the venue. It writes the operation's name, document and cost to log.
func (e *engine) prepare(ctx context.Context, log *reqctx.Log, p *params, enter func(context.Context, *slot) error) (op *operation, rejected *graphql.Response) {
	op = &operation{}
	named, doc, err := e.find(ctx, p)
	if err == nil {
		err = enter(ctx, &op.slot)
	}
	if err != nil {
		return nil, e.errorResponse(ctx, err)
	}
	if errs := e.compile(ctx, log, p, named, doc, op); len(errs) > 0 {
		op.slot.end()
		return nil, e.errorResponse(ctx, errs...)
	}
	return op, nil
}

// find returns the document of a request.
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

// compile fills op from a document and from the operation name and the variables of the request.
func (e *engine) compile(ctx context.Context, log *reqctx.Log, p *params, named persisted.Document, doc *document, op *operation) (errs []error) {
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
	op.room, op.document, op.plan = e.newRoom(identityFrom(ctx).client, log.Transport), doc, doc.plans[definition]
	op.name, op.definition, op.given = p.OperationName, definition, p.Variables
	log.Info, log.Trusted = op.plan.info, named.Name
	var err error
	if err = e.guard.Variables(p.Variables); err != nil {
		return []error{err}
	}
	if op.variables, op.shared = op.plan.fast.read(p.Variables); !op.shared {
		if op.variables, err = variables(e.schema, definition, p.Variables); err != nil {
			return validationErrors(err)
		}
	}
	if op.points, err = op.plan.cost.Cost(op.variables); err != nil {
		return []error{err}
	}
	log.Points = op.points
	return nil
}

// load returns a document. If the document is unknown, load waits for the compile limiter and compiles it.
func (e *engine) load(ctx context.Context, named persisted.Document) (*document, error) {
	if doc := e.documents.find(named.Text); doc != nil {
		return doc, nil
	}
	release, err := e.compileLimiter.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return e.documents.load(named.Text, named.Name != ""), nil
}

// execute returns the response of a query. If the deadline passes before the execution, it returns an error response.
func (e *engine) execute(ctx context.Context, op *operation) *graphql.Response {
	if resp := e.executeInTime(ctx, op); resp != nil {
		return resp
	}
	if cause := context.Cause(ctx); cause != nil {
		return e.errorResponse(ctx, cause)
	}
	return e.errorResponse(ctx, context.DeadlineExceeded)
}

// executeInTime returns the response of a query. It returns nil if the deadline passed before anything was fetched.
func (e *engine) executeInTime(ctx context.Context, op *operation) (resp *graphql.Response) {
	defer func() {
		if v := recover(); v != nil {
			resp = e.errorResponse(ctx, e.recover(ctx, v))
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
				return &httpError{http.StatusTooManyRequests, err}
			}
		}
		return awaitVenue(ctx)
	}
	defer func() { guessed(recorder.AnsweredAccount() && !unauthenticated(resp)) }()
	data, errs, ok := runPasses(ctx, op.deadline, set, &op.room, begin, func() ([]byte, []exec.Error) {
		return op.plan.executable.Execute(ctx, op.variables, into, &op.room)
	})
	if op.calls = set.Calls(); !ok {
		return nil
	}
	if err := set.Refused(); err != nil {
		return e.tooManyCalls(ctx, err, errs)
	}
	if op.room.overloaded() {
		return e.errorResponse(ctx, op.room.err)
	}
	return e.respond(ctx, op, into, data, errs)
}

// tooManyCalls returns the error response of a query that needs too many calls. The error has the path of the first field that could
// not be read.
func (e *engine) tooManyCalls(ctx context.Context, cause error, errs []exec.Error) *graphql.Response {
	for i := range errs {
		if errors.Is(&errs[i], cause) {
			cause = &errs[i]
			break
		}
	}
	return e.errorResponse(ctx, cause)
}

// prefix returns the bytes before the data of the response, in the caller's buffer if there is one.
func (o *operation) prefix() []byte {
	if o.buffer == nil {
		return nil
	}
	return append(o.buffer.AvailableBuffer(), `{"data":`...)
}

// respond returns the response with errors and data. data begins with the bytes of into, which are not part of the response's data.
// If respond writes the response to the caller's buffer, the caller may use the field Data of the result only to find out whether
// the response has data: Data is nil if it has none.
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
	e.identities.countRefusal(ctx, resp)
	if op.buffer == nil {
		return resp
	}
	whole := getBuffer()
	defer putBuffer(whole)
	whole.Write(appendResponse(whole.AvailableBuffer(), resp))
	switch size := whole.Len(); { // errors may be larger than estimated
	case size > op.room.limit:
		resp = &graphql.Response{Data: json.RawMessage("null"), Errors: gqlerror.List{e.present(ctx, op.room.tooLarge())}}
		whole.Reset()
		whole.Write(appendResponse(whole.AvailableBuffer(), resp))
	case !op.room.hold(size):
		return e.errorResponse(ctx, op.room.err)
	}
	op.buffer.Write(whole.Bytes()) // overwrites the data, which the execution has written into the memory of the buffer
	if op.ready = true; data != nil {
		resp.Data = op.buffer.Bytes()
	}
	return resp
}

// presented returns the errors of an execution in the form for clients.
func (e *engine) presented(ctx context.Context, errs []exec.Error) gqlerror.List {
	list := make(gqlerror.List, len(errs))
	for i := range errs {
		list[i] = e.present(ctx, &errs[i])
	}
	resolvers.SortErrors(list)
	return list
}

// runPasses executes an operation until no key is missing. After the deadline, the last pass returns errors for missing keys. An
// operation whose response exceeds room is not executed again. begin is called before the first fetch; an httpError of begin ends
// the operation. If deadline is zero, the deadline of ctx applies. ok is false if the deadline passed before anything was fetched.
func runPasses(ctx context.Context, deadline time.Time, set *loaders.Set, room *room, begin func(context.Context) error, execute func() ([]byte, []exec.Error)) (data []byte, errs []exec.Error, ok bool) {
	if data, errs = execute(); !set.Pending() || room.err != nil {
		return data, errs, true
	}
	if !deadline.IsZero() { // a response from memory needs no timer
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	if err := begin(ctx); errors.As(err, new(*httpError)) {
		room.err = err
		return data, errs, true
	}
	if ctx.Err() != nil {
		return nil, nil, false
	}
	for set.Pending() && room.err == nil {
		if err := set.Fetch(ctx); err != nil {
			set.Fail(err)
		}
		data, errs = execute()
	}
	return data, errs, true
}

// catch recovers a panic and calls refuse with the error response for the panic. catch must be deferred. Use it on goroutines that
// have no other recover.
func (e *engine) catch(ctx context.Context, refuse func(*graphql.Response)) {
	if v := recover(); v != nil {
		refuse(e.errorResponse(ctx, e.recover(ctx, v)))
	}
}

// errorResponse returns the response to a request that is not executed. The errors in the response wrap their causes. Clients do
// not see the causes.
func (e *engine) errorResponse(ctx context.Context, errs ...error) *graphql.Response {
	resp := &graphql.Response{Errors: make(gqlerror.List, len(errs))}
	for i, err := range errs {
		resp.Errors[i] = e.present(ctx, err)
		resp.Errors[i].Err = err
	}
	resolvers.SortErrors(resp.Errors)
	resp.Errors = bounded(resp.Errors)
	return resp
}

// problem returns the response for an error of a subscription. The data of the response is null if the subscription continues. The
// response has no data if the subscription has ended.
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

// badInput returns an error with CodeBadUserInput.
func badInput(format string, args ...any) error {
	return market.Errorf(market.CodeBadUserInput, format, args...)
}
