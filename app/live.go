package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/internal/cache"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/telemetry"
	"oddsgraph/internal/venue/stream"
)

// live is the live half of the service: the venue's stream and the state that is kept of it.
type live struct {
	Feed   *feed.Feed
	Client *stream.Client // nil where the venue has no stream
}

// openLive wires the stream to the feed, and the feed to where queries read. Without a URL there is no stream; nothing is
// measured where metrics are nil. A topic without watches stays open for linger.
func openLive(cfg stream.Config, linger time.Duration, c *cache.Cache, metrics *telemetry.Metrics, log *slog.Logger, clock market.Clock) (*live, error) {
	state := feed.Config{
		Sink: c, Origin: c.Origin(), Clock: clock, Log: log, Topics: cfg.TopicsPerConnection * cfg.Connections, Linger: linger,
	}
	if metrics != nil {
		state.Lag, cfg.Observer = metrics.Stream().Lag, metrics.Stream()
	}
	l := &live{Feed: feed.New(state)}
	if cfg.URL == "" {
		return l, nil
	}
	cfg.Tokens = c.YesAndNo
	client, err := stream.New(cfg, l.Feed)
	if err != nil {
		return nil, fmt.Errorf("stream: %w", err)
	}
	l.Client = client
	l.Feed.Connect(client)
	return l, nil
}

// run follows the stream until ctx ends.
func (l *live) run(ctx context.Context) error {
	if l.Client == nil {
		<-ctx.Done()
		return nil
	}
	return l.Client.Run(ctx)
}

// Status is what is shown of the stream. A topic that waits for a snapshot after a gap makes a live stream RESYNCING.
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
