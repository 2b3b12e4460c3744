//go:build unix

package fleet

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"oddsgraph/httpapi"
	"oddsgraph/internal/demo"
	"oddsgraph/tests/tool"
)

// slowProxy forwards connections to a server. It delays each chunk of bytes.
type slowProxy struct {
	listener net.Listener
	delay    atomic.Int64
}

// openProxy opens a proxy in front of a server. The proxy ends with the test.
func openProxy(t *testing.T, server *tool.Redis) *slowProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &slowProxy{listener: listener}
	var mu sync.Mutex
	var open []net.Conn
	var running sync.WaitGroup
	forward := func(to, from net.Conn) {
		defer to.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := from.Read(buf)
			time.Sleep(time.Duration(p.delay.Load()))
			if _, failed := to.Write(buf[:n]); failed != nil || err != nil {
				return
			}
		}
	}
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			redis, err := net.Dial("unix", server.Socket())
			if err != nil {
				_ = client.Close()
				continue
			}
			mu.Lock()
			open = append(open, client, redis)
			mu.Unlock()
			running.Go(func() { forward(redis, client) })
			running.Go(func() { forward(client, redis) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	return p
}

// metric returns the sum of those series of a metric whose labels contain the given text.
func (r *replica) metric(t *testing.T, name, labels string) (sum float64) {
	t.Helper()
	for line := range strings.Lines(r.get(t, "/metrics")) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if family, seriesLabels, _ := strings.Cut(series, "{"); family == name && strings.Contains(seriesLabels, labels) {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// cachedRead executes a query for cached data, and checks that all data come from the replica's memory. It returns the duration of
// the query.
func (r *replica) cachedRead(t *testing.T, query string) time.Duration {
	t.Helper()
	began := time.Now()
	answer := r.must(t, query, httpapi.ExplainHeader, "1")
	took := time.Since(began)
	var body struct {
		Extensions struct {
			Explain struct {
				Cache map[string]struct{ Hits, Misses, Stale int }
			}
		}
	}
	if err := json.Unmarshal([]byte(answer), &body); err != nil {
		t.Fatal(err)
	}
	for kind, reads := range body.Extensions.Explain.Cache {
		if reads.Misses+reads.Stale > 0 || reads.Hits == 0 {
			t.Fatalf("the reads of kind %s are %+v, want only hits", kind, reads)
		}
	}
	return took
}

// percentile99 returns the 99th percentile of durations.
func percentile99(durations []time.Duration) time.Duration {
	slices.Sort(durations)
	return durations[len(durations)*99/100-1]
}

// TestReadsUnderFaults checks that faults of Redis do not slow cached reads, and delay cold reads by a few timeouts at most. Cached
// reads must make no call to Redis. The test compares the durations with those of a replica whose Redis has no faults,
// because the machine may be busy.
func TestReadsUnderFaults(t *testing.T) {
	t.Parallel()
	const latency, timeout = 100 * time.Millisecond, 25 * time.Millisecond
	// floor is the duration up to which a cached read is always fast enough. slack is the additional time that a cold read may take
	// because of the fault.
	const floor, slack = 20 * time.Millisecond, 8*timeout + 200*time.Millisecond
	v := openVenue(t, demo.Config{Markets: 300, Seed: 1, Latency: latency})
	sound, faulty := tool.StartRedis(t), tool.StartRedis(t)
	proxy := openProxy(t, faulty)
	replicaAt := func(url string) *replica {
		return start(t, v, "--shared-url="+url, "--shared-timeout="+timeout.String(), "--venue-public-per-minute=0", "--venue-key-per-minute=0",
			"--cache-price-fresh=1h", "--explain=on").waitConnected(t)
	}
	a, b := replicaAt(sound.URL()), replicaAt("redis://"+proxy.listener.Addr().String())
	var tokens []string
	for _, token := range v.demo.Tokens() {
		tokens = append(tokens, token.TokenID)
	}
	query := fmt.Sprintf(`{ tokenPrices(tokenIds: [%s]) { price } }`, quoted(tokens[:50]))
	for _, r := range []*replica{a, b} {
		r.must(t, query)
	}
	cold := tokens[50:]
	fault := func(name string, inject func()) {
		t.Helper()
		eventually(t, "the replica is connected", func() bool { return b.metric(t, "oddsgraph_shared_connected", "") == 1 })
		inject()
		coldRead := func(r *replica) time.Duration {
			began := time.Now()
			r.must(t, fmt.Sprintf(`{ tokenPrices(tokenIds: [%s]) { price } }`, quoted(cold[:1])))
			cold = cold[1:]
			return time.Since(began)
		}
		fastest, slowest := time.Hour, time.Duration(0) // fastest read with the faulty Redis, slowest read with the sound Redis
		for range 5 {
			slowest = max(slowest, coldRead(a))
			fastest = min(fastest, coldRead(b))
		}
		if fastest < latency || fastest > slowest+slack {
			t.Errorf("%s: the fastest of five cold reads took %v, want %v to %v", name, fastest, latency, slowest+slack)
		}
		lookups := b.metric(t, "oddsgraph_shared_calls_total", `command="get"`) + b.metric(t, "oddsgraph_shared_calls_total", `command="claim"`)
		var faultyP99, soundP99 time.Duration
		for range 5 { // a pause of the machine may slow one of the attempts
			var durations [2][]time.Duration
			for range 100 {
				durations[0] = append(durations[0], a.cachedRead(t, query))
				durations[1] = append(durations[1], b.cachedRead(t, query))
			}
			if soundP99, faultyP99 = percentile99(durations[0]), percentile99(durations[1]); faultyP99 <= max(2*soundP99, floor) {
				break
			}
		}
		t.Logf("%s: the p99 of cached reads is %v, and %v without the fault; the fastest cold read took %v", name, faultyP99, soundP99, fastest)
		if faultyP99 > max(2*soundP99, floor) {
			t.Errorf("%s: the p99 of cached reads is %v, want at most %v; without the fault it is %v", name, faultyP99, max(2*soundP99, floor), soundP99)
		}
		if n := b.metric(t, "oddsgraph_shared_calls_total", `command="get"`) + b.metric(t, "oddsgraph_shared_calls_total", `command="claim"`) - lookups; n != 0 {
			t.Errorf("%s: cached reads made %v calls to Redis, want 0", name, n)
		}
	}
	fault("no fault", func() {})
	fault("Redis is flushed", func() { faulty.CLI(t, "FLUSHALL") })
	fault("Redis is slow", func() { proxy.delay.Store(int64(200 * time.Millisecond)) })
	proxy.delay.Store(0)
	fault("Redis is stopped", func() { signal(t, faulty.Process(), syscall.SIGSTOP) })
	signal(t, faulty.Process(), syscall.SIGCONT)
	fault("Redis is killed", func() { faulty.Kill() })
}
