package subscribers

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// socket is a minimal WebSocket client. It uses little CPU time, so that most of the CPU time remains for the server.
type socket struct {
	conn net.Conn
	in   *bufio.Reader
	buf  []byte
}

const (
	// perAddress is the maximum number of sockets from one IP address, because servers limit the number of sockets from an address.
	perAddress = 1000
	// stepTimeout is the maximum time of each of these steps: connect, upgrade the connection, subscribe.
	stepTimeout = 60 * time.Second
)

// open connects a socket. index is the index of the socket in the crowd. The first perAddress sockets come from 127.0.0.1, the next
// from 127.0.0.2, and so on. Linux accepts all addresses of 127.0.0.0/8 without configuration.
func open(address string, index int) (*socket, error) {
	dialer := net.Dialer{Timeout: stepTimeout}
	if index >= perAddress {
		dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+index/perAddress))}
	}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &socket{conn: conn, in: bufio.NewReaderSize(conn, 1<<10), buf: make([]byte, 1<<10)}
	if err := s.upgrade(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

func (s *socket) upgrade() error {
	_ = s.conn.SetDeadline(time.Now().Add(stepTimeout))
	const handshake = "GET /graphql HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"
	if _, err := io.WriteString(s.conn, handshake); err != nil {
		return err
	}
	for first := true; ; first = false {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return err
		}
		if first && !strings.HasPrefix(line, "HTTP/1.1 101 ") {
			return fmt.Errorf("the server says %q", line)
		}
		if line == "\r\n" {
			return s.conn.SetDeadline(time.Time{})
		}
	}
}

// subscribe initializes the connection and subscribes. It returns when the first response has arrived.
func (s *socket) subscribe(document string, list []string) error {
	_ = s.conn.SetDeadline(time.Now().Add(stepTimeout))
	if err := s.say(opText, []byte(`{"type":"connection_init"}`)); err != nil {
		return err
	}
	payload, err := json.Marshal(map[string]any{"query": document, "variables": map[string]any{"ids": list}})
	if err != nil {
		return err
	}
	if err := s.say(opText, fmt.Appendf(nil, `{"id":"1","type":"subscribe","payload":%s}`, payload)); err != nil {
		return err
	}
	for {
		message, err := s.next()
		if err != nil {
			return err
		}
		switch text := string(message); {
		case strings.HasPrefix(text, `{"type":"connection_ack"`):
		case strings.HasPrefix(text, `{"id":"1","type":"next","payload":{"data":`):
			return s.conn.SetDeadline(time.Time{})
		default:
			return fmt.Errorf("the server says %.500s", text)
		}
	}
}

// The kinds of frames.
const (
	opText  = 1
	opClose = 8
	opPing  = 9
	opPong  = 10
)

// say sends a frame with a payload of less than 64 KiB. The mask of the frame is 0, so that masking does not change the payload.
func (s *socket) say(op byte, payload []byte) error {
	frame := []byte{0x80 | op, 0x80 | 126, 0, 0, 0, 0, 0, 0}
	if len(payload) < 126 {
		frame = []byte{0x80 | op, 0x80 | byte(len(payload)), 0, 0, 0, 0}
	} else {
		binary.BigEndian.PutUint16(frame[2:], uint16(len(payload)))
	}
	_, err := s.conn.Write(append(frame, payload...))
	return err
}

var (
	errClosed = errors.New("the server has closed the socket")
	errFrame  = errors.New("the server has sent a frame of a form that this client does not support")
)

// next returns the next text message, which is valid until the next call. It answers pings.
func (s *socket) next() ([]byte, error) {
	for {
		op, payload, err := s.frame()
		if err != nil {
			return nil, err
		}
		switch {
		case op == opPing:
			err = s.say(opPong, payload)
		case op == opClose:
			return nil, fmt.Errorf("%w: %q", errClosed, payload)
		case op == opText && string(payload) == `{"type":"ping"}`:
			err = s.say(opText, []byte(`{"type":"pong"}`))
		case op == opText:
			return payload, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// frame reads an unmasked and unfragmented frame.
func (s *socket) frame() (op byte, payload []byte, err error) {
	head, err := s.in.Peek(2)
	if err != nil {
		return 0, nil, err
	}
	op, size := head[0]&0x0f, int(head[1])
	if head[0]&0xf0 != 0x80 || size > 126 {
		return 0, nil, errFrame
	}
	length := 2
	if size == 126 {
		if head, err = s.in.Peek(4); err != nil {
			return 0, nil, err
		}
		length, size = 4, int(binary.BigEndian.Uint16(head[2:]))
	}
	if _, err := s.in.Discard(length); err != nil {
		return 0, nil, err
	}
	if size > len(s.buf) {
		s.buf = make([]byte, size)
	}
	_, err = io.ReadFull(s.in, s.buf[:size])
	return op, s.buf[:size], err
}
