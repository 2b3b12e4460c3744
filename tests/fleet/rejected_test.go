//go:build unix

package fleet

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/tests/tool"
)

// TestRejectedRecords checks that a replica reads the venue at once if Redis has only a record that the replica rejects: a record
// that is out of date, unreadable, of another market, or too long.
func TestRejectedRecords(t *testing.T) {
	t.Parallel()
	const latency = 100 * time.Millisecond
	v := openVenue(t, demo.Config{Markets: 50, Seed: 1, Latency: latency})
	server := tool.StartRedis(t)
	flags := sharedFlags(server, "--venue-public-per-minute=0", "--venue-key-per-minute=0", "--cache-market-fresh=500ms")
	a, b := start(t, v, flags...).waitConnected(t), start(t, v, flags...).waitConnected(t)
	ids := v.markets(12)
	for round, spoil := range []string{
		"",
		"redis.call('SET', key, string.sub(record, 1, 33) .. '{bad')",
		"redis.call('SET', key, (string.gsub(record, '\"Status\":\"%u+\"', '\"Status\":\"\"')))",
		"redis.call('SET', key, record .. string.rep(' ', 2000000))",
	} {
		query := fmt.Sprintf(`{ markets(marketIds: [%s]) { question status } }`, quoted(ids[3*round:3*round+3]))
		want := a.must(t, query)
		eventually(t, "the records are in Redis", func() bool { return len(server.Records(t, "*:market:*")) == 3*round+3 })
		if spoil == "" {
			time.Sleep(600 * time.Millisecond) // until the records are out of date
		}
		for _, key := range server.Records(t, "*:market:*") {
			server.CLI(t, "EVAL", "local key, record = KEYS[1], redis.call('GET', KEYS[1])\n"+spoil, "1", key)
		}
		began := time.Now()
		if answer := b.must(t, query); answer != want {
			t.Errorf("after %q: got %s, want %s", spoil, answer, want)
		}
		t.Logf("after %q the read took %v; a call to the venue takes %v", spoil, time.Since(began), latency)
	}
	if calls := v.calls("market-details"); calls != 8 {
		t.Errorf("the venue received %d calls, want one of each replica for each of the 4 rounds", calls)
	}
	for _, r := range []*replica{a, b} {
		if theirs := r.metric(t, "oddsgraph_shared_cache_claims_total", `kind="market",result="theirs"`); theirs != 0 {
			t.Errorf("a replica waited for another replica for %v keys, want 0", theirs)
		}
	}
}

// TestReplicaStartsWithoutRedis checks that a replica that starts while Redis accepts connections but never answers serves queries
// at once: no query waits for Redis, and none is refused.
func TestReplicaStartsWithoutRedis(t *testing.T) {
	t.Parallel()
	v := openVenue(t, demo.Config{Markets: 50, Seed: 1})
	socket := filepath.Join(t.TempDir(), "redis.sock")
	silent, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	r := start(t, v, "--shared-url=unix://"+socket, "--shared-timeout=1s", "--shared-replicas=2")
	for _, id := range v.markets(3) {
		began := time.Now()
		if answer := r.must(t, fmt.Sprintf(`{ markets(marketIds: [%q]) { question } }`, id)); strings.Contains(answer, "null") {
			t.Errorf("got %s, want the market", answer)
		}
		t.Logf("a query took %v", time.Since(began))
	}
	for _, command := range []string{"get", "claim", "ask"} {
		all := r.metric(t, "oddsgraph_shared_calls_total", fmt.Sprintf("command=%q", command))
		if refused := r.metric(t, "oddsgraph_shared_calls_total", fmt.Sprintf(`command=%q,result="refused"`, command)); refused != all || all == 0 {
			t.Errorf("%v of %v calls of %s did not wait for Redis, want all", refused, all, command)
		}
	}
}
