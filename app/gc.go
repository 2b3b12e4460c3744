package app

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// headroom is the number of bytes of garbage at which a collection starts while the live heap is small. Responses make much
// short-lived garbage, so a small heap with a small GOGC would be collected too often. A large heap, for example with many idle
// subscriptions, needs a small GOGC, because a large GOGC would multiply the heap's size.
const headroom = 64 << 20

// leastPercent is the minimum GOGC. firstPercent is the maximum GOGC, and the GOGC until the first collection.
const leastPercent, firstPercent = 100, 1600

// gcPercent returns the GOGC that starts a collection at headroom bytes of garbage, but at least leastPercent and at most
// firstPercent. live is the size of the live heap, the stacks and the global variables in bytes.
func gcPercent(live uint64) int {
	return max(leastPercent, int(min(100*headroom/max(live, 1), firstPercent)))
}

// tuneGC sets GOGC to firstPercent, and after each collection to the result of gcPercent. It skips changes of at most a twentieth
// of the present GOGC. If the environment sets GOGC, tuneGC does nothing.
func tuneGC() {
	if _, set := os.LookupEnv("GOGC"); set {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	percent := firstPercent
	debug.SetGCPercent(percent)
	var watch func()
	// watch creates an object that is unreachable at once, so the cleanup of the object runs after the next collection.
	watch = func() {
		runtime.AddCleanup(&struct{ _ *int }{}, func(struct{}) {
			metrics.Read(live)
			total := uint64(0)
			for _, part := range live {
				total += part.Value.Uint64()
			}
			// SetGCPercent stops the world, so it is not called for small changes.
			if want := gcPercent(total); math.Abs(float64(want-percent)) > float64(percent)/20 {
				percent = want
				debug.SetGCPercent(want)
			}
			watch()
		}, struct{}{})
	}
	watch()
}
