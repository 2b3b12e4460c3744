package subscribers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a server of graphql-transport-ws. It sends the body of each POST to all subscribers.
type stage struct {
	t *testing.T

	pongs chan struct{}

	mu    sync.Mutex
	conns []*websocket.Conn
}

func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, c := range s.conns {
			if err := c.Write(r.Context(), websocket.MessageText, body); err != nil {
				s.t.Error(err)
			}
		}
		return
	}
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		s.t.Error(err)
		return
	}
	defer c.CloseNow()
	for {
		_, b, err := c.Read(context.Background())
		if err != nil {
			return
		}
		switch text := string(b); {
		case text == `{"type":"connection_init"}`:
			_ = c.Write(r.Context(), websocket.MessageText, []byte(`{"type":"connection_ack"}`))
			_ = c.Write(r.Context(), websocket.MessageText, []byte(`{"type":"ping"}`))
		case text == `{"type":"pong"}`:
			s.pongs <- struct{}{}
		case strings.HasPrefix(text, `{"id":"1","type":"subscribe","payload":{"query":"subscription `):
			s.mu.Lock()
			// Add c before its first event, because Serve posts messages when every subscriber has an event.
			s.conns = append(s.conns, c)
			_ = c.Write(r.Context(), websocket.MessageText, []byte(`{"id":"1","type":"next","payload":{"data":{}}}`))
			s.mu.Unlock()
		default:
			s.t.Errorf("a subscriber sent the unexpected message %s", text)
		}
	}
}

func event(price string) string {
	return fmt.Sprintf(`{"id":"1","type":"next","payload":{"data":{"priceChanged":{"price":{"price":%q},"note":%q}}}}`, price, strings.Repeat("x", 2000))
}

func TestServe(t *testing.T) {
	s := &stage{t: t, pongs: make(chan struct{}, 10)}
	server := httptest.NewServer(s)
	defer server.Close()
	in, orders := io.Pipe()
	reports, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(server.Listener.Addr().String(), 5, "subscription { "+strings.Repeat("a ", 100)+"}", nil, in, out)
		_ = out.Close()
	}()
	answers := json.NewDecoder(reports)
	read := func() (r Report) {
		if err := answers.Decode(&r); err != nil {
			t.Fatal(err, <-ended)
		}
		return r
	}
	if r := read(); r.Subscribers != 5 {
		t.Fatalf("the first report has %d subscribers, want 5", r.Subscribers)
	}
	for range 2 {
		order := Order{
			URL: server.URL, Every: time.Microsecond, Prices: []int{5100, 5200, 10_000},
			Bodies: []string{event("0.51"), event("0.5200"), event("1")},
		}
		if err := json.NewEncoder(orders).Encode(order); err != nil {
			t.Fatal(err)
		}
		r := read()
		if r.Deliveries != 15 || r.P50 <= 0 || r.P99 < r.P50 || !strings.Contains(r.Last, `"price":{"price":"0.51"`) {
			t.Errorf("the report is %+v, want 15 deliveries with delays, and an event with the price 0.51 as the last message", r)
		}
	}
	// Serve counts only messages with a price of the order. This order has the price 0.53, but the message has 0.77.
	if err := json.NewEncoder(orders).Encode(Order{URL: server.URL, Prices: []int{5300}, Bodies: []string{event("0.77")}}); err != nil {
		t.Fatal(err)
	}
	if r := read(); r.Deliveries != 0 {
		t.Errorf("the report is %+v, want no deliveries", r)
	}
	_ = orders.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for range 5 {
		select {
		case <-s.pongs:
		case <-time.After(30 * time.Second):
			t.Fatal("a subscriber has not answered a ping")
		}
	}
}

// TestRefusedOrder checks the error for an order if the server refuses the POST requests of the order.
func TestRefusedOrder(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	order := `{"URL":"` + server.URL + `","Prices":[5100],"Bodies":["{}"]}`
	err := Serve(server.Listener.Addr().String(), 0, "", nil, strings.NewReader(order), io.Discard)
	if want := server.URL + ": 404 Not Found: 404 page not found\n"; err == nil || err.Error() != want {
		t.Errorf("the error is %v; want %s", err, want)
	}
}

func TestServeWithoutWebSocket(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	err := Serve(server.Listener.Addr().String(), 1, "", nil, strings.NewReader(""), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("for a server without a WebSocket: got the error %v, want an error with 404", err)
	}
}
