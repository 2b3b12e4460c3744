//go:build unix

package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/tests/tool"
)

// depth is the number of levels on each side of a book that the tests of the stream compare.
const depth = 5

// movingVenue is a venue that changes twenty times a second. It remembers every version of the books of its tokens.
type movingVenue struct {
	*venue
	tokens  []string
	mu      sync.Mutex
	still   bool                         // the venue does not change
	history map[string]map[uint64]string // books as texts, by token and sequence number
}

func openMoving(t *testing.T, tokens int) *movingVenue {
	m := &movingVenue{venue: openVenue(t, demo.Config{Markets: 8, Seed: 1, Heartbeat: time.Second}), history: map[string]map[uint64]string{}}
	for _, token := range m.demo.Tokens() {
		if b, ok := m.demo.Book(token.TokenID); ok && len(b.Bids) > 0 && len(b.Asks) > 0 && len(m.tokens) < tokens {
			m.tokens = append(m.tokens, token.TokenID)
			m.history[token.TokenID] = map[uint64]string{}
		}
	}
	if len(m.tokens) < tokens {
		t.Fatalf("the venue has %d tokens with books, want %d", len(m.tokens), tokens)
	}
	m.record()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			m.mu.Lock()
			if !m.still {
				m.demo.Step()
				m.record()
			}
			m.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
	})
	return m
}

// record stores the current books. When other goroutines use the venue, the caller must hold m.mu.
func (m *movingVenue) record() {
	for _, id := range m.tokens {
		b, _ := m.demo.Book(id)
		m.history[id][b.Seq] = sideText(b.Bids) + "|" + sideText(b.Asks)
	}
}

func sideText(levels []demo.Level) (text string) {
	for _, l := range levels[:min(len(levels), depth)] {
		text += shortest(l.Price.String()) + "x" + shortest(l.Size.String()) + " "
	}
	return text
}

// shortest returns a number in its shortest form, so that equal numbers have equal texts.
func shortest(text string) string {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// setStill(true) stops the changes of the books, and setStill(false) resumes the changes.
func (m *movingVenue) setStill(still bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.still = still
}

// event is an event of orderbookChanged.
type event struct {
	seq   uint64
	book  string
	stale bool
}

// bookReader is a client that reads the book of a token from a replica.
type bookReader struct {
	token  string
	mu     sync.Mutex
	events []event
}

// readBook subscribes to the book of a token. A goroutine of g reads the events until ctx or the replica ends.
func (r *replica) readBook(t *testing.T, g *sync.WaitGroup, ctx context.Context, token string) *bookReader {
	t.Helper()
	f := &bookReader{token: token}
	query := fmt.Sprintf(`subscription { orderbookChanged(tokenId: %q, depth: %d) { sequence book { freshness { stale } bids { price size } asks { price size } } } }`, token, depth)
	g.Go(func() {
		resp, err := streamClient.Do(post(ctx, r.url, query, "Accept", "text/event-stream"))
		if err != nil {
			return
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data:"); ok {
				f.take(text)
			}
		}
	})
	return f
}

var streamClient = &http.Client{Transport: &http.Transport{MaxConnsPerHost: 0}}

func (f *bookReader) take(text string) {
	type level struct{ Price, Size string }
	var e struct {
		Data struct {
			OrderbookChanged *struct {
				Sequence string
				Book     struct {
					Freshness  struct{ Stale bool }
					Bids, Asks []level
				}
			}
		}
	}
	if json.Unmarshal([]byte(text), &e) != nil || e.Data.OrderbookChanged == nil {
		return
	}
	u := e.Data.OrderbookChanged
	digits := u.Sequence[strings.LastIndexAny(u.Sequence, ":-/. ")+1:]
	seq, _ := strconv.ParseUint(digits, 10, 64)
	show := func(levels []level) (text string) {
		for _, l := range levels {
			text += shortest(l.Price) + "x" + shortest(l.Size) + " "
		}
		return text
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, event{seq, show(u.Book.Bids) + "|" + show(u.Book.Asks), u.Book.Freshness.Stale})
}

// last returns the last event, or a stale event if no event has arrived.
func (f *bookReader) last() event {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.events) == 0 {
		return event{stale: true}
	}
	return f.events[len(f.events)-1]
}

// watchers are clients of several replicas.
type watchers struct {
	venue   *movingVenue
	running sync.WaitGroup
	ctx     context.Context
	readers map[*replica][]*bookReader
	ended   []*bookReader
}

func newWatchers(t *testing.T, v *movingVenue) *watchers {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watchers{venue: v, ctx: ctx, readers: map[*replica][]*bookReader{}}
	t.Cleanup(func() {
		cancel()
		w.running.Wait()
	})
	return w
}

func (w *watchers) join(t *testing.T, r *replica) {
	for _, token := range w.venue.tokens {
		w.readers[r] = append(w.readers[r], r.readBook(t, &w.running, w.ctx, token))
	}
}

// leave moves the clients of a killed replica to w.ended, so that settle no longer waits for these clients.
func (w *watchers) leave(r *replica) {
	w.ended = append(w.ended, w.readers[r]...)
	delete(w.readers, r)
}

// settle stops the changes at the venue until all clients have the venue's books, and then resumes the changes.
func (w *watchers) settle(t *testing.T, when string) {
	t.Helper()
	w.venue.setStill(true)
	defer w.venue.setStill(false)
	began := time.Now()
	eventually(t, "all clients have the venue's books "+when, func() bool { return w.countOutdated() == 0 })
	t.Logf("all clients have the venue's books %s after %s", when, time.Since(began).Round(10*time.Millisecond))
}

// countOutdated returns the number of clients whose last event is stale or differs from the venue's book.
func (w *watchers) countOutdated() (n int) {
	for _, readers := range w.readers {
		for _, f := range readers {
			b, _ := w.venue.demo.Book(f.token)
			if e := f.last(); e.stale || e.book != sideText(b.Bids)+"|"+sideText(b.Asks) { // a change below the compared levels causes no event
				n++
			}
		}
	}
	return n
}

// check compares each event with the venue's book of the same sequence number, and checks the order of the events.
func (w *watchers) check(t *testing.T) {
	t.Helper()
	w.venue.setStill(true)
	events, wrong := 0, 0
	all := w.ended
	for _, readers := range w.readers {
		all = append(all, readers...)
	}
	for _, f := range all {
		f.mu.Lock()
		var before uint64
		for i, e := range f.events {
			events++
			if had := w.venue.history[f.token][e.seq]; had != e.book || e.seq < before {
				wrong++
				t.Logf("token %s, event %d of %d: the sequence number %d follows %d (stale: %t), and the book is %s; the venue's book was %q", f.token, i, len(f.events), e.seq, before, e.stale, e.book, had)
			}
			before = e.seq
		}
		f.mu.Unlock()
	}
	if wrong > 0 || events == 0 {
		t.Errorf("%d of %d events are wrong, want at least one event and 0 wrong", wrong, events)
	}
	t.Logf("%d of %d events are wrong", wrong, events)
}

// subscribedOnce reports whether the venue has exactly one subscription to the book of each token.
func (w *watchers) subscribedOnce() bool {
	s := w.venue.demo.Stats().Stream
	return s.Topics["orderbook"] == int64(len(w.venue.tokens)) && s.Subscriptions["orderbook"] == s.Topics["orderbook"]
}

// streamFlags returns the flags of a replica that shares the stream.
func (v *movingVenue) streamFlags(server *tool.Redis) []string {
	return sharedFlags(server, "--shared-stream", "--shared-replicas=4", "--venue-public-per-minute=0", "--venue-key-per-minute=0",
		"--stream-url=ws"+strings.TrimPrefix(v.URL, "http")+demo.StreamPath)
}

// TestStream checks that clients of replicas with a shared stream see only books that the venue had, even if replicas and Redis
// fail.
func TestStream(t *testing.T) {
	t.Parallel()
	v := openMoving(t, 12)
	server := tool.StartRedis(t)
	w := newWatchers(t, v)
	var replicas []*replica
	join := func() {
		r := start(t, v.venue, v.streamFlags(server)...).waitConnected(t)
		w.join(t, r)
		replicas = append(replicas, r)
	}
	for range 3 {
		join()
	}
	w.settle(t, "at the start")
	eventually(t, "each topic is subscribed once", w.subscribedOnce)
	eventually(t, "the replicas together have as many topics as the venue's stream", func() bool {
		var topics int64
		for _, r := range replicas {
			s := r.status(t).Stream
			if s == nil {
				t.Fatal("a replica does not share the stream")
			}
			if s.Alone { // on a busy machine, a replica may have lost the others for a while
				return false
			}
			topics += int64(s.Topics)
		}
		n := v.demo.Stats().Stream.Topics
		return topics == n["orderbook"]+n["prices"]
	})
	time.Sleep(time.Second)

	replicas[0].kill()
	w.leave(replicas[0])
	time.Sleep(time.Second)
	w.settle(t, "after a replica was killed")
	join()
	w.settle(t, "on a new replica")
	eventually(t, "each topic is subscribed once after a replica was killed", w.subscribedOnce)

	signal(t, replicas[1].cmd.Process, syscall.SIGSTOP)
	time.Sleep(5 * time.Second)
	signal(t, replicas[1].cmd.Process, syscall.SIGCONT)
	time.Sleep(time.Second)
	w.settle(t, "after a replica was paused")
	eventually(t, "each topic is subscribed once after a replica was paused", w.subscribedOnce)

	server.Kill()
	time.Sleep(2 * time.Second)
	server.Start(t)
	time.Sleep(time.Second)
	w.settle(t, "after Redis was killed")
	eventually(t, "each topic is subscribed once after Redis was killed", w.subscribedOnce)
	w.check(t)
	if text := server.CLI(t, "KEYS", "*"); !strings.Contains(text, ":own:") {
		t.Errorf("Redis has the keys %s, want some with :own:", text)
	}
}

// TestStreamWithoutRedis checks that each replica subscribes to all its topics when Redis has not answered for ten seconds. Each
// replica may use only a quarter of the connections to the venue, because --shared-replicas is 4.
func TestStreamWithoutRedis(t *testing.T) {
	t.Parallel()
	v := openMoving(t, 12)
	server := tool.StartRedis(t)
	w := newWatchers(t, v)
	var replicas []*replica
	for range 2 {
		r := start(t, v.venue, append(v.streamFlags(server), "--stream-topics=1600")...).waitConnected(t) // 8 connections of 200 topics each, for 4 replicas
		w.join(t, r)
		replicas = append(replicas, r)
	}
	w.settle(t, "at the start")
	server.Kill()
	time.Sleep(11 * time.Second)
	eventually(t, "each replica has its own stream", func() bool { return v.demo.Stats().Stream.Subscriptions["orderbook"] == 24 })
	w.settle(t, "without Redis")
	for _, r := range replicas {
		if s := r.status(t).Stream; s == nil || !s.Alone || s.Topics < len(v.tokens) {
			t.Errorf("without Redis the status of the stream is %+v, want alone, with at least %d topics", s, len(v.tokens))
		}
	}
	if s := v.demo.Stats().Stream; s.Connections > 4 {
		t.Errorf("the two replicas have %d connections to the venue, want at most 4", s.Connections)
	}
	server.Start(t)
	eventually(t, "the replicas share the stream again", w.subscribedOnce)
	w.settle(t, "with Redis")
	w.check(t)
}
