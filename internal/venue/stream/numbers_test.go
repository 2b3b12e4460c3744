package stream

import (
	"slices"
	"sync"
	"testing"
	"time"

	"oddsgraph/internal/market/messages"
)

// numberRecord is a Handler that records the field Internal of each message.
type numberRecord struct {
	record
	mu      sync.Mutex
	numbers []messages.Internal
}

func (r *numberRecord) Message(m *messages.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.numbers = append(r.numbers, m.Internal)
}

func (r *numberRecord) take() []messages.Internal {
	r.mu.Lock()
	defer r.mu.Unlock()
	numbers := r.numbers
	r.numbers = nil
	return numbers
}

// TestInternalNumbers checks the internal numbers of messages. The client must number the messages of a topic, including unusable
// messages. Each socket must have another epoch.
func TestInternalNumbers(t *testing.T) {
	handler := &numberRecord{}
	inBubble(t, func(_ *Config, v *venue) {
		v.handler = handler
		v.respond = respondTo("subscribe", func(c *fakeConn, _ sentFrame) {
			c.send(`{"type":"orderbook_snapshot","tokenId":"T1","bids":[],"asks":[]}`)
		})
	}, func(b *bench) {
		update := `{"type":"orderbook_update","tokenId":"T1","changes":[{"side":"BUY","price":"0.5","size":"1"}]}`
		b.watch(book("T1"))
		b.settle()
		b.conn(0).send("%s", update)
		b.conn(0).send(`{"type":"orderbook_update","tokenId":"T2","changes":[]}`) // T2 is not watched
		b.conn(0).send(`{"type":"orderbook_update","tokenId":"T1","changes":"unusable"}`)
		b.conn(0).send("%s", update)
		b.settle()
		first := handler.take()
		if len(first) == 0 {
			b.Fatal("no message arrived")
		}
		epoch := first[0].Epoch
		want := []messages.Internal{{Epoch: epoch, Seq: 1}, {Epoch: epoch, Seq: 2}, {Epoch: epoch, Seq: 4}}
		if !slices.Equal(first, want) {
			b.Errorf("the internal numbers are %v; want %v", first, want)
		}
		b.conn(0).drop(1006)
		b.advance(time.Minute)
		if second := handler.take(); len(second) == 0 || second[0].Epoch == epoch || second[0].Seq == 0 {
			b.Errorf("the internal numbers on another socket are %v; want another epoch than %d", second, epoch)
		}
	})
}
