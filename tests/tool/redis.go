package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Redis is a redis-server of a test, on a Unix socket.
type Redis struct {
	path, dir string
	args      []string
	cmd       *exec.Cmd
}

// StartRedis starts a redis-server that ends with the test. The arguments are settings of the server, such as --save "".
func StartRedis(t testing.TB, args ...string) *Redis {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	r := &Redis{path: Require(t, "redis-server"), dir: dir, args: args}
	t.Cleanup(func() {
		r.Kill()
		_ = os.RemoveAll(dir)
	})
	r.Start(t)
	return r
}

// URL returns the server's address in the form of --shared-url.
func (r *Redis) URL() string { return "unix://" + r.Socket() }

// Socket returns the path of the server's socket.
func (r *Redis) Socket() string { return filepath.Join(r.dir, "redis.sock") }

// Start starts the server, which must not be running. It returns when the server accepts commands.
func (r *Redis) Start(t testing.TB) {
	t.Helper()
	if err := r.start(); err != nil {
		t.Fatal(err)
	}
}

func (r *Redis) start() error {
	_ = os.Remove(r.Socket())
	r.cmd = exec.Command(r.path, slices.Concat([]string{"--port", "0", "--unixsocket", r.Socket(), "--dir", r.dir, "--save", "", "--appendonly", "no"}, r.args)...)
	if err := r.cmd.Start(); err != nil {
		r.cmd = nil
		return err
	}
	for range 1000 {
		if out, err := r.Run("PING"); err == nil && out == "PONG" {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	r.Kill()
	return errors.New("redis-server does not answer")
}

// Kill ends the server at once, as kill -9 does. Data that the server did not save are lost.
func (r *Redis) Kill() {
	if r.cmd == nil {
		return
	}
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
	r.cmd = nil
}

// OpenLedger creates the call ledger of a venue in this server; see the function OpenLedger.
func (r *Redis) OpenLedger(t testing.TB, venue string) {
	t.Helper()
	if err := OpenLedger(venue, r.Run); err != nil {
		t.Fatal(err)
	}
}

// OpenLedger creates the call ledger of a venue: the record in Redis of the calls that replicas make to the venue. The new ledger
// looks like an old ledger, so that Redis assumes no earlier calls. cli must run a Redis command and return the reply in the format of
// redis-cli --raw.
func OpenLedger(venue string, cli func(args ...string) (string, error)) error {
	hash := sha256.Sum256([]byte(venue))
	out, err := cli("ZADD", "og:"+hex.EncodeToString(hash[:8])+":window:public", "-1", "born", "-1", "assumed")
	if err != nil {
		return fmt.Errorf("the ledger of %s cannot be made: %s: %w", venue, out, err)
	}
	if out != "2" {
		return fmt.Errorf("the ledger of %s cannot be made: %s", venue, out)
	}
	return nil
}

// Monitor records the commands that the server executes. The returned function returns the commands so far, one per line.
func (r *Redis) Monitor(t testing.TB) (commands func() string) {
	t.Helper()
	file := filepath.Join(r.dir, "monitor")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	cli := exec.Command(r.cli(), "-s", r.Socket(), "MONITOR")
	cli.Stdout = out
	if err := cli.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cli.Process.Kill()
		_ = cli.Wait()
		_ = out.Close()
	})
	commands = func() string { b, _ := os.ReadFile(file); return string(b) }
	for range 1000 {
		if strings.HasPrefix(commands(), "OK") {
			return commands
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("redis-cli MONITOR prints nothing")
	return nil
}

// Process returns the server's process, so that a test can send signals to it.
func (r *Redis) Process() *os.Process { return r.cmd.Process }

// CLI runs a command and returns its output, in the raw format of redis-cli.
func (r *Redis) CLI(t testing.TB, args ...string) string {
	t.Helper()
	out, err := r.Run(args...)
	if err != nil {
		t.Fatalf("redis-cli %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Records returns the keys of the records that match a pattern. It omits the locks of records that a replica is reading.
func (r *Redis) Records(t testing.TB, pattern string) []string {
	t.Helper()
	keys := strings.Fields(r.CLI(t, "KEYS", pattern))
	return slices.DeleteFunc(keys, func(key string) bool { return strings.HasSuffix(key, ":lock") })
}

// cli returns the path of redis-cli, which is installed with the server.
func (r *Redis) cli() string { return filepath.Join(filepath.Dir(r.path), "redis-cli") }

// Run is like CLI, but returns an error instead of ending the test.
func (r *Redis) Run(args ...string) (string, error) {
	out, err := exec.Command(r.cli(), append([]string{"-s", r.Socket(), "--raw"}, args...)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
