package graphqlws_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"net"
	"testing"
	"time"

	"github.com/coder/websocket"

	"oddsgraph/httpapi/graphqlws"
)

// FuzzMessages checks that the server answers any messages only with messages of the protocol, or closes the connection with an
// expected code. Each line of the input is a message.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{
		initialise, pinging, `{"type":"pong"}`, subscribing("1", "query"), subscribing("1", "refused"), subscribing("", "query"),
		initialise + "\n" + subscribing("1", "query") + "\n" + subscribing("1", "query"),
		initialise + "\n" + subscribing("1", "subscription a") + "\n" + `{"type":"complete","id":"1"}` + "\n" + subscribing("1", "query"),
		initialise + "\n" + initialise, `{"type":"ping","payload":{"a":"` + "\xff" + `"}}`, `{"type":"ping","payload":{"a":"\ud800"}}`,
		`{"Type":"ping"}`, `{"type":"ping","type":"pong"}`, `{"type":"complete","id":null}`, "[]", "null", "", `{"type":1e999}`,
	} {
		f.Add([]byte(seed))
	}
	s := serve(f, graphqlws.Config{MessagesPerSecond: 1e6, MessageBurst: 1e6, Frame: 4 << 10}, newOperator())
	const last = `{"fuzz":"last"}`
	f.Fuzz(func(t *testing.T, lines []byte) {
		conn, in, err := handshake(s.http.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = conn.(*net.TCPConn).SetLinger(0) // closed ports are then free at once and do not run out
			_ = conn.Close()
		}()
		_ = conn.SetDeadline(time.Now().Add(patience))
		var out []byte
		for line := range bytes.SplitSeq(lines, []byte("\n")) {
			out = append(out, frame(opText, string(line))...)
		}
		go func() { _, _ = conn.Write(append(out, frame(opText, `{"type":"ping","payload":`+last+`}`)...)) }() // returns when the connection ends
		for {
			first, payload, err := readFrame(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if first == opClose {
				switch code := websocket.StatusCode(binary.BigEndian.Uint16(payload)); code {
				case 4400, 4401, 4409, 4429, websocket.StatusMessageTooBig:
				default:
					t.Errorf("the server closed the socket with the unexpected code %d %s", code, payload[2:])
				}
				return
			}
			var m struct {
				Type    string
				Payload json.RawMessage
			}
			if err := json.Unmarshal(payload, &m); err != nil {
				t.Fatalf("the server sent %s, which is not JSON: %v", payload, err)
			}
			switch m.Type {
			case "pong":
				if string(m.Payload) == last {
					return
				}
			case "connection_ack", "next", "error", "complete":
			default:
				t.Errorf("the server sent a message of an unexpected type: %s", payload)
			}
		}
	})
}
