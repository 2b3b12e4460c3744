package graphqlws

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/coder/websocket"

	"oddsgraph/httpapi/quota"
)

const (
	// maxID is the greatest length of an operation's id in bytes.
	maxID = 128
	// maxEcho is the greatest size in bytes of a ping's payload that the pong repeats.
	maxEcho = 1 << 10
	// maxPooled is the greatest capacity in bytes of a buffer that returns to the pool. A small frame that a client does not read may
	// use such a buffer.
	maxPooled = 16 << 10
)

type message struct {
	Type    string          `json:"type"`
	ID      *string         `json:"id"`
	Payload json.RawMessage `json:"payload"`
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// putBuffer returns a buffer to the pool. It drops a buffer that is larger than maxPooled.
func putBuffer(b *bytes.Buffer) {
	if b.Cap() <= maxPooled {
		b.Reset()
		buffers.Put(b)
	}
}

func (k *socket) read() {
	for {
		kind, r, err := k.conn.Reader(context.Background()) // ends when the connection is closed
		if err != nil {
			return
		}
		k.readStart.Store(monotonic())
		text, err := k.server.cfg.Incoming.Read(k.address, r)
		k.readStart.Store(0)
		if errors.Is(err, quota.ErrNoMemory) {
			k.close(codeTryAgainLater, "Too much is being sent")
		}
		if err != nil {
			return
		}
		open := k.handle(kind, text.Bytes())
		text.Release()
		if !open || !k.markAlive() {
			return
		}
	}
}

// handle handles the message in b and returns false if the socket is closing. It does not keep b.
func (k *socket) handle(kind websocket.MessageType, b []byte) bool {
	var m message
	switch {
	case kind != websocket.MessageText:
		return k.close(codeBadRequest, "A message is not text")
	case !utf8.Valid(b):
		return k.close(codeBadRequest, "A message is not UTF-8")
	case json.Unmarshal(b, &m) != nil:
		return k.close(codeBadRequest, "A message is not a JSON object with a type")
	}
	if string(m.Payload) == "null" {
		m.Payload = nil
	}
	if m.Payload != nil && m.Payload[0] != '{' {
		return k.close(codeBadRequest, "A payload is not an object")
	}
	switch m.Type {
	case "connection_init":
		return k.initialise(m.Payload)
	case "ping":
		return k.reply(pongFrame(m.Payload))
	case "pong":
		return true
	case "subscribe", "complete":
		switch {
		case m.ID == nil || *m.ID == "":
			return k.close(codeBadRequest, "A "+m.Type+" has no id")
		case len(*m.ID) > maxID:
			return k.close(codeBadRequest, fmt.Sprintf("An id is longer than %d bytes", maxID))
		case m.Type == "complete":
			return k.complete(*m.ID)
		case m.Payload == nil:
			return k.close(codeBadRequest, "A subscribe has no payload")
		case !k.acknowledged:
			return k.close(codeUnauthorized, "Unauthorized")
		}
		return k.begin(*m.ID, m.Payload)
	case "":
		return k.close(codeBadRequest, "A message has no type")
	default:
		return k.close(codeBadRequest, "A message is of an unknown type")
	}
}

var (
	frameAck  = []byte(`{"type":"connection_ack"}`)
	framePing = []byte(`{"type":"ping"}`)
	framePong = []byte(`{"type":"pong"}`)
)

func pongFrame(payload json.RawMessage) []byte {
	if len(payload) == 0 || len(payload) > maxEcho {
		return framePong
	}
	return fmt.Appendf(nil, `{"type":"pong","payload":%s}`, payload)
}

func quote(id string) []byte {
	b, _ := json.Marshal(id) // every string can be marshalled
	return b
}

// errorFrame returns the frame that ends an operation with errors. errors is a JSON list.
func errorFrame(id string, errors []byte) []byte {
	return fmt.Appendf(nil, `{"id":%s,"type":"error","payload":%s}`, quote(id), errors)
}

func completeFrame(id string) []byte {
	return fmt.Appendf(nil, `{"id":%s,"type":"complete"}`, quote(id))
}
