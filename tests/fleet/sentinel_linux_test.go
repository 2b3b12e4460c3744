package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"oddsgraph/internal/demo"
	"oddsgraph/tests/tool"
)

// sentinelGroup is a Redis server (the primary), two servers that copy its data, and a Sentinel that watches the three servers.
type sentinelGroup struct {
	cli      string
	sentinel string
	servers  map[string]*tool.Redis // by port
}

// startSentinelGroup starts a group that ends with the test. The primary accepts writes only while a copy is connected, as
// docs/scaling.md demands.
func startSentinelGroup(t *testing.T) *sentinelGroup {
	t.Helper()
	program := tool.Require(t, "redis-server")
	g := &sentinelGroup{cli: filepath.Join(filepath.Dir(program), "redis-cli"), sentinel: freePort(t), servers: map[string]*tool.Redis{}}
	first := freePort(t)
	args := func(port string) []string {
		return []string{"--port", port, "--bind", "127.0.0.1", "--min-replicas-to-write", "1", "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}
	}
	g.servers[first] = tool.StartRedis(t, args(first)...)
	for range 2 {
		port := freePort(t)
		g.servers[port] = tool.StartRedis(t, append(args(port), "--replicaof", "127.0.0.1", first)...)
	}
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\nsentinel monitor odds 127.0.0.1 %s 1\nsentinel down-after-milliseconds odds 2000\nsentinel failover-timeout odds 3000\n", g.sentinel, first)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	watch := exec.Command(program, config, "--sentinel")
	watch.Dir = filepath.Dir(config)
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = watch.Process.Kill()
		_ = watch.Wait()
	})
	eventually(t, "Sentinel knows both copies", func() bool { return strings.Contains(g.ask("SENTINEL", "MASTER", "odds"), "num-slaves\n2\n") })
	eventually(t, "both copies are connected", func() bool {
		return strings.Contains(g.servers[first].CLI(t, "INFO", "replication"), "min_slaves_good_slaves:2")
	})
	return g
}

// ask runs a command of Sentinel and returns the output.
func (g *sentinelGroup) ask(args ...string) string {
	out, _ := exec.Command(g.cli, append([]string{"-p", g.sentinel, "--raw"}, args...)...).CombinedOutput()
	return string(out)
}

// primary returns the port of the present primary.
func (g *sentinelGroup) primary() string {
	lines := strings.Fields(g.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "odds"))
	if len(lines) != 2 {
		return ""
	}
	return lines[1]
}

// TestSentinel kills the Redis primary. It checks that the replicas of the service find the new primary and share values through
// it, and that the new primary grants calls at once.
func TestSentinel(t *testing.T) {
	t.Parallel()
	g := startSentinelGroup(t)
	v := openVenue(t, demo.Config{Markets: 50, Seed: 1, PublicPerMinute: limit})
	g.servers[g.primary()].OpenLedger(t, v.URL)
	args := []string{"--shared-url=redis://127.0.0.1:" + g.sentinel + "?master_set=odds", "--shared-timeout=1s", "--cache-market-fresh=10m"}
	a, b := start(t, v, args...).waitConnected(t), start(t, v, args...).waitConnected(t)
	ids := v.markets(2)
	read := func(r *replica, id string) (string, error) {
		return r.ask(fmt.Sprintf(`{ markets(marketIds: [%q]) { id question } }`, id))
	}
	for _, r := range []*replica{a, b} {
		if answer, err := read(r, ids[0]); err != nil || strings.Contains(answer, "errors") {
			t.Fatalf("got the error %v and the answer %s, want a market", err, answer)
		}
	}
	if n := v.calls("market-details"); n != 1 {
		t.Errorf("the venue received %d calls for a market, want 1", n)
	}
	if n := a.status(t).Limit.Grantable; n < usable-10 {
		t.Errorf("before the failover, Redis can grant %d calls, want at least %d", n, usable-10)
	}

	for _, server := range g.servers {
		eventually(t, "the copies have the value", func() bool { return len(server.Records(t, "*:value:*")) > 0 })
	}
	old := g.primary()
	g.servers[old].Kill()
	for _, r := range []*replica{a, b} {
		eventually(t, "the replica uses the new primary", func() bool {
			now := g.primary() // on a busy machine, a second failover may follow the first
			return now != "" && now != old && r.status(t).Connected && strings.Contains(g.servers[now].CLI(t, "CLIENT", "LIST", "TYPE", "NORMAL"), "name=oddsgraph")
		})
	}
	eventually(t, "the replicas see each other in the new primary", func() bool { return a.status(t).Replicas == 2 && b.status(t).Replicas == 2 })
	grants := b.metric(t, "oddsgraph_shared_grants_total", `result="granted"`)
	if answer, err := read(b, ids[1]); err != nil || strings.Contains(answer, "errors") {
		t.Errorf("after the failover: got the error %v and the answer %s, want a market", err, answer)
	}
	if n := b.metric(t, "oddsgraph_shared_grants_total", `result="granted"`) - grants; n < 1 {
		t.Errorf("the new primary granted %v calls, want at least 1", n)
	}
	if answer, err := read(start(t, v, args...).waitConnected(t), ids[0]); err != nil || strings.Contains(answer, "errors") {
		t.Errorf("a new replica got the error %v and the answer %s, want the shared value", err, answer)
	}
}
