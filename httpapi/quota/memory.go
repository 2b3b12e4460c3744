package quota

import (
	"errors"
	"io"
	"net/netip"
	"sync"
)

// FreeBytes is how much of each text costs its client nothing: no more than its connection takes anyway.
const FreeBytes = 16 << 10

// ErrNoRoom says that what a client sends is too much beside what it and others are sending.
var ErrNoRoom = errors.New("too much is being sent at the same time")

// Memory bounds the bytes that are kept for clients: the texts that they send, from their first byte until they are done with, or
// the responses that they have not read yet. Of all that is longer than FreeBytes, a client holds what is Fair. It is safe for
// concurrent use.
type Memory struct {
	texts sync.Pool

	mu sync.Mutex
	// free is what nobody holds of size, in bytes; holders tells who holds the rest.
	size, free int
	holders    map[netip.Prefix]int
	refused    uint64
}

// NewMemory returns room for so many bytes.
func NewMemory(size int) *Memory {
	m := &Memory{size: size, free: size, holders: make(map[netip.Prefix]int)}
	m.texts.New = func() any { return &Text{memory: m} }
	return m
}

// Text is what a client has sent. It is for one goroutine at a time.
type Text struct {
	memory *Memory
	client netip.Addr
	text   []byte
	// held is what it takes of the memory.
	held int
}

// Read reads all that r has to give. The error is ErrNoRoom, or that of r. A Text must be released.
func (m *Memory) Read(client netip.Addr, r io.Reader) (*Text, error) {
	t, _ := m.texts.Get().(*Text)
	t.client = client
	if err := t.fill(r); err != nil {
		t.Release()
		return nil, err
	}
	return t, nil
}

// Bytes returns the text, which is good until it is released.
func (t *Text) Bytes() []byte { return t.text }

// Release gives back what the text takes.
func (t *Text) Release() {
	if t.held > 0 {
		t.memory.Give(Network(t.client), t.held)
	}
	t.held, t.text = 0, t.text[:0]
	if cap(t.text) > 2*FreeBytes {
		t.text = nil // else it would be somebody's whom it costs nothing
	}
	t.memory.texts.Put(t)
}

// fill reads r to its end.
func (t *Text) fill(r io.Reader) error {
	for {
		may := FreeBytes + t.held
		if len(t.text) == cap(t.text) {
			size := max(2*len(t.text), 512)
			if size >= may {
				size = may + 1 // whether anything follows is seen by reading it
			}
			t.text = append(make([]byte, 0, size), t.text...)
		}
		n, err := r.Read(t.text[len(t.text):min(cap(t.text), may+1)])
		t.text = t.text[:len(t.text)+n]
		if len(t.text) > may && !t.take(may) {
			return ErrNoRoom
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// take takes n bytes more of the memory, or reports false.
func (t *Text) take(n int) bool {
	if !t.memory.Take(Network(t.client), n) {
		return false
	}
	t.held += n
	return true
}

// Take takes n bytes for a client, or reports false. Give takes it back.
func (m *Memory) Take(client netip.Prefix, n int) bool {
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

// Give takes back n bytes of what Take has given.
func (m *Memory) Give(client netip.Prefix, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free += n
	if m.holders[client] -= n; m.holders[client] == 0 {
		delete(m.holders, client)
	}
}

// Held returns how many bytes are taken now.
func (m *Memory) Held() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.size - m.free
}

// Refused counts what there was no room for since the start.
func (m *Memory) Refused() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused
}
