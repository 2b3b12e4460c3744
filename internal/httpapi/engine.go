package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/internal/documents"
	"oddsgraph/internal/guard"
	"oddsgraph/internal/market"
	"oddsgraph/internal/respcache"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// engine makes operations of what clients ask and responses of operations, for every transport alike. It is safe for
// concurrent use.
type engine struct {
	cfg        Config
	identities *identities
	guard      *guard.Guard
	exec       *executor.Executor
	schema     *ast.Schema
	documents  *documentCache
	// responses are those that are kept; nil where none are.
	responses *respcache.Cache
	present   graphql.ErrorPresenterFunc
	recover   graphql.RecoverFunc
}

func newEngine(cfg Config, who *identities) *engine {
	e := &engine{
		cfg:        cfg,
		identities: who,
		exec:       executor.New(cfg.Schema),
		schema:     cfg.Schema.Schema(),
		guard:      cfg.Guard,
		documents:  newDocumentCache(cfg),
		responses:  newResponses(cfg),
		present:    resolvers.Presenter(cfg.Log, cfg.RequestID),
		recover:    resolvers.Recover,
	}
	e.exec.SetErrorPresenter(e.present)
	e.exec.SetRecoverFunc(e.recover)
	e.exec.AroundOperations(func(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
		return next(resolvers.WithProblems(ctx))
	})
	e.exec.AroundResponses(func(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
		return e.addProblems(ctx, e.respond(ctx, next))
	})
	return e
}

// operation is a request that was found good. It is executed once.
type operation struct {
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
	// cost is what executing it takes.
	cost guard.Cost

	// deadline is when executing it ends at the latest; zero where its context says that.
	deadline time.Time
	// buffer is where the response may be made, which is the caller's; nil for memory of its own. ready tells that the whole
	// response is in it.
	buffer *bytes.Buffer
	ready  bool

	canonical []byte
	// recorder holds what the response of a query rests on, once that is there.
	recorder *market.Recorder
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

// prepare makes an operation of what a client asks, or the response that refuses it, which has no data. It reads nothing of
// the venue. What is known of the operation is noted in j.
func (e *engine) prepare(ctx context.Context, j *market.Journal, p *params) (op *operation, refusal *graphql.Response) {
	op, errs := e.compile(ctx, j, p)
	if len(errs) == 0 {
		return op, nil
	}
	for _, err := range errs {
		if rule := guard.Rule(err); rule != "" {
			j.Rule = rule
		}
	}
	return nil, e.refuse(ctx, errs...)
}

// compile is prepare without presenting its errors.
func (e *engine) compile(ctx context.Context, j *market.Journal, p *params) (op *operation, errs []error) {
	defer func() {
		if v := recover(); v != nil {
			errs = []error{e.recover(ctx, v)}
		}
	}()
	named, err := e.cfg.Documents.Resolve(documents.Request{Query: p.Query, DocumentID: p.DocumentID, Extensions: p.Extensions})
	if err != nil {
		return nil, []error{err}
	}
	doc := p.document
	if doc == nil || doc.text != named.Text {
		doc = e.documents.load(named.Text)
	}
	if p.quoted != "" && doc.text == p.Query {
		e.documents.remember(p.quoted, doc)
	}
	if len(doc.errs) > 0 {
		return nil, doc.errs
	}
	named.Register()
	definition := doc.ast.Operations.ForName(p.OperationName)
	if definition == nil {
		if p.OperationName == "" {
			return nil, validationErrors(gqlerror.Errorf("the document holds several operations; say which one in operationName"))
		}
		return nil, validationErrors(gqlerror.Errorf("operation %.128s not found", p.OperationName))
	}
	op = &operation{plan: doc.plans[definition], document: doc, name: p.OperationName, definition: definition, given: p.Variables}
	j.Asked, j.Trusted = op.plan.asked, named.Name
	if err := e.guard.Variables(p.Variables); err != nil {
		return nil, []error{err}
	}
	if op.variables, op.simple = op.plan.simple.read(p.Variables); !op.simple {
		if op.variables, err = variables(e.schema, definition, p.Variables); err != nil {
			return nil, validationErrors(err)
		}
	}
	if op.cost, err = op.plan.cost.Cost(op.variables); err != nil {
		return nil, []error{err}
	}
	j.Points, j.Foreseen = op.cost.Points, op.cost.Calls
	return op, nil
}

// context returns what the library knows an operation by. What it keeps of the variables holds on to nothing else.
func (e *engine) context(op *operation) (*graphql.OperationContext, error) {
	values := op.variables
	if op.simple {
		var err error
		if values, err = variables(e.schema, op.definition, op.given); err != nil {
			return nil, err
		}
	}
	return &graphql.OperationContext{
		RawQuery:               op.document.text,
		OperationName:          op.name,
		Doc:                    op.document.ast,
		Operation:              op.definition,
		Variables:              values,
		DisableIntrospection:   !e.cfg.Introspection,
		RecoverFunc:            e.recover,
		ResolverMiddleware:     func(ctx context.Context, next graphql.Resolver) (any, error) { return next(ctx) },
		RootResolverMiddleware: func(ctx context.Context, next graphql.RootResolver) graphql.Marshaler { return next(ctx) },
	}, nil
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
	ctx = market.WithDemand(ctx)
	if resp = e.recall(ctx, op); resp != nil {
		return resp
	}
	if !op.deadline.IsZero() { // which what is in memory does not need
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, op.deadline)
		defer cancel()
	}
	if ctx.Err() != nil {
		return nil
	}
	ctx, set, recorder := loaders.With(ctx, e.cfg.Sources)
	op.recorder = recorder
	if resp = e.gather(ctx, op, set); resp != nil {
		return resp
	}
	c, err := e.context(op)
	if err != nil {
		return e.refuse(ctx, validationErrors(err)...)
	}
	responses, ctx := e.exec.DispatchOperation(ctx, c)
	if ctx.Err() != nil { // since it began: what has come is shown, and what has not fails in its place
		ctx = context.WithoutCancel(ctx)
	}
	if resp = responses(ctx); resp != nil {
		e.identities.note(ctx, resp)
	}
	return resp
}

// recall returns the response of a query that can be made at once of what is in memory, nil where that is not so or anything
// is out of the ordinary. Nothing was sent for then.
func (e *engine) recall(ctx context.Context, op *operation) *graphql.Response {
	if op.plan.compiled == nil || ctx.Err() != nil {
		return nil
	}
	journal := market.JournalFrom(ctx)
	ctx, set, recorder := loaders.FromMemory(ctx, e.cfg.Sources)
	defer set.Release()
	into := op.prefix()
	data, ok := op.plan.compiled.Execute(ctx, op.variables, into)
	if !ok || set.Missed() {
		journal.Unlook()
		return nil
	}
	set.Stands()
	set.Refresh()
	op.recorder = recorder
	journal.NoteCompiled()
	return op.respond(into, data)
}

// prefix returns what stands before the data of the response, in the caller's buffer where there is one.
func (o *operation) prefix() []byte {
	if o.buffer == nil {
		return nil
	}
	return append(o.buffer.AvailableBuffer(), `{"data":`...)
}

// respond returns the response whose data were appended to what was prepared of it.
func (o *operation) respond(into, data []byte) *graphql.Response {
	if o.buffer != nil {
		o.buffer.Write(append(data, '}'))
		o.ready = true
	}
	return &graphql.Response{Data: data[len(into):]}
}

// gather returns the response of a query that is made by its compiled form as soon as all that it reads is there. Attempts find
// out what that is, and send for it, all of one kind together. It returns nil where that leads to no response without errors:
// the set waits then, and has what has come.
func (e *engine) gather(ctx context.Context, op *operation, set *loaders.Set) *graphql.Response {
	if op.plan.compiled == nil {
		return nil
	}
	set.Gather()
	resolvers.Ahead(graphql.WithOperationContext(ctx, &graphql.OperationContext{ // what hangs on what is named need not wait for it
		Doc: op.document.ast, Operation: op.definition, Variables: op.variables,
	}))
	for {
		began := time.Now()
		into := op.prefix()
		data, ok, again := op.plan.compiled.Attempt(ctx, op.variables, into)
		if ok && !set.Lacks() {
			set.Refresh()
			return op.respond(into, data)
		}
		if !again || !set.Lacks() || !set.Advance(max(minPatience, time.Since(began)*patienceOf)) {
			set.Wait()
			return nil
		}
	}
}

const (
	// minPatience is how long at least an attempt to make a response waits for the rest when some of what it lacks has come, and
	// patienceOf how many times as long as the attempt before took: what hangs on what has come must not wait for long, nor the
	// processor be kept busy with attempts.
	minPatience = time.Millisecond
	patienceOf  = 4
)

// subscribe starts a subscription, which lasts until ctx ends. What it returns waits for the next response, whatever context
// it is called with, and gives nil after the last one; it must be called by one goroutine at a time. A response's data are
// good until the next call. A first response without data says that the subscription could not begin.
func (e *engine) subscribe(ctx context.Context, op *operation) (next graphql.ResponseHandler) {
	ended := false
	failed := func(v any) *graphql.Response {
		ended = true
		return e.refuse(ctx, e.recover(ctx, v))
	}
	defer func() {
		if v := recover(); v != nil {
			next = graphql.OneShot(failed(v))
		}
	}()
	c, err := e.context(op)
	if err != nil {
		return graphql.OneShot(e.refuse(ctx, validationErrors(err)...))
	}
	responses, dispatched := e.exec.DispatchOperation(ctx, c)
	return func(context.Context) (resp *graphql.Response) {
		if ended {
			return nil
		}
		defer func() {
			if v := recover(); v != nil {
				resp = failed(v)
			}
		}()
		return responses(dispatched)
	}
}

// catch, deferred, makes a refusal of a panic on a goroutine that nobody else guards.
func (e *engine) catch(ctx context.Context, refuse func(*graphql.Response)) {
	if v := recover(); v != nil {
		refuse(e.refuse(ctx, e.recover(ctx, v)))
	}
}

// refuse returns the response of a request that is not executed.
func (e *engine) refuse(ctx context.Context, errs ...error) *graphql.Response {
	resp := &graphql.Response{Errors: make(gqlerror.List, len(errs))}
	for i, err := range errs {
		resp.Errors[i] = e.present(ctx, err)
	}
	resolvers.SortErrors(resp.Errors)
	return resp
}

// respond has the library make one response: of what its loaders have sent ahead for, with its errors in order. Each event of a
// subscription has loaders of its own.
func (e *engine) respond(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	if graphql.GetOperationContext(ctx).Operation.Operation == ast.Subscription {
		event, done := forEvent(ctx, min(e.cfg.Timeout, eventTime))
		defer done()
		ctx, _, _ = loaders.With(market.WithDemand(event), e.cfg.Sources)
	}
	resolvers.Ahead(ctx)
	resp := next(ctx)
	set := loaders.From(ctx)
	set.Refresh()
	if err := set.Failed(); err != nil {
		e.cfg.Log.ErrorContext(ctx, "reading ahead failed", "error", err)
	}
	if resp == nil {
		return nil
	}
	resolvers.SortErrors(resp.Errors)
	return resp
}

// addProblems adds what a subscription reports beside its events to a response, or makes one of it when the subscription
// has ended.
func (e *engine) addProblems(ctx context.Context, resp *graphql.Response) *graphql.Response {
	for _, err := range resolvers.TakeProblems(ctx) {
		if resp == nil {
			resp = &graphql.Response{}
		}
		resp.Errors = append(resp.Errors, e.present(ctx, err))
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
