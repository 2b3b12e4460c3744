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
	"time"

	"oddsgraph/internal/config"
)

// reloader reads the log level and the configured files again on a signal. If the new content of a file is invalid, the
// previous content stays in use.
type reloader struct {
	read  func() (*config.Config, error)
	cfg   *config.Config // configuration at the start
	level *slog.LevelVar
	files *files
	log   *slog.Logger
	// terminalClosed reports whether the program's terminal was closed. It is nil if watchTerminal returned nil.
	terminalClosed func() bool
	outcome        *reloads
}

// reloads is the outcome of the last reload. It is safe for concurrent use.
type reloads struct {
	mu     sync.Mutex
	at     time.Time
	failed bool
}

func (r *reloads) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at, r.failed = time.Now(), err != nil
}

// last returns the zero time before the first reload.
func (r *reloads) last() (at time.Time, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at, r.failed
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

func (r *reloader) reload() {
	var needRestart []string
	next, err := r.read()
	if err == nil {
		r.level.Set(next.Log.Level)
		needRestart = slices.DeleteFunc(r.cfg.Differences(*next), func(flag string) bool { return flag == "log-level" })
	}
	err = errors.Join(append(r.files.reload(), err)...)
	r.outcome.note(err)
	level, message := slog.LevelInfo, "reloaded log level and files"
	attrs := []any{"log_level", r.level.Level().String(), "files", r.files.String()}
	if len(needRestart) > 0 {
		level, message = slog.LevelWarn, "reloaded, but some changed settings need a restart"
		attrs = append(attrs, "settings", needRestart)
	}
	if err != nil {
		level, message = slog.LevelError, "the reload failed: what is invalid was not reloaded, and its earlier content stays in use"
		attrs = append(attrs, "error", err)
	}
	r.log.Log(context.Background(), level, message, attrs...)
}
