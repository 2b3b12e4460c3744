package relay

import (
	"cmp"
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
	// LeaseFor is the duration of a lease in the Bus. leaseMargin is the last part of the lease, in which the owner sends no more
	// frames.
	LeaseFor    = 600 * time.Millisecond
	leaseMargin = 100 * time.Millisecond
	// roundEvery is the time between two rounds of the relay's periodic work. A round renews the leases and sends beats.
	roundEvery = 150 * time.Millisecond
	// helloEvery is the time between two hellos of a replica. The other replicas forget a replica when its last hello is older than
	// liveFor.
	helloEvery = 500 * time.Millisecond
	liveFor    = 2 * time.Second
	// If the owner of a shard has sent no frame for staleAfter, the topics of the shard are down.
	staleAfter = 750 * time.Millisecond
	// If the owner of a shard has sent no frame for takeAfter, the replica with rank 0 requests the lease of the shard; see
	// periodic.rank. A replica with rank n waits n times waitForRank longer.
	takeAfter   = 300 * time.Millisecond
	waitForRank = 300 * time.Millisecond
	// If a replica has not received its own hello for renewBusAfter, it opens another connection to the Bus.
	renewBusAfter = 3 * time.Second
	// A replica that cannot reach the Bus for aloneAfter subscribes to all its topics itself. When it can reach the Bus again, it
	// waits for a random part of backWithin before it shares the stream again.
	aloneAfter = 10 * time.Second
	backWithin = 30 * time.Second
	// handOverAfter is how long an owner keeps a shard although another replica ranks before the owner. Afterwards the owner releases
	// the lease. restFor is the minimum time until the former owner requests the lease again.
	handOverAfter = 10 * time.Second
	restFor       = 3 * time.Second
	// wantEvery is the time between two calls of Bus.Want for the same topics. The Bus forgets a topic when the last call for the
	// topic is older than WantFor.
	wantEvery = 10 * time.Second
	WantFor   = 25 * time.Second
	// A request for a snapshot may be lost. askAgain is the time after which the request is repeated; the time doubles with each
	// repetition. After maxAsks repetitions, only the feed can request the snapshot again.
	askAgain = 300 * time.Millisecond
	maxAsks  = 3
	// reopenAfter is the average wait before another connection to the Bus is opened.
	reopenAfter = 200 * time.Millisecond
)

const (
	// maxOut bounds the frames that wait to be sent. maxBatch bounds the frames in one call of Bus.Publish.
	maxOut, maxBatch = 2048, 256
	// maxReplicas bounds the number of known replicas.
	maxReplicas = 1000
	// maxTopics bounds the topics in one frameWant or frameResync.
	maxTopics = 100
)

// Bus connects the replicas: it transmits frames, as texts, and stores the leases. All methods except Receive return after a short
// time.
type Bus interface {
	// Lease requests the leases of shards for a replica, each for LeaseFor. It renews a lease that the replica has, and takes a free
	// lease. shards maps each shard to the highest fence that the replica has seen. Lease returns the fences of the leases that the
	// replica now has. A new lease gets a fence that is higher than the given one and higher than the fences of all earlier leases of
	// the shard.
	Lease(ctx context.Context, replica string, shards map[int]uint64) (map[int]uint64, error)
	// Release ends the leases of shards that a replica has.
	Release(ctx context.Context, replica string, shards []int) error
	// Want stores the wanted topics of each shard, as texts, for WantFor. Wanted returns the topics that any replica wants in the
	// given shards.
	Want(ctx context.Context, members map[int][]string) error
	Wanted(ctx context.Context, shards []int) ([]string, error)
	// Publish sends texts to all replicas, including the sender. Some texts may be lost. The texts that arrive are in order.
	Publish(ctx context.Context, texts []string) error
	// Receive opens a new connection. It calls handle with each text until the connection fails or ctx ends.
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
	Up(topics []messages.Topic)
	Acknowledged(topics []messages.Topic)
	Down(topics []messages.Topic, err error)
	Message(m *messages.Message)
	Heartbeat(epoch string, seqs map[messages.Topic]uint64)
	Refused(t messages.Topic, err error)
	// Sent tells the feed the last number that the owner has used for each topic. With these numbers, the feed detects lost messages.
	// The parameter epoch is the fence of the owner.
	Sent(epoch uint64, last map[messages.Topic]uint64)
	// Snapshot returns the state of a topic as one message, or nil if the feed has no complete state.
	Snapshot(t messages.Topic) *messages.Message
	// Hold opens a topic for other replicas and keeps it open until the returned Hold is closed.
	Hold(t messages.Topic) (Hold, error)
}

// Hold is a topic that is kept open for other replicas.
type Hold interface {
	// IsOnlyWatch reports whether this replica watches the topic for other replicas, but not for itself. Ended reports whether the
	// feed has closed the topic.
	IsOnlyWatch() bool
	Ended() bool
	Close()
}

// Config configures a Relay.
type Config struct {
	// Replica is the name of this process among the replicas. It consists of letters and digits.
	Replica string
	// Topics bounds the number of public topics that the feed watches on this replica, including the topics that it holds for other
	// replicas.
	Topics int
	Log    *slog.Logger
}

// Stats describes a Relay. Owned, Topics and Alone are present values. The other fields count since the start.
type Stats struct {
	// Owned is the number of shards whose lease this replica has. Topics is the number of public topics to which this replica's own
	// client is subscribed.
	Owned, Topics int
	// Alone reports that this replica subscribes to all its topics itself, because it could not reach the other replicas.
	Alone bool
	// Takeovers counts the new leases that this replica got. Fenced counts the frames that were dropped because of an old fence. Lost
	// counts the frames that were not sent. Reopened counts how often a connection to the Bus ended or could not be opened.
	Takeovers, Fenced, Lost, Reopened uint64
}

// Relay connects a feed to the client of the venue's stream. The feed calls it to watch topics, and the client calls it with
// messages. It is safe for concurrent use. Call Connect before Run.
type Relay struct {
	cfg    Config
	bus    Bus
	client Client
	feed   Feed
	log    *slog.Logger
	// own is the beginning of the JSON object in each of this replica's frames.
	own  string
	out  chan outgoing
	wake chan struct{}
	// alone is true while this replica subscribes to all its topics itself and ignores the frames of owners.
	alone atomic.Bool
	// ownHelloAt is the time when this replica last received its own hello, in nanoseconds after started. It is 0 before the first
	// hello.
	ownHelloAt atomic.Int64
	started    time.Time

	takeovers, fenced, lost, reopened atomic.Uint64

	// Locks are taken in this order: a shard's lock, the feed's locks, mu. The feed holds its own locks when it calls the relay, so
	// Watch, Unwatch, Resync and Reconnect take only mu.
	shards [shardCount]shard
	mu     sync.Mutex
	// watched contains the topics that the feed watches. The other sets contain topics of the feed's calls since the last takeCalls:
	// changed is for Watch and Unwatch, resyncs for Resync, and reconnected for Reconnect. resyncs also contains topics whose
	// subscription has become live.
	watched                       map[messages.Topic]struct{}
	changed, resyncs, reconnected map[messages.Topic]struct{}
	// remote contains the topics of this replica's shards that any replica wants, at most Config.Topics of them. It maps each topic to
	// the time when this replica forgets the topic. live maps the name of each replica to the time of its last hello.
	remote map[messages.Topic]time.Time
	live   map[string]time.Time
}

// outgoing is a frame that must be sent before the time until. If until is zero, the frame may always be sent.
type outgoing struct {
	text  string
	until time.Time
}

// New returns a Relay over a bus.
func New(cfg Config, bus Bus) *Relay {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	r := &Relay{
		own: `{"f":"` + cfg.Replica + `"`, cfg: cfg, bus: bus, log: cfg.Log, out: make(chan outgoing, maxOut), wake: make(chan struct{}, 1), started: time.Now(),
		watched: make(map[messages.Topic]struct{}), remote: make(map[messages.Topic]time.Time), live: make(map[string]time.Time),
	}
	r.changed, r.resyncs, r.reconnected = make(map[messages.Topic]struct{}), make(map[messages.Topic]struct{}), make(map[messages.Topic]struct{})
	for i := range r.shards {
		r.shards[i].topics = make(map[messages.Topic]*watchedTopic)
	}
	return r
}

// Connect sets the client and the feed. Call it once, before Run and before the feed is used.
func (r *Relay) Connect(c Client, f Feed) { r.client, r.feed = c, f }

// Run works until ctx ends, releases the leases, and returns after its goroutines have ended.
func (r *Relay) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { r.send(ctx) })
	p := newPeriodic(r)
	receiving, stop := context.WithCancel(context.WithoutCancel(ctx)) // Bus.Release needs the connection after ctx has ended
	running.Go(func() { r.receive(receiving, p.reopen) })
	p.run(ctx)
	stop()
	running.Wait()
}

var errFull error = market.Errorf(market.CodeRateLimited, "the stream has no room for another topic")

// Watch subscribes to a topic until Unwatch is called. The feed calls Watch.
func (r *Relay) Watch(t messages.Topic, c *market.Credentials) error {
	if t.Channel == messages.ChannelUser {
		return r.client.Watch(t, c)
	}
	if !isPublic(t) {
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

// Resync requests a snapshot of a topic from the owner of its shard. If this replica is the owner, it requests the snapshot from
// the venue.
func (r *Relay) Resync(t messages.Topic) { r.request(r.resyncs, t, r.client.Resync) }

// Reconnect closes the connection to the venue over which this replica's client gets a topic. If the topic comes from another
// replica, Reconnect requests a snapshot instead.
func (r *Relay) Reconnect(t messages.Topic) { r.request(r.reconnected, t, r.client.Reconnect) }

// request adds a watched topic to a set for the next takeCalls. If the topic is a user topic, request only calls forward.
func (r *Relay) request(set map[messages.Topic]struct{}, t messages.Topic, forward func(messages.Topic)) {
	if t.Channel == messages.ChannelUser {
		forward(t)
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

// take returns the topics of a set and clears the set. Relay.mu must be locked.
func take(set map[messages.Topic]struct{}) []messages.Topic {
	topics := slices.Collect(maps.Keys(set))
	clear(set)
	return topics
}

// publish queues a frame, which must be sent before the deadline. A zero deadline sets no limit. publish never waits: if the queue
// is full, the frame is lost.
func (r *Relay) publish(f *frame, deadline time.Time) {
	f.From = r.cfg.Replica
	text, err := f.encode()
	if err != nil {
		r.log.Error("a frame cannot be encoded", "error", err)
		return
	}
	select {
	case r.out <- outgoing{text, deadline}:
	default:
		r.lost.Add(1)
	}
}

// send sends the queued frames until ctx ends. It checks outgoing.until just before it sends: if the process was suspended, another
// replica may have taken the lease.
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

// receive receives frames until ctx ends. It opens a new connection after each failure and for each value in reopen.
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
		_ = r.bus.Receive(open, r.handle) // ignore the error: checkBus finds that hellos are missing
		closeIt()
		watching.Wait()
		r.reopened.Add(1)
		select {
		case <-time.After(reopenAfter/2 + rand.N(reopenAfter)):
		case <-ctx.Done():
		}
	}
}

// Stats returns the present counters and numbers.
func (r *Relay) Stats() Stats {
	s := Stats{
		Alone: r.alone.Load(), Takeovers: r.takeovers.Load(), Fenced: r.fenced.Load(), Lost: r.lost.Load(), Reopened: r.reopened.Load(),
	}
	now := time.Now()
	r.lockEach(func(_ int, sh *shard) {
		if now.Before(sh.until) {
			s.Owned++
		}
		for _, c := range sh.topics {
			if c.subscribed {
				s.Topics++
			}
		}
	})
	return s
}

var errSilent = errors.New("the replica that sends the topic's messages is silent")
