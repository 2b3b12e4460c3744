package relay

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// The times of the protocol.
const (
	// LeaseFor is how long a lease lasts in the Bus. An owner stops sending leaseMargin earlier, by its own clock.
	LeaseFor    = 600 * time.Millisecond
	leaseMargin = 100 * time.Millisecond
	// passEvery is how often leases are renewed and beats are sent.
	passEvery = 150 * time.Millisecond
	// helloEvery is how often a replica says that it is there. It is forgotten after liveFor.
	helloEvery = 500 * time.Millisecond
	liveFor    = 2 * time.Second
	// staleAfter is the time without a frame of the owner after which topics are down.
	staleAfter = 750 * time.Millisecond
	// takeAfter is the silence after which the first replica in the order of a shard takes the lease, and waitForRank what
	// each further one waits beyond that.
	takeAfter   = 300 * time.Millisecond
	waitForRank = 300 * time.Millisecond
	// renewBusAfter is the time without its own hello after which a replica opens another connection to the Bus.
	renewBusAfter = 3 * time.Second
	// aloneAfter is the time without the Bus after which a replica subscribes its own topics. It shares again after a random part of
	// backWithin.
	aloneAfter = 10 * time.Second
	backWithin = 30 * time.Second
	// handOverAfter is how long an owner keeps a shard that belongs to another replica. restFor is how long it then leaves
	// the lease to others.
	handOverAfter = 10 * time.Second
	restFor       = 3 * time.Second
	// wantEvery is how often topics are wanted again. WantFor is when they are forgotten otherwise.
	wantEvery = 10 * time.Second
	WantFor   = 25 * time.Second
	// askAgain is the wait before an owner is asked again for a snapshot. It doubles, up to maxAsks times: the question may have been
	// lost, and the feed asks again by itself only later.
	askAgain = 300 * time.Millisecond
	maxAsks  = 3
	// reopenAfter is the wait before the Bus is opened again.
	reopenAfter = 200 * time.Millisecond
)

const (
	// maxOut bounds the frames that wait to be sent, maxBatch those that are sent together.
	maxOut, maxBatch = 2048, 256
	// maxReplicas bounds the replicas that are known.
	maxReplicas = 1000
	// maxTopics bounds the topics in one frame.
	maxTopics = 100
)

// Bus carries frames and has the leases. Each method returns after a short time, except Receive.
type Bus interface {
	// Lease renews the leases of this replica and takes free ones, each for LeaseFor. It returns the fence of each shard whose lease
	// the replica has then. A new lease has a higher fence than all earlier ones of the shard, and than the one given.
	Lease(ctx context.Context, replica string, shards map[int]uint64) (map[int]uint64, error)
	// Release gives leases of this replica back.
	Release(ctx context.Context, replica string, shards []int) error
	// Want adds members to the sets of shards for WantFor. Wanted returns the members of the sets.
	Want(ctx context.Context, members map[int][]string) error
	Wanted(ctx context.Context, shards []int) ([]string, error)
	// Publish sends texts to all replicas, this one included. They may be lost, but not change their order.
	Publish(ctx context.Context, texts []string) error
	// Receive opens a new connection and calls handle with each text until the connection fails or ctx ends.
	Receive(ctx context.Context, handle func(text string)) error
}

// Client is this replica's client of the venue's stream.
type Client interface {
	Watch(t messages.Topic, c *market.Credentials) error
	Unwatch(t messages.Topic)
	Resync(t messages.Topic)
	Reconnect(t messages.Topic)
}

// Feed keeps the state of this replica's topics.
type Feed interface {
	Up(epoch string, topics []messages.Topic)
	Acknowledged(topics []messages.Topic)
	Down(topics []messages.Topic, err error)
	Message(m *messages.Message)
	Heartbeat(epoch string, seqs map[messages.Topic]uint64)
	Refused(t messages.Topic, err error)
	// Sent compares the internal numbers of the last messages with those that arrived.
	Sent(epoch uint64, last map[messages.Topic]uint64)
	// Snapshot returns the state of a live topic as a merged message, or nil.
	Snapshot(t messages.Topic) *messages.Message
	// Hold keeps a topic open that only other replicas want.
	Hold(t messages.Topic) (Hold, error)
}

// Hold is a topic that is kept open for other replicas.
type Hold interface {
	// Only reports whether nobody else keeps the topic open, Ended whether the feed has closed it.
	Only() bool
	Ended() bool
	Close()
}

// Config configures a Relay.
type Config struct {
	// Replica is the name of this process among the replicas, of letters and digits.
	Replica string
	// Topics bounds the public topics of this replica, including those that it carries for others.
	Topics int
	Log    *slog.Logger
}

// Stats has the relay's figures.
type Stats struct {
	// Owned is the number of shards whose lease this replica has. Topics is the number of public topics that its own client carries.
	Owned, Topics int
	// Alone reports that the replica has its own stream, because it cannot reach the others.
	Alone bool
	// Takeovers counts leases that were taken, Fenced dropped frames with an old fence, Lost frames that could not be sent, and
	// Reopened new connections to the Bus.
	Takeovers, Fenced, Lost, Reopened uint64
}

// Relay stands between a feed and the client of the venue's stream: it is the feed's upstream and the client's handler. It is safe for
// concurrent use. Connect it, then call Run.
type Relay struct {
	cfg    Config
	bus    Bus
	client Client
	feed   Feed
	log    *slog.Logger
	// own is how the JSON objects of this replica's frames begin.
	own  string
	out  chan outgoing
	wake chan struct{}
	// alone is set while the replica ignores the frames of others.
	alone atomic.Bool
	// heard is when the replica last received its own hello, in nanoseconds after started.
	heard   atomic.Int64
	started time.Time

	takeovers, fenced, lost, reopened atomic.Uint64

	// Locks are taken in this order: a shard's, the feed's, mu. The feed calls the relay with its locks held, so Watch, Unwatch, Resync
	// and Reconnect take mu only.
	shards [shardCount]shard
	mu     sync.Mutex
	// watched are the topics that the feed watches. The sets below are calls of the feed since the last pass.
	watched                       map[messages.Topic]struct{}
	changed, resyncs, reconnected map[messages.Topic]struct{}
	// remote has the topics that other replicas want of shards of this one, until a time. live has the replicas with the time of
	// their last hello.
	remote map[messages.Topic]time.Time
	live   map[string]time.Time
}

// outgoing is a frame that may be sent until a time; the zero time means always.
type outgoing struct {
	text  string
	until time.Time
}

// New returns a Relay over a bus.
func New(cfg Config, bus Bus) *Relay {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	r := &Relay{
		own: `{"f":"` + cfg.Replica + `"`, cfg: cfg, bus: bus, log: cfg.Log, out: make(chan outgoing, maxOut), wake: make(chan struct{}, 1), started: time.Now(),
		watched: make(map[messages.Topic]struct{}), remote: make(map[messages.Topic]time.Time), live: make(map[string]time.Time),
	}
	r.changed, r.resyncs, r.reconnected = make(map[messages.Topic]struct{}), make(map[messages.Topic]struct{}), make(map[messages.Topic]struct{})
	for i := range r.shards {
		r.shards[i].topics = make(map[messages.Topic]*carried)
	}
	return r
}

// Connect sets the client and the feed. Call it once, before Run and before the feed is used.
func (r *Relay) Connect(c Client, f Feed) { r.client, r.feed = c, f }

// Run relays until ctx ends, gives the leases back, and returns after its goroutines have ended.
func (r *Relay) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { r.send(ctx) })
	p := newPass(r)
	receiving, stop := context.WithCancel(context.WithoutCancel(ctx)) // the leases are given back over its connection
	running.Go(func() { r.receive(receiving, p.reopen) })
	p.run(ctx)
	stop()
	running.Wait()
}

var errFull error = market.Errorf(market.CodeRateLimited, "the stream has no room for another topic")

// Watch subscribes to a topic until Unwatch. It implements the feed's Upstream.
func (r *Relay) Watch(t messages.Topic, c *market.Credentials) error {
	if t.Channel == messages.ChannelUser {
		return r.client.Watch(t, c)
	}
	if !public(t) {
		return market.Errorf(market.CodeBadUserInput, "this cannot be a topic of the stream")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.watched[t]; !known && len(r.watched) >= r.cfg.Topics {
		return errFull
	}
	r.watched[t] = struct{}{}
	r.changed[t] = struct{}{}
	r.signal()
	return nil
}

// Unwatch ends the subscription of a topic.
func (r *Relay) Unwatch(t messages.Topic) {
	if t.Channel == messages.ChannelUser {
		r.client.Unwatch(t)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.watched[t]; known {
		delete(r.watched, t)
		r.changed[t] = struct{}{}
		r.signal()
	}
}

// Resync requests a snapshot of a topic, from the owner or from the venue.
func (r *Relay) Resync(t messages.Topic) { r.request(r.resyncs, t, r.client.Resync) }

// Reconnect closes the connection of a topic if this replica's client carries it. Otherwise it requests a snapshot.
func (r *Relay) Reconnect(t messages.Topic) { r.request(r.reconnected, t, r.client.Reconnect) }

// request adds a watched topic to a set for the next pass. It passes user topics on.
func (r *Relay) request(set map[messages.Topic]struct{}, t messages.Topic, pass func(messages.Topic)) {
	if t.Channel == messages.ChannelUser {
		pass(t)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.watched[t]; known {
		set[t] = struct{}{}
		r.signal()
	}
}

func (r *Relay) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take returns and clears a set. The caller holds mu.
func take(set map[messages.Topic]struct{}) []messages.Topic {
	topics := slices.Collect(maps.Keys(set))
	clear(set)
	return topics
}

// publish queues a frame. It never waits.
func (r *Relay) publish(f *frame, until time.Time) {
	f.From = r.cfg.Replica
	text, err := f.encode()
	if err != nil {
		r.log.Error("a frame cannot be encoded", "error", err)
		return
	}
	select {
	case r.out <- outgoing{text, until}:
	default:
		r.lost.Add(1)
	}
}

// send sends the queued frames until ctx ends. Frames of an owner are dropped at the end of its lease, which is checked last, since the
// process may have been stopped since they were queued.
func (r *Relay) send(ctx context.Context) {
	for {
		var batch []outgoing
		select {
		case <-ctx.Done():
			return
		case first := <-r.out:
			batch = append(batch, first)
		}
		for len(batch) < maxBatch && len(r.out) > 0 {
			batch = append(batch, <-r.out)
		}
		now, texts := time.Now(), make([]string, 0, len(batch))
		for _, o := range batch {
			if o.until.IsZero() || now.Before(o.until) {
				texts = append(texts, o.text)
			}
		}
		r.lost.Add(uint64(len(batch) - len(texts)))
		if len(texts) == 0 {
			continue
		}
		if err := r.bus.Publish(ctx, texts); err != nil {
			r.lost.Add(uint64(len(texts)))
		}
	}
}

// receive receives frames until ctx ends, over a new connection after each failure and after each signal of reopen.
func (r *Relay) receive(ctx context.Context, reopen <-chan struct{}) {
	for ctx.Err() == nil {
		open, closeIt := context.WithCancel(ctx)
		var watching sync.WaitGroup
		watching.Go(func() {
			select {
			case <-reopen:
				closeIt()
			case <-open.Done():
			}
		})
		_ = r.bus.Receive(open, r.handle) // the next pass finds that hellos are missing
		closeIt()
		watching.Wait()
		r.reopened.Add(1)
		timer := time.NewTimer(reopenAfter/2 + rand.N(reopenAfter))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// Stats returns the present figures.
func (r *Relay) Stats() Stats {
	s := Stats{
		Alone: r.alone.Load(), Takeovers: r.takeovers.Load(), Fenced: r.fenced.Load(), Lost: r.lost.Load(), Reopened: r.reopened.Load(),
	}
	now := time.Now()
	for i := range r.shards {
		sh := &r.shards[i]
		sh.mu.Lock()
		if now.Before(sh.until) {
			s.Owned++
		}
		for _, c := range sh.topics {
			if c.subscribed {
				s.Topics++
			}
		}
		sh.mu.Unlock()
	}
	return s
}

var errSilent = errors.New("the replica that carries the topic is silent")
