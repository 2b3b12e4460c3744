package graphqlws_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"oddsgraph/httpapi/graphqlws"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
)

const (
	initialise = `{"type":"connection_init"}`
	pinging    = `{"type":"ping"}`
)

// TestViolations checks that each violation of the protocol closes the socket with the right code.
func TestViolations(t *testing.T) {
	s := serve(t, graphqlws.Config{Frame: 1000}, newOperator())
	long := strings.Repeat("x", 129)
	for _, test := range []struct {
		name string
		say  []string
		code websocket.StatusCode
	}{
		{"subscribe before init", []string{subscribing("1", "query")}, 4401},
		{"second init", []string{initialise, initialise}, 4429},
		{"duplicate id", []string{initialise, subscribing("1", "subscription a"), subscribing("1", "query")}, 4409},
		{"duplicate id of a query", []string{initialise, subscribing("1", "slow"), subscribing("1", "query")}, 4409},
		{"empty message", []string{""}, 4400},
		{"no JSON", []string{"hello"}, 4400},
		{"incomplete JSON", []string{`{"type":"ping"`}, 4400},
		{"two JSON values", []string{pinging + pinging}, 4400},
		{"JSON null", []string{"null"}, 4400},
		{"JSON string", []string{`"ping"`}, 4400},
		{"JSON list", []string{`[{"type":"ping"}]`}, 4400},
		{"payload is a nested list", []string{`{"type":"ping","payload":` + strings.Repeat("[", 400) + strings.Repeat("]", 400) + "}"}, 4400},
		{"no type", []string{`{}`}, 4400},
		{"empty type", []string{`{"type":""}`}, 4400},
		{"null type", []string{`{"type":null}`}, 4400},
		{"type is a number", []string{`{"type":1}`}, 4400},
		{"unknown type", []string{`{"type":"hello"}`}, 4400},
		{"connection_ack from a client", []string{initialise, `{"type":"connection_ack"}`}, 4400},
		{"next from a client", []string{initialise, `{"type":"next","id":"1","payload":{}}`}, 4400},
		{"type of the older protocol", []string{initialise, `{"type":"start","id":"1","payload":{"query":"query"}}`}, 4400},
		{"init payload is a list", []string{`{"type":"connection_init","payload":[]}`}, 4400},
		{"ping payload is a string", []string{`{"type":"ping","payload":"x"}`}, 4400},
		{"pong payload is a number", []string{`{"type":"pong","payload":1}`}, 4400},
		{"subscribe without id", []string{initialise, `{"type":"subscribe","payload":{"query":"query"}}`}, 4400},
		{"subscribe with null id", []string{initialise, `{"type":"subscribe","id":null,"payload":{"query":"query"}}`}, 4400},
		{"subscribe with empty id", []string{initialise, subscribing("", "query")}, 4400},
		{"subscribe with long id", []string{initialise, subscribing(long, "query")}, 4400},
		{"subscribe with a number as id", []string{initialise, `{"type":"subscribe","id":1,"payload":{"query":"query"}}`}, 4400},
		{"subscribe without payload", []string{initialise, `{"type":"subscribe","id":"1"}`}, 4400},
		{"subscribe with null payload", []string{initialise, `{"type":"subscribe","id":"1","payload":null}`}, 4400},
		{"subscribe with a string as payload", []string{initialise, `{"type":"subscribe","id":"1","payload":"query"}`}, 4400},
		{"subscribe with a list as payload", []string{initialise, `{"type":"subscribe","id":"1","payload":[]}`}, 4400},
		{"subscribe with a payload that the operator cannot read", []string{initialise, `{"type":"subscribe","id":"1","payload":{"query":1}}`}, 4400},
		{"malformed subscribe before init", []string{`{"type":"subscribe","id":"1"}`}, 4400},
		{"complete without id", []string{initialise, `{"type":"complete"}`}, 4400},
		{"complete with empty id", []string{initialise, `{"type":"complete","id":""}`}, 4400},
		{"complete with long id", []string{initialise, `{"type":"complete","id":"` + long + `"}`}, 4400},
		{"invalid UTF-8", []string{"{\"type\":\"ping\",\"payload\":{\"a\":\"\xff\"}}"}, 4400},
		{"surrogate as UTF-8", []string{"{\"type\":\"ping\",\"payload\":{\"a\":\"\xed\xa0\x80\"}}"}, 4400},
		{"message larger than Config.Frame", []string{`{"type":"ping","payload":{"a":"` + strings.Repeat("x", 1000) + `"}}`}, 1009},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := s.dial()
			c.t = t
			c.say(test.say...)
			c.expectClose(test.code)
		})
	}
	t.Run("binary", func(t *testing.T) {
		c := s.dial()
		c.write(websocket.MessageBinary, pinging)
		c.expectClose(4400)
	})
	t.Run("other subprotocol", func(t *testing.T) {
		c := s.dial("graphql-ws")
		if got := c.conn.Subprotocol(); got != "" {
			t.Errorf("the server accepted the subprotocol %q, want none", got)
		}
		c.expectClose(4406)
	})
	t.Run("subprotocol in another case", func(t *testing.T) {
		for _, offered := range []string{"GRAPHQL-TRANSPORT-WS", "graphql-ws, GraphQL-Transport-WS"} {
			header := http.Header{"Sec-WebSocket-Protocol": {offered}}
			_, resp, err := websocket.Dial(t.Context(), s.http.URL, &websocket.DialOptions{HTTPHeader: header})
			if err == nil || resp == nil || resp.StatusCode != http.StatusBadRequest || resp.Header.Get("Sec-WebSocket-Protocol") != "" {
				t.Errorf("the handshake with the subprotocols %q: got %v and the error %v, want the status 400", offered, resp, err)
			}
		}
	})
	t.Run("no subprotocol", func(t *testing.T) { s.dial("").expectClose(4406) })
	t.Run("one of several subprotocols", func(t *testing.T) {
		c := s.dial("graphql-ws", graphqlws.Subprotocol)
		c.say(initialise)
		c.expect(`{"type":"connection_ack"}`)
	})
	t.Run("largest frame", func(t *testing.T) {
		const head, tail = `{"type":"ping","payload":{"a":"`, `"}}`
		c := s.dial()
		c.say(head + strings.Repeat("x", 1000-len(head)-len(tail)) + tail)
		if got, err := c.hear(); err != nil || !strings.Contains(got, "pong") {
			t.Errorf("the client read %s, error %v; want a pong", got, err)
		}
	})
	t.Run("duplicate id is named", func(t *testing.T) {
		id := strings.Repeat("ü", 64) // two bytes for each letter; maxReason cuts the reason in the middle of a letter
		c := s.initialised()
		c.say(subscribing(id, "slow"), subscribing(id, "slow"))
		var closed websocket.CloseError
		for {
			_, err := c.hear()
			if errors.As(err, &closed) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if closed.Code != 4409 || !strings.HasPrefix(closed.Reason, "Subscriber for üü") || !strings.HasPrefix("Subscriber for "+id+" already exists", closed.Reason) {
			t.Errorf("the server closed with %v, want the code 4409 and the first part of the id in the reason", closed)
		}
	})
}

// TestFrames checks that an invalid WebSocket frame ends the connection with a close code of the WebSocket standard, and not of
// graphql-transport-ws.
func TestFrames(t *testing.T) {
	s := serve(t, graphqlws.Config{}, newOperator())
	for _, test := range []struct {
		name  string
		bytes []byte
		code  websocket.StatusCode
	}{
		{"not masked", []byte{opText, 2, '{', '}'}, 1002},
		{"reserved bit", frame(0xc1, pinging), 1002},
		{"unknown opcode", frame(0x83, pinging), 1002},
		{"continuation without a message", frame(0x80, pinging), 1002},
		{"new message in a message", append(frame(0x01, "{"), frame(opText, pinging)...), 1002},
		{"long ping", frame(opPing, strings.Repeat("x", 126)), 1002},
		{"ping in several frames", frame(0x09, "x"), 1002},
		{"close with half a code", frame(opClose, "x"), 1002},
		{"close with an invalid code", frame(opClose, "\x03\xed"), 1002},
		{"frames that are too large together", append(frame(0x01, strings.Repeat("x", 200<<10)), frame(0x80, strings.Repeat("x", 200<<10))...), 1009},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := s.raw()
			r.t = t
			r.send(test.bytes)
			r.expectClose(test.code)
		})
	}
	t.Run("message in several frames", func(t *testing.T) {
		r := s.raw()
		r.send(frame(0x01, `{"type":`))
		r.send(frame(0x00, ""))
		r.send(frame(opPing, "in between"))
		r.send(frame(0x80, `"ping"}`))
		if first, payload, err := r.hear(); err != nil || first != opPong || string(payload) != "in between" {
			t.Errorf("the client read %x %s, error %v; want a WebSocket pong with the payload of the ping", first, payload, err)
		}
		if _, payload, err := r.hear(); err != nil || string(payload) != `{"type":"pong"}` {
			t.Errorf("the client read %s, error %v; want a pong message", payload, err)
		}
	})
	t.Run("close", func(t *testing.T) {
		r := s.raw()
		r.send(frame(opClose, "\x03\xe8"))
		r.expectClose(1000)
	})
}

// TestInit checks that the server disconnects a client if the operator refuses the client or later revokes its access.
func TestInit(t *testing.T) {
	o := newOperator()
	type nameKey struct{}
	revoke, ended := make(map[string]context.CancelFunc), make(map[string]<-chan struct{})
	o.init = func(ctx context.Context, payload json.RawMessage) (context.Context, error) {
		var said struct{ Name string }
		if payload != nil {
			if err := json.Unmarshal(payload, &said); err != nil {
				return nil, err
			}
		}
		if said.Name == "" {
			return nil, errors.New("secret reasons")
		}
		ctx, revoke[said.Name] = context.WithCancel(context.WithValue(ctx, nameKey{}, said.Name))
		ended[said.Name] = ctx.Done()
		return ctx, nil
	}
	s := serve(t, graphqlws.Config{}, o)
	t.Run("refused", func(t *testing.T) {
		for _, payload := range []string{`{"type":"connection_init"}`, `{"type":"connection_init","payload":null}`, `{"type":"connection_init","payload":{}}`} {
			c := s.dial()
			c.say(payload)
			_, err := c.hear()
			var closed websocket.CloseError
			if !errors.As(err, &closed) || closed.Code != 4403 || closed.Reason != "Forbidden" {
				t.Errorf("%s: the client read the error %v, want the close code 4403 with the reason Forbidden", payload, err)
			}
		}
	})
	t.Run("revoked", func(t *testing.T) {
		c := s.dial()
		c.say(`{"type":"connection_init","payload":{"name":"a"}}`)
		c.expect(`{"type":"connection_ack"}`)
		c.subscribe("1", "subscription a")
		c.settled()
		revoke["a"]()
		if before := c.expectClose(4403); len(before) != 0 {
			t.Errorf("before the close, the client got %q, want nothing", before)
		}
	})
	t.Run("closed by the client", func(t *testing.T) {
		c := s.dial()
		c.say(`{"type":"connection_init","payload":{"name":"c"}}`)
		c.expect(`{"type":"connection_ack"}`)
		_ = c.conn.Close(websocket.StatusNormalClosure, "")
		receive(t, ended["c"])
	})
	t.Run("revoked, and the client ignores the close frame", func(t *testing.T) {
		r := s.raw()
		r.say(`{"type":"connection_init","payload":{"name":"b"}}`, subscribing("1", "subscription b"), pinging)
		for range 2 {
			if _, _, err := r.hear(); err != nil {
				t.Fatal(err)
			}
		}
		o.awaitMembers(t, 1)
		revoke["b"]()
		r.expectClose(4403)
		// The client does not answer the close, but its subscription ends at once.
		o.awaitMembers(t, 0)
	})
}

// TestPing checks that the server answers each ping with a pong, and accepts a pong without a ping. The pong repeats a payload
// of at most maxEcho bytes.
func TestPing(t *testing.T) {
	s := serve(t, graphqlws.Config{}, newOperator())
	c := s.dial()
	c.say(`{"type":"pong"}`, `{"type":"pong","payload":{}}`, pinging, `{"type":"ping","payload":null}`, `{"type":"ping","payload":{"a":[1,"ü"]}}`)
	c.expect(`{"type":"pong"}`, `{"type":"pong"}`, `{"type":"pong","payload":{"a":[1,"ü"]}}`)
	c.say(initialise, pinging)
	c.expect(`{"type":"connection_ack"}`, `{"type":"pong"}`)
	c.say(`{"type":"ping","payload":{"a":"` + strings.Repeat("x", 2000) + `"}}`) // larger than maxEcho
	c.expect(`{"type":"pong"}`)
}

// TestOperations checks that operations run concurrently, end as the protocol says, and free their ids at the end.
func TestOperations(t *testing.T) {
	o := newOperator()
	s := serve(t, graphqlws.Config{}, o)
	c := s.initialised()
	c.subscribe("s", "subscription a")
	c.subscribe("slow", "slow")
	c.subscribe("q", "query")
	c.expect(`{"id":"q","type":"next","payload":{"data":{"a":1}}}`, `{"id":"q","type":"complete"}`)
	s.publish(t, "subscription a", []byte(`{"data":1}`), follow.Append)
	c.expect(`{"id":"s","type":"next","payload":{"data":1}}`)
	send(t, o.release, struct{}{})
	c.expect(`{"id":"slow","type":"next","payload":{"data":{"slow":true}}}`, `{"id":"slow","type":"complete"}`)

	t.Run("refused", func(t *testing.T) { // gets an error message, but no complete message
		c.subscribe("e", "refused")
		c.expect(`{"id":"e","type":"error","payload":[{"message":"refused"}]}`)
		c.settled()
		c.subscribe("e", "query")
		c.expect(`{"id":"e","type":"next","payload":{"data":{"a":1}}}`, `{"id":"e","type":"complete"}`)
	})
	t.Run("completed by the client", func(t *testing.T) {
		c.say(`{"type":"complete","id":"unknown"}`, `{"type":"complete","id":"s"}`, subscribing("s", "query"))
		c.expect(`{"id":"s","type":"next","payload":{"data":{"a":1}}}`, `{"id":"s","type":"complete"}`)
		o.awaitMembers(t, 0)
		c.subscribe("slow", "slow")
		receive(t, o.started)
		receive(t, o.started)
		c.say(`{"type":"complete","id":"slow"}`)
		c.settled() // the server does not answer a complete message
		c.subscribe("slow", "query")
		c.expect(`{"id":"slow","type":"next","payload":{"data":{"a":1}}}`, `{"id":"slow","type":"complete"}`)
	})
	t.Run("ended by the service", func(t *testing.T) {
		c.subscribe("s", "subscription b")
		c.settled()
		send(t, o.topic("subscription b").ended, []byte(`[{"message":"over"}]`))
		c.expect(`{"id":"s","type":"error","payload":[{"message":"over"}]}`)
		c.subscribe("s", "subscription b")
		c.settled()
		send(t, o.topic("subscription b").ended, nil)
		c.expect(`{"id":"s","type":"complete"}`)
		c.settled()
	})
	t.Run("id that needs quotes", func(t *testing.T) {
		c.subscribe("\"\n<ü", "query")
		c.expect(`{"id":"\"\n\u003cü","type":"next","payload":{"data":{"a":1}}}`, `{"id":"\"\n\u003cü","type":"complete"}`)
	})
	t.Run("same id again and again", func(t *testing.T) {
		for range 500 { // the id is free as soon as the client gets the complete message
			c.subscribe("again", "query")
			c.expect(`{"id":"again","type":"next","payload":{"data":{"a":1}}}`, `{"id":"again","type":"complete"}`)
		}
	})
	t.Run("several operations of one group", func(t *testing.T) {
		executions := o.hub.Stats().Executions
		other := s.initialised()
		for _, id := range []string{"1", "2"} {
			c.subscribe(id, "subscription c")
			other.subscribe(id, "subscription c")
		}
		c.settled()
		other.settled()
		s.publish(t, "subscription c", []byte(`{"data":2}`), follow.Append)
		for _, c := range []*client{c, other} {
			a, _ := c.hear()
			b, _ := c.hear()
			got := []string{a, b}
			slices.Sort(got)
			if want := []string{`{"id":"1","type":"next","payload":{"data":2}}`, `{"id":"2","type":"next","payload":{"data":2}}`}; !slices.Equal(got, want) {
				t.Errorf("a client got %q, want %q", got, want)
			}
		}
		if n := o.hub.Stats().Executions - executions; n != 1 {
			t.Errorf("four equal subscriptions caused %d executions, want 1", n)
		}
	})
}

// TestLimits checks the limits on the operations of a socket, and on the operations and sockets of a client address.
func TestLimits(t *testing.T) {
	o := newOperator()
	q := quota.New(quota.Limits{Connections: 2, Operations: 3})
	s := serve(t, graphqlws.Config{Operations: 2, Quota: q}, o)
	a, b := s.initialised(), s.initialised()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, resp, err := websocket.Dial(ctx, s.http.URL, nil); err == nil || resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a third connection: error %v, want the status 429 with Retry-After", err)
	}
	a.subscribe("1", "slow")
	a.subscribe("2", "subscription a")
	a.subscribe("3", "query")
	a.expect(`{"id":"3","type":"error","payload":[{"extensions":{"code":"RATE_LIMITED"},"message":"RATE_LIMITED: more than 2 operations at once on one connection"}]}`)
	b.subscribe("1", "subscription a")
	b.subscribe("2", "query")
	b.expect(`{"id":"2","type":"error","payload":[{"extensions":{"code":"RATE_LIMITED"},"message":"RATE_LIMITED: more than 3 operations at once of one client address; the operator can raise --client-operations"}]}`)
	a.say(`{"type":"complete","id":"2"}`)
	a.settled()
	b.subscribe("2", "query")
	b.expect(`{"id":"2","type":"next","payload":{"data":{"a":1}}}`, `{"id":"2","type":"complete"}`)
	if stats := s.Stats(); stats.Sockets != 2 || stats.Operations != 2 || stats.Accepted != 2 {
		t.Errorf("the server has %+v, want 2 sockets, 2 operations and 2 accepted sockets", stats)
	}
	_ = b.conn.Close(websocket.StatusNormalClosure, "")
	o.awaitMembers(t, 0)
	s.awaitSockets(1)
	s.initialised()
	if refused := q.Refused(); refused != 2 {
		t.Errorf("the quota refused %d sockets and operations, want 2", refused)
	}
}

// TestMemoryForMessages checks that a message closes its socket if the memory for messages is exhausted. A message must free its
// memory when the server has handled it.
func TestMemoryForMessages(t *testing.T) {
	const long = 100 << 10
	memory := quota.NewMemory(2 * long)
	s := serve(t, graphqlws.Config{Incoming: memory}, newOperator())
	message := `{"type":"ping","payload":{"a":"` + strings.Repeat("a", long) + `"}}`
	a, b := s.initialised(), s.raw()
	for range 3 {
		a.say(message)
		a.expect(`{"type":"pong"}`)
	}
	a.say(pinging)
	a.expect(`{"type":"pong"}`) // the memory of the previous message is free again
	r := s.raw()
	r.send(append(frame(opText&^0x80, message), frame(opPing, "")...)) // begins a message of several frames
	if first, _, err := r.hear(); first != opPong {
		t.Fatalf("the client read a frame that begins with %x, error %v; want a WebSocket pong", first, err)
	}
	b.say(message)
	b.expectClose(websocket.StatusTryAgainLater)
	a.say(pinging)
	a.expect(`{"type":"pong"}`)
}

// TestAccountOfInit checks that connection_init makes a socket count for its account instead of its address.
func TestAccountOfInit(t *testing.T) {
	o := newOperator()
	o.init = func(ctx context.Context, payload json.RawMessage) (context.Context, error) {
		return context.WithValue(ctx, accountKey{}, market.Address(payload)), nil
	}
	s := serve(t, graphqlws.Config{Quota: quota.New(quota.Limits{Connections: 1, Operations: 1})}, o)
	dial := func(account string) *client {
		c := s.dial()
		c.say(`{"type":"connection_init","payload":{"a":"` + account + `"}}`)
		return c
	}
	for _, account := range []string{"1", "2"} {
		c := dial(account)
		c.expect(`{"type":"connection_ack"}`)
		c.subscribe("1", "subscription a")
		o.group(t, "subscription a")
		c.subscribe("2", "subscription a")
		c.expect(`{"id":"2","type":"error","payload":[{"extensions":{"code":"RATE_LIMITED"},"message":"RATE_LIMITED: more than 1 operations at once of one account; the operator can raise --client-operations"}]}`)
	}
	dial("1").expectClose(websocket.StatusTryAgainLater)
}

// TestQuotaIsReturned checks that the quota counts nothing for a client after its operations and sockets have ended.
func TestQuotaIsReturned(t *testing.T) {
	q := quota.New(quota.Limits{Connections: 50, Operations: 50})
	o := newOperator()
	s := serve(t, graphqlws.Config{Quota: q}, o)
	for range 5 {
		c := s.initialised()
		c.subscribe("1", "subscription a")
		c.subscribe("2", "slow")
		c.subscribe("3", "query")
		c.subscribe("4", "refused")
		c.say(`{"type":"complete","id":"1"}`)
		c.subscribe("1", "subscription b")
		c.say("violation")
		c.expectClose(4400)
		s.raw().say(initialise, subscribing("1", "subscription a"))
		_ = s.raw().Close()
		s.dial("")
	}
	if resp, err := s.http.Client().Get(s.http.URL); err != nil || resp.StatusCode != http.StatusUpgradeRequired { // a request without an upgrade
		t.Error(resp, err)
	} else {
		_ = resp.Body.Close()
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.Drain(ctx)
	for range 50 {
		if err := q.Connect(quota.Anonymous(testAddress)); err != nil {
			t.Fatal("the quota still counts connections that have ended:", err)
		}
		if err := q.Begin(quota.Anonymous(testAddress)); err != nil {
			t.Fatal("the quota still counts operations that have ended:", err)
		}
	}
}

// TestOrigin checks that the server refuses a client if CheckOrigin returns an error.
func TestOrigin(t *testing.T) {
	s := serve(t, graphqlws.Config{CheckOrigin: func(r *http.Request) error {
		if r.Header.Get("Origin") != "https://app.example" {
			return errors.New("only the app")
		}
		return nil
	}}, newOperator())
	for origin, allowed := range map[string]bool{"https://app.example": true, "https://elsewhere.example": false} {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		conn, resp, err := websocket.Dial(ctx, s.http.URL, &websocket.DialOptions{
			Subprotocols: []string{graphqlws.Subprotocol}, HTTPHeader: http.Header{"Origin": {origin}},
		})
		if (err == nil) != allowed {
			t.Errorf("origin %s: connecting returned the error %v, want the client accepted: %v", origin, err, allowed)
		}
		if err == nil {
			_ = conn.CloseNow()
		} else if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusForbidden || string(body) != "only the app\n" {
			t.Errorf("a client with the origin %s gets the status %d and the body %q, want 403 and the error of CheckOrigin", origin, resp.StatusCode, body)
		}
	}
}
