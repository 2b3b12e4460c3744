package main

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"

	"oddsgraph/internal/config"
)

// reloader reads again on a signal what may change while the program runs: of the configuration the log level, and the
// files that it names. Each of them stays as it was where its new content can't be used.
type reloader struct {
	// read reads the whole configuration anew.
	read  func() (*config.Config, error)
	cfg   *config.Config // that the program was started with
	level *slog.LevelVar
	files *files
	log   *slog.Logger
}

// during reloads at each signal while serve runs.
func (r *reloader) during(ctx context.Context, signals <-chan os.Signal, serve func(context.Context) error) error {
	watched, stop := context.WithCancel(ctx)
	var g sync.WaitGroup
	defer g.Wait()
	defer stop()
	g.Go(func() {
		for {
			select {
			case <-watched.Done():
				return
			case <-signals:
				r.reload()
			}
		}
	})
	return serve(ctx)
}

// reload reads everything again and logs what came of it.
func (r *reloader) reload() {
	next, err := r.read()
	if err != nil {
		r.log.Error("the configuration is not in force as it is now", "error", err)
	} else {
		r.level.Set(next.Log.Level)
		later := slices.DeleteFunc(r.cfg.Differences(*next), func(flag string) bool { return flag == "log-level" })
		if len(later) > 0 {
			r.log.Warn("some settings have changed that only a restart puts into force", "settings", later)
		}
	}
	for _, err := range r.files.reload() {
		r.log.Error("a file is not in force as it is now", "error", err)
	}
	r.log.Info("read again: log level, accounts and trusted documents", "log_level", r.level.Level().String(), "files", r.files.String())
}
