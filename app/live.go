package app

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/venue/stream"
)

type live struct {
	Feed   *feed.Feed
	Client *stream.Client // nil if the venue has no stream
	id     string         // the id of Status
	// ended is closed when run has returned.
	ended chan struct{}
}

// openLive opens u.Live: it connects the stream to the feed, and the feed to the cache. If cfg has no URL, openLive opens no stream,
// and the protocol may be missing. linger is how long a topic stays open after its last feed.Watch was closed.
func (u *unit) openLive(cfg stream.Config, linger time.Duration) error {
	cfg.Protocol = cmp.Or(cfg.Protocol, &stream.Protocol{})
	state := feed.Config{
		Sink: u.Cache, Snapshots: cfg.Protocol.Snapshots, Clock: u.clock, Log: u.log, Topics: cfg.TopicsPerConnection * cfg.Connections, Linger: linger,
	}
	if u.Metrics != nil {
		state.Lag, cfg.Observer = u.Metrics.Stream().Lag, u.Metrics.Stream()
	}
	l := &live{Feed: feed.New(state), id: model.EncodeID("StreamStatus", u.name), ended: make(chan struct{})}
	u.Live = l
	if cfg.URL == "" {
		return nil
	}
	cfg.Market = u.Cache.CachedMarket
	client, err := stream.New(cfg, l.Feed)
	if err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	l.Client = client
	l.Feed.Connect(client)
	return nil
}

func (l *live) run(ctx context.Context) error {
	defer close(l.ended)
	if l.Client == nil {
		<-ctx.Done()
		return nil
	}
	return l.Client.Run(ctx)
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
		return model.StreamStatus{ID: l.id, State: model.StreamStateDisconnected}
	}
	s := l.Client.Stats()
	out := model.StreamStatus{
		ID: l.id, State: model.StreamState(s.State), Since: s.Since, Connections: s.Connections, Reconnects: int(s.Reconnects),
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
