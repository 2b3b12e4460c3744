package faults

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// goodbye is the time for a client to answer a close frame.
const goodbye = 2 * time.Second

// opening is the answer to the opening of a stream. The venue takes over the connection, so that the proxy sees what it writes.
type opening struct {
	http.ResponseWriter
	p    *Proxy
	path string
}

// Hijack implements [http.Hijacker].
func (o *opening) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(o.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	s := &stream{Conn: conn, p: o.p, path: o.path}
	rw.Writer.Reset(s)
	o.p.mu.Lock()
	o.p.streams[s] = struct{}{}
	o.p.mu.Unlock()
	return s, rw, nil
}

// stream is a connection to a client. What the venue writes are frames of RFC 6455, which are not masked. An HTTP head may come
// first. Pings, pongs, close frames and parts of messages pass as they are, so the proxy needs no connection of its own to the venue.
type stream struct {
	net.Conn
	p    *Proxy
	path string

	mu     sync.Mutex // guards the fields below
	part   []byte     // the begin of a frame
	held   []heldFrame
	freeze *Fault // a freeze that lasts until thaw
	thaw   time.Time
	ended  bool // nothing more is sent
}

// heldFrame is sent after the next behind frames.
type heldFrame struct {
	frame  []byte
	behind int
}

var errFrame = errors.New("faults: a frame is too large")

// Write sends frames of the venue to the client.
func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.part = append(s.part, b...)
	rest := s.part
	for {
		head, size, err := first(rest)
		if err != nil {
			return 0, err
		}
		if size == 0 {
			break
		}
		if err := s.forward(rest[:size], head); err != nil {
			return 0, err
		}
		rest = rest[size:]
	}
	s.part = append(s.part[:0], rest...)
	return len(b), nil
}

// first returns the length of the head of the first frame in b, and of the whole frame. Both are 0 if b has no whole frame. An HTTP
// head is a frame without a payload.
func first(b []byte) (head, size int, err error) {
	if len(b) < 2 {
		return 0, 0, nil
	}
	if b[0] == 'H' {
		before, _, ok := bytes.Cut(b, []byte("\r\n\r\n"))
		if !ok {
			return 0, 0, nil
		}
		return len(before) + 4, len(before) + 4, nil
	}
	length := uint64(b[1] & 0x7f)
	switch head = 2; {
	case length == 126 && len(b) >= 4:
		head, length = 4, uint64(binary.BigEndian.Uint16(b[2:]))
	case length == 127 && len(b) >= 10:
		head, length = 10, binary.BigEndian.Uint64(b[2:])
	case length >= 126:
		return 0, 0, nil
	}
	if length > 1<<30 {
		return 0, 0, errFrame
	}
	if uint64(len(b)-head) < length {
		return 0, 0, nil
	}
	return head, head + int(length), nil
}

// Opcodes of frames.
const (
	opText, opBinary, opClose = 1, 2, 8
	final                     = 0x80 // the bit of a frame that ends a message
)

func build(opcode byte, payload []byte) []byte {
	b := []byte{final | opcode}
	switch n := len(payload); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	return append(b, payload...)
}

// forward sends a frame of the venue, or what the matching fault makes of it. head is the length of the frame's head.
func (s *stream) forward(frame []byte, head int) error {
	if opcode := frame[0] &^ final; frame[0]&final == 0 || opcode != opText && opcode != opBinary {
		return s.send(frame)
	}
	payload := frame[head:]
	contains := func(text string) bool { return bytes.Contains(payload, []byte(text)) }
	if s.freeze != nil && s.freeze.covers(contains) && time.Now().Before(s.thaw) {
		return nil
	}
	f := s.p.take(OnFrames, s.path, contains)
	var err error
	if f == nil {
		err = s.send(frame)
	} else {
		err = s.spoil(f, frame, payload)
	}
	for i := 0; i < len(s.held); {
		if s.held[i].behind--; s.held[i].behind >= 0 {
			i++
			continue
		}
		err = cmp.Or(err, s.send(s.held[i].frame))
		s.held = slices.Delete(s.held, i, i+1)
	}
	return err
}

func (s *stream) spoil(f *Fault, frame, payload []byte) error {
	opcode := frame[0] &^ final
	switch {
	case f.Frames != nil:
		for _, other := range f.Frames(payload) {
			if err := s.send(build(opcode, other)); err != nil {
				return err
			}
		}
	case f.Kind == Duplicate:
		return cmp.Or(s.send(frame), s.send(frame))
	case f.Kind == Truncate:
		return s.send(build(opcode, payload[:len(payload)/2]))
	case f.Kind == JSON:
		return s.send(build(opcode, wrongTypes(payload, f.Contains)))
	case f.Kind == Reorder:
		s.held = append(s.held, heldFrame{slices.Clone(frame), max(f.Behind, 1)})
	case f.Kind == Delay && f.DelayMs > 0:
		frame = slices.Clone(frame)
		time.AfterFunc(f.delay(), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			_ = s.send(frame)
		})
	case f.Kind == Freeze:
		s.freeze, s.thaw = f, time.Now().Add(cmp.Or(f.delay(), 1000*time.Hour))
	case f.Kind == Close:
		s.end(cmp.Or(f.Code, 1012))
	}
	return nil
}

// send writes a frame. After the end of the stream it does nothing, so that the venue still reads the client's last frames.
func (s *stream) send(frame []byte) error {
	if s.ended {
		return nil
	}
	_, err := s.Conn.Write(frame)
	return err
}

// end closes the stream with a code. If the client does not answer the close frame in time, the venue's next read fails.
func (s *stream) end(code int) {
	if !s.ended {
		_ = s.send(build(opClose, binary.BigEndian.AppendUint16(nil, uint16(code))))
		_ = s.Conn.SetReadDeadline(time.Now().Add(goodbye))
	}
	s.ended = true
}

// Close closes the connection.
func (s *stream) Close() error {
	s.p.mu.Lock()
	delete(s.p.streams, s)
	s.p.mu.Unlock()
	err := s.Conn.Close() // first, because a Write that holds the lock may wait for the client
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return err
}
