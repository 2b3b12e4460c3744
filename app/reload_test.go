package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"oddsgraph/graph"
	"oddsgraph/httpapi/persisted"
	"oddsgraph/internal/config"
	"oddsgraph/internal/telemetry"
	"oddsgraph/resolvers"
)

// accountsOf returns an accounts file with one account for each token.
func accountsOf(tokens ...string) string {
	entries := make([]string, len(tokens))
	for i, token := range tokens {
		entries[i] = fmt.Sprintf(`{"name":"a%d","tokenSha256":"%x","address":"0x1111111111111111111111111111111111111111","credentials":{"apiKey":"k","secret":"s","passphrase":"p"}}`,
			i, sha256.Sum256([]byte(token)))
	}
	return `{"version":1,"accounts":[` + strings.Join(entries, ",") + `]}`
}

// filesOf opens the files of a configuration.
func filesOf(t *testing.T, cfg *config.Config, log *slog.Logger) files {
	t.Helper()
	front, err := NewFront(cfg, nil, graph.Config{Resolvers: &resolvers.Resolver{}}, log)
	if err != nil {
		t.Fatal(err)
	}
	files, err := openFiles(cfg, front, log)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestAClosedTerminalEndsTheProgram checks that SIGHUP causes a reload while the terminal is open, and ends the program when the
// terminal is closed.
func TestAClosedTerminalEndsTheProgram(t *testing.T) {
	read, closed := make(chan struct{}, 1), atomic.Bool{}
	cfg, log := config.Default(), slog.New(slog.DiscardHandler)
	files := filesOf(t, &cfg, log)
	r := &reloader{
		read:  func() (*config.Config, error) { read <- struct{}{}; return nil, errors.New("not now") },
		level: new(slog.LevelVar), files: &files, log: log, terminalClosed: closed.Load, outcome: &reloads{},
	}
	signals, ended := make(chan os.Signal, 1), make(chan error, 1)
	go func() {
		ended <- r.run(t.Context(), signals, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
	}()
	signals <- syscall.SIGHUP
	<-read
	select {
	case <-ended:
		t.Fatal("SIGHUP has ended the program while the terminal was open")
	default:
	}
	closed.Store(true)
	signals <- syscall.SIGHUP
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-read:
		t.Fatal("SIGHUP caused a reload after the terminal was closed, want the end of the program")
	}
}

// TestReload checks that a reload uses the new content of valid files, and keeps the previous content of invalid files.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "oddsgraph.env", "ODDSGRAPH_LOG_LEVEL=info")
	write(t, dir, "accounts.json", accountsOf("one"))
	write(t, dir, "manifest.json", `{"first":"{ __typename }"}`)
	args := []string{"--config=" + file, "--accounts-file=" + dir + "/accounts.json", "--documents-trusted=require", "--documents-manifest=" + dir + "/manifest.json"}
	read := func() (*config.Config, error) { return config.Parse(args, nil, io.Discard) }
	cfg, err := read()
	if err != nil {
		t.Fatal(err)
	}
	logged, level := &bytes.Buffer{}, new(slog.LevelVar)
	log := telemetry.NewLogger(logged, level, "text")
	files := filesOf(t, cfg, log)
	r := &reloader{read: read, cfg: cfg, level: level, files: &files, log: log, outcome: &reloads{}}
	known := func(token string) bool { _, ok := files.Accounts.Lookup(token); return ok }
	trusted := func(id string) bool {
		_, err := files.Documents.Resolve(persisted.Request{DocumentID: id})
		return err == nil
	}
	step := func(what string, wantLevel slog.Level, want ...string) {
		t.Helper()
		logged.Reset()
		r.reload()
		if level.Level() != wantLevel {
			t.Errorf("%s: the level is %v, want %v", what, level.Level(), wantLevel)
		}
		if _, failed := r.outcome.last(); failed != strings.Contains(logged.String(), "level=ERROR") || failed && files.valid() {
			t.Errorf("%s: the outcome is a failure: %t; the files are valid: %t; the log is %s", what, failed, files.valid(), logged)
		}
		if n := strings.Count(logged.String(), "\n"); n != 1 {
			t.Errorf("%s: the log has %d lines, want 1: %s", what, n, logged)
		}
		for _, w := range want {
			if !strings.Contains(logged.String(), w) {
				t.Errorf("%s: the log does not say %q: %s", what, w, logged)
			}
		}
	}

	step("nothing changed", slog.LevelInfo, "1 accounts, 1 trusted documents")
	if !known("one") || !trusted("first") {
		t.Error("a reload of unchanged files changed something")
	}
	write(t, dir, "oddsgraph.env", "ODDSGRAPH_LOG_LEVEL=debug\nODDSGRAPH_MAX_OPERATIONS=7\nODDSGRAPH_LISTEN=:1")
	write(t, dir, "accounts.json", accountsOf("two", "three"))
	write(t, dir, "manifest.json", `{"second":"{ __typename }"}`)
	step("all files changed", slog.LevelDebug, "2 accounts, 1 trusted documents", "restart", "listen max-operations")
	if known("one") || !known("two") || trusted("first") || !trusted("second") {
		t.Error("the service does not use the new content of all files")
	}

	write(t, dir, "oddsgraph.env", "ODDSGRAPH_LOG_LEVEL=error\nODDSGRAPH_MAX_OPERATIONS=-1")
	write(t, dir, "accounts.json", "{")
	write(t, dir, "manifest.json", `{"third":"{ nope }"}`)
	step("all files invalid", slog.LevelDebug, "oddsgraph.env:2", "accounts.json", "manifest.json", "2 accounts, 1 trusted documents")
	if !known("two") || !trusted("second") {
		t.Error("an invalid file replaced the valid content")
	}

	write(t, dir, "accounts.json", accountsOf("one"))
	step("accounts file valid again", slog.LevelDebug, "oddsgraph.env:2", "manifest.json", "1 accounts, 1 trusted documents")
	if !known("one") || known("two") || !trusted("second") {
		t.Error("the service does not use the valid accounts file, or it does not keep the previous documents")
	}
}
