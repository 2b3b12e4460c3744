package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"oddsgraph/graph"
	"oddsgraph/internal/config"
	"oddsgraph/resolvers"
)

// check prints that a server would start with this configuration and the files that it names as they are now, or returns
// what is wrong. It starts nothing, binds no port and asks nobody.
func check(cfg *config.Config, log *slog.Logger, stdout io.Writer) error {
	front, err := newFront(cfg, graph.Config{Resolvers: &resolvers.Resolver{}}, log)
	if err != nil {
		return errors.Join(coherent(cfg), err)
	}
	files, err := openFiles(cfg, front, log)
	if err := errors.Join(coherent(cfg), err); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, "The configuration is in order:", files)
	return err
}

// coherent says which settings contradict each other.
func coherent(cfg *config.Config) error {
	if cfg.StreamURL != "" && cfg.Venue.URL == "" {
		return errors.New("--stream-url (ODDSGRAPH_STREAM_URL) is set without --venue-url (ODDSGRAPH_VENUE_URL); set both, or neither for the demo venue")
	}
	return nil
}
