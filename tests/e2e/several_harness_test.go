package e2e

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/internal/demo/kalshi"
	"oddsgraph/internal/demo/polymarket"
	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/drivers"
	"oddsgraph/internal/venue/stream"
)

// simulated is a simulator in front of which faults can be set. Services in the same synctest bubble call it in memory.
type simulated struct {
	*faults.Proxy
	driver, path string
	engine       *demo.Venue
	id           func(demoID string) string // translates an id of the engine
	listener     *pipes

	mu     sync.Mutex
	frames [][]byte // what clients of the stream have sent
}

// simulate starts the simulator of a driver. rig may wrap its handler; it may be nil.
func simulate(t *testing.T, driver string, cfg demo.Config, rig func(http.Handler) http.Handler) *simulated {
	t.Helper()
	cfg.Seed, cfg.Clock = 1, market.SystemClock{}
	v := &simulated{driver: driver, id: func(id string) string { return id }}
	var h http.Handler
	switch driver {
	case "kalshi":
		sim := kalshi.New(kalshi.Config{Demo: cfg, Keys: map[string]*rsa.PublicKey{"key": &kalshiKey().PublicKey}})
		h, v.engine, v.id, v.path = sim, sim.Engine(), sim.ID, kalshi.Path
		t.Cleanup(sim.Close)
	case "polymarket":
		sim := polymarket.New(cfg)
		h, v.engine, v.id = sim, sim.Engine(), sim.ID
		t.Cleanup(sim.Close)
	default:
		v.engine = demo.New(cfg)
		h = v.engine
		t.Cleanup(v.engine.Close)
	}
	if rig != nil {
		h = rig(h)
	}
	v.Proxy = faults.New(h)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v.listener = newPipes(l)
	server := &http.Server{Handler: v.Proxy}
	go func() { _ = server.Serve(v.listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return v
}

// kalshiKey is the key with which a service may use the stream of a simulator of Kalshi; see withSimulatedStream.
var kalshiKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// withSimulatedStream makes a service use the stream of its simulator of Polymarket or Kalshi.
func withSimulatedStream(w *app.Wiring) {
	w.Stream.URL = "ws://venue.invalid/ws/market"
	if w.Client.Driver == "kalshi" {
		w.Stream.URL = "ws://venue.invalid" + kalshi.StreamPath
		w.Client.Key = drivers.APIKey{ID: "key", PEM: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(kalshiKey())})}
	}
}

// set replaces the faults.
func (v *simulated) set(t *testing.T, rules ...faults.Fault) {
	t.Helper()
	if err := v.Set(rules); err != nil {
		t.Fatal(err)
	}
}

// readSeveral starts a service in a synctest bubble that reads the venue a and, unless b is nil, the further venue b, whose name in ids
// is b. Time in the bubble is the time of the service.
func readSeveral(t *testing.T, a, b *simulated, rig func(*app.Wiring), args ...string) *service {
	t.Helper()
	if b == nil {
		return readVenues(t, map[string]*simulated{"": a}, rig, args...)
	}
	return readVenues(t, map[string]*simulated{"": a, "b": b}, rig, args...)
}

// readVenues is like readSeveral, for venues by their names in ids. The name of the first one is empty.
func readVenues(t *testing.T, all map[string]*simulated, rig func(*app.Wiring), args ...string) *service {
	t.Helper()
	args = append([]string{
		"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--trusted-proxies=127.0.0.1", "--log-level=error",
		"--venue-driver=" + all[""].driver, "--venue-url=http://127.0.0.2" + all[""].path,
	}, args...)
	var more []string
	for name, v := range all {
		if name != "" {
			more = append(more, write(t, t.TempDir(), name+".env", fmt.Sprintf(
				"ODDSGRAPH_VENUE_DRIVER=%s\nODDSGRAPH_VENUE_URL=http://127.0.0.%d%s\nODDSGRAPH_VENUE_TIMEOUT=3s\n", v.driver, 3+len(more), v.path)))
		}
	}
	if more != nil {
		args = append(args, "--more-venues="+strings.Join(more, ","))
	}
	s := openAt(t, market.SystemClock{}, func(w *app.Wiring) {
		v := all[w.Reads.Name]
		transport := &http.Transport{DisableCompression: true, MaxResponseHeaderBytes: 64 << 10, DialContext: v.listener.dial}
		t.Cleanup(transport.CloseIdleConnections)
		w.Client.Transport, w.Stream.Dial, w.Unlimited = transport, v, true
		if v.driver == "generic" {
			w.Stream.URL = "ws://venue.invalid" + demo.StreamPath
		}
		if rig != nil {
			rig(w)
		}
	}, args...)
	s.callDirectly()
	s.serveUntilEnd(t)
	return s
}

// Dial implements stream.Dialer.
func (v *simulated) Dial(ctx context.Context, url string, header http.Header) (stream.Conn, error) {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: v.listener.dial}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ws, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: client, HTTPHeader: header})
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(-1)
	return &pipedStream{ws, v}, nil
}

// pipedStream is a stream.Conn that keeps the frames of its client.
type pipedStream struct {
	ws *websocket.Conn
	v  *simulated
}

// Read implements stream.Conn.
func (c *pipedStream) Read(ctx context.Context) ([]byte, error) {
	_, frame, err := c.ws.Read(ctx)
	if code := websocket.CloseStatus(err); code >= 0 {
		return nil, &stream.CloseError{Code: int(code)}
	}
	return frame, err
}

// Write implements stream.Conn.
func (c *pipedStream) Write(ctx context.Context, frame []byte) error {
	c.v.mu.Lock()
	c.v.frames = append(c.v.frames, append([]byte{}, frame...))
	c.v.mu.Unlock()
	return c.ws.Write(ctx, websocket.MessageText, frame)
}

// Close implements stream.Conn.
func (c *pipedStream) Close(int) error { return c.ws.CloseNow() }

// withStreams lets the client call the service over in-memory connections, so that it receives events as they come.
func (s *service) withStreams(t *testing.T) *service {
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 256, DialContext: s.Server.Listener.(*pipes).dial}
	s.client = &http.Client{Transport: transport}
	return s
}
