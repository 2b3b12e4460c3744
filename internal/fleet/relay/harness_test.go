package relay_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/fleet/relay"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/tests/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func bookOf(i int) messages.Topic {
	return messages.Topic{Channel: messages.ChannelOrderbook, ID: fmt.Sprintf("T%d", i)}
}

// venue has a book for each token. The size of the bid at 0.01 is the version number of the book.
type venue struct {
	numbered bool
	mu       sync.Mutex
	rand     *rand.Rand
	books    map[messages.Topic]*version
	history  map[messages.Topic]map[int64]string
	clients  []*client
}

type version struct {
	number int64
	bids   [10]int64
}

func (v *version) levels() (bids []market.Level) {
	for i := 9; i >= 1; i-- {
		if v.bids[i] > 0 {
			bids = append(bids, market.Level{Price: market.NewDecimal(int64(10+i), -2), Size: market.NewDecimal(v.bids[i], 0)})
		}
	}
	return append(bids, market.Level{Price: market.NewDecimal(1, -2), Size: market.NewDecimal(v.number, 0)})
}

func show(levels []market.Level) (text string) {
	for _, l := range levels {
		text += l.Price.String() + "x" + l.Size.String() + " "
	}
	return text
}

func newVenue(numbered bool) *venue {
	return &venue{
		numbered: numbered, rand: rand.New(rand.NewPCG(1, 2)), books: map[messages.Topic]*version{},
		history: map[messages.Topic]map[int64]string{},
	}
}

// book returns a topic's book. The calling function holds the lock.
func (v *venue) book(t messages.Topic) *version {
	b := v.books[t]
	if b == nil {
		b = &version{number: 1}
		v.books[t], v.history[t] = b, map[int64]string{1: show(b.levels())}
	}
	return b
}

// message returns a message about a topic. The calling function holds the lock.
func (v *venue) message(t messages.Topic, kind messages.Kind, number int64) *messages.Message {
	m := &messages.Message{Topic: t, Kind: kind, Time: time.Now(), ReceivedAt: time.Now()}
	if v.numbered {
		m.Epoch, m.Seq = "A", uint64(number)
	}
	return m
}

// snapshot returns a topic's book and the version number of the book.
func (v *venue) snapshot(t messages.Topic) (*messages.Message, int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	b := v.book(t)
	m := v.message(t, messages.KindBookSnapshot, b.number)
	m.Book = &market.Book{TokenID: t.ID, Bids: market.NewSide(b.levels()), Depth: 200, Epoch: m.Epoch, Seq: m.Seq}
	return m, b.number
}

// change changes a level of a book and sends the change.
func (v *venue) change(t messages.Topic) {
	v.mu.Lock()
	defer v.mu.Unlock()
	b := v.book(t)
	b.number++
	i := 1 + v.rand.IntN(9)
	b.bids[i] = int64(v.rand.IntN(4))
	v.history[t][b.number] = show(b.levels())
	m := v.message(t, messages.KindBookDelta, b.number)
	for _, l := range [][2]int64{{int64(10 + i), b.bids[i]}, {1, b.number}} {
		m.Changes = append(m.Changes, market.LevelChange{Side: market.SideBuy, Level: market.Level{Price: market.NewDecimal(l[0], -2), Size: market.NewDecimal(l[1], 0)}})
	}
	for _, c := range v.clients {
		c.pass(m, b.number)
	}
}

// client is the stream client of one replica.
type client struct {
	venue   *venue
	handler *relay.Relay
	calls   chan func()
	// room is the maximum number of topics; 0 means that there is no maximum.
	room int

	mu      sync.Mutex
	topics  map[messages.Topic]bool
	sent    map[messages.Topic]int64
	dead    bool
	resyncs int
	users   []string
}

func (c *client) do(call func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dead {
		c.calls <- call
	}
}

func (c *client) Watch(t messages.Topic, _ *market.Credentials) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.Channel == messages.ChannelUser {
		c.users = append(c.users, "watch "+t.ID)
		return nil
	}
	if c.room > 0 && len(c.topics) >= c.room && !c.topics[t] {
		return market.Errorf(market.CodeRateLimited, "full")
	}
	if c.dead {
		return nil
	}
	c.calls <- func() {
		time.Sleep(20 * time.Millisecond)
		c.handler.Up([]messages.Topic{t})
		c.send(t)
		c.mu.Lock()
		if _, wanted := c.topics[t]; wanted {
			c.topics[t] = true
		}
		c.mu.Unlock()
	}
	c.topics[t] = false
	return nil
}

func (c *client) Unwatch(t messages.Topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.topics, t)
}

func (c *client) Resync(t messages.Topic) {
	c.mu.Lock()
	c.resyncs++
	c.mu.Unlock()
	c.do(func() { c.send(t) })
}

// send passes a snapshot to the handler. Later calls of pass skip the changes that the snapshot already contains.
func (c *client) send(t messages.Topic) {
	m, number := c.venue.snapshot(t)
	c.mu.Lock()
	c.sent[t] = number
	c.mu.Unlock()
	c.handler.Message(m)
}

func (c *client) Reconnect(messages.Topic) {}

// pass passes a change to the handler, after all messages that were queued earlier.
func (c *client) pass(m *messages.Message, number int64) {
	c.do(func() {
		c.mu.Lock()
		subscribed := c.topics[m.Topic] && number > c.sent[m.Topic]
		c.mu.Unlock()
		if subscribed {
			c.handler.Message(m)
		}
	})
}

func (c *client) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.topics)
}

// feedHolder adapts the method Hold of a feed to relay.Feed.
type feedHolder struct{ *feed.Feed }

func (h feedHolder) Hold(t messages.Topic) (relay.Hold, error) { return h.Feed.Hold(t) }

// replica is one process of the fleet.
type replica struct {
	*relay.Relay
	port    *port
	client  *client
	feed    *feed.Feed
	reader  *feed.Reader
	watches map[messages.Topic]*feed.Watch
	stop    context.CancelFunc
	running sync.WaitGroup
}

// fleet is a venue, a server and replicas.
type fleet struct {
	*testing.T
	venue    *venue
	server   *server
	replicas []*replica
	// checked is the number of books that the method check has compared. wrong is the number of these books that the venue never had.
	checked, wrong int
}

func newFleet(t *testing.T, numbered bool, replicas, tokens int) *fleet {
	f := &fleet{T: t, venue: newVenue(numbered), server: newServer()}
	for i := range replicas {
		f.join(fmt.Sprintf("replica%d", i), tokens)
	}
	return f
}

// join adds a replica that watches the books of the given number of tokens.
func (f *fleet) join(name string, tokens int) *replica {
	r := &replica{port: &port{server: f.server}, watches: map[messages.Topic]*feed.Watch{}}
	r.client = &client{venue: f.venue, calls: make(chan func(), 1_000_000), topics: map[messages.Topic]bool{}, sent: map[messages.Topic]int64{}}
	r.Relay = relay.New(relay.Config{Replica: name, Topics: 1000}, r.port)
	r.client.handler = r.Relay
	r.feed = feed.New(feed.Config{Sink: tool.Discard{}, Linger: time.Second})
	r.Connect(r.client, feedHolder{r.feed})
	r.feed.Connect(r.Relay)
	f.venue.mu.Lock()
	f.venue.clients = append(f.venue.clients, r.client)
	f.venue.mu.Unlock()
	ctx, cancel := context.WithCancel(f.Context())
	r.stop = cancel
	r.running.Go(func() { r.Run(ctx) })
	r.running.Go(func() {
		for {
			select {
			case call := <-r.client.calls:
				call()
			case <-ctx.Done():
				return
			}
		}
	})
	r.reader = r.feed.NewReader("reader")
	for i := range tokens {
		w, err := r.reader.Watch(bookOf(i), nil)
		if err != nil {
			f.Fatal(err)
		}
		r.watches[bookOf(i)] = w
	}
	f.replicas = append(f.replicas, r)
	return r
}

func (f *fleet) end() {
	for _, r := range f.replicas {
		r.reader.Close()
		r.feed.Close()
		r.stop()
		r.running.Wait()
	}
}

// run changes books for the duration d and checks each book that a replica publishes meanwhile.
func (f *fleet) run(d time.Duration) {
	for range d / (10 * time.Millisecond) {
		f.venue.change(f.anyTopic())
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		for _, r := range f.replicas {
			for _, w := range r.reader.Take() {
				f.check(w)
			}
		}
	}
}

func (f *fleet) anyTopic() messages.Topic {
	topics := make([]messages.Topic, 0, len(f.replicas[0].watches))
	for i := range f.replicas[0].watches {
		topics = append(topics, i)
	}
	slices.SortFunc(topics, func(a, b messages.Topic) int { return len(a.ID)*1000 + int(a.ID[1]) - len(b.ID)*1000 - int(b.ID[1]) })
	return topics[f.venue.rand.IntN(len(topics))]
}

func (f *fleet) check(w *feed.Watch) {
	s, err := w.State()
	if err != nil || !s.Live || s.Book == nil {
		return
	}
	f.checked++
	number := s.Book.Bids.Levels()[s.Book.Bids.Len()-1].Size
	f.venue.mu.Lock()
	defer f.venue.mu.Unlock()
	var n int64
	_, _ = fmt.Sscan(number.String(), &n)
	if f.venue.history[w.Topic()][n] != show(s.Book.Bids.Levels()) {
		f.wrong++
	}
}

// explain logs the topics that are not live, and the topics whose book differs from the venue's book.
func (f *fleet) explain() {
	for i, r := range f.replicas {
		for t, w := range r.watches {
			s, err := w.State()
			f.venue.mu.Lock()
			if want := show(f.venue.book(t).levels()); !r.port.dead && (err != nil || !s.Live || show(s.Book.Bids.Levels()) != want) {
				f.Logf("replica %d (%+v): topic %s has live %t, error %v and the book\n%v, and the venue has the book\n%s", i, r.Stats(), t.ID, s.Live, err, s.Book, want)
			}
			f.venue.mu.Unlock()
		}
	}
}

// countLive returns the number of watched topics whose book is live and equals the venue's book, and the number of all watched
// topics. It skips dead replicas.
func (f *fleet) countLive() (live, all int) {
	for _, r := range f.replicas {
		if r.port.dead {
			continue
		}
		for t, w := range r.watches {
			all++
			s, err := w.State()
			f.venue.mu.Lock()
			if err == nil && s.Live && show(s.Book.Bids.Levels()) == show(f.venue.book(t).levels()) {
				live++
			}
			f.venue.mu.Unlock()
		}
	}
	return live, all
}

// mustLive waits for 400 ms without changes of books. It fails the test if a book is then not live or differs from the venue's
// book.
func (f *fleet) mustLive() {
	f.Helper()
	time.Sleep(400 * time.Millisecond)
	synctest.Wait()
	if live, all := f.countLive(); live != all {
		f.explain()
		f.Fatalf("got %d live topics with the venue's book, want %d", live, all)
	}
}

// noneWrong fails the test if a published book was wrong, or if no book was compared.
func (f *fleet) noneWrong() {
	f.Helper()
	if f.wrong > 0 || f.checked == 0 {
		f.Errorf("wrong: the venue never had %d of %d published books", f.wrong, f.checked)
	}
}

// subscriptions returns the number of subscriptions of all replicas that are not dead.
func (f *fleet) subscriptions() (n int) {
	for _, r := range f.replicas {
		if !r.port.dead {
			n += r.client.count()
		}
	}
	return n
}

// resyncs returns how many snapshots the replicas have requested from the venue.
func (f *fleet) resyncs() (n int) {
	for _, r := range f.replicas {
		r.client.mu.Lock()
		n += r.client.resyncs
		r.client.mu.Unlock()
	}
	return n
}

// owner returns the replica whose client subscribes to a topic.
func (f *fleet) owner(t messages.Topic) *replica {
	for _, r := range f.replicas {
		r.client.mu.Lock()
		_, carries := r.client.topics[t]
		r.client.mu.Unlock()
		if carries && !r.port.dead {
			return r
		}
	}
	f.Fatal("no live replica subscribes to the topic")
	return nil
}

// kill ends a replica without releasing its leases.
func (f *fleet) kill(r *replica) {
	f.server.set(func() { r.port.dead = true })
	r.client.mu.Lock()
	r.client.dead = true
	r.client.mu.Unlock()
}
