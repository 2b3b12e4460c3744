package polymarket_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/control"
	"oddsgraph/internal/demo/polymarket"
	"oddsgraph/tests/tool"
)

type object = map[string]any

// address is the address of the demo account with 2,000 positions.
const address = "0x3333333333333333333333333333333333333333"

// rig is a Polymarket simulator with 400 markets, its clock and its HTTP server.
type rig struct {
	*polymarket.Venue
	t      *testing.T
	clock  *tool.Clock
	server *httptest.Server
}

func newRig(t *testing.T) *rig {
	t.Helper()
	clock := tool.NewClock(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))
	v := polymarket.New(demo.Config{Markets: 400, Seed: 1, Clock: clock})
	s := httptest.NewServer(control.New(v, true))
	t.Cleanup(func() {
		v.Close()
		s.Close()
	})
	return &rig{v, t, clock, s}
}

// step moves the markets n times. Before each move, it advances the clock by 150 ms.
func (r *rig) step(n int) {
	for range n {
		r.clock.Advance(150 * time.Millisecond)
		r.Engine().Step()
	}
}

// tokenIDs returns the first token of each outcome of the demo venue's open markets.
func (r *rig) tokenIDs() (ids []string) {
	for _, tok := range r.Engine().Tokens() {
		if tok.Status == "OPEN" {
			ids = append(ids, r.ID(tok.TokenID))
		}
	}
	return ids
}

// call sends a request and decodes the response. If body is nil, the method is GET.
func (r *rig) call(path string, body any) (status int, answer any) {
	r.t.Helper()
	method, reader := http.MethodGet, io.Reader(nil)
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			r.t.Fatal(err)
		}
		method, reader = http.MethodPost, bytes.NewReader(encoded)
	}
	request, err := http.NewRequest(method, r.server.URL+path, reader)
	if err != nil {
		r.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	if strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
			r.t.Fatal(err)
		}
	}
	return response.StatusCode, answer
}

// get sends a GET request that must succeed, and returns the JSON object in the response.
func (r *rig) get(path string) object {
	r.t.Helper()
	status, answer := r.call(path, nil)
	out, _ := answer.(object)
	if status != http.StatusOK || out == nil {
		r.t.Fatalf("GET %s: got %d %v, want 200 and an object", path, status, answer)
	}
	return out
}

// tokens returns the body of a request that lists token ids.
func tokens(ids ...string) []object {
	list := []object{}
	for _, id := range ids {
		list = append(list, object{"token_id": id})
	}
	return list
}

// rowsOf returns the list of objects in one member of o. name is the name of this member.
func rowsOf(o object, name string) (rows []object) {
	list, _ := o[name].([]any)
	for _, row := range list {
		rows = append(rows, row.(object))
	}
	return rows
}

// gammaMarket is a market from the Gamma API. Its field tokens contains the ids of its tokens: positionIds for protocol V2 and
// clobTokenIds for V1. Its field prices contains the decoded list outcomePrices.
type gammaMarket struct {
	object
	tokens, prices []string
}

// markets requests a page of markets.
func (r *rig) markets(query string) []gammaMarket {
	r.t.Helper()
	return r.decode(rowsOf(r.get("/markets/keyset?"+query), "markets"))
}

func (r *rig) decode(rows []object) (list []gammaMarket) {
	r.t.Helper()
	for _, row := range rows {
		m := gammaMarket{object: row}
		for name, into := range map[string]*[]string{"clobTokenIds": &m.tokens, "outcomePrices": &m.prices} {
			if text, ok := row[name].(string); ok {
				if err := json.Unmarshal([]byte(text), into); err != nil {
					r.t.Fatal(err)
				}
			}
		}
		if row["version"] == "v2" {
			m.tokens = nil
			for _, id := range row["positionIds"].([]any) {
				m.tokens = append(m.tokens, id.(string))
			}
		}
		list = append(list, m)
	}
	return list
}

// socket is a WebSocket client of the market channel.
type socket struct {
	t  *testing.T
	ws *websocket.Conn
}

func (r *rig) dial() *socket {
	r.t.Helper()
	ws, _, err := websocket.Dial(context.Background(), "ws"+strings.TrimPrefix(r.server.URL, "http")+polymarket.StreamPath, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	ws.SetReadLimit(-1)
	r.t.Cleanup(func() { _ = ws.CloseNow() })
	return &socket{r.t, ws}
}

func (s *socket) send(message any) {
	s.t.Helper()
	b, ok := message.(string)
	if !ok {
		encoded, err := json.Marshal(message)
		if err != nil {
			s.t.Fatal(err)
		}
		b = string(encoded)
	}
	if err := s.ws.Write(context.Background(), websocket.MessageText, []byte(b)); err != nil {
		s.t.Fatal(err)
	}
}

// drain sends PING and returns all messages before the PONG.
func (s *socket) drain() (messages []object) {
	s.t.Helper()
	s.send("PING")
	for {
		_, frame, err := s.ws.Read(context.Background())
		if err != nil {
			s.t.Fatal(err)
		}
		if string(frame) == "PONG" {
			return messages
		}
		var list []object
		if frame[0] != '[' {
			frame = append(append([]byte("["), frame...), ']')
		}
		if err := json.Unmarshal(frame, &list); err != nil {
			s.t.Fatalf("cannot decode the frame %s: %v", frame, err)
		}
		messages = append(messages, list...)
	}
}

// subscribe sends the first subscribe request of a socket.
func (s *socket) subscribe(ids ...string) {
	s.t.Helper()
	s.send(object{"assets_ids": ids, "type": "market", "initial_dump": true, "custom_feature_enabled": true})
}
