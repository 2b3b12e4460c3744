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

// reloader reads the log level and the configured files again on a signal. If the new content of a file is invalid, the
// previous content stays in use.
type reloader struct {
	// read parses the configuration again.
	read  func() (*config.Config, error)
	cfg   *config.Config // configuration at the start
	level *slog.LevelVar
	files *files
	log   *slog.Logger
	// terminalClosed reports whether the program's terminal was closed. It is nil if watchTerminal returned nil.
	terminalClosed func() bool
}

// watchTerminal returns a function that reports whether the program's terminal was closed. It returns nil if the program has no
// terminal or ignores SIGHUP, for example under nohup.
func watchTerminal() (terminalClosed func() bool) {
	openTerminal := func() error {
		tty, err := os.Open("/dev/tty")
		if err == nil {
			_ = tty.Close()
		}
		return err
	}
	if signal.Ignored(syscall.SIGHUP) || openTerminal() != nil {
		return nil
	}
	return func() bool { return errors.Is(openTerminal(), syscall.ENXIO) }
}

// run calls serve, and calls reload at each signal. If the terminal was closed, run cancels the context of serve instead.
func (r *reloader) run(ctx context.Context, signals <-chan os.Signal, serve func(context.Context) error) error {
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
				if r.terminalClosed != nil && r.terminalClosed() {
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

// reload reads the configuration and the files again and logs the outcome.
func (r *reloader) reload() {
	next, err := r.read()
	if err != nil {
		r.log.Error("the configuration is invalid and was not reloaded", "error", err)
	} else {
		r.level.Set(next.Log.Level)
		needRestart := slices.DeleteFunc(r.cfg.Differences(*next), func(flag string) bool { return flag == "log-level" })
		if len(needRestart) > 0 {
			r.log.Warn("some changed settings need a restart", "settings", needRestart)
		}
	}
	for _, err := range r.files.reload() {
		r.log.Error("a file is invalid and was not reloaded", "error", err)
	}
	r.log.Info("reloaded log level, accounts and trusted documents", "log_level", r.level.Level().String(), "files", r.files.String())
}
