package quota

import "sync"

// Shared counts the bytes of things that several clients use together. The bytes of a thing are charged to one of its clients,
// the payer. When the payer no longer uses the thing, another of its clients becomes the payer. Shared is safe for concurrent use.
type Shared struct {
	memory *Memory

	mu     sync.Mutex
	things map[any]*thing
}

// thing is something that clients use. size is in bytes. holders counts the uses of each client.
type thing struct {
	size    int
	payer   Client
	holders map[Client]int
}

// NewShared returns a Shared that may use size bytes.
func NewShared(size int) *Shared {
	return &Shared{memory: NewMemory(size), things: make(map[any]*thing)}
}

// Hold counts another use of a thing by a client. key identifies the thing, and size is its present size in bytes. The thing may
// grow between calls. Hold returns false if there is not enough memory. Release undoes Hold.
func (s *Shared) Hold(client Client, key any, size int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.things[key]
	if t == nil {
		t = &thing{payer: client, holders: make(map[Client]int, 1)}
	}
	if more := size - t.size; more > 0 {
		if !s.memory.Take(t.payer, more) {
			return false
		}
		t.size = size
	}
	s.things[key] = t
	t.holders[client]++
	return true
}

// Release undoes Hold.
func (s *Shared) Release(client Client, key any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.things[key]
	if t.holders[client]--; t.holders[client] > 0 {
		return
	}
	delete(t.holders, client)
	if len(t.holders) == 0 {
		s.memory.Give(t.payer, t.size)
		delete(s.things, key)
		return
	}
	if t.payer == client {
		for other := range t.holders {
			t.payer = other
			break
		}
		s.memory.move(client, t.payer, t.size)
	}
}

// Held returns the number of bytes in use.
func (s *Shared) Held() int { return s.memory.Held() }

// Refused returns how often Hold has returned false.
func (s *Shared) Refused() uint64 { return s.memory.Refused() }

// move charges n used bytes to another client, even if Fair would not allow that.
func (m *Memory) move(from, to Client, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holders[to] += n
	if m.holders[from] -= n; m.holders[from] == 0 {
		delete(m.holders, from)
	}
}
