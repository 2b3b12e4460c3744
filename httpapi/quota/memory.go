package quota

import (
	"errors"
	"io"
	"net/netip"
	"sync"
)

// FreeBytes is the number of bytes of each body that Read does not count. These bytes are not worth counting, because the
// connection itself needs more memory.
const FreeBytes = 16 << 10

// ErrNoMemory is the error of Read if there is not enough memory for a body.
var ErrNoMemory = errors.New("too much is being sent at the same time")

// Memory limits the memory that clients use, for example for request bodies or unread responses. Read counts the memory of a
// body beyond FreeBytes, and Take counts all bytes. Fair decides how many bytes a client may use. Memory is safe for concurrent
// use.
type Memory struct {
	bodies sync.Pool

	mu sync.Mutex
	// size counts all bytes, and free counts the unused bytes. holders counts the bytes that each client uses.
	size, free int
	holders    map[Client]int
	refused    uint64
}

// NewMemory returns a memory of size bytes.
func NewMemory(size int) *Memory {
	m := &Memory{size: size, free: size, holders: make(map[Client]int)}
	m.bodies.New = func() any { return &Body{memory: m} }
	return m
}

// Body is a request body. It is not safe for concurrent use.
type Body struct {
	memory *Memory
	client Client
	text   []byte
	// heldBytes is the number of bytes taken from memory.
	heldBytes int
}

// Read reads r to its end. The body counts for the address from which it comes, because its sender may not be known yet. The error
// is ErrNoMemory or an error of r. The calling function must release the Body.
func (m *Memory) Read(from netip.Addr, r io.Reader) (*Body, error) {
	b, _ := m.bodies.Get().(*Body)
	b.client = Anonymous(from)
	for {
		allowed := FreeBytes + b.heldBytes
		if len(b.text) == cap(b.text) {
			size := max(2*len(b.text), 512)
			if size >= allowed {
				size = allowed + 1 // one more byte shows whether r has ended
			}
			b.text = append(make([]byte, 0, size), b.text...)
		}
		n, err := r.Read(b.text[len(b.text):min(cap(b.text), allowed+1)])
		b.text = b.text[:len(b.text)+n]
		if len(b.text) > allowed {
			if !m.Take(b.client, allowed) {
				b.Release()
				return nil, ErrNoMemory
			}
			b.heldBytes += allowed
		}
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			b.Release()
			return nil, err
		}
	}
}

// Bytes returns the body, which is valid until Release.
func (b *Body) Bytes() []byte { return b.text }

// Release gives the body's memory back. The Body must not be used afterwards.
func (b *Body) Release() {
	if b.heldBytes > 0 {
		b.memory.Give(b.client, b.heldBytes)
	}
	b.heldBytes, b.text = 0, b.text[:0]
	if cap(b.text) > 2*FreeBytes {
		b.text = nil // Memory does not count the buffers in the pool, so they must be small
	}
	b.memory.bodies.Put(b)
}

// Take counts n bytes for a client. It returns false if there is not enough memory. Give undoes Take.
func (m *Memory) Take(client Client, n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !Fair(m.holders[client], n, m.free) {
		m.refused++
		return false
	}
	m.holders[client] += n
	m.free -= n
	return true
}

// Give undoes Take of n bytes.
func (m *Memory) Give(client Client, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free += n
	if m.holders[client] -= n; m.holders[client] == 0 {
		delete(m.holders, client)
	}
}

// Held returns the number of bytes in use.
func (m *Memory) Held() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.size - m.free
}

// Refused returns how often Take has returned false.
func (m *Memory) Refused() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused
}
