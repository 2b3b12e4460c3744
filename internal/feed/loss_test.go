package feed

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/generic/codec"
	"oddsgraph/internal/venue/stream"
)

// lossyFeed is a feed that loses the next messages. lose is the number of messages to lose.
type lossyFeed struct {
	*Feed
	lose atomic.Int32
}

func (l *lossyFeed) Message(m *messages.Message) {
	if l.lose.Add(-1) < 0 {
		l.Feed.Message(m)
	}
}

// bareVenue is a venue that sends no sequence numbers. It is also the stream.Conn to this venue.
type bareVenue struct {
	toClient, fromClient chan string
	done                 chan struct{}
	once                 sync.Once
}

func (v *bareVenue) Dial(context.Context, string, http.Header) (stream.Conn, error) { return v, nil }

func (v *bareVenue) Read(context.Context) ([]byte, error) {
	select {
	case f := <-v.toClient:
		return []byte(f), nil
	case <-v.done:
		return nil, errors.New("closed")
	}
}

func (v *bareVenue) Write(_ context.Context, frame []byte) error {
	v.fromClient <- string(frame)
	return nil
}

func (v *bareVenue) Close(int) error {
	v.once.Do(func() { close(v.done) })
	return nil
}

// wrote reports whether the client has sent a frame of the given type since the last call.
func (v *bareVenue) wrote(kind string) (found bool) {
	for len(v.fromClient) > 0 {
		found = strings.Contains(<-v.fromClient, `"type":"`+kind+`"`) || found
	}
	return found
}

// TestLossBetweenParts checks that the book is stale after a loss until the next snapshot. In the first loss, a message is lost
// between stream.Client and the feed. In the second loss, stream.Client cannot decode a message.
func TestLossBetweenParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &bareVenue{toClient: make(chan string, 10), fromClient: make(chan string, 100), done: make(chan struct{})}
		f := &lossyFeed{Feed: New(Config{Sink: newSink()})}
		f.lose.Store(0)
		client, err := stream.New(stream.Config{URL: "ws://venue.example/ws", Protocol: codec.Protocol(), Dial: v}, f)
		if err != nil {
			t.Fatal(err)
		}
		f.Connect(client)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = client.Run(ctx) })
		defer func() {
			f.Close()
			cancel()
			running.Wait()
		}()
		reader := f.NewReader("reader")
		defer reader.Close()
		w, err := reader.Watch(bookOf("T"), nil)
		if err != nil {
			t.Fatal(err)
		}
		expect := func(live bool, book string) {
			t.Helper()
			synctest.Wait()
			if s, err := w.State(); err != nil || s.Live != live || showBook(s.Book) != book || s.Seq != 0 {
				t.Fatalf("the book is %q, live %t, at %d, error %v; want %q, live %t", showBook(s.Book), s.Live, s.Seq, err, book, live)
			}
		}
		snapshot := func(bid string) {
			v.toClient <- `{"type":"orderbook_snapshot","tokenId":"T","bids":[["0.5","` + bid + `"]],"asks":[["0.6","10"]]}`
		}
		change := func(bid string) {
			v.toClient <- `{"type":"orderbook_update","tokenId":"T","changes":[{"side":"BUY","price":"0.5","size":"` + bid + `"}]}`
		}
		v.toClient <- `{"type":"hello"}`
		synctest.Wait()
		snapshot("1")
		expect(true, ".5x1 | .6x10")
		change("2")
		expect(true, ".5x2 | .6x10")
		v.wrote("")
		for i, lose := range []func(){
			func() { f.lose.Store(1); change("3") },
			func() { v.toClient <- `{"type":"orderbook_update","tokenId":"T","changes":"garbage"}` },
		} {
			lose()
			synctest.Wait()
			f.lose.Store(0)
			before, _ := w.State()
			change("4")
			expect(false, showBook(before.Book))
			time.Sleep(1500 * time.Millisecond) // before the feed subscribes to the book again
			if !v.wrote("resync") {
				t.Fatalf("loss %d: the feed requested no snapshot", i)
			}
			snapshot("5")
			expect(true, ".5x5 | .6x10")
		}
		if s := f.Stats(); s.Gaps != 2 || s.Resyncs != 2 {
			t.Errorf("the feed counted %d gaps and %d resyncs, want 2 and 2", s.Gaps, s.Resyncs)
		}
	})
}
