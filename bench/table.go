package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// The columns of a measurement.
const (
	perSecond = iota
	cpu       // nanoseconds per query
	allocs    // allocations per query
	heapBytes // allocated bytes per query
	p50       // nanoseconds
	p99       // nanoseconds
	upstream  // venue calls per query
	resident  // bytes
	clientCPU // nanoseconds per query
	hits      // share of the queries that the response cache answered
	executed  // executed operations per query
	behind    // maximum age of the prices in the responses, in nanoseconds
	columns
)

// cell has the measurements of one server with one workload in one round.
type cell struct {
	queries int
	values  [columns]float64
}

// row has the measurements of one server with one workload in all rounds.
type row struct {
	workload workload
	server   string
	cells    []cell
}

// table has the measurements of one lab.
type table struct {
	latency time.Duration
	moving  bool
	notes   []string
	rows    []*row
}

func (t *table) title() string {
	venue := "a venue whose prices do not move, everything cached"
	if t.moving {
		venue = fmt.Sprintf("a venue where each price of the answer moves %d times a second, default settings", changesPerSecond)
	}
	return fmt.Sprintf("Queries over %s, %v of latency", venue, t.latency)
}

// note adds a remark to the table if the condition is true.
func (t *table) note(condition bool, text string) {
	if condition {
		t.notes = append(t.notes, text)
	}
}

func (t *table) add(w workload, server string, c cell) {
	r := t.row(w.name, server)
	if r == nil {
		r = &row{workload: w, server: server}
		t.rows = append(t.rows, r)
	}
	r.cells = append(r.cells, c)
}

// row returns the row of a server with a workload, or nil if there is none.
func (t *table) row(workload, server string) *row {
	i := slices.IndexFunc(t.rows, func(r *row) bool { return r.workload.name == workload && r.server == server })
	if i < 0 {
		return nil
	}
	return t.rows[i]
}

func (r *row) column(column int) []float64 {
	values := make([]float64, len(r.cells))
	for i, c := range r.cells {
		values[i] = c.values[column]
	}
	return values
}

func (r *row) median(column int) float64 { return median(r.column(column)) }

// ratio divides the column of one row by the column of another row for each round, and returns the median of the results. It
// returns 0 if one of the rows is nil.
func ratio(of, to *row, column int) float64 {
	if of == nil || to == nil {
		return 0
	}
	values := make([]float64, len(of.cells))
	for i := range of.cells {
		values[i] = of.cells[i].values[column] / max(to.cells[i].values[column], 1)
	}
	return median(values)
}

// median returns the median of the values, or 0 if there are none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// spread returns the difference of the greatest and the least value, divided by the median.
func spread(values []float64) float64 {
	if m := median(values); m > 0 {
		return (slices.Max(values) - slices.Min(values)) / m
	}
	return 0
}

// number formats a value. It returns "-" for 0 and NaN, because such a value is unknown or does not exist.
func number(format string, v float64) string {
	if v == 0 || math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

// markdown returns a table of the medians.
func (t *table) markdown() string {
	lines := [][]string{{
		"workload", "server", "req/s", "CPU µs", "±", "allocs", "KB", "p50 ms", "p99 ms", "calls", "executed", "hits", "behind ms", "RSS MB",
		"of limit", "by req/s", "+µs", "× plain", "by req/s", "client µs",
	}}
	for _, r := range t.rows {
		limit, plain := t.row(r.workload.name, limitServer), t.row(r.workload.name, plainServer)
		above := 0.0
		if limit != nil && limit != r {
			above = (r.median(cpu) - limit.median(cpu)) / 1e3
		}
		late := "-"
		if t.moving && r.server != limitServer {
			late = fmt.Sprintf("%.0f", r.median(behind)/1e6)
		}
		lines = append(lines, []string{
			r.workload.name, r.server,
			fmt.Sprintf("%.0f", r.median(perSecond)),
			number("%.1f", r.median(cpu)/1e3),
			fmt.Sprintf("%.0f%%", 100*spread(r.column(cpu))),
			fmt.Sprintf("%.0f", r.median(allocs)),
			fmt.Sprintf("%.1f", r.median(heapBytes)/1e3),
			fmt.Sprintf("%.2f", r.median(p50)/1e6),
			fmt.Sprintf("%.2f", r.median(p99)/1e6),
			fmt.Sprintf("%.3f", r.median(upstream)),
			number("%.3f", r.median(executed)),
			number("%.3f", r.median(hits)),
			late,
			number("%.0f", r.median(resident)/(1<<20)),
			number("%.3f", ratio(limit, r, cpu)),
			number("%.3f", ratio(r, limit, perSecond)),
			number("%.1f", above),
			number("%.1f", ratio(plain, r, cpu)),
			number("%.1f", ratio(r, plain, perSecond)),
			number("%.1f", r.median(clientCPU)/1e3),
		})
	}
	return markdown(lines, 2)
}

// markdown returns the lines as a Markdown table. The first line is the header. The second argument is the number of columns that
// are aligned left. The other columns are aligned right.
func markdown(lines [][]string, left int) string {
	var b bytes.Buffer
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, s := range line {
			widths[i] = max(widths[i], len([]rune(s)))
		}
	}
	for n, line := range lines {
		for i, s := range line {
			pad := strings.Repeat(" ", widths[i]-len([]rune(s)))
			if i < left {
				fmt.Fprintf(&b, "| %s%s ", s, pad)
			} else {
				fmt.Fprintf(&b, "| %s%s ", pad, s)
			}
		}
		b.WriteString("|\n")
		if n == 0 {
			for i, w := range widths {
				rule := strings.Repeat("-", w)
				if i < left {
					fmt.Fprintf(&b, "| %s ", rule)
				} else {
					fmt.Fprintf(&b, "| %s:", rule)
				}
			}
			b.WriteString("|\n")
		}
	}
	return b.String()
}
