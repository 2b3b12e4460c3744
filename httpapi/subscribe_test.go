package httpapi

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// TestSubscribePayload checks that the WebSocket is closed with code 4400 if the payload of subscribe violates the protocol. All
// other payloads must get a response.
func TestSubscribePayload(t *testing.T) {
	api := New(testConfig(t))
	server := httptest.NewServer(api)
	defer server.Close()
	defer api.Drain(t.Context())
	const query = `"query":"{ __typename }"`
	for _, test := range []struct{ name, payload, reason string }{
		{"no member", `{}`, "has no query"},
		{"null query", `{"query":null}`, "has no query"},
		{"variables alone", `{"variables":{}}`, "has no query"},
		{"extensions without a persisted query", `{"extensions":{"a":1}}`, "has no query"},
		{"null persisted query", `{"extensions":{"persistedQuery":null}}`, "has no query"},
		{"null document id", `{"documentId":null}`, "has no query"},
		{"empty document id", `{"documentId":""}`, "has no query"},
		{"query is a number", `{"query":1}`, "query is not a string"},
		{"operation name is a number", `{` + query + `,"operationName":1}`, "operationName is not a string"},
		{"variables are a list", `{` + query + `,"variables":[]}`, "variables is not an object"},
		{"extensions are a string before the query", `{"extensions":"",` + query + `}`, "extensions is not an object"},
		{"query twice", `{` + query + `,` + query + `}`, "query is present twice"},

		{"other members are null", `{` + query + `,"operationName":null,"variables":null,"extensions":null}`, ""},
		{"unknown members", `{` + query + `,"id":1,"key":[]}`, ""},
		{"empty query", `{"query":""}`, ""},
		{"query with a syntax error", `{"query":"{"}`, ""},
		{"unknown document id", `{"documentId":"nobody-knows"}`, ""},
		{"unknown persisted query", `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + strings.Repeat("0", 64) + `"}}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			conn, _, err := websocket.Dial(ctx, server.URL+PathGraphQL, &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.CloseNow()
			say := func(message string) (answer []byte, err error) {
				if err := conn.Write(ctx, websocket.MessageText, []byte(message)); err != nil {
					t.Fatal(err)
				}
				_, answer, err = conn.Read(ctx)
				return answer, err
			}
			if got, err := say(`{"type":"connection_init"}`); err != nil || string(got) != `{"type":"connection_ack"}` {
				t.Fatalf("got %s, %v", got, err)
			}
			got, err := say(`{"id":"1","type":"subscribe","payload":` + test.payload + `}`)
			if test.reason == "" {
				if err != nil || !strings.HasPrefix(string(got), `{"id":"1",`) {
					t.Errorf("got %s, %v; want a response to the operation", got, err)
				}
				return
			}
			var closed websocket.CloseError
			if !errors.As(err, &closed) || closed.Code != 4400 || !strings.Contains(closed.Reason, test.reason) {
				t.Errorf("got %s, %v; want the socket closed with 4400 and %q", got, err, test.reason)
			}
		})
	}
}
