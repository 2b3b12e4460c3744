package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/httpapi"
	"oddsgraph/internal/market"
	"oddsgraph/internal/stream"
)

// live is the live half of the service: the venue's stream and the state that is kept of it.
type live struct {
	feed   *feed.Feed
	client *stream.Client // nil where the venue has no stream

	// clients are the requests that stay open for events; left ends them.
	clients sync.WaitGroup
	left    context.Context
	leave   context.CancelFunc
}

const (
	// farewell is how long subscriptions have to tell their clients why they end.
	farewell = 250 * time.Millisecond
	// handshake is how long clients have to answer that.
	handshake = time.Second
)

// openLive wires the stream to the feed, and the feed to where queries read.
func openLive(url string, sink feed.Sink, log *slog.Logger, clock market.Clock) (*live, error) {
	l := &live{feed: feed.New(feed.Config{
		Sink: sink, Clock: clock, Log: log, Topics: stream.DefaultTopicsPerConnection * stream.DefaultConnections,
	})}
	l.left, l.leave = context.WithCancel(context.Background())
	if url == "" {
		return l, nil
	}
	client, err := stream.New(stream.Config{URL: url, Log: log}, l.feed)
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

// serve lets a handler's subscriptions last as long as the live half does.
func (l *live) serve(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !httpapi.Streams(r) {
			h.ServeHTTP(w, r)
			return
		}
		l.clients.Add(1)
		defer l.clients.Done()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(l.left, cancel)()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// close ends all subscriptions, which a server that stops does not do by itself, since they last as long as their clients
// like.
func (l *live) close() {
	l.feed.Close()
	time.AfterFunc(farewell, l.leave)
}

// wait waits for the end of the subscriptions after close, but not for clients that do not answer.
func (l *live) wait() {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		l.clients.Wait()
	}()
	select {
	case <-gone:
	case <-time.After(farewell + handshake):
	}
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
