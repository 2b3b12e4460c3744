package fleet

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"oddsgraph/internal/market/shared"
	"oddsgraph/tests/tool"
)

// skewedClock is the system clock plus a constant error.
type skewedClock time.Duration

func (s skewedClock) Now() time.Time { return time.Now().Add(time.Duration(s)) }

// read returns the record that a replica finds for a key. ok is false if there is no record.
func read(t *testing.T, f *Fleet, key string) (value string, asked, came time.Time, ok bool) {
	t.Helper()
	f.Get(t.Context(), "price", []string{"another", key}, func(i int, v []byte, a, c time.Time) bool {
		if i != 1 {
			t.Errorf("Get found a record for the key at index %d, want only index 1", i)
		}
		value, asked, came, ok = string(v), a, c, true
		return true
	})
	return value, asked, came, ok
}

// put shares a value and waits until Redis has stored the value.
func put(t *testing.T, f *Fleet, key, value string, asked, came time.Time) {
	t.Helper()
	f.Put("price", []shared.Record{{Key: key, Value: []byte(value), Keep: time.Minute}}, asked, came)
	eventually(t, "the value is shared", func() bool { got, _, _, ok := read(t, f, key); return ok && got == value })
}

// TestValues checks that replicas whose clocks differ by seconds share values with the correct ages.
func TestValues(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	a, b := join(t, Config{URL: server.URL()}), join(t, Config{URL: server.URL(), Clock: skewedClock(5 * time.Second)})
	other := join(t, Config{URL: server.URL(), Venue: "https://other.example"})
	newer := join(t, Config{URL: server.URL(), Version: "2"})
	for _, f := range []*Fleet{a, b, other, newer} {
		waitConnected(t, f)
	}
	now := time.Now()
	put(t, a, "k", "value", now.Add(-3*time.Second), now.Add(-2*time.Second))
	value, asked, came, ok := read(t, b, "k")
	if !ok || value != "value" {
		t.Fatalf("the other replica found %q, %v; want %q", value, ok, "value")
	}
	for what, ages := range map[string][2]time.Duration{
		"asked": {b.clock.Now().Sub(asked), time.Since(now.Add(-3 * time.Second))}, "came": {b.clock.Now().Sub(came), time.Since(now.Add(-2 * time.Second))},
	} {
		if d := (ages[0] - ages[1]).Abs(); d > time.Second {
			t.Errorf("on a replica whose clock is wrong, the age since %s is wrong by %v, want at most a second", what, d)
		}
	}
	for name, f := range map[string]*Fleet{"another venue": other, "another version": newer} {
		if _, _, _, ok := read(t, f, "k"); ok {
			t.Errorf("a replica with %s found the value", name)
		}
	}
	put(t, a, "absent", "", now, now)
	a.Put("price", []shared.Record{{Key: "k", Value: []byte("older"), Keep: time.Minute}}, now.Add(-time.Minute), now)
	put(t, a, "last", "x", now, now) // once this value is stored, the server has also handled the older value
	if value, _, _, _ := read(t, b, "k"); value != "value" {
		t.Errorf("got %q, want %q, because an older value must not replace a newer value", value, "value")
	}
}

// TestClaim checks that only one of several replicas can claim a key, and that another replica can claim the key after the first
// claim has ended.
func TestClaim(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	var mu sync.Mutex
	claimed := map[string]int{}
	var g sync.WaitGroup
	var all []*Fleet
	for range 3 {
		f := join(t, Config{URL: server.URL()})
		waitConnected(t, f)
		all = append(all, f)
	}
	var keys []string
	for i := range 40 {
		keys = append(keys, fmt.Sprint("k", i))
	}
	for _, f := range all {
		g.Go(func() {
			for i, mine := range f.Claim(t.Context(), "market", keys, time.Minute, nil) {
				if mine {
					mu.Lock()
					claimed[keys[i]]++
					mu.Unlock()
				}
			}
		})
	}
	g.Wait()
	for _, key := range keys {
		if claimed[key] != 1 {
			t.Errorf("key %s was claimed %d times, want once", key, claimed[key])
		}
	}
	claims := func(f *Fleet, key string, hold time.Duration) bool {
		return f.Claim(t.Context(), "market", []string{key}, hold, func(int, []byte, time.Time, time.Time) bool { return true })[0]
	}
	if !claims(all[0], "short", 2*time.Second) || claims(all[1], "short", time.Minute) {
		t.Error("the first claim of a key failed, or a second replica could claim the key, too")
	}
	eventually(t, "the claim ends by itself", func() bool { return claims(all[1], "short", time.Minute) })
	// The claim of replica 0 has ended, so Put of replica 0 must not end the claim of replica 1.
	all[0].Put("market", []shared.Record{{Key: "short"}}, time.Now(), time.Now())
	all[1].Put("market", []shared.Record{{Key: "k0"}}, time.Now(), time.Now())
	put(t, all[0], "after", "x", time.Now(), time.Now())
	put(t, all[1], "after1", "x", time.Now(), time.Now())
	if claims(all[2], "short", time.Minute) {
		t.Error("Put ended the claim of another replica")
	}
}

// TestDrop checks that the response to a call that started before Drop is not shared.
func TestDrop(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	a, b := join(t, Config{URL: server.URL()}), join(t, Config{URL: server.URL()})
	waitConnected(t, a)
	waitConnected(t, b)
	before := time.Now()
	put(t, a, "k", "old", before, before)
	b.Drop("price", "k")
	eventually(t, "the value is dropped", func() bool { _, _, _, ok := read(t, a, "k"); return !ok })
	a.Put("price", []shared.Record{{Key: "k", Value: []byte("late"), Keep: time.Minute}}, before.Add(time.Millisecond), time.Now())
	put(t, a, "after", "x", before, before)
	if value, _, _, ok := read(t, a, "k"); ok {
		t.Errorf("the response %q to a call that started before Drop is shared", value)
	}
	after := time.Now().Add(time.Second)
	put(t, a, "k", "new", after, after)
}

// TestFlush checks that a flush reaches the running replicas except the replica that flushes. Replicas that start later must not
// get the flush.
func TestFlush(t *testing.T) {
	t.Parallel()
	server := tool.StartRedis(t)
	var mu sync.Mutex
	heard := map[string][]string{}
	listen := func(name string) *Fleet {
		f := join(t, Config{URL: server.URL()})
		f.OnFlush(func(kind, key string) {
			mu.Lock()
			defer mu.Unlock()
			heard[name] = append(heard[name], kind+" "+key)
		})
		waitConnected(t, f)
		return f
	}
	a, b := listen("a"), listen("b")
	now := time.Now()
	put(t, a, "k", "value", now, now)
	has := func(name, what string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			n := len(heard[name])
			return n > 0 && heard[name][n-1] == what
		}
	}
	a.Flush("price", "k")
	if _, _, _, ok := read(t, a, "k"); ok {
		t.Error("the replica that flushed still finds the value")
	}
	eventually(t, "the other replica hears of the key", has("b", "price k"))
	if _, _, _, ok := read(t, b, "k"); ok {
		t.Error("the other replica still finds the value")
	}
	a.Flush("price", "k1")
	a.Flush("price", "k2")
	eventually(t, "the other replica flushes the last key, or all keys if it has missed a flush", func() bool { return has("b", "price ")() || has("b", "price k2")() })
	listen("c")
	time.Sleep(2 * tickEvery)
	mu.Lock()
	defer mu.Unlock()
	if len(heard["a"])+len(heard["c"]) > 0 {
		t.Errorf("OnFlush was called for %q on the replica that flushed and for %q on a new replica, want no calls", heard["a"], heard["c"])
	}
}
