package e2e

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"oddsgraph/tests/tool"
)

// lanes are the services of a test, each with its own venue and its test cases. Different lanes run at the same time.
type lanes []laneWithRows

type laneWithRows struct {
	*lane
	rows []row
}

// run runs all test cases and returns their results by name. The test cases whose field alone is true run last, one after the
// other. run checks the memory use of each of them separately, and the memory use of all other test cases together.
func (all lanes) run(t testing.TB) (outcomes map[string]error) {
	t.Helper()
	outcomes = make(map[string]error)
	var mu sync.Mutex
	note := func(r *row, err error) {
		mu.Lock()
		defer mu.Unlock()
		outcomes[r.name] = err
	}
	err := checkMemory(math.MaxInt64, uint64(len(all))*laneLeft, func() error {
		var running sync.WaitGroup
		for _, l := range all {
			running.Go(func() {
				for i := range l.rows {
					if r := &l.rows[i]; !r.alone {
						note(r, r.run(l.lane))
					}
				}
			})
		}
		running.Wait()
		return nil
	})
	if err != nil {
		t.Errorf("the memory use of all test cases without alone set: %v", err)
	}
	for _, l := range all {
		for i := range l.rows {
			if r := &l.rows[i]; r.alone {
				note(r, checkMemory(largeAllocated, largeLeft, func() error { return r.run(l.lane) }))
			}
		}
	}
	return outcomes
}

// TestFaultMatrix checks each fault of each endpoint, with a cold and with a warm cache. The data from all other endpoints must not
// change.
func TestFaultMatrix(t *testing.T) {
	tool.CheckTier(t)
	survived, total := 0, 0
	tally := func(t *testing.T, outcomes map[string]error) {
		for _, name := range slices.Sorted(maps.Keys(outcomes)) {
			if total++; outcomes[name] == nil {
				survived++
				continue
			}
			t.Errorf("%s:\n%v", name, outcomes[name])
		}
	}
	// Test cases with calls that hang run in a synctest bubble, where a busy machine cannot cause timeouts.
	t.Run("calls that hang", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			patient, hurried := laneWithRows{lane: newPipedLane(t)}, laneWithRows{lane: newPipedLane(t, longCallTimeout, fmt.Sprint("--request-timeout=", shortTimeout))}
			for i := range wholeBranches {
				for f := range callFaults {
					if callFaults[f].hangs() {
						patient.rows = append(patient.rows, callFaults[f].rows(&wholeBranches[i])...)
					}
				}
				hurried.rows = append(hurried.rows, hangRow(&wholeBranches[i]))
			}
			tally(t, lanes{patient, hurried}.run(t))
		})
	})
	// All other test cases have long timeouts, because the machine may be busy.
	t.Run("other faults", func(t *testing.T) {
		var all lanes
		for i := range wholeBranches {
			rows := drifts(&wholeBranches[i])
			for f := range callFaults {
				if !callFaults[f].hangs() {
					rows = append(rows, callFaults[f].rows(&wholeBranches[i])...)
				}
			}
			all = append(all, laneWithRows{newLane(t, longCallTimeout), rows})
		}
		tally(t, all.run(t))
	})
	t.Logf("fault matrix: survived/total %d/%d", survived, total)
	if total < 100 {
		t.Errorf("there are only %d test cases, want at least 100", total)
	}
}

// These limits are in bytes.
const (
	// largeAllocated is the memory that a test case with alone set may allocate.
	largeAllocated = 48 << 20
	// largeLeft is the memory that may stay in use after such a test case.
	largeLeft = 4 << 20
	// laneLeft is the memory that may stay in use after all other test cases of a lane, for example for idle connections.
	laneLeft = 512 << 10
)

// checkMemory runs f and returns the error of f. It adds an error if f allocates more than maxAllocated bytes, or if memory in use
// grows by more than maxLeft bytes.
func checkMemory(maxAllocated, maxLeft uint64, f func() error) error {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	err := f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > maxAllocated {
		err = errors.Join(err, fmt.Errorf("%d MiB were allocated, want at most %d MiB", n>>20, maxAllocated>>20))
	}
	if after.HeapAlloc > before.HeapAlloc+maxLeft {
		err = errors.Join(err, fmt.Errorf("%d KiB stayed in use, want at most %d KiB", (after.HeapAlloc-before.HeapAlloc)>>10, maxLeft>>10))
	}
	return err
}
