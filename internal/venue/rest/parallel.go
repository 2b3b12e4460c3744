package rest

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"oddsgraph/internal/market"
)

// Parallel is the greatest number of concurrent calls of one read.
const Parallel = 4

// ForEach calls f with 0 to n-1, with at most Parallel calls at the same time. It returns when all calls of f have returned. If f
// panics, ForEach also panics and may skip the remaining numbers.
func ForEach(n int, f func(i int)) {
	if n == 1 {
		f(0)
		return
	}
	var next atomic.Int64
	var panicked atomic.Pointer[string]
	var wg sync.WaitGroup
	for range min(n, Parallel) {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					text := fmt.Sprintf("%v\n%s", p, debug.Stack())
					panicked.Store(&text)
				}
			}()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
	if p := panicked.Load(); p != nil {
		panic(*p)
	}
}

// ForEachUntilLimited is like ForEach with the numbers of errs, and stores the error of each call. After a call has returned
// RATE_LIMITED, it starts no further call, and the remaining numbers get the same error.
func ForEachUntilLimited(errs []error, f func(i int) error) {
	var limited atomic.Pointer[error]
	ForEach(len(errs), func(i int) {
		if known := limited.Load(); known != nil {
			errs[i] = *known
		} else if errs[i] = f(i); market.CodeOf(errs[i]) == market.CodeRateLimited {
			limited.Store(&errs[i])
		}
	})
}

// ErrorIfAllFailed returns the first element of errs. If an element is nil, or errs is empty, it returns nil.
func ErrorIfAllFailed(errs []error) error {
	if len(errs) == 0 || slices.Contains(errs, nil) {
		return nil
	}
	return errs[0]
}
