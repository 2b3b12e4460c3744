package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"oddsgraph/bench/subscribers"
)

// report has the results of all measurements.
type report struct {
	machine             string
	rounds, connections int
	tables              []*table
	crowds              []*crowd
	fleets              *fleets // nil if they were not measured
	// failures are the measurements of the cost of failures. failuresIn are the options of these measurements.
	failures   []*pairs
	failuresIn options
}

// markdown returns all tables in Markdown.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s. Medians of %d rounds, %d connections.\n", r.machine, r.rounds, r.connections)
	var about []string
	for _, t := range r.tables {
		fmt.Fprintf(&b, "\n## %s\n\n", t.title())
		for _, note := range t.notes {
			fmt.Fprintf(&b, "%s\n\n", note)
		}
		b.WriteString(t.markdown())
		for _, row := range t.rows {
			if line := row.workload.name + ": " + row.workload.about; !slices.Contains(about, line) {
				about = append(about, line)
			}
		}
	}
	if len(about) > 0 {
		fmt.Fprintf(&b, "\n%s.\n", strings.Join(about, "; "))
	}
	if len(r.crowds) > 0 {
		fmt.Fprintf(&b, "\n## Subscribers of one token, %d events a second, and of different lists of %d of %d tokens, %d events a second\n\n%s", changesPerSecond, subscribers.ListLength, listedTokens, listEvents, crowdsMarkdown(r.crowds))
	}
	if r.fleets != nil {
		fmt.Fprintf(&b, "\n## Replicas\n\n%s", r.fleets.markdown())
	}
	if len(r.failures) > 0 {
		fmt.Fprintf(&b, "\n## What a failure costs\n\n%s", failuresMarkdown(r.failures, r.failuresIn))
	}
	return b.String()
}

// benchfmt returns every round in the format of Go's benchmarks.
func (r *report) benchfmt() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\npkg: oddsgraph/bench\n", runtime.GOOS, runtime.GOARCH)
	for _, t := range r.tables {
		venue := map[bool]string{false: "still", true: "moving"}[t.moving]
		for _, row := range t.rows {
			for _, c := range row.cells {
				v := c.values
				fmt.Fprintf(&b, "BenchmarkServe/%s/latency=%v/%s/%s %d %.0f cpu-ns/op %.1f allocs/op %.0f B/op %.0f p50-ns %.0f p99-ns %.1f req/s %.4f calls/op %.0f RSS-bytes\n",
					venue, t.latency, row.workload.name, row.server, c.queries,
					v[cpu], v[allocs], v[heapBytes], v[p50], v[p99], v[perSecond], v[upstream], v[resident])
			}
		}
	}
	for _, c := range r.crowds {
		for _, s := range c.servers {
			for _, d := range s.rounds {
				fmt.Fprintf(&b, "Benchmark%s/subscribers=%d/%s %.0f %.0f cpu-ns/op %.1f allocs/op %.0f p50-ns %.0f p99-ns\n",
					c.benchmark(), c.subscribers, s.name, d.deliveries, d.cpu, d.allocs, d.p50, d.p99)
			}
		}
	}
	if r.fleets != nil {
		b.WriteString(r.fleets.benchfmt())
	}
	return b.Bytes()
}

// machine describes the computer and its load average, as far as the system reports them.
func machine() string {
	s := fmt.Sprintf("%d CPUs, %s, %s/%s", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				s = strings.TrimSpace(model) + ", " + s
				break
			}
		}
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		if fields := strings.Fields(string(b)); len(fields) >= 3 {
			s += ", load averages before the run: " + strings.Join(fields[:3], " ")
		}
	}
	return s
}
