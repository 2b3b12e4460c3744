package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oddsgraph/tests/tool"
)

// TestReplicas checks that two replicas with a shared Redis read fewer ids from the venue than two replicas without Redis. Queries
// of cached data must cause no calls to the venue.
func TestReplicas(t *testing.T) {
	if testing.Short() {
		t.Skip("this test builds and runs the servers")
	}
	tool.Require(t, "redis-server")
	o := options{duration: 50 * time.Millisecond, rounds: 1, connections: 4, variety: variety{1, 4, 8}, replicas: []int{1, 2}}
	f, err := measureFleets(t.Context(), shared, o)
	if err != nil {
		t.Fatal(err)
	}
	if f.missing != "" {
		t.Fatal(f.missing)
	}
	rounds := map[string]fleetRound{}
	for _, r := range f.rows {
		if len(r.rounds) != 1 {
			t.Fatalf("the row %+v has %d rounds, want 1", r, len(r.rounds))
		}
		rounds[r.workload()+" "+r.shares()+" "+string(rune('0'+r.replicas))] = r.rounds[0]
	}
	if len(rounds) != 8 || f.requests != 12 {
		t.Fatalf("got %d rows and %d requests, want 8 rows and 12 requests", len(rounds), f.requests)
	}
	alone, two, together := rounds["cold no 1"], rounds["cold no 2"], rounds["cold yes 2"]
	if alone.venueIDs == 0 || two.venueIDs != 2*alone.venueIDs || alone.redisCalls+two.redisCalls != 0 || two.queries != 24 {
		t.Errorf("without Redis: got %+v for one replica and %+v for two, want twice as many ids for two and no calls to Redis", alone, two)
	}
	// A replica waits for ids that another replica is reading. On a busy machine, the wait may time out, and then both replicas
	// read the ids. So the test accepts more ids than one replica reads.
	if together.venueIDs >= two.venueIDs || together.redisCalls == 0 {
		t.Errorf("two replicas with Redis: got %+v, want calls to Redis and fewer than %v ids", together, two.venueIDs)
	}
	for name, r := range rounds {
		if strings.HasPrefix(name, "warm") && (r.venueCalls != 0 || r.queries < 4) {
			t.Errorf("%s: got %+v, want no calls to the venue and at least 4 queries", name, r)
		}
	}
	if text := f.markdown(); strings.Count(text, "\n| cold ") != 4 || strings.Count(text, "\n| warm ") != 4 {
		t.Errorf("the table is\n%s", text)
	}
	if text := f.benchfmt(); strings.Count(text, "BenchmarkReplicas/") != 8 {
		t.Errorf("the rounds are\n%s", text)
	}
}

// TestReplicasWithoutRedis checks that the report says why there is no table if redis-server is not installed.
func TestReplicasWithoutRedis(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"sh", "cat", "tr"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(bin, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	_, err := tool.OpenRedis(t.TempDir())
	if missing := tool.MissingError(""); !errors.As(err, &missing) || !strings.Contains(err.Error(), "apt-get install redis-server") {
		t.Fatalf("the error is %v", err)
	}
	f := &fleets{missing: err.Error()}
	if text := f.markdown(); !strings.HasPrefix(text, "Not measured: redis-server is missing") {
		t.Errorf("the report says %q", text)
	}
}
