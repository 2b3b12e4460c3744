//go:build unix

package fleet

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/tests/tool"
)

const (
	// These are numbers of calls in a minute. limit is the venue's limit, and usable is the part that all replicas together may
	// use. granted is the part that Redis grants. reserve is the part that each of up to 5 replicas may use without a grant.
	limit, usable, granted, reserve = 100, 95, 70, 5
	// testDuration is the duration of each test. After a minute, the venue no longer counts the first calls, and the replicas may
	// use their reserves. So each test must last longer than a minute.
	testDuration = 82 * time.Second
)

// testBudget runs three replicas that use a venue with a rate limit, and calls disturb, which causes faults. It checks that the
// venue refused no call, and returns the greatest number of calls in a minute.
func testBudget(t *testing.T, disturb func(t *testing.T, start time.Time, server *tool.Redis, replicas []*replica, replace func(i int, stop func(*os.Process)))) (most int) {
	t.Helper()
	server := tool.StartRedis(t)
	v := openVenue(t, demo.Config{Markets: 50, Seed: 1, PublicPerMinute: limit})
	server.OpenLedger(t, v.URL)
	var replicas []*replica
	load := newCrowd()
	args := sharedFlags(server, "--request-timeout=5s")
	for range 3 {
		replicas = append(replicas, start(t, v, args...).waitConnected(t))
	}
	for _, r := range replicas {
		load.join(r)
	}
	began := time.Now()
	// replace starts a new replica in the place of replica i. Then it calls stop for the old process.
	replace := func(i int, stop func(*os.Process)) {
		before := replicas[i]
		replicas[i] = start(t, v, args...)
		load.join(replicas[i])
		stop(before.cmd.Process)
	}
	disturb(t, began, server, replicas, replace)
	time.Sleep(time.Until(began.Add(testDuration)))
	load.end()
	most, refused := v.peakCalls()
	t.Logf("the venue received %d calls, and %d of them in the busiest minute", len(v.log()), most)
	if most < granted/2 {
		t.Errorf("the venue received %d calls in the busiest minute, want at least %d", most, granted/2)
	}
	if refused > 0 || most > usable {
		t.Errorf("the venue received %d calls in the busiest minute and refused %d calls; want at most %d calls, and 0 refused", most, refused, usable)
	}
	return most
}

// TestBudget checks that three replicas together stay below the venue's limit, and use most of the calls that they may
// make.
func TestBudget(t *testing.T) {
	t.Parallel()
	most := testBudget(t, func(*testing.T, time.Time, *tool.Redis, []*replica, func(int, func(*os.Process))) {})
	if want := (granted + 3*reserve) * 85 / 100; most < want {
		t.Errorf("the venue received %d calls in the busiest minute, want at least %d", most, want)
	}
}

// TestBudgetRedisFaults checks that replicas keep the venue's limit while Redis is killed, flushed and paused.
func TestBudgetRedisFaults(t *testing.T) {
	tool.NightlyTier(t)
	t.Parallel()
	testBudget(t, func(t *testing.T, began time.Time, server *tool.Redis, _ []*replica, _ func(int, func(*os.Process))) {
		waitUntil := func(d time.Duration) { time.Sleep(time.Until(began.Add(d))) }
		waitUntil(10 * time.Second)
		server.Kill()
		waitUntil(18 * time.Second)
		server.Start(t)
		waitUntil(30 * time.Second)
		server.CLI(t, "FLUSHALL")
		waitUntil(40 * time.Second)
		signal(t, server.Process(), syscall.SIGSTOP)
		waitUntil(46 * time.Second)
		signal(t, server.Process(), syscall.SIGCONT)
		waitUntil(62 * time.Second)
		server.CLI(t, "FLUSHALL")
	})
}

// TestBudgetReplicaFaults checks that replicas keep the venue's limit while replicas are killed, paused and replaced.
func TestBudgetReplicaFaults(t *testing.T) {
	tool.NightlyTier(t)
	t.Parallel()
	testBudget(t, func(t *testing.T, began time.Time, _ *tool.Redis, replicas []*replica, replace func(int, func(*os.Process))) {
		waitUntil := func(d time.Duration) { time.Sleep(time.Until(began.Add(d))) }
		waitUntil(3 * time.Second) // in the middle of the first calls
		replicas[0].kill()
		replace(0, func(*os.Process) {})
		signal(t, replicas[1].cmd.Process, syscall.SIGSTOP)
		waitUntil(25 * time.Second)
		signal(t, replicas[1].cmd.Process, syscall.SIGCONT)
		waitUntil(64 * time.Second) // the old replicas have used their reserves
		for i := range replicas {
			replace(i, func(p *os.Process) { signal(t, p, syscall.SIGTERM) })
			time.Sleep(2 * time.Second)
		}
	})
}

// TestReplicaWithoutSharedURL checks that a replica without --shared-url does not connect to Redis.
func TestReplicaWithoutSharedURL(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	v := openVenue(t, demo.Config{Markets: 50, Seed: 1})
	const goroutines = "/debug/pprof/goroutine?debug=2"
	if text := start(t, v).get(t, goroutines); strings.Contains(text, "rueidis") || strings.Contains(text, "internal/fleet") {
		t.Errorf("a replica without --shared-url has goroutines of the package fleet or of its Redis client:\n%s", text)
	}
	if clients := server.CLI(t, "CLIENT", "LIST"); strings.Count(clients, "\n") > 0 {
		t.Errorf("a replica without --shared-url has a connection to Redis:\n%s", clients)
	}
	if text := start(t, v, sharedFlags(server)...).waitConnected(t).get(t, goroutines); !strings.Contains(text, "rueidis") || !strings.Contains(text, "internal/fleet") {
		t.Errorf("the check finds no goroutines of the package fleet in a replica with --shared-url:\n%s", text)
	}
}
