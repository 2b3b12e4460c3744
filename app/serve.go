package app

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Serve serves until ctx ends or a part of the service fails. Then it stops the parts in this order: readiness, requests and
// subscriptions, the venues, the demo venues. Then it sends the remaining traces. The private address stops last.
func (s *App) Serve(ctx context.Context) error {
	venueCtx, stopVenue := context.WithCancel(context.WithoutCancel(ctx))
	defer stopVenue()
	g, ctx := errgroup.WithContext(ctx)
	for _, u := range s.Venues {
		if u.demo != nil {
			s.log.Info("no venue is configured: serving the demo venue", "venue", u.demo.URL())
			g.Go(func() error { return u.demo.serve(venueCtx) })
		}
		u.start(venueCtx, g)
	}
	g.Go(func() error { s.Files.watch(venueCtx); return nil })
	adminCtx, stopAdmin := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAdmin()
	attrs := []any{"url", s.URL(), "version", BuildVersion()}
	if s.Admin != nil {
		g.Go(func() error { return s.Admin.serve(adminCtx) })
		attrs = append(attrs, "admin", s.Admin.URL())
	}
	s.log.Info("oddsgraph is ready", attrs...)
	front, closeFront := context.WithCancel(venueCtx)
	g.Go(func() error {
		defer closeFront()
		s.leaveBalancers(ctx)
		return nil
	})
	g.Go(func() error {
		// Subscriptions do not end by themselves. So drain ends them while Server.serve waits for running requests.
		drained := make(chan struct{})
		var began time.Time
		drain := sync.OnceFunc(func() {
			defer close(drained)
			began = time.Now()
			s.drain(s.shutdownTimeout)
		})
		context.AfterFunc(front, drain)
		err := s.Server.serve(front)
		drain()
		<-drained
		var ends sync.WaitGroup
		for _, u := range s.Venues {
			ends.Go(u.end)
		}
		ends.Wait()
		stopVenue()
		s.SendTraces(max(s.shutdownTimeout-time.Since(began), time.Second))
		stopAdmin()
		if err == nil {
			s.log.Info("stopped", "took", time.Since(began).Round(time.Millisecond))
		}
		return err
	})
	return g.Wait()
}

// leaveBalancers waits until ctx ends. Then it makes this process unready, and waits until load balancers have noticed it.
func (s *App) leaveBalancers(ctx context.Context) {
	<-ctx.Done()
	s.draining.Store(true)
	s.log.Info("draining: /readyz answers 503", "drain_delay", s.drainDelay)
	s.Pause(s.drainDelay)
	open := s.API.Stats()
	s.log.Info("stopping: no new connections are accepted", "operations", open.Executing, "websockets", open.Sockets.Sockets,
		"event_streams", open.Streams, "timeout", s.shutdownTimeout)
}

// drain ends subscriptions, event streams and WebSockets, and waits until all of them have ended. After the timeout, it
// closes the WebSockets whose queries and mutations are still running.
func (s *App) drain(timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	s.API.Drain(ctx)
}
