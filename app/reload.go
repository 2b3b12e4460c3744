package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

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
	// hungUp tells of a signal that it came since the terminal was closed; nil means that none has.
	hungUp func() bool
}

// closedTerminal returns what tells that the terminal which the program has now was closed. There is none to close where the
// program was told not to mind, as by nohup.
func closedTerminal() (hungUp func() bool) {
	opened := func() error {
		tty, err := os.Open("/dev/tty")
		if err == nil {
			_ = tty.Close()
		}
		return err
	}
	if signal.Ignored(syscall.SIGHUP) || opened() != nil {
		return nil
	}
	return func() bool { return errors.Is(opened(), syscall.ENXIO) }
}

// during reloads at each signal while serve runs, and ends it when the terminal was closed.
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
				if r.hungUp != nil && r.hungUp() {
					r.log.Info("the terminal was closed")
					stop()
					return
				}
				r.reload()
			}
		}
	})
	return serve(watched)
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
