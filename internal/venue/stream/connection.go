package stream

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"oddsgraph/internal/market/messages"
)

// restartSpread is the maximum random wait after a restart of the venue. Without this wait, all clients would connect at the same
// time.
const restartSpread = 10 * time.Second

// connection is a sequence of sockets. After the loss of a socket, it opens the next and subscribes to all its topics again. Only its
// goroutine calls the Handler for these topics.
type connection struct {
	client *Client
	number int
	// identity is the user topic of the connection. It is the zero topic if the connection is for public topics.
	identity messages.Topic
	// wake gets a value when dirty or resyncs has changed.
	wake chan struct{}

	// Client.mu protects the fields from topics to state.
	topics map[messages.Topic]*entry
	// subjects contains the number of watched topics of each subject (see Protocol.Subject).
	subjects map[string]int
	// dirty contains topics that were watched or unwatched. resyncs contains topics that need a snapshot.
	dirty, resyncs []messages.Topic
	state          State

	// Only the connection's goroutine uses the fields below. failures is the number of failures since a socket was open for
	// stableAfter. The backoff depends on failures.
	failures int
	// opened reports whether the connection has had an open socket. lostAt is the time of the first failure of the current outage.
	opened bool
	lostAt time.Time
}

func newConnection(c *Client, number int, identity messages.Topic) *connection {
	return &connection{
		client:   c,
		number:   number,
		identity: identity,
		wake:     make(chan struct{}, 1),
		topics:   make(map[messages.Topic]*entry),
		subjects: make(map[string]int),
		state:    StateConnecting,
	}
}

func (k *connection) isUser() bool { return k.identity.Channel == messages.ChannelUser }

func (k *connection) changeLoad(t messages.Topic, delta int) {
	s := k.subjectOf(t)
	if k.subjects[s] += delta; k.subjects[s] == 0 {
		delete(k.subjects, s)
	}
}

func (k *connection) subjectOf(t messages.Topic) string {
	if f := k.client.cfg.Protocol.Subject; f != nil {
		return f(t)
	}
	return string(t.Channel) + " " + t.ID
}

func (k *connection) load() int { return len(k.subjects) }

func (k *connection) carries(t messages.Topic) bool { return k.subjects[k.subjectOf(t)] > 0 }

func (k *connection) markDirty(t messages.Topic) {
	k.dirty = append(k.dirty, t)
	k.signal()
}

func (k *connection) signal() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *connection) watched() []entry {
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

func (k *connection) run(ctx context.Context) {
	for {
		live, err := k.serveOnce(ctx)
		if ctx.Err() != nil {
			k.client.setState(k, StateDisconnected)
			return
		}
		if errors.Is(err, errRetired) {
			return
		}
		k.client.setState(k, StateDisconnected)
		if k.isUser() && codeOf(err) == closeCredentials {
			k.client.refuseAll(k, errUnauthenticated)
		}
		wait := k.waitAfter(err, live)
		k.reportLoss(err, wait)
		if !k.pause(ctx, wait) {
			return
		}
	}
}

// serveOnce opens a socket and serves it until it ends. live is how long the socket was open after phaseHello.
func (k *connection) serveOnce(ctx context.Context) (live time.Duration, err error) {
	cfg := &k.client.cfg
	if k.releaseUnwatched() {
		return 0, errRetired
	}
	var header http.Header
	if cfg.Protocol.Header != nil {
		if header, err = cfg.Protocol.Header(k.client.path); err != nil {
			return 0, &disconnectError{"dial", err}
		}
	}
	dialing, cancel := context.WithTimeout(ctx, cfg.DialWithin)
	socket, err := cfg.Dial.Dial(dialing, cfg.URL, header)
	cancel()
	if err != nil {
		return 0, &disconnectError{"dial", err}
	}
	s := newSession(k, socket)
	err = s.run(ctx)
	if !s.liveAt.IsZero() {
		live = time.Since(s.liveAt)
	}
	return live, err
}

func (k *connection) waitAfter(err error, live time.Duration) time.Duration {
	if live >= stableAfter {
		k.failures = 0
	}
	switch codeOf(err) {
	case closeRestart:
		return time.Duration(k.client.cfg.Rand() * float64(restartSpread))
	case closeLimited:
		return k.client.cfg.LimitedWait
	}
	k.failures++
	wait := k.client.cfg.Backoff.Wait(k.failures, k.client.cfg.Rand())
	var refused *HandshakeError
	if errors.As(err, &refused) {
		wait = max(wait, refused.RetryAfter)
	}
	return wait
}

// reportLoss counts and logs a failure. The first failure of an outage is logged as a warning.
func (k *connection) reportLoss(err error, wait time.Duration) {
	reason := reasonOf(err)
	k.client.cfg.Observer.Reconnect(reason)
	level := slog.LevelDebug
	if k.lostAt.IsZero() {
		level = slog.LevelWarn
		k.lostAt = time.Now()
	}
	k.client.log.Log(context.Background(), level, "the stream is interrupted", "connection", k.number, "user", k.isUser(),
		"reason", reason, "error", err.Error(), "wait", wait)
}

// reportOpen sets the state of the connection to StateLive, and logs the open socket and the outage that has ended.
func (k *connection) reportOpen() {
	if k.opened {
		k.client.count.reconnects.Add(1)
	}
	attrs := []any{"connection", k.number, "user", k.isUser()}
	if !k.lostAt.IsZero() {
		attrs = append(attrs, "outage", time.Since(k.lostAt))
	}
	k.client.log.Info("the stream is open", attrs...)
	k.opened, k.lostAt = true, time.Time{}
	k.client.setState(k, StateLive)
}

func (k *connection) hasTopics() bool {
	k.client.mu.Lock()
	defer k.client.mu.Unlock()
	return len(k.topics) > 0
}

// resubscribeAll marks all topics as dirty, in the order in which they were watched, and discards the resyncs of the old socket.
func (k *connection) resubscribeAll() {
	k.client.mu.Lock()
	defer k.client.mu.Unlock()
	k.dirty = slices.AppendSeq(k.dirty[:0], maps.Keys(k.topics))
	slices.SortFunc(k.dirty, func(a, b messages.Topic) int { return cmp.Compare(k.topics[a].turn, k.topics[b].turn) })
	k.resyncs = nil
}

func (k *connection) pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		if k.releaseUnwatched() {
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

// releaseUnwatched releases unwatched topics while nothing is subscribed. It reports whether the connection was retired.
func (k *connection) releaseUnwatched() (retired bool) {
	c := k.client
	c.mu.Lock()
	for _, e := range k.topics {
		if !e.wanted {
			c.release(e)
		}
	}
	k.dirty, k.resyncs = nil, nil
	empty := len(k.topics) == 0
	c.mu.Unlock()
	return empty && c.retire(k)
}
