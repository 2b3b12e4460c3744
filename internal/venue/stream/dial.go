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
	// Dial opens a connection before ctx ends. Its errors hold no part of the URL but the host.
	Dial(ctx context.Context, url string) (Conn, error)
}

// Conn is an open connection. Read, Write and Close may be called at the same time, each by one goroutine.
type Conn interface {
	// Read returns the next frame, or a *CloseError where the venue has closed with a code. The slice is the caller's.
	Read(ctx context.Context) ([]byte, error)
	// Write sends a frame and does not keep it.
	Write(ctx context.Context, frame []byte) error
	// Close ends the connection, and with it a Read and a Write under way, within about a second. Code 0 means without
	// the farewell of the protocol.
	Close(code int, reason string) error
}

const (
	// maxHeaderBytes bounds the header of the answer to a handshake.
	maxHeaderBytes = 64 << 10
	farewell       = time.Second
	// closeNormal is the code of a close that is nobody's fault.
	closeNormal = 1000
)

// dialer is the real Dialer. It uses no proxy, follows no redirect, and speaks HTTP/1.1, which the handshake needs.
type dialer struct{ frameBytes int64 }

func (d *dialer) Dial(ctx context.Context, address string) (Conn, error) {
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
	ws, response, err := websocket.Dial(ctx, address, &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		return nil, dialError(response, err)
	}
	ws.SetReadLimit(d.frameBytes)
	return &conn{ws: ws, raw: *raw.Load(), farewell: farewell}, nil
}

// dialError keeps the URL, which *url.Error quotes, out of the error.
func dialError(response *http.Response, err error) error {
	if response != nil && response.StatusCode != http.StatusSwitchingProtocols {
		return &HandshakeError{Status: response.StatusCode, RetryAfter: wire.RetryAfter(response.Header, time.Now())}
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	if response != nil {
		return errors.New("the venue's answer to the handshake is not WebSocket's")
	}
	return errors.New("the connection could not be opened")
}

// conn is a connection of coder/websocket. It does not hand contexts on: the library watches one anew for every frame
// that is read or written, at several allocations a frame, and Close ends both as well.
type conn struct {
	ws  *websocket.Conn
	raw net.Conn
	// farewell is how long the venue may take to answer that we close.
	farewell time.Duration
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

func (c *conn) Close(code int, reason string) error {
	if code == 0 {
		_ = c.raw.Close() // TLS would try to say goodbye
		return c.ws.CloseNow()
	}
	// The library waits for the peer's farewell for up to ten seconds, whatever is called meanwhile.
	stop := time.AfterFunc(c.farewell, func() { _ = c.raw.Close() })
	defer stop.Stop()
	return c.ws.Close(websocket.StatusCode(code), reason)
}
