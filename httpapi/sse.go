package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

const (
	// signOfLife is the time between signs of life on an idle event stream.
	signOfLife = 15 * time.Second
	// eventTimeout is how long a client may take to take an event.
	eventTimeout = 10 * time.Second
)

// events serves operations as streams of events, by the distinct connections mode of the protocol graphql-sse
// (https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md). Close it to end them.
type events struct {
	subscriptions *subscriptions
	clients       *quota.Clients

	open    atomic.Int64
	streams sync.WaitGroup
	closed  chan struct{}
	// mu has streams counted before they are waited for.
	mu sync.Mutex
}

func newEvents(s *subscriptions, clients *quota.Clients) *events {
	return &events{subscriptions: s, clients: clients, closed: make(chan struct{})}
}

// close ends the streams of subscriptions and refuses new ones. It is called once.
func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.closed)
}

// begin counts a stream, unless there are to be no more.
func (e *events) begin() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.closed:
		err := market.Errorf(market.CodeRateLimited, "the service is restarting; connect again")
		err.RetryAfter = retryAfter
		return &refusal{http.StatusServiceUnavailable, err}
	default:
		e.streams.Add(1)
		return nil
	}
}

// serve answers a request that asks for a stream of events. What the operation is refused for is an event too, since the
// scripts of pages see nothing else of such a response. started is called when the text of p is not needed any more, since the operation
// has room of its own. An error comes before anything was answered.
func (e *events) serve(ctx context.Context, w http.ResponseWriter, j *reqctx.Log, p *params, started func()) error {
	client := identityFrom(ctx).client
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
	e.run(ctx, w, j, p, started)
	return nil
}

// run streams the events of an operation until it ends or ctx does.
func (e *events) run(ctx context.Context, w http.ResponseWriter, j *reqctx.Log, p *params, started func()) {
	woken := make(chan struct{}, 1)
	m := fanout.NewMember(func(*fanout.Member) {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	defer m.Written()
	defer m.Leave()
	e.subscriptions.pays(ctx, m)

	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies would wait for more
	s := &eventStream{w: w, control: http.NewResponseController(w)}
	_ = s.control.SetReadDeadline(time.Time{}) // the server's would end the stream
	w.WriteHeader(http.StatusOK)
	if !s.comment() {
		return
	}
	once, refusal := e.subscriptions.start(ctx, j, p, m)
	started()
	if refusal != nil {
		_ = s.event("next", appendResponse(nil, refusal)) && s.event("complete", nil)
		return
	}
	if once != nil {
		e.streams.Go(func() { once(ctx) }) // ends with ctx, which ends with the request
	}
	alive := time.NewTicker(signOfLife)
	defer alive.Stop()
	for {
		select {
		case <-ctx.Done():
			if known := new(market.Error); errors.As(context.Cause(ctx), &known) { // and not because the client has gone
				_ = s.event("next", appendResponse(nil, e.subscriptions.engine.refuse(ctx, known))) && s.event("complete", nil)
			}
			return
		case <-e.closed:
			if once == nil {
				return // without a complete, so that the client connects again
			}
			select {
			case <-woken:
			case <-ctx.Done():
				return
			}
		case <-alive.C:
			if !s.comment() {
				return
			}
			continue
		case <-woken:
		}
		for {
			payload, over, end := m.Take()
			if payload != nil {
				if !s.event("next", payload) {
					return
				}
				m.Written()
				continue
			}
			if !over {
				break
			}
			switch {
			case end.Err != nil:
				if end.Unread {
					_ = e.subscriptions.engine.unread(transportEvents)
				}
				_ = s.event("next", appendResponse(nil, e.subscriptions.engine.refuse(ctx, end.Err)))
			case end.Errors != nil:
				_ = s.event("next", append(append([]byte(`{"errors":`), end.Errors...), '}'))
			}
			_ = s.event("complete", nil)
			return
		}
	}
}

// eventStream writes events to a client. Its methods return false when the client is gone or does not read.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     bytes.Buffer
}

// event writes an event. The data is JSON without line breaks, or nil.
func (s *eventStream) event(name string, data []byte) bool {
	s.buf.Reset()
	s.buf.WriteString("event: ")
	s.buf.WriteString(name)
	s.buf.WriteString("\ndata:") // with an empty one, too: without any, browsers pass the event over
	if data != nil {
		s.buf.WriteByte(' ')
		s.buf.Write(data)
	}
	s.buf.WriteString("\n\n")
	return s.flush()
}

// comment writes a sign of life.
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
