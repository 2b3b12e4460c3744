package app

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// headroom is the number of bytes of garbage that start a collection. If the live heap is larger, a collection starts when there is
// as much garbage as live data. Responses make much short-lived garbage while the live heap is small. A fixed GOGC that suits
// responses would multiply the memory of idle subscribers.
const headroom = 64 << 20

// leastPercent is the GOGC of a large heap. firstPercent is the GOGC until the first collection.
const leastPercent, firstPercent = 100, 1600

// gcPercent returns the GOGC with which a collection begins after headroom bytes of garbage. live is the number of live bytes,
// including stacks and global variables.
func gcPercent(live uint64) int {
	return max(leastPercent, int(min(100*headroom/max(live, 1), firstPercent)))
}

// tuneGC adjusts GOGC after each collection, so that the headroom stays constant. It does nothing if the environment sets GOGC.
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
