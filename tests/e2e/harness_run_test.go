package e2e

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"

	"oddsgraph/app"
	"oddsgraph/graph"
	"oddsgraph/internal/venue/stream"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// run runs the program in this process with a command line.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	return app.Run(ctx, thirdParty(), args, environ, stdout, stderr)
}

// thirdParty returns the licence texts that the program embeds.
func thirdParty() string {
	text, err := os.ReadFile("THIRD_PARTY_LICENSES")
	if err != nil {
		panic(err)
	}
	return string(text)
}

// execute executes a query without variables with the given sources, as the HTTP API does.
func execute(t *testing.T, s *service, ctx context.Context, sources loaders.Sources, query string) *graphql.Response {
	t.Helper()
	compiler := graph.NewCompiler(graph.Config{Resolvers: &resolvers.Resolver{Status: s.Status, Clock: s.clock, Venues: make([]resolvers.Venue, 1)}})
	doc, invalid := gqlparser.LoadQueryWithRules(compiler.Schema(), query, nil)
	if invalid != nil {
		t.Fatal(invalid)
	}
	values, err := validator.VariableValues(compiler.Schema(), doc.Operations[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	operation := compiler.Operation(doc, doc.Operations[0], func(int) {})
	ctx, set, _ := loaders.With(ctx, sources)
	defer set.Done()
	resp := &graphql.Response{}
	set.Complete(ctx, func() {
		data, errs := operation.Execute(ctx, values, nil, nil)
		resp = &graphql.Response{Data: data}
		for i := range errs {
			resp.Errors = append(resp.Errors, gqlerror.WrapPath(errs[i].Path(), errs[i].Err))
		}
	})
	return resp
}

// startInBubble is like startAt, but for a test in a synctest bubble. Client, service and venue call each other without sockets,
// because synctest cannot track sockets.
func startInBubble(t *testing.T, now time.Time, args ...string) *service {
	t.Helper()
	var venue direct
	s := openRigged(t, now, func(w *app.Wiring) { withUnusedLimit(w); w.Client.Transport = &venue }, args...)
	venue.Handler = s.Demo.HTTP.Handler
	s.callDirectly()
	s.serveUntilEnd(t)
	return s
}

// startPiped is like startInBubble, but calls rig to change the wiring. The service calls the venue over in-memory connections, so
// the venue's responses can hang or break off.
func startPiped(t testing.TB, now time.Time, rig func(*app.Wiring), args ...string) *service {
	t.Helper()
	var venue *pipes
	transport := &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return venue.dial(ctx, network, address)
	}}
	s := openRigged(t, now, func(w *app.Wiring) { rig(w); w.Client.Transport = transport }, args...)
	s.callDirectly()
	venue = s.Demo.Server.Listener.(*pipes)
	t.Cleanup(transport.CloseIdleConnections)
	s.serveUntilEnd(t)
	return s
}

// callDirectly replaces the network listeners with in-memory listeners, and lets the client call the service's handler directly.
func (s *service) callDirectly() {
	s.client.Transport = &direct{s.HTTP.Handler}
	listeners := []*app.Server{s.Server, s.Admin}
	if s.Demo != nil {
		listeners = append(listeners, s.Demo.Server)
	}
	for _, l := range listeners {
		l.Listener = newPipes(l.Listener)
	}
}

// noStream is a dialer that always fails.
type noStream struct{}

// Dial implements stream.Dialer.
func (noStream) Dial(context.Context, string, http.Header) (stream.Conn, error) {
	return nil, errors.New("the stream is refused")
}

// direct is a transport that calls a handler in this process.
type direct struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.RequestURI, in.RemoteAddr, in.Host = r.URL.RequestURI(), "127.0.0.1:1", r.URL.Host
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, in)
	if err := r.Context().Err(); err != nil { // as over a real connection, a client that has cancelled its request gets no response
		return nil, err
	}
	return w.Result(), nil
}

// pipes is a listener for net.Pipe connections. synctest can track these connections, but it cannot track sockets.
type pipes struct {
	net.Listener
	dialed chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newPipes(l net.Listener) *pipes {
	return &pipes{Listener: l, dialed: make(chan net.Conn), closed: make(chan struct{})}
}

// dial connects to the listener.
func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.dialed <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// local is a connection whose peer has an address of this machine.
type local struct{ net.Conn }

func (local) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialed:
		return local{c}, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.Listener.Close()
}
