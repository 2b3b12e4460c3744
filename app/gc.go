package app

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// headroom is the number of bytes of garbage at which a collection starts. If the live heap is larger than headroom, a collection
// starts when there is as much garbage as live data. Responses make much short-lived garbage, even if the live heap is small, so
// they need a large GOGC. The same GOGC would multiply the memory of many idle subscribers.
const headroom = 64 << 20

// leastPercent is the minimum GOGC, for a large heap. firstPercent is the maximum GOGC, which also applies until the first
// collection.
const leastPercent, firstPercent = 100, 1600

// gcPercent returns the GOGC with which a collection starts at headroom bytes of garbage, from leastPercent to firstPercent. live
// is the number of live bytes, including stacks and global variables.
func gcPercent(live uint64) int {
	return max(leastPercent, int(min(100*headroom/max(live, 1), firstPercent)))
}

// tuneGC sets GOGC to the result of gcPercent after each collection. It does nothing if the environment sets GOGC.
func tuneGC() {
	if _, set := os.LookupEnv("GOGC"); set {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	percent := firstPercent
	debug.SetGCPercent(percent)
	var watch func()
	// The cleanup of an unreachable object runs after the next collection.
	watch = func() {
		runtime.AddCleanup(&struct{ _ *int }{}, func(struct{}) {
			metrics.Read(live)
			total := uint64(0)
			for _, part := range live {
				total += part.Value.Uint64()
			}
			// SetGCPercent stops the world, so small changes are skipped.
			if want := gcPercent(total); math.Abs(float64(want-percent)) > float64(percent)/20 {
				percent = want
				debug.SetGCPercent(want)
			}
			watch()
		}, struct{}{})
	}
	watch()
}
