package layers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/cache"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
)

// levels is the number of levels on each side of the benchmark's book.
const levels = 200

// bookToken is the token of the benchmark's book.
const bookToken = "71321045679252212594626385532706912750332728571942532289631379312455583992563"

// pipe is a stream.Dialer with one connection, whose frames come from a channel.
type pipe struct {
	frames chan []byte
	closed chan struct{}
}

func (p *pipe) Dial(context.Context, string, http.Header) (stream.Conn, error) { return p, nil }

func (p *pipe) Read(context.Context) ([]byte, error) {
	select {
	case f := <-p.frames:
		return f, nil
	case <-p.closed:
		return nil, io.EOF
	}
}

func (p *pipe) Write(context.Context, []byte) error { return nil }

func (p *pipe) Close(int) error {
	close(p.closed)
	return nil
}

// snapshot returns the frame with the whole book.
func snapshot() []byte {
	var bids, asks strings.Builder
	for i := range levels {
		fmt.Fprintf(&bids, `,{"price":0.%03d,"size":%d}`, 499-i, 100+i)
		fmt.Fprintf(&asks, `,{"price":0.%03d,"size":%d}`, 501+i, 100+i)
	}
	return fmt.Appendf(nil, `{"type":"orderbook_snapshot","tokenId":"%s","marketId":"M1","seq":1,"epoch":"e1","bids":[%s],"asks":[%s],"timestamp":"2026-03-14T15:09:26.000Z"}`,
		bookToken, bids.String()[1:], asks.String()[1:])
}

// change returns the frame with sequence number seq. The frame changes the size of one level on each side.
func change(seq uint64) []byte {
	return fmt.Appendf(nil, `{"type":"orderbook_update","tokenId":"%s","marketId":"M1","seq":%d,"prevSeq":%d,"changes":[{"side":"BUY","price":0.%03d,"size":%d.5},{"side":"SELL","price":0.%03d,"size":%d.5}],"timestamp":"2026-03-14T15:09:26.500Z"}`,
		bookToken, seq, seq-1, 499-seq%levels, seq%1000+1, 501+seq%levels, seq%1000+1)
}

// BenchmarkIngest sends changes of a book with 200 levels on each side. "service" decodes and applies each change, caches the new
// book and delivers it to one reader. "bare" decodes equal frames into structs and does nothing else.
func BenchmarkIngest(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		type level struct {
			Side        string
			Price, Size json.Number
		}
		var frame struct {
			Type, TokenID, MarketID string
			Seq, PrevSeq            uint64
			Changes                 []level
			Timestamp               time.Time
		}
		frames, decoded := make(chan []byte), make(chan bool)
		go func() {
			for f := range frames {
				decoded <- json.Unmarshal(f, &frame) == nil && len(frame.Changes) == 2
			}
		}()
		defer close(frames)
		seq := uint64(1)
		b.ReportAllocs()
		for b.Loop() {
			seq++
			frames <- change(seq)
			if !<-decoded {
				b.Fatal("a frame was not decoded")
			}
		}
	})
	b.Run("service", func(b *testing.B) {
		client, _, _, _ := record(b)
		c := cache.New(client, cache.DefaultConfig())
		defer c.Close()
		f := feed.New(feed.Config{Sink: c, Topics: 10})
		defer f.Close()
		p := &pipe{frames: make(chan []byte), closed: make(chan struct{})}
		s, err := stream.New(stream.Config{URL: "ws://venue", Dial: p}, f)
		if err != nil {
			b.Fatal(err)
		}
		f.Connect(s)
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		defer func() {
			cancel()
			<-ended
		}()
		reader := f.NewReader("reader")
		defer reader.Close()
		topic := messages.Topic{Channel: messages.ChannelOrderbook, ID: bookToken}
		if _, err := reader.Watch(topic, nil); err != nil {
			b.Fatal(err)
		}
		p.frames <- []byte(`{"type":"hello","epoch":"e1","heartbeatMs":300000,"limits":{"topics":500,"depth":200,"framesPerSecond":20,"frameBytes":65536}}`)
		time.Sleep(100 * time.Millisecond) // long enough to send the subscription
		p.frames <- snapshot()
		take := func(seq uint64) *market.Book {
			for {
				<-reader.Changed()
				for _, w := range reader.Take() {
					if state, _, err := w.Take(); err == nil && state.Seq == seq {
						return state.Book
					}
				}
			}
		}
		if got := take(1); got.Bids.Len() != levels {
			b.Fatalf("the book has %d bids, want %d", got.Bids.Len(), levels)
		}
		seq := uint64(1)
		b.ReportAllocs()
		for b.Loop() {
			seq++
			p.frames <- change(seq)
			take(seq)
		}
	})
}
