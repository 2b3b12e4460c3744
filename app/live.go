package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/internal/cache"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/fleet"
	"oddsgraph/internal/fleet/relay"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/telemetry"
	"oddsgraph/internal/venue/stream"
)

// live contains the client of the venue's stream, and the feed, which maintains the state of the topics.
type live struct {
	Feed   *feed.Feed
	Client *stream.Client // nil if the venue has no stream
	// Relay shares the stream with other replicas. It is nil without --shared-stream or without a stream.
	Relay *relay.Relay
	// ended is closed when run has returned.
	ended chan struct{}
}

// openLive connects the stream to the feed, and the feed to the cache. If cfg has no URL, openLive opens no stream. metrics may be
// nil. linger is how long a topic stays open after its last feed.Watch was closed. shared is nil if the replica does not share its
// stream.
func openLive(cfg stream.Config, linger time.Duration, c *cache.Cache, metrics *telemetry.Metrics, log *slog.Logger, clock market.Clock, shared *sharedStream) (*live, error) {
	state := feed.Config{
		Sink: c, Origin: c.Origin(), Clock: clock, Log: log, Topics: cfg.TopicsPerConnection * cfg.Connections, Linger: linger,
	}
	if metrics != nil {
		state.Lag, cfg.Observer = metrics.Stream().Lag, metrics.Stream()
	}
	l := &live{Feed: feed.New(state), ended: make(chan struct{})}
	if cfg.URL == "" {
		return l, nil
	}
	cfg.Tokens = c.YesAndNo
	var handler stream.Handler = l.Feed
	if shared != nil {
		l.Relay = relay.New(relay.Config{Replica: shared.fleet.Replica(), Topics: state.Topics, Log: log}, shared.fleet.Bus())
		handler, cfg.Connections = l.Relay, max(cfg.Connections/shared.replicas, 1)
	}
	client, err := stream.New(cfg, handler)
	if err != nil {
		return nil, fmt.Errorf("stream: %w", err)
	}
	l.Client = client
	if l.Relay == nil {
		l.Feed.Connect(client)
		return l, nil
	}
	l.Relay.Connect(client, relayedFeed{l.Feed})
	l.Feed.Connect(l.Relay)
	return l, nil
}

// sharedStream contains what openLive needs if several replicas share the stream.
type sharedStream struct {
	fleet    *fleet.Fleet
	replicas int // maximum number of replicas
}

// relayedFeed adapts a feed to the interface relay.Feed.
type relayedFeed struct{ *feed.Feed }

// Hold implements relay.Feed.
func (f relayedFeed) Hold(t messages.Topic) (relay.Hold, error) { return f.Feed.Hold(t) }

// run runs the stream until ctx ends.
func (l *live) run(ctx context.Context) error {
	defer close(l.ended)
	if l.Client == nil {
		<-ctx.Done()
		return nil
	}
	var relaying sync.WaitGroup
	if l.Relay != nil {
		relaying.Go(func() { l.Relay.Run(ctx) })
	}
	err := l.Client.Run(ctx)
	relaying.Wait()
	return err
}

// end closes the feed and calls stop, which cancels the context of run. It returns when run has returned.
func (l *live) end(stop context.CancelFunc) {
	l.Feed.Close()
	stop()
	<-l.ended
}

// Status returns the state of the stream. Without a stream the state is DISCONNECTED. The state RESYNCING means that a topic waits
// for a snapshot after a gap.
func (l *live) Status() model.StreamStatus {
	f := l.Feed.Stats()
	if l.Client == nil {
		return model.StreamStatus{State: model.StreamStateDisconnected}
	}
	s := l.Client.Stats()
	out := model.StreamStatus{
		State: model.StreamState(s.State), Since: s.Since, Connections: s.Connections, Reconnects: int(s.Reconnects),
		Resyncs: int(f.Resyncs), WatchedTokens: f.Tokens,
	}
	if !s.LastMessageAt.IsZero() {
		out.LastMessageAt = &s.LastMessageAt
	}
	if s.State == stream.StateLive && f.Resyncing > 0 {
		out.State = model.StreamStateResyncing
	}
	return out
}
