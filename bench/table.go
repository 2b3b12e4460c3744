package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
)

// The columns of a measurement.
const (
	perSecond = iota
	cpu       // nanoseconds a query
	allocs    // a query
	heapBytes // a query
	p50       // nanoseconds
	p99       // nanoseconds
	upstream  // calls a query
	resident  // bytes
	clientCPU // nanoseconds a query
	columns
)

// cell is one server under one workload in one round.
type cell struct {
	queries int
	values  [columns]float64
}

// row is one server under one workload, round by round.
type row struct {
	workload workload
	server   string
	cells    []cell
}

// table collects the rounds.
type table struct {
	rounds int
	rows   []*row
}

func (t *table) add(w workload, server string, c cell) {
	r := t.row(w.name, server)
	if r == nil {
		r = &row{workload: w, server: server}
		t.rows = append(t.rows, r)
	}
	r.cells = append(r.cells, c)
}

// row returns the row of a server under a workload, or nil.
func (t *table) row(workload, server string) *row {
	i := slices.IndexFunc(t.rows, func(r *row) bool { return r.workload.name == workload && r.server == server })
	if i < 0 {
		return nil
	}
	return t.rows[i]
}

func (r *row) median(column int) float64 {
	values := make([]float64, len(r.cells))
	for i, c := range r.cells {
		values[i] = c.values[column]
	}
	return median(values)
}

// ratio returns the median of what the column of other is to that of r in the same round; 0 without other.
func (r *row) ratio(other *row, column int) float64 {
	if other == nil {
		return 0
	}
	values := make([]float64, len(r.cells))
	for i := range r.cells {
		values[i] = other.cells[i].values[column] / max(r.cells[i].values[column], 1)
	}
	return median(values)
}

// median returns the middle of some values; 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// print writes the medians as a table in Markdown.
func (t *table) print(out io.Writer) error {
	lines := [][]string{{"workload", "server", "req/s", "CPU µs", "allocs", "KB", "p50 ms", "p99 ms", "calls", "RSS MB", "of limit", "× plain"}}
	number := func(format string, v float64) string {
		if v == 0 {
			return "-"
		}
		return fmt.Sprintf(format, v)
	}
	var about []workload
	var client []float64
	for _, r := range t.rows {
		if !slices.ContainsFunc(about, func(w workload) bool { return w.name == r.workload.name }) {
			about = append(about, r.workload)
		}
		client = append(client, r.median(clientCPU))
		lines = append(lines, []string{
			r.workload.name, r.server,
			fmt.Sprintf("%.0f", r.median(perSecond)),
			number("%.1f", r.median(cpu)/1e3),
			fmt.Sprintf("%.0f", r.median(allocs)),
			fmt.Sprintf("%.1f", r.median(heapBytes)/1e3),
			fmt.Sprintf("%.2f", r.median(p50)/1e6),
			fmt.Sprintf("%.2f", r.median(p99)/1e6),
			fmt.Sprintf("%.3f", r.median(upstream)),
			number("%.0f", r.median(resident)/(1<<20)),
			number("%.3f", r.ratio(t.row(r.workload.name, limitServer), cpu)),
			number("%.1f", r.ratio(t.row(r.workload.name, plainServer), cpu)),
		})
	}
	var b bytes.Buffer
	b.WriteByte('\n')
	for _, w := range about {
		fmt.Fprintf(&b, "%s: %s\n", w.name, w.about)
	}
	fmt.Fprintf(&b, "Medians of %d rounds. The load client itself took %.0f to %.0f µs of CPU a query.\n\n", t.rounds, slices.Min(client)/1e3, slices.Max(client)/1e3)
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, s := range line {
			widths[i] = max(widths[i], len([]rune(s)))
		}
	}
	for n, line := range lines {
		for i, s := range line {
			pad := strings.Repeat(" ", widths[i]-len([]rune(s)))
			if i < 2 {
				fmt.Fprintf(&b, "| %s%s ", s, pad)
			} else {
				fmt.Fprintf(&b, "| %s%s ", pad, s)
			}
		}
		b.WriteString("|\n")
		if n == 0 {
			for i, w := range widths {
				rule := strings.Repeat("-", w)
				if i < 2 {
					fmt.Fprintf(&b, "| %s ", rule)
				} else {
					fmt.Fprintf(&b, "| %s:", rule)
				}
			}
			b.WriteString("|\n")
		}
	}
	_, err := out.Write(b.Bytes())
	return err
}

// benchfmt returns every round in the format of Go's benchmarks.
func (t *table) benchfmt() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\npkg: oddsgraph/bench\n", runtime.GOOS, runtime.GOARCH)
	for _, r := range t.rows {
		for _, c := range r.cells {
			v := c.values
			fmt.Fprintf(&b, "BenchmarkServe/%s/%s %d %.0f cpu-ns/op %.1f allocs/op %.0f B/op %.0f p50-ns %.0f p99-ns %.1f req/s %.4f calls/op %.0f RSS-bytes\n",
				r.workload.name, r.server, c.queries, v[cpu], v[allocs], v[heapBytes], v[p50], v[p99], v[perSecond], v[upstream], v[resident])
		}
	}
	return b.Bytes()
}

// machine names what the figures were measured on, as far as the system says.
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
			s += ", load average " + strings.Join(fields[:3], " ")
		}
	}
	return s
}
