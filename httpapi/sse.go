package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
)

const (
	// keepAlive is the time between comments on an event stream.
	keepAlive = 15 * time.Second
	// eventTimeout limits the time of one write to an event stream.
	eventTimeout = 10 * time.Second
)

// events serves operations as event streams, in the distinct connections mode of graphql-sse
// (https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md).
type events struct {
	subscriptions *subscriptions
	clients       *quota.Clients

	open    atomic.Int64
	streams sync.WaitGroup
	closed  chan struct{}
	// mu prevents new streams after a call of close, so that streams.Wait waits for all streams.
	mu sync.Mutex
}

func newEvents(s *subscriptions, clients *quota.Clients) *events {
	return &events{subscriptions: s, clients: clients, closed: make(chan struct{})}
}

// close ends the streams of subscriptions and rejects new streams. It must be called once.
func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.closed)
}

// begin counts a stream. After a call of close it returns an httpError.
func (e *events) begin() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.closed:
		return unavailable("the service is restarting; connect again")
	default:
		e.streams.Add(1)
		return nil
	}
}

// serve serves a request for an event stream. It sends errors of the operation as events, because scripts in a page can read only
// the events of the response. It calls release when it no longer needs the text of the request. If serve returns an error, it has
// written nothing.
func (e *events) serve(ctx context.Context, w http.ResponseWriter, log *request.Log, p *params, release func()) error {
	client := e.subscriptions.Client(ctx)
	if err := e.clients.Connect(client); err != nil {
		return err
	}
	defer e.clients.Disconnect(client)
	if err := e.clients.Begin(client); err != nil {
		return err
	}
	defer e.clients.End(client)
	if err := e.begin(); err != nil {
		return err
	}
	defer e.streams.Done()
	e.open.Add(1)
	defer e.open.Add(-1)
	e.run(ctx, w, log, p, release)
	return nil
}

// run streams the events of an operation until the operation or ctx ends. The stream of a subscription also ends when e is closed.
func (e *events) run(ctx context.Context, w http.ResponseWriter, log *request.Log, p *params, release func()) {
	woken := make(chan struct{}, 1)
	m := fanout.NewMember(func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	defer m.Written()
	defer m.Leave()
	e.subscriptions.chargeTo(ctx, m)

	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // prevents proxies from buffering events
	s := &eventStream{w: w, control: http.NewResponseController(w)}
	_ = s.control.SetReadDeadline(time.Time{}) // the server's read deadline would end the stream
	w.WriteHeader(http.StatusOK)
	if !s.comment() {
		return
	}
	once, rejected := e.subscriptions.start(ctx, log, p, m)
	release()
	if rejected != nil {
		s.complete(rejected)
		return
	}
	if once != nil {
		e.streams.Go(func() { once(ctx) }) // ends with ctx, which ends with the request
	}
	e.write(ctx, s, m, woken, once == nil)
}

// write writes the events of a member until its operation or ctx ends. A subscription also ends when e is closed. The channel woken
// receives a value when the member has events.
func (e *events) write(ctx context.Context, s *eventStream, m *fanout.Member, woken <-chan struct{}, subscription bool) {
	closed := e.closed
	if !subscription {
		closed = nil
	}
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	for {
		select {
		case <-ctx.Done():
			if known, ok := errors.AsType[*market.Error](context.Cause(ctx)); ok { // any other cause means that the client has left
				s.complete(e.subscriptions.engine.errorResponse(ctx, known))
			}
			return
		case <-closed:
			return // without a complete event, so that the client connects again
		case <-alive.C:
			if !s.comment() {
				return
			}
		case <-woken:
			if !e.writeWaiting(ctx, s, m) {
				return
			}
		}
	}
}

// writeWaiting writes the queued events of a member, and a complete event if the operation has ended. It returns false if the
// stream must end.
func (e *events) writeWaiting(ctx context.Context, s *eventStream, m *fanout.Member) bool {
	for {
		payload, over, end := m.Take()
		switch {
		case payload != nil:
			if !s.event("next", payload) {
				return false
			}
			m.Written()
			continue
		case !over:
			return true
		case end.Err != nil:
			if end.Unread {
				_ = e.subscriptions.engine.tooMuchUnread(transportEvents)
			}
			_ = s.event("next", appendResponse(nil, e.subscriptions.engine.errorResponse(ctx, end.Err)))
		case end.Errors != nil:
			_ = s.event("next", append(append([]byte(`{"errors":`), end.Errors...), '}'))
		}
		_ = s.event("complete", nil)
		return false
	}
}

// eventStream writes events to a client. The methods event and comment return false if the client has left or does not read.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     bytes.Buffer
}

// complete writes a response as the last event of the stream, and then a complete event.
func (s *eventStream) complete(resp *graphql.Response) {
	_ = s.event("next", appendResponse(nil, resp)) && s.event("complete", nil)
}

// event writes an event. The data is JSON without line breaks, or nil.
func (s *eventStream) event(name string, data []byte) bool {
	s.buf.Reset()
	s.buf.WriteString("event: ")
	s.buf.WriteString(name)
	s.buf.WriteString("\ndata:") // browsers ignore an event without a data line
	if data != nil {
		s.buf.WriteByte(' ')
		s.buf.Write(data)
	}
	s.buf.WriteString("\n\n")
	return s.flush()
}

// comment writes an empty comment, which keeps the connection alive.
func (s *eventStream) comment() bool {
	s.buf.Reset()
	s.buf.WriteString(":\n\n")
	return s.flush()
}

func (s *eventStream) flush() bool {
	if s.control.SetWriteDeadline(time.Now().Add(eventTimeout)) != nil {
		return false
	}
	_, err := s.w.Write(s.buf.Bytes())
	if s.buf.Cap() > 64<<10 {
		s.buf = bytes.Buffer{}
	}
	return err == nil && s.control.Flush() == nil
}
