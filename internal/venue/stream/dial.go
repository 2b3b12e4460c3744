package stream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"oddsgraph/internal/venue/wire"
)

// Dialer opens connections.
type Dialer interface {
	// Dial opens a connection. ctx applies only to the opening. Errors contain no part of the header, and of the URL only the host.
	Dial(ctx context.Context, url string, header http.Header) (Conn, error)
}

// Conn is an open connection. Read, Write and Close may be called concurrently, but each only once at a time.
type Conn interface {
	// Read returns the next frame, which the caller owns. If the venue has closed the connection with a code, it returns a *CloseError.
	Read(ctx context.Context) ([]byte, error)
	// Write sends a frame. It must not retain the slice.
	Write(ctx context.Context, frame []byte) error
	// Close ends the connection and all pending calls within about a second. If code is 0, Close sends no close frame.
	Close(code int) error
}

const (
	maxHeaderBytes = 64 << 10
	closeWithin    = time.Second
	closeNormal    = 1000
)

// dialer is the default Dialer. It uses no proxy, follows no redirects and speaks HTTP/1.1, which the WebSocket handshake requires.
type dialer struct{}

func (dialer) Dial(ctx context.Context, address string, header http.Header) (Conn, error) {
	var raw atomic.Pointer[net.Conn]
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext(ctx, network, address)
			if err == nil {
				raw.Store(&conn)
			}
			return conn, err
		},
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: maxHeaderBytes,
		Protocols:              &protocols,
	}
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ws, response, err := websocket.Dial(ctx, address, &websocket.DialOptions{HTTPClient: client, HTTPHeader: header})
	if err != nil {
		return nil, dialError(response, err)
	}
	ws.SetReadLimit(maxFrameBytes)
	return &conn{ws: ws, raw: *raw.Load(), closeWithin: closeWithin}, nil
}

// dialError returns an error without the URL for a failed dial.
func dialError(response *http.Response, err error) error {
	if response != nil && response.StatusCode != http.StatusSwitchingProtocols {
		return &HandshakeError{Status: response.StatusCode, RetryAfter: wire.RetryAfter(response.Header, time.Now())}
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	if response != nil {
		return errors.New("the venue's response to the handshake is not a WebSocket upgrade")
	}
	return errors.New("the connection could not be opened")
}

// conn is a connection of coder/websocket. Read and Write ignore their contexts, because coder/websocket would allocate memory for
// each frame to watch a context. Close ends Read and Write.
type conn struct {
	ws          *websocket.Conn
	raw         net.Conn
	closeWithin time.Duration
}

func (c *conn) Read(context.Context) ([]byte, error) {
	_, frame, err := c.ws.Read(context.Background())
	if code := websocket.CloseStatus(err); code >= 0 {
		return nil, &CloseError{Code: int(code)}
	}
	return frame, err
}

func (c *conn) Write(_ context.Context, frame []byte) error {
	return c.ws.Write(context.Background(), websocket.MessageText, frame)
}

func (c *conn) Close(code int) error {
	if code == 0 {
		_ = c.raw.Close() // closing a TLS connection could block, because it sends an alert
		return c.ws.CloseNow()
	}
	// coder/websocket would wait up to ten seconds for the peer's close frame.
	stop := time.AfterFunc(c.closeWithin, func() { _ = c.raw.Close() })
	defer stop.Stop()
	return c.ws.Close(websocket.StatusCode(code), "")
}
