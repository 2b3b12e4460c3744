package kalshi_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/kalshi"
	"oddsgraph/tests/tool"
)

type object = map[string]any

var privateKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

// rig is a Kalshi simulator with 200 markets, its clock and its HTTP server.
type rig struct {
	*kalshi.Venue
	t      *testing.T
	clock  *tool.Clock
	server *httptest.Server
}

func newRig(t *testing.T) *rig {
	t.Helper()
	clock := tool.NewClock(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))
	v := kalshi.New(kalshi.Config{Demo: demo.Config{Markets: 200, Seed: 1, Clock: clock}, Keys: map[string]*rsa.PublicKey{"key": &privateKey().PublicKey}})
	s := httptest.NewServer(v)
	t.Cleanup(func() {
		v.Close()
		s.Close()
	})
	return &rig{v, t, clock, s}
}

// call sends a signed GET request and returns the status and the decoded body.
func (r *rig) call(path string) (int, object) {
	r.t.Helper()
	withoutQuery, _, _ := strings.Cut(path, "?")
	return r.callWith(path, headers(r.t, "key", privateKey(), r.clock.Now(), kalshi.Path+withoutQuery))
}

// callWith sends a GET request with the given headers.
func (r *rig) callWith(path string, h http.Header) (int, object) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.server.URL+kalshi.Path+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header = h
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	var out object
	if err := json.NewDecoder(response.Body).Decode(&out); err != nil {
		r.t.Fatal(err)
	}
	return response.StatusCode, out
}

// rows sends a GET request that must succeed, and returns the list of objects in the given member of the response.
func (r *rig) rows(path, member string) (rows []object) {
	r.t.Helper()
	status, out := r.call(path)
	if status != http.StatusOK {
		r.t.Fatalf("GET %s: got %d %v, want 200", path, status, out)
	}
	for _, row := range out[member].([]any) {
		rows = append(rows, row.(object))
	}
	return rows
}

// headers returns headers that sign a GET request, or a WebSocket handshake, for the given time.
func headers(t *testing.T, id string, key *rsa.PrivateKey, at time.Time, path string) http.Header {
	t.Helper()
	stamp := strconv.FormatInt(at.UnixMilli(), 10)
	digest := sha256.Sum256([]byte(stamp + "GET" + path))
	signature, err := rsa.SignPSS(rand.Reader, key, crypto.SHA256, digest[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
	if err != nil {
		t.Fatal(err)
	}
	return http.Header{"Kalshi-Access-Key": {id}, "Kalshi-Access-Timestamp": {stamp}, "Kalshi-Access-Signature": {base64.StdEncoding.EncodeToString(signature)}}
}

func (r *rig) dial(h http.Header) (*websocket.Conn, int) {
	r.t.Helper()
	ws, response, err := websocket.Dial(context.Background(), "ws"+strings.TrimPrefix(r.server.URL, "http")+kalshi.StreamPath, &websocket.DialOptions{HTTPHeader: h})
	if err != nil {
		if response == nil {
			r.t.Fatal(err)
		}
		return nil, response.StatusCode
	}
	ws.SetReadLimit(-1)
	r.t.Cleanup(func() { _ = ws.CloseNow() })
	return ws, http.StatusSwitchingProtocols
}

// socket is a WebSocket client that numbers its commands.
type socket struct {
	t  *testing.T
	ws *websocket.Conn
	id int
}

func (r *rig) socket() *socket {
	r.t.Helper()
	ws, _ := r.dial(headers(r.t, "key", privateKey(), r.clock.Now(), kalshi.StreamPath))
	return &socket{t: r.t, ws: ws}
}

func (s *socket) send(cmd string, params object) {
	s.t.Helper()
	s.id++
	b, err := json.Marshal(object{"id": s.id, "cmd": cmd, "params": params})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.ws.Write(context.Background(), websocket.MessageText, b); err != nil {
		s.t.Fatal(err)
	}
}

// drain sends an unknown command. It returns all messages that arrive before the error response to this command.
func (s *socket) drain() (messages []object) {
	s.t.Helper()
	s.send("nothing", object{})
	for {
		_, frame, err := s.ws.Read(context.Background())
		if err != nil {
			s.t.Fatal(err)
		}
		var m object
		if err := json.Unmarshal(frame, &m); err != nil {
			s.t.Fatal(err)
		}
		if m["type"] == "error" && m["id"] == float64(s.id) {
			return messages
		}
		messages = append(messages, m)
	}
}

// spentTokens returns the cost of all calls: each item costs 10 tokens.
func spentTokens(r *rig) (n int64) {
	for _, keys := range r.Stats().Keys {
		n += 10 * keys
	}
	return n
}

func TestREST(t *testing.T) {
	r := newRig(t)
	ticker := r.Tickers()[0]
	r.clock.Advance(time.Second)
	status, book := r.call("/markets/" + ticker + "/orderbook")
	if status != http.StatusOK || len(book["orderbook_fp"].(object)["yes_dollars"].([]any)) == 0 {
		t.Errorf("got status %d and the book %v, want a book with bids", status, book)
	}
	markets := r.rows("/markets?tickers="+ticker+",KXABSENT", "markets")
	if len(markets) != 1 || markets[0]["status"] != "active" {
		t.Errorf("got markets %v, want one active market", markets)
	}
	if status, _ := r.call("/events/KXABSENT"); status != http.StatusNotFound {
		t.Errorf("unknown event: got status %d, want 404", status)
	}
	if spent := spentTokens(r); spent != 30 {
		t.Errorf("the calls for a book, a list and an event cost %d tokens, want 30", spent)
	}
	r.clock.Advance(time.Second)
	seen, path := 0, "/markets?limit=90&status=open"
	for next := path; next != ""; {
		status, page := r.call(next)
		if status != http.StatusOK {
			t.Fatalf("GET %s: got status %d, want 200", next, status)
		}
		seen += len(page["markets"].([]any))
		if next = ""; page["cursor"] != "" {
			next = path + "&cursor=" + page["cursor"].(string)
		}
	}
	if want := len(r.Tickers()); seen != want {
		t.Errorf("the pages have %d open markets, want %d", seen, want)
	}
	r.clock.Advance(time.Second)
	for i := range 21 { // the bucket has 200 tokens
		if status, body := r.call("/markets?limit=1"); (status == http.StatusOK) != (i < 20) || i == 20 && body["error"] != "too many requests" {
			t.Errorf("call %d: got %d %v, want too many requests after 20 calls", i+1, status, body)
		}
	}
}

func TestSignatures(t *testing.T) {
	r := newRig(t)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	now := r.clock.Now()
	for name, test := range map[string]struct {
		h    http.Header
		want int
	}{
		"valid":       {headers(t, "key", privateKey(), now, kalshi.StreamPath), http.StatusSwitchingProtocols},
		"unsigned":    {nil, http.StatusUnauthorized},
		"unknown key": {headers(t, "other", privateKey(), now, kalshi.StreamPath), http.StatusUnauthorized},
		"wrong key":   {headers(t, "key", other, now, kalshi.StreamPath), http.StatusUnauthorized},
		"old":         {headers(t, "key", privateKey(), now.Add(-time.Minute), kalshi.StreamPath), http.StatusUnauthorized},
	} {
		if _, status := r.dial(test.h); status != test.want {
			t.Errorf("handshake with the signature %q: got status %d, want %d", name, status, test.want)
		}
	}
}

// TestErrors checks the error codes of refused commands.
func TestErrors(t *testing.T) {
	r := newRig(t)
	s := r.socket()
	for _, test := range []struct {
		cmd    string
		params object
		code   float64
	}{
		{"subscribe", object{}, 3},
		{"subscribe", object{"channels": []string{"gossip"}}, 8},
		{"subscribe", object{"channels": []string{"orderbook_delta"}}, 14},
		{"unsubscribe", object{}, 4},
		{"unsubscribe", object{"sids": []int{9}}, 7},
		{"update_subscription", object{"action": "add_markets"}, 12},
		{"update_subscription", object{"sid": 9, "action": "add_markets"}, 7},
	} {
		s.send(test.cmd, test.params)
		id := s.id
		answers := s.drain()
		if len(answers) != 1 || answers[0]["type"] != "error" || answers[0]["id"] != float64(id) || answers[0]["msg"].(object)["code"] != test.code {
			t.Errorf("%s %v: got %v, want one error with code %v", test.cmd, test.params, answers, test.code)
		}
	}
}
