package app

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// headroom is how much garbage may lie about before it is collected, in bytes, or as much as is live where that is more.
// Answers make much short-lived garbage over little that lives, and collecting it costs more than keeping it; a percentage of
// what lives, as GOGC is one, would have every subscriber that stays cost several times what it takes.
const headroom = 64 << 20

// leastPercent is the GOGC of a large heap, firstPercent that of one that was never collected.
const leastPercent, firstPercent = 100, 1600

// gcPercent returns the GOGC that leaves the headroom: it is of what is live, with the stacks and the program's variables.
func gcPercent(live uint64) int {
	return max(leastPercent, int(min(100*headroom/max(live, 1), firstPercent)))
}

// paceCollector keeps the headroom from now on, unless GOGC says what else to do.
func paceCollector() {
	if _, set := os.LookupEnv("GOGC"); set {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	percent := firstPercent
	debug.SetGCPercent(percent)
	var watch func()
	// What nobody refers to is gone with the next collection, which is the moment to look.
	watch = func() {
		runtime.AddCleanup(&struct{ _ *int }{}, func(struct{}) {
			metrics.Read(live)
			total := uint64(0)
			for _, part := range live {
				total += part.Value.Uint64()
			}
			// To set it stops the program for a moment, so small changes are let be.
			if want := gcPercent(total); math.Abs(float64(want-percent)) > float64(percent)/20 {
				percent = want
				debug.SetGCPercent(want)
			}
			watch()
		}, struct{}{})
	}
	watch()
}
