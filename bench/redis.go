package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"oddsgraph/tests/tool"
)

// errNoRedis means that redis-server is not installed.
var errNoRedis = errors.New("redis-server is missing")

// redis is a redis-server that the replicas share.
type redis struct {
	program, socket string
	cmd             *exec.Cmd
}

// redis starts an empty redis-server. If no redis-server is installed, the error wraps errNoRedis and says what to install.
func (b *builds) redis(ctx context.Context) (*redis, error) {
	find := exec.CommandContext(ctx, "sh", filepath.Join(b.root, "scripts", "tools"), "find", "redis-server")
	out, err := find.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return nil, fmt.Errorf("%w: %s", errNoRedis, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return nil, err
	}
	r := &redis{program: strings.TrimSpace(string(out)), socket: filepath.Join(b.dir, "redis.sock")}
	r.cmd = exec.CommandContext(ctx, r.program, "--port", "0", "--unixsocket", r.socket, "--dir", b.dir, "--save", "", "--appendonly", "no")
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	for range 1000 {
		if answer, err := r.cli(ctx, "PING"); err == nil && answer == "PONG" {
			return r, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	r.stop()
	return nil, errors.New("redis-server does not answer")
}

func (r *redis) stop() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

// url returns the server's address in the form of --shared-url.
func (r *redis) url() string { return "unix://" + r.socket }

func (r *redis) cli(ctx context.Context, args ...string) (string, error) {
	cli := filepath.Join(filepath.Dir(r.program), "redis-cli")
	out, err := exec.CommandContext(ctx, cli, append([]string{"-s", r.socket, "--raw"}, args...)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// openLedger creates the call ledger of a venue in such a state that the ledger grants calls immediately.
func (r *redis) openLedger(ctx context.Context, venue string) error {
	return tool.OpenLedger(venue, func(args ...string) (string, error) { return r.cli(ctx, args...) })
}
