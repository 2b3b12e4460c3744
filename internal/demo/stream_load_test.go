package demo

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// narrowListener is a listener that gives its connections small write buffers.
type narrowListener struct{ net.Listener }

func (n narrowListener) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if err == nil {
		_ = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return c, err
}

// TestSlowReader checks that the venue closes a connection with the code 4002 if too many frames wait for a slow client. Another
// client must still get all frames.
func TestSlowReader(t *testing.T) {
	v := New(Config{Markets: 40, Clock: newClock()})
	v.stream.limits.framesPerSecond, v.stream.limits.queue = 1000, 100
	server := httptest.NewUnstartedServer(v)
	server.Listener = narrowListener{server.Listener}
	server.Start()
	defer server.Close()
	defer v.Close()
	s := &testVenue{v, server.URL, server.Client()}
	tok := openTokens(t, v, 1)[0]

	good := s.dial(t)
	good.subscribe("orderbook", 0, tok.id)
	b := &bookCopy{}
	b.take(t, good.take("orderbook_snapshot"))

	dialer := &net.Dialer{}
	s.client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		if err == nil {
			_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		}
		return c, err
	}}}
	slow := s.dial(t)
	slow.subscribe("orderbook", 0, tok.id)
	lag := &bookCopy{}
	lag.take(t, slow.take("orderbook_snapshot"))
	sent := 0
	for !s.ending() {
		if sent++; sent > 100_000 {
			t.Fatal("the venue did not close the connection of the slow client after 100,000 changes")
		}
		s.nudge(t, tok)
		for _, f := range good.settle() {
			if !b.take(t, f) {
				t.Fatalf("the other client got a gap before frame %v", f)
			}
		}
	}
	b.check(t, s, tok.id, 200, good.epoch)
	// The slow client must get all frames that the venue wrote before the close, without a gap.
	for {
		data, err := slow.bytes()
		if err != nil {
			if code := websocket.CloseStatus(err); code != CloseSlow {
				t.Fatalf("the slow client got close code %d and error %v, want %d", code, err, CloseSlow)
			}
			break
		}
		if !lag.take(t, decode[object](t, string(data))) {
			t.Fatalf("the slow client got a gap before the close")
		}
	}
	if lag.seq >= b.seq {
		t.Error("the slow client got all frames, want a loss at the close")
	}
	s.eventually(t, "the connection of the slow client has ended", func() bool {
		n := s.Stats().Stream
		return n.Connections == 1 && n.Closes["4002"] == 1
	})
	s.nudge(t, tok)
	if frames := good.settle(); len(frames) != 1 || !b.take(t, frames[0]) {
		t.Errorf("after the close: the other client got %v, want the next update", frames)
	}
}

// ending reports whether the venue is closing one of its connections.
func (s *testVenue) ending() bool {
	return slices.ContainsFunc(s.stream.all(), func(c *streamConn) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.ending
	})
}

// TestDeadReader checks that the venue disconnects a client that reads nothing when a write to this client exceeds the write
// timeout.
func TestDeadReader(t *testing.T) {
	s := open(t, Config{}, func(l *streamLimits) {
		l.write, l.queue, l.queueBytes = 20*time.Millisecond, 1<<30, 1<<40
	})
	tokens := openTokens(t, s.Venue, 30)
	l := s.dial(t)
	for n := 0; s.Stats().Stream.Connections > 0; n++ {
		if n == 10_000 {
			t.Fatal("the client was not disconnected after 10,000 requests")
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := l.ws.Write(ctx, websocket.MessageText, []byte(`{"type":"subscribe","channel":"orderbook","depth":`+strconv.Itoa(1+n%2)+
			`,"tokenIds":["`+strings.Join(idsOf(tokens), `","`)+`"]}`))
		cancel()
		if err != nil {
			break
		}
	}
	s.eventually(t, "the client is disconnected", func() bool { return s.Stats().Stream.Connections == 0 })
	if n := s.Stats().Stream; len(n.Closes)+len(n.Topics) > 0 {
		t.Errorf("got stats %+v, want no close frame and no topics", n)
	}
}

// TestStreamUnderLoad checks that streamed books equal the books from REST after a load of many clients, faults and restarts.
func TestStreamUnderLoad(t *testing.T) {
	s := open(t, Config{Markets: 200, MarketEvery: 10 * pace, Heartbeat: time.Millisecond})
	tokens := openTokens(t, s.Venue, 40)
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for n := range 6 {
		clients.Go(func() {
			r := rng(n)
			for {
				select {
				case <-stop:
					return
				default:
				}
				l := s.load(t, &clients)
				for range 60 {
					tok := tokens[r.intn(len(tokens))]
					channel := channelNames[r.intn(int(tokenChannels))]
					verb := []string{"subscribe", "subscribe", "resync", "unsubscribe"}[r.intn(4)]
					message := `{"type":"` + verb + `","channel":"` + channel + `","tokenIds":["` + tok.id + `"],"depth":` + strconv.Itoa(r.between(1, 300)) + `}`
					switch r.intn(8) {
					case 0:
						message = `{"type":"auth","address":"` + medium + `","credentials":{"apiKey":"demo","secret":"demo","passphrase":"demo"}}`
					case 1:
						message = `{"type":"` + verb + `","channel":"user","address":"` + medium + `"}`
					case 2:
						message = `{"type":"` + verb + `","channel":"market","marketIds":["` + tok.market.id + `"]}`
					}
					if l.Write(t.Context(), websocket.MessageText, []byte(message)) != nil {
						break
					}
				}
				_ = l.CloseNow()
			}
		})
	}
	for n := range 300 {
		s.Step()
		switch n % 100 {
		case 20:
			if err := s.SetFaults([]Fault{
				{Path: StreamPath, Kind: FaultDrop, Probability: 0.1}, {Path: StreamPath, Kind: FaultReorder, Probability: 0.1},
				{Path: StreamPath, Kind: FaultSlowSnapshot, DelayMs: 2, Probability: 0.3}, {Path: StreamPath, Kind: FaultStall, Probability: 0.001, DelayMs: 5},
				{Path: StreamPath, Kind: FaultNewEpoch, Probability: 0.001}, {Path: StreamPath, Kind: FaultLostTail, Probability: 0.01},
			}); err != nil {
				t.Fatal(err)
			}
		case 70:
			s.Reset()
		case 90:
			s.Restart([]int{0, CloseShed}[n/100%2])
		}
		s.Stats()
	}
	s.Reset()
	close(stop)
	clients.Wait()
	l := s.dial(t)
	l.subscribe("orderbook", 0, idsOf(tokens)...)
	for _, f := range l.settle() {
		b := &bookCopy{}
		b.take(t, f)
		b.check(t, s, f["tokenId"].(string), 200, l.epoch)
	}
	_ = l.ws.Close(websocket.StatusNormalClosure, "")
	s.eventually(t, "all connections have ended", func() bool {
		n := s.Stats().Stream
		return n.Connections == 0 && len(n.Topics)+len(n.Subscriptions) == 0
	})
	if held := s.stream.heldFrames.Load(); held != 0 || len(s.stream.users) > 0 {
		t.Errorf("got %d held frames and %d subscribed wallets, want none", held, len(s.stream.users))
	}
}

// load opens a stream and discards all its frames.
func (s *testVenue) load(t testing.TB, readers *sync.WaitGroup) *websocket.Conn {
	ws, _, err := websocket.Dial(t.Context(), s.url+StreamPath, &websocket.DialOptions{HTTPClient: s.client})
	if err != nil {
		t.Error(err)
		panic(err)
	}
	ws.SetReadLimit(-1)
	readers.Go(func() {
		for {
			if _, _, err := ws.Read(context.Background()); err != nil {
				return
			}
		}
	})
	return ws
}

// TestConnections checks the maximum number of connections, and that Close closes all connections.
func TestConnections(t *testing.T) {
	s := open(t, Config{}, func(l *streamLimits) { l.connections = 3 })
	var listeners []*listener
	for range 3 {
		listeners = append(listeners, s.dial(t))
	}
	dialRefused := func() (int, string) {
		_, response, err := websocket.Dial(t.Context(), s.url+StreamPath, &websocket.DialOptions{HTTPClient: s.client})
		if err == nil || response == nil {
			t.Fatalf("got response %v and error %v, want a refused handshake", response, err)
		}
		return response.StatusCode, response.Header.Get("Retry-After")
	}
	if status, after := dialRefused(); status != 503 || after == "" {
		t.Errorf("fourth connection: got status %d and Retry-After %q, want 503 and a time", status, after)
	}
	_ = listeners[0].ws.Close(websocket.StatusNormalClosure, "")
	s.eventually(t, "one connection has ended", func() bool { return s.Stats().Stream.Connections == 2 })
	listeners[0] = s.dial(t)

	done := make(chan int, len(listeners))
	for _, l := range listeners {
		go func() { done <- l.closed() }()
	}
	s.Close()
	for range listeners {
		if code := <-done; code != int(websocket.StatusGoingAway) {
			t.Errorf("after Close: got close code %d, want 1001", code)
		}
	}
	if n := s.Stats().Stream; n.Connections != 0 || n.Closes["1001"] != 3 {
		t.Errorf("after Close: got stats %+v, want no connections and 3 closes with 1001", n)
	}
	if status, _ := dialRefused(); status != 503 {
		t.Errorf("after Close: got %d, want 503", status)
	}
	if w := send(s, "/api/exchange/market-search"); w.Code != 200 {
		t.Errorf("REST after Close: got %d, want 200", w.Code)
	}
	s.Close()
}

// TestCloseWithoutAnswer checks that Close disconnects a client that does not answer the close frame.
func TestCloseWithoutAnswer(t *testing.T) {
	s := open(t, Config{}, func(l *streamLimits) { l.goodbye = 10 * time.Millisecond })
	s.dial(t) // this client never reads
	s.Close()
}

// TestRestart checks that a restart begins a new epoch, in which all sequence numbers start at 1 again.
func TestRestart(t *testing.T) {
	s := open(t, Config{Control: true})
	tok := openTokens(t, s.Venue, 1)[0]
	for range 5 {
		s.nudge(t, tok)
	}
	l := s.dial(t)
	l.subscribe("orderbook", 10, tok.id)
	b := &bookCopy{}
	if b.take(t, l.take("orderbook_snapshot")); b.seq != 6 {
		t.Fatalf("before the restart: got seq %d, want 6", b.seq)
	}
	l.subscribe("prices", 0, tok.id)
	l.take("price_update")
	l.subscribeUser(small, "demo")
	if w := post(s.Venue, "restart", `{"code":4003}`); w.Code != 200 {
		t.Fatalf("restart: got %d %s, want 200", w.Code, w.Body)
	}
	if code := l.closed(); code != CloseShed {
		t.Errorf("got close code %d, want %d", code, CloseShed)
	}
	again := s.dial(t)
	if again.epoch == l.epoch || again.epoch != s.Epoch() {
		t.Errorf("got epoch %s after %s, want the new epoch %s", again.epoch, l.epoch, s.Epoch())
	}
	again.subscribe("orderbook", 10, tok.id)
	if b.take(t, again.take("orderbook_snapshot")); b.seq != 1 {
		t.Errorf("got seq %d, want 1", b.seq)
	}
	b.check(t, s, tok.id, 10, again.epoch)
	again.subscribe("prices", 0, tok.id)
	again.take("price_update")
	again.subscribe("trades", 0, tok.id)
	again.take("trades_snapshot")
	again.subscribe("market", 0, tok.market.id)
	again.subscribeUser(small, "demo")

	// A restart with code 0 keeps the connections. The venue sends a hello and all snapshots again.
	s.nudge(t, tok)
	again.settle()
	s.Restart(0)
	again.greeted(again.take("hello"))
	seqs := map[any]uint64{}
	for _, f := range again.settle() {
		seqs[f["type"]] = number(t, f, "seq")
		if f["type"] == "orderbook_snapshot" {
			b.take(t, f)
		}
	}
	want := map[any]uint64{"orderbook_snapshot": 1, "price_update": 1, "trades_snapshot": 1, "market_update": 1, "user_snapshot": 1}
	if !maps.Equal(seqs, want) || again.epoch != s.Epoch() {
		t.Errorf("after the restart: got epoch %s and sequence numbers %v, want %s and %v", again.epoch, seqs, s.Epoch(), want)
	}
	b.check(t, s, tok.id, 10, again.epoch)
	s.nudge(t, tok)
	for _, f := range again.settle() {
		if f["type"] == "orderbook_update" && !b.take(t, f) {
			t.Errorf("got a gap before frame %v", f)
		}
	}
	b.check(t, s, tok.id, 10, again.epoch)
	for _, body := range []string{``, `{"code":1006}`, `{"code":5000}`, `{"cod":1}`} {
		if w := post(s.Venue, "restart", body); w.Code != 400 {
			t.Errorf("%s: got %d, want 400", body, w.Code)
		}
	}
}
