package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"oddsgraph/graph"
	"oddsgraph/graph/sdl"
	"oddsgraph/internal/config"
	"oddsgraph/internal/market"
	"oddsgraph/internal/telemetry"
	"oddsgraph/web"
)

// version is set by the build.
var version = ""

// LogLines is the maximum size, in bytes, of the log lines that wait to be written. In addition, the lines that are being written
// may use up to LogLines bytes.
const LogLines = 4 << 20

// Main runs the command in the program's arguments. SIGINT and SIGTERM end the command. After an error Main prints the error and
// exits with status 1. licenses contains the licence texts of the program's Go code.
func Main(licenses string) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := Run(ctx, licenses, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	if _, logged := errors.AsType[loggedError](err); err != nil {
		if !logged {
			fmt.Fprintln(os.Stderr, "oddsgraph:", err)
		}
		os.Exit(1)
	}
}

// loggedError is an error that the log contains.
type loggedError struct{ error }

func (e loggedError) Unwrap() error { return e.error }

// Run runs the command in args. The serve command and the venue command run until ctx ends.
func Run(ctx context.Context, licenses string, args, environ []string, stdout, stderr io.Writer) error {
	cfg, err := config.Parse(args, environ, stdout)
	if errors.Is(err, config.ErrHelp) {
		return nil
	}
	if err != nil {
		if cfg != nil && cfg.Log.Format == "json" {
			telemetry.NewLogger(stderr, nil, cfg.Log.Format).Error("the configuration is invalid", "error", err)
			err = loggedError{err}
		}
		return err
	}
	var level slog.LevelVar
	level.Set(cfg.Log.Level)
	lines := telemetry.NewWriter(stderr, LogLines)
	defer lines.Close(5 * time.Second)
	log := telemetry.NewLogger(lines, &level, cfg.Log.Format)
	if cfg.Command == config.CommandServe || cfg.Command == config.CommandVenue {
		if err = runServer(ctx, cfg, args, environ, log, &level, lines); err != nil {
			log.Error("oddsgraph ended with an error", "error", err)
			err = loggedError{err}
		}
		return err
	}
	switch cfg.Command {
	case config.CommandSchema:
		return printSchema(cfg, stdout)
	case config.CommandVersion:
		_, err := fmt.Fprintln(stdout, BuildVersion())
		return err
	case config.CommandLicenses:
		_, err := io.WriteString(stdout, licenses+web.Licenses())
		return err
	case config.CommandHealthcheck:
		return Healthcheck(ctx, cfg.HealthcheckURL())
	case config.CommandConfigCheck:
		return check(ctx, cfg, log, stdout)
	case config.CommandPropose:
		return propose(ctx, cfg, stdout)
	case config.CommandQuestions:
		return checkQuestions(ctx, cfg, stdout)
	default:
		return cfg.Show(stdout)
	}
}

// runServer serves GraphQL, or the demo venue alone, until ctx ends. lines is the writer of log, and level its level.
func runServer(ctx context.Context, cfg *config.Config, args, environ []string, log *slog.Logger, level *slog.LevelVar, lines *telemetry.Writer) error {
	if cfg.Command == config.CommandVenue {
		d, err := openDemo(cfg, time.Now(), log, market.SystemClock{})
		if err != nil {
			return err
		}
		log.Info("demo venue", "url", d.URL())
		return d.serve(ctx)
	}
	terminalClosed := watchTerminal()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	s, err := Open(cfg, log, market.SystemClock{})
	if err != nil {
		return err
	}
	s.MeasureLog(lines)
	read := func() (*config.Config, error) { return config.Parse(args, environ, io.Discard) }
	r := &reloader{read: read, cfg: cfg, level: level, files: &s.Files, log: log, terminalClosed: terminalClosed, outcome: &s.reloads}
	return r.run(ctx, hangups, s.Serve)
}

func printSchema(cfg *config.Config, stdout io.Writer) error {
	if cfg.Federation && cfg.Semantic {
		return errors.New("a gateway does not accept the directive that --semantic adds; use it without --federation")
	}
	text, err := sdl.Print(graph.SDL(), sdl.Options{Semantic: cfg.Semantic, Federation: cfg.Federation})
	if err != nil {
		return err
	}
	_, err = io.WriteString(stdout, text)
	return err
}

// BuildVersion returns the version that the build has set. Without a version it returns the commit of the build, or
// "development" if the commit is unknown.
func BuildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "development"
}

// Healthcheck returns nil if the server at url responds with status 200.
func Healthcheck(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, resp.Status)
	}
	return nil
}
