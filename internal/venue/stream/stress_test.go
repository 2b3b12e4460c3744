package stream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"oddsgraph/internal/market/messages"
)

// strictHandler is a Handler that fails the test if a call breaks the rules in the comments of Handler.
type strictHandler struct {
	t  *testing.T
	mu sync.Mutex
	// busy contains the topics of the calls that are running. Up adds its topics to up, and Down removes them.
	busy, up map[messages.Topic]bool
	seq      map[messages.Topic]uint64
	messages int
}

func (s *strictHandler) begin(topics ...messages.Topic) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range topics {
		if s.busy[t] {
			s.t.Errorf("two calls about %v at the same time", t)
		}
		s.busy[t] = true
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, t := range topics {
			delete(s.busy, t)
		}
	}
}

func (s *strictHandler) Up(topics []messages.Topic) {
	defer s.begin(topics...)()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range topics {
		s.up[t] = true
		s.seq[t] = 0
	}
}

func (s *strictHandler) Acknowledged(topics []messages.Topic) {
	defer s.begin(topics...)()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range topics {
		if !s.up[t] {
			s.t.Errorf("%v is acknowledged, but is not up", t)
		}
	}
}

func (s *strictHandler) Down(topics []messages.Topic, _ error) {
	defer s.begin(topics...)()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range topics {
		if !s.up[t] {
			s.t.Errorf("Down was called for %v, which was not up", t)
		}
		delete(s.up, t)
	}
}

func (s *strictHandler) Message(m *messages.Message) {
	defer s.begin(m.Topic)()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages++
	if !s.up[m.Topic] {
		s.t.Errorf("a message of %v, which is not up", m.Topic)
	}
	if m.Seq < s.seq[m.Topic] {
		s.t.Errorf("message %d of %v arrived after message %d", m.Seq, m.Topic, s.seq[m.Topic])
	}
	s.seq[m.Topic] = m.Seq
}

func (s *strictHandler) Heartbeat(string, map[messages.Topic]uint64) {}
func (s *strictHandler) Refused(t messages.Topic, _ error)           { s.t.Errorf("%v was refused", t) }

// TestStress checks that, after 3,000 random calls, faults and pauses, the client is subscribed to all watched topics and to no
// other topics.
func TestStress(t *testing.T) {
	for seed := range uint64(4) {
		stress(t, seed)
	}
}

func stress(t *testing.T, seed uint64) {
	h := &strictHandler{t: t, busy: map[messages.Topic]bool{}, up: map[messages.Topic]bool{}, seq: map[messages.Topic]uint64{}}
	random := rand.New(rand.NewPCG(seed, 1))
	inBubble(t, func(c *Config, v *venue) {
		c.TopicsPerConnection, c.Connections = 7, 4
		v.handler = h
	}, func(b *bench) {
		b.settle()
		watched := map[messages.Topic]bool{}
		for range 3000 {
			topic := book(fmt.Sprintf("T%d", random.IntN(40)))
			switch random.IntN(12) {
			case 0, 1, 2, 3, 4:
				if err := b.Watch(topic, nil); err == nil {
					watched[topic] = true
				} else if !errors.Is(err, ErrFull) || len(watched) < 28 {
					t.Errorf("Watch returns %v with %d watched topics", err, len(watched))
				}
			case 5, 6, 7:
				b.Unwatch(topic)
				delete(watched, topic)
			case 8:
				b.Resync(topic)
			case 9:
				b.advance(time.Duration(random.IntN(300)) * time.Millisecond)
			case 10:
				b.venue.mu.Lock()
				conns := b.venue.conns
				b.venue.mu.Unlock()
				c := conns[random.IntN(len(conns))]
				if random.IntN(10) == 0 {
					c.drop([]int{1006, closeSlow, closeRestart, closeLimited}[random.IntN(4)])
				} else {
					c.send(`[{"type":"orderbook_update","tokenId":%q,"changes":[{}]},{"type":"error","code":"X"}]`, topic.ID)
				}
			case 11:
				b.advance(time.Duration(random.IntN(3000)) * time.Millisecond)
			}
		}
		b.advance(3 * time.Minute)
		h.mu.Lock()
		defer h.mu.Unlock()
		for topic := range watched {
			if !h.up[topic] || h.seq[topic] == 0 {
				t.Errorf("seed %d: the watched topic %v is not up or has no message", seed, topic)
			}
		}
		b.equal("topics", b.Stats().Topics, len(watched))
		subscribed := map[string]bool{}
		for _, f := range b.venue.sent("") {
			b.venue.mu.Lock()
			open := b.venue.conns[f.conn].code < 0
			b.venue.mu.Unlock()
			select {
			case <-b.conn(f.conn).closed:
				open = false
			default:
			}
			for _, id := range f.TokenIDs {
				key := fmt.Sprint(f.conn, " ", id)
				if open && f.Type == "subscribe" {
					subscribed[key] = true
				}
				if f.Type == "unsubscribe" {
					delete(subscribed, key)
				}
			}
		}
		if len(subscribed) != len(watched) {
			t.Errorf("seed %d: %d topics are subscribed, but %d are watched", seed, len(subscribed), len(watched))
		}
		b.mu.Lock()
		if n := len(b.pool.topics); n != len(watched) {
			t.Errorf("seed %d: the pool has %d topics, want %d", seed, n, len(watched))
		}
		b.mu.Unlock()
		if h.messages < 500 {
			t.Errorf("the handler got %d messages, want at least 500", h.messages)
		}
	})
}
