// Package probe lets a benchmark read the resource usage of a server process. A server only has to import the package. If the
// environment variable named by [Variable] is set, the package serves the usage, and ends the process when its standard input
// ends. A server therefore does not outlive a killed benchmark. If the variable is not set, the package does nothing.
package probe

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"runtime/metrics"
)

// Variable names the environment variable that holds the path of the unix socket on which the probe answers:
//
//	GET /usage                 the [Usage]
//	GET /debug/pprof/profile   a CPU profile; ?seconds= is its duration
//	GET /debug/pprof/trace     an execution trace; ?seconds= is its duration
//	GET /debug/pprof/allocs    a profile of all allocations so far
const Variable = "BENCH_PROBE"

// Usage is what the process has used since it started.
type Usage struct {
	// CPU is the sum of user and system time in nanoseconds. It is 0 if the system does not report the time.
	CPU int64 `json:"cpu"`
	// Allocs and Bytes are the number and size of all heap allocations, including those of objects that have been freed.
	Allocs uint64 `json:"allocs"`
	Bytes  uint64 `json:"bytes"`
}

func init() {
	path := os.Getenv(Variable)
	if path == "" {
		return
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /usage", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(Read())
	})
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.Handle("GET /debug/pprof/allocs", pprof.Handler("allocs"))
	go func() { _ = http.Serve(l, mux) }()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
}

// Read returns what this process has used.
func Read() Usage {
	heap := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(heap)
	return Usage{CPU: cpu(), Allocs: heap[0].Value.Uint64(), Bytes: heap[1].Value.Uint64()}
}
