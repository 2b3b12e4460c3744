package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"oddsgraph/httpapi/quota"
)

// Server is an HTTP server on a bound port.
type Server struct {
	net.Listener
	bounded         *quota.Listener
	HTTP            *http.Server
	shutdownTimeout time.Duration
	// executing returns the number of running GraphQL operations. It is nil for a server that executes no operations.
	executing func() int
	logger    *slog.Logger
}

// WriteTimeout bounds the time from the end of a request's header until the response is written. Handlers whose responses take
// longer set their own deadlines.
const WriteTimeout = 30 * time.Second

// listen binds an address and returns a server that does not accept connections yet. Errors begin with the name of the flag for the
// address. shutdownTimeout is how long the server waits for running requests when it stops.
func listen(flag, address string, limits quota.ConnectionLimits, h http.Handler, log *slog.Logger, shutdownTimeout time.Duration) (*Server, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: %w; give it another port, or 0 for one that is free", flag, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	bounded := quota.Listen(l, limits)
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second, // from the first byte of a request to the last byte of its body
		WriteTimeout:      WriteTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	return &Server{bounded, bounded, server, shutdownTimeout, nil, log}, nil
}

func (l *Server) URL() string { return "http://" + l.Addr().String() }

// serve accepts connections until ctx ends. Then it waits until all requests have ended or l.shutdownTimeout has passed, and closes the
// remaining connections. It returns an error if a GraphQL operation is still running after this wait. It returns no error if
// no operation is running, and clients have merely not read their responses. serve also returns an error if it cannot accept
// connections.
func (l *Server) serve(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := l.HTTP.Serve(l.Listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.shutdownTimeout)
		defer cancel()
		err := l.HTTP.Shutdown(drain)
		switch {
		case err == nil:
			return nil
		case l.executing == nil:
			return l.HTTP.Close()
		case l.executing() == 0:
			l.logger.Warn("closed connections whose clients did not read their responses", "connections", l.bounded.Stats().Open)
			return l.HTTP.Close()
		}
		return errors.Join(fmt.Errorf("waiting for requests under way: %w", err), l.HTTP.Close())
	})
	return g.Wait()
}
