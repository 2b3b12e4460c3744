package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/internal/cache"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/stream"
	"oddsgraph/internal/telemetry"
)

// live is the live half of the service: the venue's stream and the state that is kept of it.
type live struct {
	feed   *feed.Feed
	client *stream.Client // nil where the venue has no stream
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
	l := &live{feed: feed.New(state)}
	if cfg.URL == "" {
		return l, nil
	}
	cfg.Tokens = c.YesAndNo
	client, err := stream.New(cfg, l.feed)
	if err != nil {
		return nil, fmt.Errorf("stream: %w", err)
	}
	l.client = client
	l.feed.Connect(client)
	return l, nil
}

// run follows the stream until ctx ends.
func (l *live) run(ctx context.Context) error {
	if l.client == nil {
		<-ctx.Done()
		return nil
	}
	return l.client.Run(ctx)
}

// status is what is shown of the stream. A topic that waits for a snapshot after a gap makes a live stream RESYNCING.
func (l *live) status() model.StreamStatus {
	f := l.feed.Stats()
	if l.client == nil {
		return model.StreamStatus{State: model.StreamStateDisconnected}
	}
	s := l.client.Stats()
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
