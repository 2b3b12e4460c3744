package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// unit is the unit of a figure. benchstat reads its name. A unit with a title has a column in the tables: the median of all
// rounds, divided by scale.
type unit struct {
	name, title, format string
	scale               float64
}

var (
	nsPerOp      = &unit{name: "ns/op"} // time of the whole run, divided by the number of operations
	cpuPerOp     = &unit{"cpu-ns/op", "CPU µs", "%.1f", 1e3}
	ofLimit      = &unit{"of-limit", "of limit", "%.3f", 1} // cpuPerOp of limit in the same round, divided by cpuPerOp
	perSecond    = &unit{"req/s", "req/s", "%.0f", 1}
	rateOfLimit  = &unit{"of-limit-req/s", "req/s of limit", "%.3f", 1} // perSecond divided by perSecond of limit in the same round
	allocsPerOp  = &unit{"allocs/op", "allocs", "%.1f", 1}
	bytesPerOp   = &unit{"B/op", "KB", "%.1f", 1e3}
	p50          = &unit{"p50-ns", "p50 ms", "%.2f", 1e6}
	p99          = &unit{"p99-ns", "p99 ms", "%.2f", 1e6}
	callsPerOp   = &unit{"calls/op", "calls", "%.3f", 1}     // calls to the venue
	hitsPerOp    = &unit{"hits/op", "hits", "%.3f", 1}       // share of the queries that the cache of whole responses answered
	arrivedPerOp = &unit{"arrived/op", "arrived", "%.3f", 1} // share of the events that arrived; newer events replaced the others
	resident     = &unit{"RSS-bytes", "RSS MB", "%.0f", 1 << 20}
)

var units = []*unit{nsPerOp, cpuPerOp, ofLimit, perSecond, rateOfLimit, allocsPerOp, bytesPerOp, p50, p99, callsPerOp, hitsPerOp, arrivedPerOp, resident}

type section struct {
	title, about string
	columns      []*unit
}

// The sections in the order of the report.
var (
	querySection = &section{"Queries", fmt.Sprintf("%d connections. Each run starts a new process, sends each request once, and measures what follows.", connections),
		[]*unit{cpuPerOp, ofLimit, perSecond, rateOfLimit, allocsPerOp, bytesPerOp, p50, p99, callsPerOp, hitsPerOp, resident}}
	coldSection = &section{"Cold queries", "Single queries, one after the other. Nothing that a query reads is in the cache.",
		[]*unit{p50, p99, cpuPerOp, callsPerOp}}
	crowdSection = &section{"Subscribers", "Of one token with 10 events a second, or each of another list of 8 of 500 tokens with 2 events a second.",
		[]*unit{cpuPerOp, allocsPerOp, p50, p99, arrivedPerOp, resident}}
	curveSection = &section{"Working sets", "V1 and V2 with more and more portfolios and market pages.",
		[]*unit{cpuPerOp, perSecond, callsPerOp, hitsPerOp, resident}}
)

func (b *bench) markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "# Results of `make bench`\n\n%s%s Medians of %d rounds of %v.\n", b.machine, b.busy, b.rounds, b.duration)
	for _, mode := range b.modes() {
		for _, s := range []*section{querySection, coldSection, crowdSection, curveSection} {
			if t := b.table(s, mode); t != "" {
				fmt.Fprintf(&out, "\n## %s over %s\n\n%s\n\n%s", s.title, mode.about, s.about, t)
			}
		}
	}
	if !b.measuresCurves() {
		fmt.Fprintf(&out, "\n## %s\n\n%s The figures are those of the last `make bench-curve`.\n\n![%s](%s)\n", curveSection.title, curveSection.about, curveTitle, curveFile)
	}
	fmt.Fprintf(&out, "\n## Flags\n\nAll programs run with their defaults, and without GOGC or another variable of Go. The exceptions, besides addresses:\n\n")
	for _, f := range []setting{graphFlag, uncachedFlag, crowdFlag} {
		fmt.Fprintf(&out, "- `%s`: %s.\n", f.args, f.reason)
	}
	for _, mode := range b.modes() {
		if !slices.ContainsFunc(b.results, func(r result) bool { return r.mode == mode.name }) {
			continue
		}
		fmt.Fprintf(&out, "\nFlags of %s:\n\n", mode.about)
		for _, f := range append(demoFlags, mode.flags...) {
			fmt.Fprintf(&out, "- `%s`: %s.\n", f.args, f.reason)
		}
	}
	return out.String()
}

func (b *bench) table(s *section, mode venueMode) string {
	var rows []row
	for _, r := range b.results {
		if r.section == s && r.mode == mode.name && !slices.Contains(rows, r.row) {
			rows = append(rows, r.row)
		}
	}
	if len(rows) == 0 {
		return ""
	}
	titles, rule, lines := "| benchmark | server |", "| --- | --- |", ""
	for _, u := range s.columns {
		titles, rule = titles+" "+u.title+" |", rule+" ---: |"
	}
	for _, r := range rows {
		lines += "| " + r.benchmark + " | " + r.server + " |"
		for _, u := range s.columns {
			lines += " " + u.text(b.runs(r, u)) + " |"
		}
		lines += "\n"
	}
	return titles + "\n" + rule + "\n" + lines
}

// text returns the median, and for ofLimit also its interval.
func (u *unit) text(values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	text := fmt.Sprintf(u.format, median(values)/u.scale)
	if u == ofLimit {
		least, most := interval(values)
		text += fmt.Sprintf(" ("+u.format+" to "+u.format+")", least/u.scale, most/u.scale)
	}
	return text
}

func machine() (computer, busy string) {
	model := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, ok := strings.Cut(string(text), "model name\t: "); ok {
			model, _, _ = strings.Cut(rest, "\n")
		}
	}
	computer = fmt.Sprintf("%s, %s, %d processors that venue, servers and clients share, %s, %s.",
		time.Now().Format(time.DateOnly), model, runtime.NumCPU(), runtime.Version(), runtime.GOOS)
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load := strings.Fields(string(text))[1] // of five minutes; the build has changed the load of one minute
		busy = " The load average of the five minutes before was " + load + "; if it is above 0.5, other programs made the figures rough."
	}
	return computer, busy
}

// figures are the measurements of one run by unit. n is the number of operations, which are queries or delivered messages.
type figures struct {
	n      int
	values map[*unit]float64
}

// row is a row of a table: a server that is measured with a benchmark. mode is the name of the venue's mode.
type row struct {
	section                 *section
	mode, benchmark, server string
}

type result struct {
	row
	figures
}

// add records a result, and prints it in the format of Go's benchmarks. If limit has been measured in the same round, add compares
// the result with limit's.
func (b *bench) add(k benchmark, s server, f figures) {
	r := row{k.section, b.mode.name, k.name, s.name}
	limit := row{k.section, b.mode.name, k.name, limitServer}
	if all := b.runs(limit, cpuPerOp); r != limit && len(all) > 0 {
		rates := b.runs(limit, perSecond)
		f.values[ofLimit], f.values[rateOfLimit] = all[len(all)-1]/f.values[cpuPerOp], f.values[perSecond]/rates[len(rates)-1]
	}
	b.results = append(b.results, result{r, f})
	line := fmt.Sprintf("Benchmark%s/venue=%s/server=%s-%d\t%d", r.benchmark, r.mode, r.server, runtime.GOMAXPROCS(0), f.n)
	for _, u := range units {
		if v, ok := f.values[u]; ok {
			line += fmt.Sprintf("\t%.4g %s", v, u.name)
		}
	}
	fmt.Fprintln(b.lines, line)
}

func (b *bench) runs(of row, u *unit) (values []float64) {
	for _, r := range b.results {
		if v, ok := r.values[u]; ok && r.row == of {
			values = append(values, v)
		}
	}
	return values
}

// interval returns the interval that contains the true median with a confidence of some 95 %: the order statistics that are the
// square root of n ranks from the middle. For at most five values it is their range, with less confidence.
func interval(values []float64) (least, most float64) {
	sorted := slices.Sorted(slices.Values(values))
	from := max(0, int(float64(len(sorted))/2-math.Sqrt(float64(len(sorted)))))
	return sorted[from], sorted[len(sorted)-1-from]
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
