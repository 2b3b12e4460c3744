package httpapi

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/httpapi/auth"
	"oddsgraph/httpapi/fanout"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/resolvers"
)

// subscriptions runs the operations of event streams and WebSockets: subscriptions in groups, equal ones once, and all else
// for the client alone. It is safe for concurrent use.
type subscriptions struct {
	engine *engine
	hub    *fanout.Hub
	// clients counts what is executed for whom.
	clients *quota.Clients
	// held bounds what the documents and variables of subscriptions take.
	held *quota.Shared
	// enter bounds how much is under way at once.
	enter func(context.Context, *turn) error
	// secret keys the groups, so that nothing of the credentials in them can be told from outside.
	secret [32]byte
}

func newSubscriptions(e *engine, clients *quota.Clients, enter func(context.Context, *turn) error) *subscriptions {
	s := &subscriptions{engine: e, hub: fanout.New(fanout.Limits{Pace: quota.NewPace(e.cfg.EventsPerSecond, 2*e.cfg.EventsPerSecond)}), clients: clients, held: quota.NewShared(MaxSubscribedBytes), enter: enter}
	_, _ = rand.Read(s.secret[:]) // it never fails
	return s
}

// pays has a client pay for what waits for a member. It is called before the member is used.
func (s *subscriptions) pays(ctx context.Context, m *fanout.Member) {
	m.SetMemory(s.engine.outgoing, quota.Network(identityFrom(ctx).client))
}

// start starts an operation whose responses are laid into m. The first result carries out one that is no subscription and is
// to be called on a goroutine of its own; a refusal has no data.
func (s *subscriptions) start(ctx context.Context, j *reqctx.Log, p *params, m *fanout.Member) (once func(ctx context.Context), refusal *graphql.Response) {
	defer s.engine.catch(ctx, func(r *graphql.Response) { once, refusal = nil, r })
	op, refusal := s.prepare(ctx, j, p)
	switch {
	case refusal != nil:
		return nil, s.refused(ctx, j, refusal)
	case op.kind() == ast.Subscription:
		own, err := op.plan.executable.Compile(op.variables)
		if err != nil {
			return nil, s.refused(ctx, j, s.engine.refuse(ctx, err))
		}
		client, key := identityFrom(ctx).client, s.key(ctx, op)
		err = s.hub.JoinCharged(ctx, key, m, quota.Network(client), func() (func(), error) {
			return s.charge(client, key, op, own)
		}, func(ctx context.Context, g *fanout.Group) fanout.Source {
			if of := s.engine.cfg.Shared; of != nil {
				ctx = of(ctx)
			}
			return s.engine.open(resolvers.WithGroup(ctx, g), op, g)
		})
		if err != nil {
			return nil, s.refused(ctx, j, s.engine.refuse(ctx, err))
		}
		m.OnLeave(s.over(ctx, j))
		return nil, nil
	default:
		release, err := s.hold(quota.Network(identityFrom(ctx).client), op, op, len(op.given))
		if err != nil {
			return nil, s.refused(ctx, j, s.engine.refuse(ctx, err))
		}
		var begun atomic.Bool
		m.OnLeave(func(fanout.MemberStats) {
			release()
			if begun.CompareAndSwap(false, true) { // its turn has never come
				j.Outcome, j.Elapsed = reqctx.OutcomeCancelled, time.Since(j.Started)
				s.engine.end(ctx, j, 0)
			}
		})
		return func(ctx context.Context) {
			if !begun.CompareAndSwap(false, true) {
				return
			}
			response := s.respond(ctx, j, op, m)
			if ctx.Err() != nil {
				return // nobody listens any more, or the transport itself says why
			}
			m.Send(response)
			m.Finish(fanout.End{})
		}, nil
	}
}

// refused tells of an operation that is refused, and returns the response that says so.
func (s *subscriptions) refused(ctx context.Context, j *reqctx.Log, refusal *graphql.Response) *graphql.Response {
	s.engine.made(ctx, j, refusal.Errors)
	s.engine.end(ctx, j, 0)
	return refusal
}

// over returns what tells of a subscription when its member has left. ctx is that of the client's connection. It holds on to
// no more of the journal than it needs, since a subscription lasts.
func (s *subscriptions) over(ctx context.Context, j *reqctx.Log) func(fanout.MemberStats) {
	said, span := j.Operation, j.Span
	return func(had fanout.MemberStats) {
		j := &reqctx.Log{Operation: said, Span: span}
		j.Elapsed, j.Events, j.Outcome = time.Since(j.Started), had.Events, reqctx.OutcomeOK
		var refused *market.Error
		switch {
		case had.End.Errors != nil:
			j.Codes = codesOf(had.End.Errors)
			j.Outcome = j.Codes[0]
		case errors.As(had.End.Err, &refused), errors.As(context.Cause(ctx), &refused):
			j.Outcome = string(refused.Code)
			j.Codes = []string{j.Outcome}
		}
		s.engine.end(ctx, j, int(had.Bytes))
	}
}

// codesOf returns the codes in a JSON list of errors of ours, each once.
func codesOf(list []byte) (codes []string) {
	var errs []struct{ Extensions struct{ Code string } }
	if json.Unmarshal(list, &errs) != nil || len(errs) == 0 {
		return []string{string(market.CodeInternal)}
	}
	for _, e := range errs {
		if !slices.Contains(codes, e.Extensions.Code) {
			codes = append(codes, e.Extensions.Code)
		}
	}
	return codes
}

// prepare makes an operation in a turn of its own: reading its variables takes time, and an operation executes later.
func (s *subscriptions) prepare(ctx context.Context, j *reqctx.Log, p *params) (*operation, *graphql.Response) {
	op, refusal := s.engine.prepare(ctx, j, p, s.enter)
	if refusal == nil {
		op.turn.end()
	}
	return op, refusal
}

// respond returns the response to an operation that is no subscription, for which m has room. It may be that of others, too.
func (s *subscriptions) respond(ctx context.Context, j *reqctx.Log, op *operation, m *fanout.Member) (response []byte) {
	defer s.engine.catch(ctx, func(r *graphql.Response) { response = appendResponse(nil, r) })
	ctx, cancel := context.WithTimeout(ctx, s.engine.cfg.Timeout)
	defer cancel()
	defer op.room.settle(0)
	body, errs := s.perform(s.engine.noting(ctx, j), j, op, m)
	s.engine.made(ctx, j, errs)
	s.engine.end(ctx, j, len(body))
	return body
}

// perform makes the response of an operation in its turn, which ends when m has room for the response.
func (s *subscriptions) perform(ctx context.Context, j *reqctx.Log, op *operation, m *fanout.Member) (body []byte, errs gqlerror.List) {
	present := func(resp *graphql.Response) ([]byte, gqlerror.List) { return appendResponse(nil, resp), resp.Errors }
	if err := s.enter(ctx, &op.turn); err != nil {
		return present(s.engine.refuse(ctx, err))
	}
	defer op.turn.end()
	ctx = &op.turn
	defer func() {
		if op.room.settle(0); !m.Reserve(len(body)) {
			body, errs = present(s.engine.refuse(ctx, s.engine.unread(j.Transport)))
		}
	}()
	if j.Explained {
		j.Response = verdictBypass
		return present(s.engine.explained(ctx, j, op, typeResponse))
	}
	if !s.engine.keeps(op) {
		return present(s.engine.execute(ctx, op))
	}
	kept, err := s.engine.answer(ctx, j, op, typeResponse)
	if err != nil {
		return present(s.engine.refuse(ctx, err))
	}
	if refused := noteOf(kept).refused; refused != nil {
		return kept.Body, refused.Errors
	}
	return kept.Body, nil
}

// key tells which subscriptions may share an execution: those that ask for the same with the same rights.
func (s *subscriptions) key(ctx context.Context, op *operation) (key fanout.Key) {
	mac := hmac.New(sha256.New, s.secret[:])
	add := func(b []byte) {
		_ = binary.Write(mac, binary.BigEndian, uint64(len(b)))
		mac.Write(b)
	}
	add(op.document.hash[:])
	add([]byte(op.name))
	add(op.canonicalVariables())
	if c := reqctx.CredentialsFrom(ctx); c != nil {
		address, _ := c.Address()
		add([]byte(address))
		add([]byte(c.Wire()))
	}
	mac.Sum(key[:0])
	return key
}

// watched returns how many ids a subscription follows: as many as its lists of them hold, or else one.
func (o *operation) watched() (ids int) {
	for _, field := range graphql.CollectFields(&graphql.OperationContext{Doc: o.document.ast, Variables: o.variables}, o.definition.SelectionSet, nil) {
		for _, argument := range field.ArgumentMap(o.variables) {
			if list, ok := argument.([]any); ok {
				ids += len(list)
			}
		}
	}
	return max(ids, 1)
}

// execution is a subscription that is executed for a group.
type execution struct {
	engine *engine
	ctx    context.Context
	next   func() *graphql.Response
	last   []byte
}

// open starts a subscription for a group.
func (e *engine) open(ctx context.Context, op *operation, g *fanout.Group) (x *execution) {
	x = &execution{engine: e, ctx: ctx}
	defer e.catch(ctx, func(r *graphql.Response) { x.next = once(r) })
	x.next = e.subscribe(ctx, op, g)
	return x
}

// Next implements fanout.Source.
func (x *execution) Next() (payload []byte, ok bool) {
	defer x.engine.catch(x.ctx, func(r *graphql.Response) {
		x.last = appendJSON(nil, r.Errors)
		payload, ok = nil, false
	})
	resp := x.next()
	if resp == nil || x.ctx.Err() != nil { // those that it was for have left
		return nil, false
	}
	if resp.Data == nil { // not an event but why there are none
		x.last = appendJSON(nil, bounded(resp.Errors))
		return nil, false
	}
	if o := x.engine.cfg.Observer; o != nil && len(resp.Errors) > 0 {
		o.EventFailed(codesIn(resp.Errors))
	}
	return appendResponse(make([]byte, 0, len(resp.Data)+64), resp), true
}

// Last implements fanout.Source.
func (x *execution) Last() (errors []byte) { return x.last }

// operator lets WebSockets run operations.
type operator struct {
	*subscriptions
	identities *identities
}

// Init implements graphqlws.Operator.
func (o *operator) Init(ctx context.Context, payload json.RawMessage) (introduced context.Context, err error) {
	defer o.engine.catch(ctx, func(r *graphql.Response) { introduced, err = nil, r.Errors })
	var said map[string]any
	if payload != nil {
		if err := json.Unmarshal(payload, &said); err != nil {
			return nil, badInput("the payload of connection_init is not an object")
		}
	}
	ctx, err = o.identities.fromInit(ctx, said, identityFrom(ctx).client)
	if err != nil {
		return nil, err
	}
	if more := introduce(saidFrom(ctx), said); more != nil {
		ctx = context.WithValue(ctx, saidKey{}, more)
	}
	return ctx, nil
}

// Operate implements graphqlws.Operator.
func (o *operator) Operate(ctx context.Context, payload json.RawMessage, m *fanout.Member) (once func(ctx context.Context), errors []byte, malformed error) {
	defer o.engine.catch(ctx, func(r *graphql.Response) { once, errors = nil, appendJSON(nil, r.Errors) })
	o.pays(ctx, m)
	p, malformed := parseSubscribe(payload)
	if malformed != nil {
		return nil, nil, malformed
	}
	j := o.engine.begin(ctx, transportWebSocket, saidBy(saidFrom(ctx), p.Extensions))
	if id := identityFrom(ctx); id.credentials != nil { // a socket stays open, however often the venue refuses them
		if err := o.identities.refusals.Check(id.client, auth.CredentialsKey(id.credentials)); err != nil {
			return nil, appendJSON(nil, o.refused(ctx, j, o.engine.refuse(ctx, err)).Errors), nil
		}
	}
	once, refusal := o.start(ctx, j, p, m)
	if refusal != nil {
		return nil, appendJSON(nil, refusal.Errors), nil
	}
	return once, nil, nil
}

// parseSubscribe reads the payload of a subscribe. The text of an error is for the client.
func parseSubscribe(payload json.RawMessage) (*params, error) {
	p, err := parseParams(payload)
	var wrong *market.Error
	switch {
	case errors.As(err, &wrong):
		return nil, errors.New(wrong.Message)
	case err != nil:
		return nil, err
	case !p.namesDocument():
		return nil, errors.New("the payload of subscribe has no query")
	}
	return p, nil
}

// Errors implements graphqlws.Operator.
func (o *operator) Errors(ctx context.Context, err error) []byte {
	return appendJSON(nil, o.engine.refuse(ctx, err).Errors)
}

// Refuse implements graphqlws.Operator.
func (o *operator) Refuse(ctx context.Context, err error) []byte {
	j := o.engine.begin(ctx, transportWebSocket, saidFrom(ctx))
	return appendJSON(nil, o.refused(ctx, j, o.engine.refuse(ctx, err)).Errors)
}
