package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oddsgraph/tests/tool"
)

// TestClaimOfRejectedRecords checks that a replica claims a key whose record it rejects, and that its own record then replaces the
// rejected one, whatever the rejected record contains. Replicas must not read long records.
func TestClaimOfRejectedRecords(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	a, b := join(t, Config{URL: server.URL()}), join(t, Config{URL: server.URL()})
	waitConnected(t, a)
	waitConnected(t, b)
	stamps := strings.Repeat("0", 2*stampLen)
	for name, record := range map[string]string{
		"refused":  recordText(stamps, "refused"),
		"future":   recordText(strings.Repeat("9", 2*stampLen), "refused"),
		"no time":  recordText("now", ""),
		"no digit": recordText(strings.Repeat("x", 2*stampLen), "refused"),
		"dropped":  string(dropMark) + stamps[:stampLen],
		"long":     recordText(stamps, strings.Repeat("v", maxValue+1)),
	} {
		key := a.valueKeys("price", []string{name})[0]
		if len(record) < maxValue {
			server.CLI(t, "SET", key, record)
		} else {
			server.CLI(t, "EVAL", "redis.call('SET', KEYS[1], ARGV[1] .. string.rep('v', ARGV[2]))", "1", key, record[:1+2*stampLen], fmt.Sprint(maxValue+1))
		}
		claims := func(f *Fleet) bool {
			return f.Claim(t.Context(), "price", []string{name}, time.Minute, func(_ int, value []byte, _, _ time.Time) bool {
				if len(value) > maxValue {
					t.Errorf("%s: got a record of %d bytes", name, len(value))
				}
				return string(value) != "refused"
			})[0]
		}
		if !claims(a) || claims(b) {
			t.Errorf("%s: the first replica got no claim, or the second got one, too", name)
		}
		now := time.Now()
		put(t, a, name, "good", now, now)
		if claims(b) {
			t.Errorf("%s: the second replica got a claim of a good record", name)
		}
	}
}

func recordText(stamps, value string) string { return string(recordMark) + stamps + value }

// TestManyFlushes checks that a replica stays connected, and still hears of flushes, if the hash of the flushes has many other
// fields and unreadable values.
func TestManyFlushes(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	a, b := join(t, Config{URL: server.URL()}), join(t, Config{URL: server.URL()})
	heard := make(chan string, 8)
	b.OnFlush(func(kind, key string) { heard <- kind + " " + key })
	waitConnected(t, a)
	waitConnected(t, b)
	const fill = `for i = 1, 60000 do redis.call('HSET', KEYS[1], 'field ' .. i, string.rep('v', 40)) end
		redis.call('HSET', KEYS[1], 'market', '9999999999999999 0 m', 'price', string.rep('9', 1000000))`
	server.CLI(t, "EVAL", fill, "1", a.prefix+"flushes")
	a.Flush("market", "m")
	if got := <-heard; got != "market m" || !b.Stats().Connected {
		t.Errorf("got the flush %q and connected %v, want the flush of the market m and true", got, b.Stats().Connected)
	}
}

// TestPatience checks that failed calls shorten the timeout of the next calls.
func TestPatience(t *testing.T) {
	for timeout, want := range map[time.Duration][]time.Duration{
		time.Second:           {1000, 500, 250, 125, 62, 31, 31},
		DefaultTimeout:        {25, 25, 25, 25, 25, 25, 25},
		10 * time.Millisecond: {10, 10, 10, 10, 10, 10, 10},
	} {
		f := &Fleet{cfg: Config{Timeout: timeout}}
		for failed, ms := range want {
			if got := f.patience().Truncate(time.Millisecond); got != ms*time.Millisecond {
				t.Errorf("timeout %v after %d failures: got %v, want %v ms", timeout, failed, got, int(ms))
			}
			f.circuit.fail()
		}
	}
}
