package httpapi

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/httpapi/admission"
	"oddsgraph/httpapi/content"
	"oddsgraph/httpapi/fanout"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
)

// subscriptions runs the operations of event streams and WebSockets. Equal subscriptions share one execution. It is the
// graphqlws.Operator of the WebSockets. It is safe for concurrent use.
type subscriptions struct {
	engine  *engine
	hub     *fanout.Hub
	clients *quota.Clients
	// held bounds the memory of the operations' documents and variables.
	held *quota.Shared
	// acquire waits until an operation may execute, and fills the operation's slot.
	acquire func(context.Context, *admission.Slot) error
	// secret is the HMAC key for the keys of groups. With HMAC, the key of a group reveals nothing about credentials.
	secret [32]byte
}

func newSubscriptions(e *engine, clients *quota.Clients, acquire func(context.Context, *admission.Slot) error) *subscriptions {
	s := &subscriptions{engine: e, hub: fanout.New(fanout.Limits{Groups: e.cfg.SplitExecutions}), clients: clients, held: quota.NewShared(MaxSubscribedBytes), acquire: acquire}
	_, _ = rand.Read(s.secret[:]) // Read never fails
	return s
}

// chargeTo charges the client in ctx for the queued payloads of a member. It must be called before the member is used.
func (s *subscriptions) chargeTo(ctx context.Context, m *fanout.Member) {
	m.SetMemory(s.engine.outgoing, s.engine.identities.countedIn(ctx))
}

// start starts an operation that sends its responses to m. For a query or mutation, the result once is a function that the calling
// code must run on a goroutine. For a subscription, once is nil. rejected is an error response without data, or nil.
func (s *subscriptions) start(ctx context.Context, log *request.Log, p *params, m *fanout.Member) (once func(ctx context.Context), rejected *graphql.Response) {
	defer s.engine.catch(ctx, func(r *graphql.Response) { once, rejected = nil, r })
	op, rejected := s.engine.prepare(ctx, log, p, s.acquire)
	if rejected != nil {
		return nil, s.reject(ctx, log, rejected)
	}
	op.slot.End()
	switch op.kind() {
	case ast.Subscription:
		own, err := op.plan.executable.Compile(op.variables)
		if err != nil {
			return nil, s.reject(ctx, log, s.engine.errorResponse(ctx, err))
		}
		if err := s.join(ctx, op, own, m); err != nil {
			return nil, s.reject(ctx, log, s.engine.errorResponse(ctx, err))
		}
		m.OnLeave(s.onLeave(ctx, log))
		return nil, nil
	default:
		release, err := s.hold(s.engine.identities.countedIn(ctx), op, op, len(p.Variables))
		if err != nil {
			return nil, s.reject(ctx, log, s.engine.errorResponse(ctx, err))
		}
		var begun atomic.Bool
		m.OnLeave(func(fanout.MemberStats) {
			release()
			if begun.CompareAndSwap(false, true) { // the operation was never executed
				log.Outcome, log.Elapsed = request.OutcomeCancelled, time.Since(log.Started)
				s.engine.report(ctx, log, 0)
			}
		})
		return func(ctx context.Context) {
			if !begun.CompareAndSwap(false, true) {
				return
			}
			response := s.respond(ctx, log, op, m)
			if ctx.Err() != nil {
				return // the client has left, or the transport sends the cause
			}
			m.Send(response)
			m.Finish(fanout.End{})
		}, nil
	}
}

// reject logs a rejected operation and returns its response.
func (s *subscriptions) reject(ctx context.Context, log *request.Log, rejected *graphql.Response) *graphql.Response {
	s.engine.setOutcome(ctx, log, rejected.Errors)
	s.engine.report(ctx, log, 0)
	return rejected
}

// onLeave returns a function that logs a subscription after its member has left. ctx is the context of the client's connection. The
// function keeps only the parts of the log that it needs, because a subscription may last long.
func (s *subscriptions) onLeave(ctx context.Context, log *request.Log) func(fanout.MemberStats) {
	operation, span := log.Operation, log.Span
	return func(had fanout.MemberStats) {
		log := &request.Log{Operation: operation, Span: span}
		log.Elapsed, log.Events, log.Outcome = time.Since(log.Started), had.Events, request.OutcomeOK
		var refused *market.Error
		switch {
		case had.End.Errors != nil:
			log.Codes = codesOf(had.End.Errors)
			log.Outcome = log.Codes[0]
		case errors.As(had.End.Err, &refused), errors.As(context.Cause(ctx), &refused):
			log.Outcome = string(refused.Code)
			log.Codes = []string{log.Outcome}
		}
		s.engine.report(ctx, log, int(had.Bytes))
	}
}

// codesOf returns the different codes in a JSON list of errors. For an empty or invalid list, it returns market.CodeInternal.
func codesOf(list []byte) []string {
	var errs gqlerror.List
	if json.Unmarshal(list, &errs) != nil || len(errs) == 0 {
		return []string{string(market.CodeInternal)}
	}
	return codesIn(errs)
}

// respond executes a query or mutation and returns the response. When respond returns, m has reserved memory for the response. The
// calling function must not change the response, because equal operations may share its bytes.
func (s *subscriptions) respond(ctx context.Context, log *request.Log, op *operation, m *fanout.Member) (response []byte) {
	defer s.engine.catch(ctx, func(r *graphql.Response) { response = appendResponse(nil, r) })
	ctx, cancel := context.WithTimeout(ctx, s.engine.cfg.Timeout)
	defer cancel()
	defer op.memory.settle(0)
	body, errs := s.perform(request.WithLog(ctx, log), log, op, m)
	s.engine.setOutcome(ctx, log, errs)
	s.engine.report(ctx, log, len(body))
	return body
}

// perform executes an operation in a slot, and releases the slot when m has reserved memory for the response.
func (s *subscriptions) perform(ctx context.Context, log *request.Log, op *operation, m *fanout.Member) (body []byte, errs gqlerror.List) {
	present := func(resp *graphql.Response) ([]byte, gqlerror.List) { return appendResponse(nil, resp), resp.Errors }
	if err := s.acquire(ctx, &op.slot); err != nil {
		return present(s.engine.errorResponse(ctx, err))
	}
	defer op.slot.End()
	defer func() {
		if op.memory.settle(0); !m.Reserve(len(body)) {
			body, errs = present(s.engine.errorResponse(ctx, s.engine.tooMuchUnread(log.Transport)))
		}
	}()
	if log.Explained {
		log.Response = verdictBypass
		return present(s.engine.explained(ctx, log, op, content.Response))
	}
	if !s.engine.cacheable(op) {
		return present(s.engine.execute(ctx, op))
	}
	cached, err := s.engine.cachedOrExecuted(ctx, log, op, content.Response)
	if err != nil {
		return present(s.engine.errorResponse(ctx, err))
	}
	if refused := metaOf(cached).errors; refused != nil {
		return cached.Body, refused.Errors
	}
	return cached.Body, nil
}

// join makes m a member of the groups that execute a subscription. own is the result of exec.Operation.Compile: the bytes that only
// this subscription keeps in memory.
func (s *subscriptions) join(ctx context.Context, op *operation, own int, m *fanout.Member) error {
	client, key := s.engine.identities.countedIn(ctx), s.key(ctx, op)
	charge := func() (func(), error) { return s.charge(client, key, op, own) }
	if parts := s.parts(ctx, op); parts != nil {
		if joined, err := s.hub.JoinParts(ctx, key, m, client, charge, parts); joined || err != nil {
			return err
		}
	}
	return s.hub.Join(ctx, key, m, client, charge, s.executing(op))
}

func (s *subscriptions) executing(op *operation) fanout.Execute {
	return func(ctx context.Context, g *fanout.Group, deliver func(*fanout.Event)) (errors, event []byte) {
		return s.engine.executeEvents(s.engine.cfg.Shared(ctx), g, op, deliver)
	}
}

// key returns the key of the group that shares an execution. Operations have equal keys if their documents, names, variables and
// credentials are equal.
func (s *subscriptions) key(ctx context.Context, op *operation) (key fanout.Key) {
	mac := hmac.New(sha256.New, s.secret[:])
	add := func(b []byte) {
		_ = binary.Write(mac, binary.BigEndian, uint64(len(b)))
		mac.Write(b)
	}
	add(op.document.hash[:])
	add([]byte(op.name))
	add(op.canonicalVariables())
	if c := request.CredentialsFrom(ctx); c != nil {
		address, _ := c.Address()
		add([]byte(address))
		add([]byte(c.Wire()))
	}
	mac.Sum(key[:0])
	return key
}

// watchedIDs returns the number of ids that a subscription follows: the total length of its lists of ids, but at least 1. A question
// counts as two, because most questions have two legs.
func (o *operation) watchedIDs() (ids int) {
	for _, field := range graphql.CollectFields(&graphql.OperationContext{Doc: o.document.ast, Variables: o.variables}, o.definition.SelectionSet, nil) {
		for _, argument := range field.ArgumentMap(o.variables) {
			if list, ok := argument.([]any); ok {
				ids += len(list)
			}
		}
		if field.Name == "questionChanged" {
			ids += 2
		}
	}
	return max(ids, 1)
}

// executeEvents executes a subscription, as fanout.Execute does. If the subscription has ended because of an unknown id, members may
// remain subscribed to other ids, and event is the response for them.
func (e *engine) executeEvents(ctx context.Context, g *fanout.Group, op *operation, deliver func(*fanout.Event)) (errors, event []byte) {
	last, unknown := e.subscribe(ctx, g, op, func(envelope follow.Envelope, resp *graphql.Response) bool {
		payload := e.payload(ctx, resp)
		if payload != nil {
			deliver(&fanout.Event{Envelope: envelope, Payload: payload})
		}
		return payload != nil && ctx.Err() == nil
	})
	if last == nil {
		return nil, nil
	}
	if unknown {
		event = appendResponse(nil, &graphql.Response{Data: json.RawMessage("null"), Errors: last.Errors})
	}
	return appendJSON(nil, boundErrors(last.Errors)), event
}

// payload returns the bytes of an event's response, or nil if ctx has ended because all members have left.
func (e *engine) payload(ctx context.Context, resp *graphql.Response) []byte {
	if ctx.Err() != nil {
		return nil
	}
	if failed := e.cfg.Observer.EventFailed; failed != nil && len(resp.Errors) > 0 {
		failed(codesIn(resp.Errors))
	}
	return appendResponse(make([]byte, 0, len(resp.Data)+64), resp)
}

func (s *subscriptions) Init(ctx context.Context, payload json.RawMessage) (initialized context.Context, err error) {
	defer s.engine.catch(ctx, func(r *graphql.Response) { initialized, err = nil, r.Errors })
	var fields map[string]any
	if payload != nil {
		if err := json.Unmarshal(payload, &fields); err != nil {
			return nil, badInput("the payload of connection_init is not an object")
		}
	}
	hints := readHints(clientFrom(ctx).hints, fields)
	ctx, err = s.engine.identities.fromInit(ctx, fields, identityFrom(ctx).address)
	if err != nil || hints == nil {
		return ctx, err
	}
	return withClient(ctx, &client{identityFrom(ctx), hints}), nil
}

func (s *subscriptions) Client(ctx context.Context) quota.Client {
	return s.engine.identities.countedIn(ctx)
}

func (s *subscriptions) Operate(ctx context.Context, payload json.RawMessage, m *fanout.Member) (once func(ctx context.Context), errors []byte, malformed error) {
	defer s.engine.catch(ctx, func(r *graphql.Response) { once, errors = nil, appendJSON(nil, r.Errors) })
	s.chargeTo(ctx, m)
	p, malformed := parseSubscribe(payload)
	if malformed != nil {
		return nil, nil, malformed
	}
	log := s.engine.newLog(ctx, transportWebSocket, operationHints(clientFrom(ctx).hints, p.Extensions))
	if id := identityFrom(ctx); id.credentials != nil { // the venue may have rejected the credentials of an earlier operation
		if err := s.engine.identities.refusals.Check(id.address, id.key); err != nil {
			return nil, appendJSON(nil, s.reject(ctx, log, s.engine.errorResponse(ctx, err)).Errors), nil
		}
	}
	once, rejected := s.start(ctx, log, p, m)
	if rejected != nil {
		return nil, appendJSON(nil, rejected.Errors), nil
	}
	return once, nil, nil
}

// parseSubscribe parses the payload of a subscribe message. The client sees the text of the error.
func parseSubscribe(payload json.RawMessage) (*params, error) {
	p, err := parseParams(payload)
	if wrong, ok := errors.AsType[*market.Error](err); ok {
		return nil, errors.New(wrong.Message)
	}
	if !p.namesDocument() {
		return nil, errors.New("the payload of subscribe has no query")
	}
	return p, nil
}

func (s *subscriptions) Errors(ctx context.Context, err error) []byte {
	return appendJSON(nil, s.engine.errorResponse(ctx, err).Errors)
}

func (s *subscriptions) Refuse(ctx context.Context, err error) []byte {
	log := s.engine.newLog(ctx, transportWebSocket, clientFrom(ctx).hints)
	return appendJSON(nil, s.reject(ctx, log, s.engine.errorResponse(ctx, err)).Errors)
}
