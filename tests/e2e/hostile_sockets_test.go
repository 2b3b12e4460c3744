//go:build unix

package e2e

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	opContinuation = 0
	opText         = 1
	opClose        = 8
	opPing         = 9
)

// frameHead returns the header of a WebSocket frame. The masking key of a masked frame is zero, so the payload needs no change.
func frameHead(fin bool, rsv, opcode byte, masked bool, length uint64) []byte {
	first, mask := opcode|rsv<<4, byte(0)
	if fin {
		first |= 0x80
	}
	if masked {
		mask = 0x80
	}
	var b []byte
	switch {
	case length < 126:
		b = []byte{first, mask | byte(length)}
	case length < 1<<16:
		b = binary.BigEndian.AppendUint16([]byte{first, mask | 126}, uint16(length))
	default:
		b = binary.BigEndian.AppendUint64([]byte{first, mask | 127}, length)
	}
	if masked {
		b = append(b, 0, 0, 0, 0)
	}
	return b
}

// textFrame returns a masked text frame.
func textFrame(text string) string {
	return string(frameHead(true, 0, opText, true, uint64(len(text)))) + text
}

const initMessage = `{"type":"connection_init"}`

// upgrade opens a WebSocket with the given client address in X-Forwarded-For. After the handshake, it sends each text in its own
// frame.
func (p *target) upgrade(t testing.TB, client string, texts ...string) *wire {
	t.Helper()
	w := p.connect(t)
	if err := w.handshake(client); err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		_, _ = io.WriteString(w, textFrame(text))
	}
	return w
}

// handshake upgrades the connection to a WebSocket.
func (w *wire) handshake(client string) error {
	_, _ = fmt.Fprintf(w, "GET /graphql HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n", client)
	resp, err := http.ReadResponse(w.r, nil)
	if err == nil && (resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Sec-WebSocket-Extensions") != "") {
		err = fmt.Errorf("the handshake got the status %s and the header %v", resp.Status, resp.Header)
	}
	return err
}

func (w *wire) frame() (opcode byte, payload []byte, err error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(w.r, head); err != nil {
		return 0, nil, err
	}
	n := uint64(head[1] & 0x7f)
	if n >= 126 {
		more := make([]byte, 2+6*(n-126))
		if _, err := io.ReadFull(w.r, more); err != nil {
			return 0, nil, err
		}
		n = binary.BigEndian.Uint64(append(make([]byte, 8-len(more)), more...))
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(w.r, payload)
	return head[0] & 0x0f, payload, err
}

// until reads messages up to the first message that contains the given text, and returns this message.
func (w *wire) until(t testing.TB, part string) string {
	t.Helper()
	for {
		op, payload, err := w.frame()
		if err != nil || op == opClose {
			t.Fatalf("got the error %v and the last frame %q, want a message with %q", err, payload, part)
		}
		if strings.Contains(string(payload), part) {
			return string(payload)
		}
	}
}

// closeCode reads until the WebSocket is closed and returns the close code. It returns 0 if there is no code.
func (w *wire) closeCode(t testing.TB) int {
	t.Helper()
	for {
		op, payload, err := w.frame()
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			t.Error("the socket stays open")
		}
		if err != nil {
			return 0
		}
		if op == opClose {
			payload = payload[:min(len(payload), 2)]
			_, _ = w.Write(append(frameHead(true, 0, opClose, true, uint64(len(payload))), payload...))
			if len(payload) < 2 {
				return 0
			}
			return int(binary.BigEndian.Uint16(payload))
		}
	}
}

// socketAttacks returns attacks that violate WebSocket or graphql-transport-ws, or that send too much. The tests of package
// graphqlws have more violations.
func socketAttacks() []attack {
	var out []attack
	// add adds an attack whose bytes violate the protocol. The service must close the socket with the given code.
	add := func(name, bytes string, code int) {
		out = append(out, attack{name: "socket: " + name, run: func(t *testing.T, p *target) {
			w := p.upgrade(t, "10.9.0.1")
			go func() { _, _ = io.WriteString(w, bytes) }()
			if got := w.closeCode(t); got != code {
				t.Errorf("close code %d, want %d", got, code)
			}
			w.wantClosed(t)
		}})
	}
	head := func(fin bool, rsv, opcode byte, masked bool, length uint64) string {
		return string(frameHead(fin, rsv, opcode, masked, length))
	}
	const large = 300 << 10
	subscribe := func(id, query string) string {
		return asJSON(vars{"id": id, "type": "subscribe", "payload": vars{"query": query}})
	}
	add("a message of 300 KB", textFrame(`{"type":"ping","payload":{"a":"`+strings.Repeat("a", large)+`"}}`), 1009)
	add("a frame of exabytes", head(true, 0, opText, true, 1<<62)+strings.Repeat(" ", large), 1009)
	add("a frame with a negative length", head(true, 0, opText, true, 1<<63)+strings.Repeat(" ", large), 1002)
	add("fragments without an end", head(false, 0, opText, true, 1000)+strings.Repeat(" ", 1000)+strings.Repeat(head(false, 0, opContinuation, true, 1000)+strings.Repeat(" ", 1000), 400), 1009)
	add("100,000 fragments of a byte", head(false, 0, opText, true, 1)+" "+strings.Repeat(head(false, 0, opContinuation, true, 1)+" ", 100_000)+head(true, 0, opContinuation, true, 0), 4400)
	add("JSON 20,000 deep", textFrame(`{"type":"ping","payload":`+wrapText(20_000, `{"a":`, "1", "}")+`}`), 4400)
	add("1,000 messages connection_init", strings.Repeat(textFrame(initMessage), 1000), 4429)
	add("invalid credentials", textFrame(`{"type":"connection_init","payload":{"X-Venue-Credentials":"%%%"}}`), 4403)
	add("credentials that are an object", textFrame(`{"type":"connection_init","payload":{"Authorization":{}}}`), 4403)
	add("an id of 200 KB", textFrame(initMessage)+textFrame(subscribe(strings.Repeat("a", 200<<10), "{__typename}")), 4400)
	// addKeptOpen adds an attack whose messages the service must handle without closing the socket.
	addKeptOpen := func(name, client string, run func(t *testing.T, p *target, w *wire)) {
		out = append(out, attack{name: "socket: " + name, run: func(t *testing.T, p *target) {
			w := p.upgrade(t, client, initMessage)
			defer w.Close()
			w.until(t, "connection_ack")
			run(t, p, w)
			_, _ = io.WriteString(w, textFrame(subscribe("last", "{__typename}")))
			w.until(t, `{"id":"last","type":"next","payload":{"data":{"__typename":"Query"}}}`)
		}})
	}
	addKeptOpen("invalid documents", "10.9.0.2", func(t *testing.T, p *target, w *wire) {
		for i, document := range []string{`{...D0} ` + doublingFragments(26), `{` + repeatNumbered(600, "a#:__typename ") + `}`, wrapText(500, "{a", "{a}", "}"), strings.Repeat("{", 60_000), `{nope}`, ``, `subscription{__typename a:__typename}`,
			`subscription{priceChanged(tokenIds:["1,2"]){reason}}`, `subscription{priceChanged(tokenIds:["1"],maxPerSecond:-1){reason}}`, `subscription{priceChanged(tokenIds:["1"],maxPerSecond:1e308){reason}}`,
			`subscription{orderbookChanged(tokenId:"1",depth:-5){kind}}`, `subscription{balanceChanged(address:"` + addressOf50 + `"){reason}}`} {
			id := fmt.Sprint(i)
			_, _ = io.WriteString(w, textFrame(subscribe(id, document)))
			got := w.until(t, `{"id":"`+id+`"`)
			if p.wantNoInternals(t, got); !strings.Contains(got, `"type":"error"`) || strings.Contains(got, `"data"`) {
				t.Errorf("the document %.100s got the message %s, want an error", document, got)
			}
		}
	})
	addKeptOpen("1,000 subscriptions", "10.9.0.3", func(t *testing.T, p *target, w *wire) {
		go func() {
			for i := range 1000 {
				_, _ = io.WriteString(w, textFrame(subscribe(fmt.Sprint("s", i), "subscription{streamStatusChanged{state}}")))
			}
		}()
		begun := 0
		for range 1000 {
			got := w.until(t, `{"id":"s`)
			if strings.Contains(got, `"type":"next"`) {
				begun++
			} else if p.wantNoInternals(t, got); !strings.Contains(got, "RATE_LIMITED") {
				t.Errorf("a subscription got %s, want an event or RATE_LIMITED", got)
			}
		}
		if begun != 100 {
			t.Errorf("%d subscriptions run on one socket, want 100", begun)
		}
		for i := range 100 {
			_, _ = io.WriteString(w, textFrame(fmt.Sprintf(`{"id":"s%d","type":"complete"}`, i)))
		}
	})
	addKeptOpen("400 subscriptions that end at once", "10.9.0.4", func(t *testing.T, p *target, w *wire) {
		for i := range 400 {
			_, _ = io.WriteString(w, textFrame(subscribe(fmt.Sprint(i), "subscription{streamStatusChanged{state}}"))+textFrame(fmt.Sprintf(`{"id":"%d","type":"complete"}`, i)))
		}
	})
	addKeptOpen("900 pings", "10.9.0.5", func(t *testing.T, p *target, w *wire) {
		go func() {
			_, _ = io.WriteString(w, strings.Repeat(textFrame(`{"type":"ping","payload":{"a":"`+strings.Repeat("a", 900)+`"}}`), 900))
		}()
		for range 900 {
			w.until(t, `{"type":"pong","payload":{"a":"aaa`)
		}
	})
	out = append(out,
		attack{name: "socket: messages without an end", run: func(t *testing.T, p *target) {
			var g sync.WaitGroup
			for name, flood := range map[string]string{"messages": textFrame(`{"type":"ping"}`), "frames": head(true, 0, opPing, true, 0), "pongs": head(true, 0, 10, true, 0), "completes": textFrame(`{"id":"1","type":"complete"}`)} {
				w := p.upgrade(t, "10.9.0.6", initMessage)
				w.until(t, "connection_ack")
				g.Go(func() {
					begin, answered := time.Now(), make(chan int)
					go func() {
						n := 0
						for _, _, err := w.frame(); err == nil; _, _, err = w.frame() {
							n++
						}
						answered <- n
					}()
					_ = w.SetWriteDeadline(begin.Add(time.Second))
					_, _ = io.WriteString(w, strings.Repeat(flood, 16<<20/len(flood))) // ends at the deadline, because the service stops reading
					_ = w.Close()
					// The service reads a burst of 1,000 messages, and then 200 messages a second.
					if n, most := <-answered, 1100+200*int(time.Since(begin)/time.Second+1); n > most {
						t.Errorf("%s: the service sent %d frames in %v, want at most %d", name, n, time.Since(begin), most)
					}
				})
			}
			g.Wait()
		}},
		attack{name: "socket: a client that never reads", run: func(t *testing.T, p *target) {
			for range 20 {
				w := p.upgrade(t, "10.9.0.7", initMessage)
				_ = w.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
				for i := range 45 {
					_, _ = io.WriteString(w, textFrame(subscribe(fmt.Sprint(i), `{__schema{types{name description fields{name description}}}}`)))
				}
				defer w.Close()
			}
		}},
		attack{name: "socket: 1,001 sockets of one client", run: func(t *testing.T, p *target) {
			for range 1000 {
				w := p.upgrade(t, "10.9.0.8", initMessage)
				defer w.Close()
			}
			w := p.connect(t)
			defer w.Close()
			_, _ = io.WriteString(w, "GET /graphql HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 10.9.0.8\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n")
			if status, body := w.readResponse(t, p); status != http.StatusTooManyRequests {
				t.Errorf("got status %d, want 429: %s", status, body)
			}
			p.upgrade(t, "10.9.0.9", initMessage).until(t, "connection_ack") // another client is not affected
		}},
		attack{name: "socket: 300 sockets that are reset in a frame", run: func(t *testing.T, p *target) {
			for i := range 300 {
				w := p.upgrade(t, "10.9.1.0", initMessage)
				_, _ = io.WriteString(w, head(true, 0, opText, true, 250<<10)+strings.Repeat(" ", i*10))
				_ = w.Conn.(*net.TCPConn).SetLinger(0)
				_ = w.Close()
			}
		}},
		attack{name: "socket: a socket that a page of another host opens", run: func(t *testing.T, p *target) {
			w := p.connect(t)
			_, _ = io.WriteString(w, "GET /graphql HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n")
			if status, body := w.readResponse(t, p); status != http.StatusForbidden {
				t.Errorf("got status %d, want 403: %s", status, body)
			}
		}},
	)
	return out
}
