package stream

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/wire"
)

const (
	// restartSpread is what the clients of a restarting venue spread over.
	restartSpread = 10 * time.Second
	// slowAgain: a second close for slowness within it is no accident, and is not followed by connecting at once.
	slowAgain = 10 * time.Second
)

// connection carries topics over one socket after the other. Its goroutine is the only one that calls the Handler for
// them.
type connection struct {
	client *Client
	number int
	// identity is the user topic that the connection is for; the zero topic on public ones.
	identity market.Topic
	// wake tells the goroutine that something below has changed.
	wake chan struct{}

	// Client.mu protects these.
	topics map[market.Topic]*entry
	// load counts the wanted among topics.
	load int
	// dirty are topics that were watched or unwatched, resyncs those to ask a snapshot of, and drop asks for another
	// socket.
	dirty, resyncs []market.Topic
	drop           bool
	state          State

	// The goroutine's own; failures counts the waits in a row since a socket stood.
	failures int
	lastSlow time.Time
	// opened tells that a socket was open before, failing that the loss is logged already.
	opened, failing bool
	// lost is since when there is no socket, why the first reason for that, and tries counts what failed since.
	lost  time.Time
	why   string
	tries int
}

func newConnection(c *Client, number int, identity market.Topic) *connection {
	return &connection{
		client:   c,
		number:   number,
		identity: identity,
		wake:     make(chan struct{}, 1),
		topics:   make(map[market.Topic]*entry),
		state:    StateConnecting,
	}
}

func (k *connection) user() bool { return k.identity.Channel == market.ChannelUser }

// touch tells the goroutine to look at a topic. Client.mu is held.
func (k *connection) touch(t market.Topic) {
	k.dirty = append(k.dirty, t)
	k.poke()
}

func (k *connection) poke() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// assigned returns copies of the entries of the topics that are wanted.
func (k *connection) assigned() []entry {
	k.client.mu.Lock()
	defer k.client.mu.Unlock()
	out := make([]entry, 0, len(k.topics))
	for _, e := range k.topics {
		if e.wanted {
			out = append(out, *e)
		}
	}
	return out
}

// run opens one socket after the other until ctx ends or nobody needs the connection.
func (k *connection) run(ctx context.Context) {
	for {
		live, err := k.once(ctx)
		if ctx.Err() != nil {
			k.client.setState(k, StateDisconnected)
			return
		}
		if errors.Is(err, errRetired) {
			return
		}
		k.client.setState(k, StateDisconnected)
		if k.user() && codeOf(err) == closeCredentials {
			k.client.refuseAll(k, errUnauthenticated)
		}
		wait := k.waitAfter(err, live)
		k.report(err, wait)
		if !k.pause(ctx, wait) {
			return
		}
	}
}

// once opens a socket and serves it to its end. live is for how long topics could be subscribed on it.
func (k *connection) once(ctx context.Context) (live time.Duration, err error) {
	cfg := &k.client.cfg
	if k.settle() {
		return 0, errRetired
	}
	dialing, cancel := context.WithTimeout(ctx, cfg.DialWithin)
	socket, err := cfg.Dial.Dial(dialing, cfg.URL)
	cancel()
	if err != nil {
		return 0, &lost{"dial", err}
	}
	s := newSession(k, socket)
	err = s.run(ctx)
	if !s.liveAt.IsZero() {
		live = time.Since(s.liveAt)
	}
	return live, err
}

// waitAfter returns how long to wait before the next socket is opened.
func (k *connection) waitAfter(err error, live time.Duration) time.Duration {
	if live >= k.client.cfg.StableAfter {
		k.failures = 0
	}
	switch codeOf(err) {
	case closeRestart:
		return time.Duration(k.client.cfg.Rand() * float64(restartSpread))
	case closeLimited:
		return k.client.cfg.LimitedWait
	case closeSlow:
		again := !k.lastSlow.IsZero() && time.Since(k.lastSlow) < slowAgain
		k.lastSlow = time.Now()
		if !again {
			return 0
		}
	}
	k.failures++
	cfg := &k.client.cfg
	wait := wire.Backoff{Min: cfg.BackoffMin, Max: cfg.BackoffMax}.Wait(k.failures, cfg.Rand())
	var refused *HandshakeError
	if errors.As(err, &refused) {
		wait = max(wait, refused.RetryAfter)
	}
	return wait
}

// report counts and logs a loss; of an outage only the first one is a warning.
func (k *connection) report(err error, wait time.Duration) {
	reason := reasonOf(err)
	k.client.cfg.Observer.Reconnect(reason)
	level := slog.LevelDebug
	if !k.failing {
		level = slog.LevelWarn
		k.lost, k.why, k.tries = time.Now(), reason, 0
	}
	k.failing = true
	k.tries++
	k.client.log.Log(context.Background(), level, "the stream is interrupted", "connection", k.number, "user", k.user(),
		"reason", reason, "error", err.Error(), "wait", wait)
}

// up takes note of an open socket, and tells of the outage that it ends.
func (k *connection) up() {
	if k.opened {
		k.client.count.reconnects.Add(1)
	}
	about := []any{"connection", k.number, "user", k.user()}
	if k.failing {
		about = append(about, "outage", time.Since(k.lost), "reason", k.why, "failures", k.tries, "topics", k.count())
	}
	k.client.log.Info("the stream is open", about...)
	k.opened, k.failing = true, false
	k.client.setState(k, StateLive)
}

// count returns how many topics are to be subscribed.
func (k *connection) count() int {
	k.client.mu.Lock()
	defer k.client.mu.Unlock()
	return len(k.topics)
}

// login returns what a connection with an identity authenticates with; ok is false where there is nothing.
func (k *connection) login() (e entry, ok bool) {
	k.client.mu.Lock()
	defer k.client.mu.Unlock()
	for _, e := range k.topics {
		if e.wanted && e.creds != nil && k.user() {
			return *e, true
		}
	}
	return entry{}, false
}

// renew puts all topics down to be subscribed. What was asked of the socket before is void.
func (k *connection) renew() {
	k.client.mu.Lock()
	defer k.client.mu.Unlock()
	k.dirty = slices.AppendSeq(k.dirty[:0], maps.Keys(k.topics))
	slices.SortFunc(k.dirty, func(a, b market.Topic) int { return cmp.Compare(k.topics[a].turn, k.topics[b].turn) })
	k.resyncs, k.drop = nil, false
}

// pause waits without a socket. It reports whether there is to be another one.
func (k *connection) pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		if k.settle() {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-k.wake:
		}
	}
}

// settle lets go of topics that are no longer watched, while there is no socket. It reports whether the connection is at
// its end.
func (k *connection) settle() (retired bool) {
	c := k.client
	c.mu.Lock()
	for _, e := range k.topics {
		if !e.wanted {
			c.release(e)
		}
	}
	k.dirty, k.resyncs, k.drop = nil, nil, false
	empty := len(k.topics) == 0
	c.mu.Unlock()
	return empty && c.retire(k)
}
