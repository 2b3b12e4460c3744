package httpapi

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql/handler/transport"

	"oddsgraph/internal/market"
)

const (
	// keepAlive is the time between signs of life on an idle subscription.
	keepAlive = 15 * time.Second
	// initTimeout is how long a WebSocket may take to introduce itself.
	initTimeout = 10 * time.Second
	// writeTimeout is how long a WebSocket may take to take an event.
	writeTimeout = 10 * time.Second
)

// Streams reports whether a request asks for a stream of events, which lasts as long as the client likes.
func Streams(r *http.Request) bool {
	return r.Header.Get("Upgrade") != "" || strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// pen is a response that nothing is written to any more once its handler has returned, however late a sign of life comes:
// the library's goroutine that sends them does not wait for the handler, and the server's response does not bear it.
type pen struct {
	http.ResponseWriter
	mu   sync.Mutex
	down bool
}

// Write implements io.Writer.
func (p *pen) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return 0, http.ErrHandlerTimeout
	}
	return p.ResponseWriter.Write(b)
}

// Flush implements http.Flusher.
func (p *pen) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.down {
		_ = http.NewResponseController(p.ResponseWriter).Flush()
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (p *pen) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *pen) lay() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
}

// webSocket is how WebSockets are accepted: with a bound on the time of a write, since a client that does not read would
// hold its subscriptions for ever.
type webSocket struct {
	transport.CoderWebsocketImplementation
}

// Accept implements transport.WebsocketImplementation.
func (a webSocket) Accept(w http.ResponseWriter, r *http.Request, o transport.WebsocketAcceptOptions) (transport.WebsocketConn, error) {
	c, err := a.CoderWebsocketImplementation.Accept(w, r, o)
	if err != nil {
		return nil, err
	}
	return &webSocketConn{WebsocketConn: c}, nil
}

type webSocketConn struct{ transport.WebsocketConn }

// WriteJSON implements transport.WebsocketConn.
func (c *webSocketConn) WriteJSON(v any) error {
	late := time.AfterFunc(writeTimeout, func() { _ = c.WebsocketConn.Close() })
	defer late.Stop()
	return c.WebsocketConn.WriteJSON(v)
}

// SetReadLimit implements transport.WebsocketReadLimiter.
func (c *webSocketConn) SetReadLimit(limit int64) {
	if l, ok := c.WebsocketConn.(transport.WebsocketReadLimiter); ok {
		l.SetReadLimit(limit)
	}
}

// SetReadDeadline implements transport.WebsocketReadDeadliner.
func (c *webSocketConn) SetReadDeadline(t time.Time) error {
	if d, ok := c.WebsocketConn.(transport.WebsocketReadDeadliner); ok {
		return d.SetReadDeadline(t)
	}
	return nil
}

// newWebSocket returns the transport of subscriptions over graphql-transport-ws. Credentials come in connection_init,
// under the same name as the header, since browsers can't set headers there.
func newWebSocket(cfg Config) transport.Websocket {
	limit := cfg.MaxBody
	return transport.Websocket{
		Implementation:   webSocket{},
		InitTimeout:      initTimeout,
		PingPongInterval: keepAlive,
		PayloadReadLimit: &limit,
		InitFunc: func(ctx context.Context, payload transport.InitPayload) (context.Context, *transport.InitPayload, error) {
			c, err := initCredentials(payload)
			if err != nil {
				return ctx, nil, err
			}
			if c != nil {
				ctx = market.WithCredentials(ctx, c)
			}
			return ctx, nil, nil
		},
	}
}

// initCredentials returns the credentials in a connection_init payload, nil where there are none. The payload's keys are
// compared without case.
func initCredentials(payload transport.InitPayload) (*market.Credentials, error) {
	var values []string
	for key, value := range payload {
		if !strings.EqualFold(key, CredentialsHeader) {
			continue
		}
		text, ok := value.(string)
		if !ok {
			return nil, market.Errorf(market.CodeBadUserInput, "%s in connection_init is not a text", CredentialsHeader)
		}
		values = append(values, text)
	}
	if len(values) == 0 {
		return nil, nil
	}
	return parseHeader(values)
}
