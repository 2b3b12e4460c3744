//go:build unix

package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/tests/tool"
)

// These are numbers of calls in a minute. limit is the venue's limit, and usable is the part that all replicas together may use. Each
// of up to 5 replicas may use the number of calls in part while Redis does not answer.
const limit, usable, part = 100, 95, usable / 5

// testBudget runs three replicas that use a venue with a rate limit for the given number of minutes, and calls disturb, which causes
// faults. It checks that the venue received at most the given number of calls in any minute, and that it answered at least 80 in
// each of the minutes.
func testBudget(t *testing.T, minutes, most int, disturb func(t *testing.T, start time.Time, server *tool.Redis, replicas []*replica, replace func(i int, stop func(*os.Process)))) {
	t.Helper()
	server := tool.StartRedis(t)
	v := openVenue(t, demo.Config{Markets: 50, Seed: 1, PublicPerMinute: limit})
	server.OpenLedger(t, v.URL)
	var replicas []*replica
	load := newCrowd()
	args := sharedFlags(server, "--request-timeout=5s", "--shared-replicas=3")
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
	time.Sleep(time.Until(began.Add(time.Duration(minutes)*time.Minute + time.Second)))
	load.end()
	peak, refused := v.peakCalls()
	answered := make([]int, minutes+1)
	for _, call := range v.log() {
		if minute := int(call.at.Sub(began) / time.Minute); call.status < 300 && !call.at.Before(began) && minute < len(answered) {
			answered[minute]++
		}
	}
	t.Logf("the venue received %d calls, %d of them in the busiest minute, answered %v in each minute and refused %d", len(v.log()), peak, answered, refused)
	if peak > most {
		t.Errorf("the venue received %d calls in the busiest minute, want at most %d", peak, most)
	}
	for i, n := range answered[:minutes] {
		if n < 80 {
			t.Errorf("the venue answered %d calls in minute %d, want at least 80", n, i+1)
		}
	}
}

// TestBudget checks that three replicas together stay below the venue's limit, and use most of the calls that they may
// make.
func TestBudget(t *testing.T) {
	t.Parallel()
	testBudget(t, 1, usable, func(*testing.T, time.Time, *tool.Redis, []*replica, func(int, func(*os.Process))) {})
}

// file returns a file for --more-venues with a venue of the name v, and with further settings.
func (v *venue) file(t *testing.T, settings string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "v.env")
	text := "ODDSGRAPH_VENUE_URL=" + v.URL + "\n" + strings.Replace(told, "--venue-table", "ODDSGRAPH_VENUE_TABLE", 1) + "\n" + settings
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestBudgetOfVenues checks that three replicas with two venues keep the limit of each, while a replica is killed and Redis is flushed.
// One of the replicas has the venues in the other order. It shares the limits, and never the values, whose ids differ.
func TestBudgetOfVenues(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	var venues []*venue
	var files []string
	for i := range 2 {
		v := openVenue(t, demo.Config{Markets: 50, Seed: 1, Other: uint64(i), PublicPerMinute: limit})
		server.OpenLedger(t, v.URL)
		venues, files = append(venues, v), append(files, v.file(t, ""))
	}
	startPair := func(first int) *replica {
		return start(t, venues[first], sharedFlags(server, "--request-timeout=5s", "--shared-replicas=3", "--more-venues="+files[1-first])...).waitConnected(t)
	}
	load := newCrowd()
	load.query = `{ markets(marketIds: ["m%[1]d", "v:m%[1]d"]) { status } }`
	var replicas []*replica
	for _, first := range []int{0, 0, 1} {
		replicas = append(replicas, startPair(first))
		load.join(replicas[len(replicas)-1])
	}
	began, most := time.Now(), limit
	time.Sleep(5 * time.Second)
	replicas[0].kill()
	load.join(startPair(0))
	time.Sleep(time.Until(began.Add(40 * time.Second)))
	for i, v := range venues {
		if peak, _ := v.peakCalls(); peak > most || peak < most/2 {
			t.Errorf("before the flush, venue %d received %d calls in a minute, want from %d to %d", i, peak, most/2, most)
		}
	}
	server.CLI(t, "FLUSHALL")
	time.Sleep(time.Until(began.Add(61 * time.Second)))
	load.end()
	for i, v := range venues {
		peak, refused := v.peakCalls()
		t.Logf("venue %d received %d calls, %d of them in the busiest minute, and refused %d", i, len(v.log()), peak, refused)
		if peak > 2*limit {
			t.Errorf("venue %d received %d calls in the busiest minute, want at most %d", i, peak, 2*limit)
		}
	}
	search := `{ searchMarkets(first: 1) { nodes { tokens { tokenId price { price } } } } }`
	for range 2 { // the second answers come from a cache
		one, err1 := replicas[1].ask(search)
		other, err2 := replicas[2].ask(search)
		if err1 != nil || err2 != nil || one == other || strings.Contains(one+other, "v:") {
			t.Errorf("replicas whose first venues differ answer\n%s\n%s\nand %v, %v, want different prices and bare ids", one, other, err1, err2)
		}
	}
}

// TestNewLedger checks that each of three replicas with an empty Redis answers its first query within a second.
func TestNewLedger(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	v := openVenue(t, demo.Config{Markets: 50, Seed: 1, PublicPerMinute: limit})
	for i := range 3 {
		r := start(t, v, sharedFlags(server)...)
		asked := time.Now()
		answer, err := r.ask(fmt.Sprintf(`{ searchMarkets(query: "new %d", first: 1) { nodes { id } } }`, i))
		if took := time.Since(asked); err != nil || strings.Contains(answer, "errors") || took > time.Second {
			t.Errorf("replica %d answered %s, %v after %s, want an answer within a second", i+1, answer, err, took)
		}
	}
}

// TestBudgetRedisFaults checks that replicas keep within twice the venue's limit while Redis is killed, flushed and paused, and that
// they go on making calls.
func TestBudgetRedisFaults(t *testing.T) {
	tool.NightlyTier(t)
	t.Parallel()
	testBudget(t, 3, 2*limit, func(t *testing.T, began time.Time, server *tool.Redis, _ []*replica, _ func(int, func(*os.Process))) {
		waitUntil := func(d time.Duration) { time.Sleep(time.Until(began.Add(d))) }
		waitUntil(10 * time.Second)
		server.Kill()
		waitUntil(18 * time.Second)
		server.Start(t)
		waitUntil(80 * time.Second)
		server.CLI(t, "FLUSHALL")
		waitUntil(150 * time.Second)
		signal(t, server.Process(), syscall.SIGSTOP)
		waitUntil(156 * time.Second)
		signal(t, server.Process(), syscall.SIGCONT)
	})
}

// TestBudgetReplicaFaults checks that replicas keep the venue's limit while replicas are killed, paused and replaced.
func TestBudgetReplicaFaults(t *testing.T) {
	tool.NightlyTier(t)
	t.Parallel()
	testBudget(t, 2, limit, func(t *testing.T, began time.Time, _ *tool.Redis, replicas []*replica, replace func(int, func(*os.Process))) {
		waitUntil := func(d time.Duration) { time.Sleep(time.Until(began.Add(d))) }
		waitUntil(3 * time.Second) // in the middle of the first calls
		replicas[0].kill()
		replace(0, func(*os.Process) {})
		signal(t, replicas[1].cmd.Process, syscall.SIGSTOP)
		waitUntil(25 * time.Second)
		signal(t, replicas[1].cmd.Process, syscall.SIGCONT)
		waitUntil(64 * time.Second)
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
