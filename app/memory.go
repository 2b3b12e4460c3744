package app

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"oddsgraph/internal/config"
)

const (
	// Cached data and cached responses together take 1/cacheShare of the memory, but at most maxCache bytes. Two thirds of it are for
	// data.
	cacheShare, maxCache = 4, 256 << 20
	// Unread responses may use 1/outputShare of GOMEMLIMIT. Without GOMEMLIMIT they may use defaultOutput bytes.
	outputShare, defaultOutput = 6, 64 << 20
	// leastResponses is the number of unread responses of the maximum size that are always allowed.
	leastResponses = 4
)

// memory returns the bytes that the program may use: the smallest of GOMEMLIMIT, the limit of the container and the memory of the
// machine, of those that are set and can be read.
func memory() int64 {
	least := debug.SetMemoryLimit(-1)
	for _, limit := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if bytes, err := limit(); err == nil && bytes > 0 && bytes < math.MaxInt64 {
			least = min(least, int64(bytes))
		}
	}
	return least
}

// cacheBytes returns how many bytes cached data and cached responses may use. memory is the result of the function memory.
func cacheBytes(cfg config.Cache, memory int64) (data, responses int64) {
	total := min(memory/cacheShare, maxCache)
	data, responses = total-total/3, total/3
	if cfg.Memory != config.AutoBytes {
		data = int64(cfg.Memory)
	}
	if cfg.Responses != config.AutoBytes {
		responses = int64(cfg.Responses)
	}
	return data, responses
}

// maxOutput returns how many bytes of responses all clients together may leave unread.
func maxOutput(cfg *config.Config) int {
	output := defaultOutput
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		output = int(limit / outputShare)
	}
	return max(output, leastResponses*int(cfg.MaxResponse))
}
