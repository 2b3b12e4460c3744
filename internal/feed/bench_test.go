package feed

import (
	"fmt"
	"testing"
	"time"

	"oddsgraph/internal/cache"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

// noVenue is the venue of a cache that reads nothing over REST.
type noVenue struct{ venue.Reader }

func (noVenue) Can(upstream.Endpoint) error          { return nil }
func (noVenue) MaxKeys(upstream.Endpoint) int        { return 40 }
func (noVenue) Cost(upstream.Endpoint, int, int) int { return 1 }

// benchmarkMessages sends one message for each topic in each iteration. The feed writes each value to a cache, and all must reach one
// reader. ns/item should not grow with the number of topics.
func benchmarkMessages(b *testing.B, topics []messages.Topic, first, next func(i int) *messages.Message) {
	cfg := cache.DefaultConfig()
	cfg.Memory *= 2 // the default has room for only 9,600 prices, and an eviction costs more than a replacement
	c := cache.New(noVenue{}, cfg)
	defer c.Close()
	f := New(Config{Sink: c, Topics: len(topics)})
	defer f.Close()
	f.Connect(newUpstream())
	reader := f.NewReader("reader")
	defer reader.Close()
	for _, t := range topics {
		if _, err := reader.Watch(t, nil); err != nil {
			b.Fatal(err)
		}
	}
	f.Up(topics)
	seq := uint64(0)
	send := func(message func(i int) *messages.Message) {
		seq++
		for i := range topics {
			m := message(i)
			m.Topic, m.Epoch, m.Seq, m.PrevSeq, m.ReceivedAt = topics[i], "A", seq, seq-1, time.Now()
			f.Message(m)
		}
		changed := reader.Take()
		if len(changed) != len(topics) {
			b.Fatalf("%d topics have changed, want %d", len(changed), len(topics))
		}
		for _, w := range changed {
			if s, _, err := w.Take(); err != nil || s.Seq != seq {
				b.Fatal("the reader does not have the state of the last message")
			}
		}
	}
	send(first)
	b.ReportAllocs()
	for b.Loop() {
		send(next)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(topics)), "ns/item")
}

// BenchmarkPrices changes the prices of many watched tokens.
func BenchmarkPrices(b *testing.B) {
	for _, tokens := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("tokens=%d", tokens), func(b *testing.B) {
			topics, prices := make([]messages.Topic, tokens), make([]*market.Price, tokens)
			for i := range topics {
				id := fmt.Sprintf("713210456792522125946263855327069127503327285719425322896313%d", i)
				topics[i], prices[i] = priceOf(id), &market.Price{TokenID: id, Price: market.NewDecimal(55, -2), Basis: market.BasisVenue}
			}
			message := func(i int) *messages.Message { return &messages.Message{Kind: messages.KindPrice, Price: prices[i]} }
			benchmarkMessages(b, topics, message, message)
		})
	}
}

// BenchmarkBook changes one level on each side of a book with 200 levels a side.
func BenchmarkBook(b *testing.B) {
	const levels = 200
	level := func(price, size int64) market.Level {
		return market.Level{Price: market.NewDecimal(price, -3), Size: market.NewDecimal(size, 0)}
	}
	snapshot := func(int) *messages.Message {
		var bids, asks []market.Level
		for i := range int64(levels) {
			bids, asks = append(bids, level(499-i, 100+i)), append(asks, level(501+i, 100+i))
		}
		return &messages.Message{Kind: messages.KindBookSnapshot, Depth: levels, Book: &market.Book{
			TokenID: "1", Bids: market.NewSide(bids), Asks: market.NewSide(asks), Depth: levels, Epoch: "A", Seq: 1,
		}}
	}
	n := int64(0)
	change := func(int) *messages.Message {
		n++
		return &messages.Message{Kind: messages.KindBookDelta, Depth: levels, Changes: []market.LevelChange{
			{Side: market.SideBuy, Level: level(499-n%levels, n%1000+1)}, {Side: market.SideSell, Level: level(501+n%levels, n%1000+1)},
		}}
	}
	benchmarkMessages(b, []messages.Topic{bookOf("1")}, snapshot, change)
}
