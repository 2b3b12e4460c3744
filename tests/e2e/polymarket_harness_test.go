package e2e

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"

	"oddsgraph/app"
	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/stream"
)

// startOverSimulator starts a service with a simulator in a synctest bubble, over in-memory connections. The flags in args may
// select a simulator other than Polymarket's. The market moves only when the test moves it.
func startOverSimulator(t testing.TB, args ...string) *service {
	t.Helper()
	// The bubble's clock starts in the year 2000, so advance it first. The service would mistake Unix milliseconds of that year for
	// seconds.
	time.Sleep(time.Until(startTime))
	dialer := &pipeDialer{}
	args = append([]string{
		"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--demo-listen=127.0.0.1:0", "--demo-control", "--demo-still", "--log-level=debug",
		"--demo-driver=polymarket", "--venue-driver=polymarket",
	}, args...)
	var rest direct
	s := openAt(t, market.SystemClock{}, func(w *app.Wiring) {
		withUnusedLimit(w)
		w.Client.Transport, w.Stream.Dial = &rest, dialer
		w.Stream.Backoff = market.Backoff{Min: time.Second, Max: 2 * time.Second} // shortens tests that break the stream often
	}, args...)
	rest.Handler = s.Demo.HTTP.Handler
	s.callDirectly()
	dialer.pipes = s.Demo.Server.Listener.(*pipes)
	s.serveUntilEnd(t)
	return s
}

// pipeDialer opens streams over in-memory connections.
type pipeDialer struct{ pipes *pipes }

// Dial implements stream.Dialer.
func (d *pipeDialer) Dial(ctx context.Context, address string, header http.Header) (stream.Conn, error) {
	c := &pipeConn{}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (raw net.Conn, err error) {
			c.raw, err = d.pipes.dial(ctx, network, address)
			return c.raw, err
		},
	}}
	ws, _, err := websocket.Dial(ctx, address, &websocket.DialOptions{HTTPClient: client, HTTPHeader: header})
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(-1)
	c.ws = ws
	return c, nil
}

// pipeConn is a connection that a pipeDialer has opened.
type pipeConn struct {
	ws  *websocket.Conn
	raw net.Conn
}

// Read implements stream.Conn.
func (c *pipeConn) Read(ctx context.Context) ([]byte, error) {
	_, frame, err := c.ws.Read(ctx)
	if code := websocket.CloseStatus(err); code >= 0 {
		return nil, &stream.CloseError{Code: int(code)}
	}
	return frame, err
}

// Write implements stream.Conn.
func (c *pipeConn) Write(ctx context.Context, frame []byte) error {
	return c.ws.Write(ctx, websocket.MessageText, frame)
}

// Close implements stream.Conn.
func (c *pipeConn) Close(code int) error {
	if code != 0 {
		timer := time.AfterFunc(time.Second, func() { _ = c.raw.Close() })
		defer timer.Stop()
		return c.ws.Close(websocket.StatusCode(code), "")
	}
	_ = c.raw.Close()
	return c.ws.CloseNow()
}
