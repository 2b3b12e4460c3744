package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/graph/exec"
	"oddsgraph/httpapi/admission"
	"oddsgraph/httpapi/persisted"
	"oddsgraph/httpapi/quota"
	"oddsgraph/httpapi/respcache"
	"oddsgraph/httpapi/validation"
	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// engine turns the requests of all transports into operations and executes them. It is safe for concurrent use.
type engine struct {
	cfg        Config
	identities *identities
	documents  *documentCache
	// compileLimiter bounds the number of unknown documents that are parsed, validated and compiled at the same time.
	compileLimiter *admission.Limiter
	responses      *respcache.Cache // nil if the response cache is disabled
	eventLimiter   *admission.Limiter
	// outgoing bounds the memory of the output that clients have not read yet.
	outgoing *quota.Memory
	// leftUnread counts, for each transport, the responses and event streams that failed because the client did not read.
	leftUnread [len(transportNames)]atomic.Uint64
	present    graphql.ErrorPresenterFunc
	recover    graphql.RecoverFunc
}

func newEngine(cfg Config, who *identities) *engine {
	cfg.MaxResponse, cfg.MaxOutput = cmp.Or(cfg.MaxResponse, 8<<20), cmp.Or(cfg.MaxOutput, 64<<20)
	return &engine{
		cfg:            cfg,
		identities:     who,
		documents:      newDocumentCache(cfg),
		compileLimiter: admission.New(who.countedIn, runtime.GOMAXPROCS(0), cfg.Operations, min(cfg.QueueTimeout, cfg.Timeout), errBusy),
		responses:      newResponses(cfg, who),
		outgoing:       quota.NewMemory(cfg.MaxOutput),
		eventLimiter:   admission.New(who.countedIn, runtime.GOMAXPROCS(0), math.MaxInt32, time.Hour, errBusy), // Config.Clients bounds the subscriptions
		present:        resolvers.Presenter(cfg.Log),
		recover:        resolvers.Recover,
	}
}

// operation is a valid request.
type operation struct {
	// slot is the operation's place in the limiter. slot.End gives up the place.
	slot     admission.Slot
	document *document
	plan     *plan
	// name is the operationName of the request. It may be "" if the document has one operation.
	name       string
	definition *ast.OperationDefinition
	literal    bool // see persisted.Document
	// variables are the decoded variables with default values.
	variables map[string]any
	points    int64 // cost of the operation
	calls     int   // number of calls to the venue during the execution

	// deadline ends the execution. If deadline is zero, the deadline of the context applies.
	deadline time.Time
	// buffer receives the response. If buffer is nil, execute allocates memory for the response.
	buffer *bytes.Buffer
	ready  bool // true if buffer contains the whole response
	// memory counts the response as output that the client has not read.
	memory reservation

	canonical []byte
	// recorder contains the dependencies of the response after the execution.
	recorder *request.Dependencies
}

func (o *operation) kind() ast.Operation { return o.definition.Operation }

// canonicalVariables returns the declared variables and their default values as JSON with sorted keys. The bytes must not be
// changed.
func (o *operation) canonicalVariables() []byte {
	if o.canonical == nil {
		b, err := json.Marshal(o.variables)
		if err != nil {
			panic("httpapi: the variables were decoded from JSON, but cannot be encoded: " + err.Error())
		}
		o.canonical = b
	}
	return o.canonical
}

// prepare returns the operation of a request, or an error response without data. It calls acquire to fill the slot of the
// operation, but only after it has parsed and validated the document. So the operation does not count as running before that.
// prepare writes the operation's name, document and cost to the log. If op is not nil, the calling function must call op.slot.End.
func (e *engine) prepare(ctx context.Context, log *request.Log, p *params, acquire func(context.Context, *admission.Slot) error) (op *operation, rejected *graphql.Response) {
	op = &operation{}
	named, doc, err := e.find(ctx, p)
	if err == nil {
		err = acquire(ctx, &op.slot) // memory and goroutines: a place among all operations
	}
	if err != nil {
		return nil, e.errorResponse(ctx, err)
	}
	if errs := e.compile(ctx, log, p, named, doc, op); len(errs) > 0 {
		op.slot.End()
		return nil, e.errorResponse(ctx, errs...)
	}
	return op, nil
}

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

func (e *engine) compile(ctx context.Context, log *request.Log, p *params, named persisted.Document, doc *document, op *operation) (errs []error) {
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
	op.memory, op.document, op.plan = e.newReservation(e.identities.countedIn(ctx), log.Transport), doc, doc.plans[definition]
	op.name, op.definition, op.literal = p.OperationName, definition, named.Literal
	log.Info, log.Trusted = op.plan.info, named.Name
	err := e.cfg.Guard.Variables(p.Variables)
	if err != nil {
		return []error{err}
	}
	if op.variables, err = validation.Variables(e.documents.schema, definition, p.Variables); err != nil {
		return validationErrors(err)
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
	release, err := e.compileLimiter.Acquire(ctx) // a processor, because clients can send many large documents
	if err != nil {
		return nil, err
	}
	defer release()
	return e.documents.load(named.Text, named.Name != ""), nil
}

// execute is like executeInTime, but returns an error response if executeInTime returns nil.
func (e *engine) execute(ctx context.Context, op *operation) *graphql.Response {
	if resp := e.executeInTime(ctx, op, &op.slot); resp != nil {
		return resp
	}
	return e.errorResponse(ctx, cmp.Or(context.Cause(ctx), context.DeadlineExceeded))
}

// executeInTime returns the response of a query or mutation. It returns nil if ctx ended or op.deadline passed before the first
// fetch. The parameter place is the place of the request that waits for the response.
func (e *engine) executeInTime(ctx context.Context, op *operation, place *admission.Slot) (resp *graphql.Response) {
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
	defer func() {
		if account, ok := recorder.AnsweredAccount(); ok && !unauthenticated(resp) {
			e.identities.countAcceptance(ctx, account)
		}
	}()
	data, errs, ok := runPasses(ctx, op.deadline, set, place, &op.memory, func() ([]byte, []exec.Error) {
		return op.plan.executable.Execute(ctx, op.variables, into, &op.memory)
	})
	if op.calls = set.Calls(); !ok {
		return nil
	}
	if err := set.Refused(); err != nil {
		return e.tooManyCalls(ctx, err, errs)
	}
	if _, ok := errors.AsType[*httpError](op.memory.err); ok {
		return e.errorResponse(ctx, op.memory.err)
	}
	return e.respond(ctx, op, into, data, errs)
}

// tooManyCalls returns the error response of a query that needs too many calls. The response contains cause. If errs contains cause
// as the error of a field, the response contains the first of these errors instead, which has the path of its field.
func (e *engine) tooManyCalls(ctx context.Context, cause error, errs []exec.Error) *graphql.Response {
	if i := slices.IndexFunc(errs, func(err exec.Error) bool { return errors.Is(&err, cause) }); i >= 0 {
		cause = &errs[i]
	}
	return e.errorResponse(ctx, cause)
}

// prefix returns the bytes before the data of the response, in the memory of o.buffer. It returns nil if o.buffer is nil.
func (o *operation) prefix() []byte {
	if o.buffer == nil {
		return nil
	}
	return append(o.buffer.AvailableBuffer(), `{"data":`...)
}

// respond builds the response to an executed operation from its data and its errors. data begins with the bytes of prefix, which
// respond removes. If op.buffer is not nil, respond writes the response to op.buffer. In this case, the calling function may only
// compare the field Data of the result with nil. If op.buffer is not nil and there are errors, respond also checks the size of the
// response. It replaces a response larger than op.memory.limit by one error with null data. If too little memory is left for the
// response, respond returns an error response without data.
func (e *engine) respond(ctx context.Context, op *operation, prefix, data []byte, errs []exec.Error) *graphql.Response {
	if len(errs) == 0 {
		if op.buffer != nil {
			op.buffer.Write(append(data, '}'))
			op.ready = true
		}
		return &graphql.Response{Data: data[len(prefix):]}
	}
	resp := &graphql.Response{Errors: e.presented(ctx, errs)}
	if data != nil {
		resp.Data = data[len(prefix):]
	}
	e.identities.countRefusal(ctx, resp)
	if op.buffer == nil {
		return resp
	}
	whole := getBuffer()
	defer putBuffer(whole)
	whole.Write(appendResponse(whole.AvailableBuffer(), resp))
	switch size := whole.Len(); { // errors may be larger than estimated
	case size > op.memory.limit:
		resp = &graphql.Response{Data: json.RawMessage("null"), Errors: gqlerror.List{e.present(ctx, op.memory.tooLarge())}}
		whole.Reset()
		whole.Write(appendResponse(whole.AvailableBuffer(), resp))
	case !op.memory.hold(size):
		return e.errorResponse(ctx, op.memory.err)
	}
	op.buffer.Write(whole.Bytes()) // overwrites the data, which the execution has written into the memory of the buffer
	if op.ready = true; data != nil {
		resp.Data = op.buffer.Bytes()
	}
	return resp
}

func (e *engine) presented(ctx context.Context, errs []exec.Error) gqlerror.List {
	list := make(gqlerror.List, len(errs))
	for i := range errs {
		list[i] = e.present(ctx, &errs[i])
	}
	resolvers.SortErrors(list)
	return list
}

// runPasses executes an operation repeatedly until the loaders in set have fetched all keys that the operation reads, or until
// memory.err is set. It calls place.Await before each fetch, and stores an httpError of the first call in memory.err. After the
// deadline, or a later error of Await, the operation is executed a last time, with errors for the missing keys. If the deadline passed
// before the first fetch, ok is false. If deadline is zero, the deadline of ctx applies.
func runPasses(ctx context.Context, deadline time.Time, set *loaders.Set, place *admission.Slot, memory *reservation, execute func() ([]byte, []exec.Error)) (data []byte, errs []exec.Error, ok bool) {
	if data, errs = execute(); !set.Pending() || memory.err != nil {
		return data, errs, true
	}
	if !deadline.IsZero() { // only an operation that fetches values needs the timer
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	err := place.Await(ctx, admission.Venues(set.Waits())) // a place among the operations that wait for the venue
	if _, rejected := errors.AsType[*httpError](err); rejected {
		memory.err = err
		return data, errs, true
	}
	if ctx.Err() != nil {
		return nil, nil, false
	}
	for set.Pending() && memory.err == nil {
		if err = place.Await(ctx, admission.Venues(set.Waits())); err == nil {
			err = set.Fetch(ctx)
		}
		if err != nil {
			set.Fail(err)
		}
		data, errs = execute()
	}
	return data, errs, true
}

// catch recovers a panic and calls refuse with the error response for the panic. catch must be deferred.
func (e *engine) catch(ctx context.Context, refuse func(*graphql.Response)) {
	if v := recover(); v != nil {
		refuse(e.errorResponse(ctx, e.recover(ctx, v)))
	}
}

// errorResponse returns a response with errs and without data. If the errors are too long together, it omits some; see boundErrors.
// Each error in the response wraps its cause, which clients do not see.
func (e *engine) errorResponse(ctx context.Context, errs ...error) *graphql.Response {
	resp := &graphql.Response{Errors: make(gqlerror.List, len(errs))}
	for i, err := range errs {
		resp.Errors[i] = e.present(ctx, err)
		resp.Errors[i].Err = err
	}
	resolvers.SortErrors(resp.Errors)
	resp.Errors = boundErrors(resp.Errors)
	return resp
}

// problem returns the response for event.Problem, the error of a subscription with the given root field. If the subscription
// continues, the data of the response is null. If the subscription has ended, the response has no data.
func (e *engine) problem(ctx context.Context, root ast.Path, event resolvers.StreamEvent) *graphql.Response {
	err := &gqlerror.Error{Err: event.Problem, Message: "subscription failed", Path: root}
	resp := &graphql.Response{Errors: gqlerror.List{e.present(ctx, err)}}
	if !event.Ended {
		resp.Data = json.RawMessage("null")
	}
	return resp
}

func codeOf(err *gqlerror.Error) string {
	code, _ := err.Extensions["code"].(string)
	return code
}

func badInput(format string, args ...any) error {
	return market.Errorf(market.CodeBadUserInput, format, args...)
}
