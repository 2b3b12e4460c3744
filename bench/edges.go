package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// fixedRate is the number of requests per second in the part with a fixed rate.
	fixedRate = 3000
	// expiringServer is the name of oddsgraph without the response cache and with account data that expire after the default time.
	expiringServer = "now"
	// minExpiringRun is the minimum duration of a run with expiring account data. It is three times the lifetime of the data.
	minExpiringRun = 6 * time.Second
	// maxStarts is the maximum number of times that measureAtRest starts the program.
	maxStarts = 9
)

// measureEdges measures the figures that measure leaves out, and prints them to out.
func measureEdges(ctx context.Context, b *builds, o options, out io.Writer) error {
	fmt.Fprintf(out, "%s. Medians of %d rounds, %d connections.\n", machine(), o.rounds, o.connections)
	for _, part := range []struct {
		title   string
		measure func(context.Context, *builds, options) (string, error)
	}{
		{fmt.Sprintf("Fixed rate of %d requests a second, 5ms of latency", fixedRate), measureFixedRate},
		{"Memory of 20,000 cached markets and 10,000 watched tokens with books of 20 levels a side", measureFullMemory},
		{"Start, memory at rest and size", measureAtRest},
		{"Layers: book changes at 200 levels a side, and prices of watched tokens", benchmarkLayers},
		{"Cold reads, 5ms of latency", benchmarkColdReads},
	} {
		text, err := part.measure(ctx, b, o)
		if err != nil {
			return fmt.Errorf("%s: %w", part.title, err)
		}
		if _, err := fmt.Fprintf(out, "\n## %s\n\n%s", part.title, text); err != nil {
			return err
		}
	}
	return nil
}

// measureFixedRate measures requests at a fixed rate. The servers are the program limit, oddsgraph with cached data but without the
// response cache, and the same oddsgraph with account data that expire.
func measureFixedRate(ctx context.Context, b *builds, o options) (string, error) {
	o.workloads, o.plain, o.benchfmt = []string{"V1", "V3"}, false, ""
	t := &table{latency: 5 * time.Millisecond}
	l, err := newLab(ctx, b, o, t)
	if err != nil {
		return "", err
	}
	defer l.stop()
	program, err := b.oddsgraph(ctx)
	if err != nil {
		return "", err
	}
	noResponseCache, err := withoutResponseCache(ctx, program)
	if err != nil {
		return "", err
	}
	l.every = time.Second / fixedRate
	expiring, err := l.start(ctx, b, expiringServer, program, slices.Concat(l.flags(), warm, noResponseCache, []string{"--cache-user-fresh=2s"}, o.flags))
	if err != nil {
		return "", err
	}
	rows := map[string][]cell{}
	for round := range o.rounds {
		for w, load := range l.workloads {
			for _, s := range l.servers {
				name, duration := load.name+" "+s.name, o.duration
				if s.name == graphServer || s == expiring && load.name != "V1" {
					continue
				}
				if s == expiring {
					name, duration = load.name+" expiring every 2s", max(duration, minExpiringRun)
				}
				c, err := l.measure(ctx, s, w, duration)
				if err != nil {
					return "", fmt.Errorf("%s, round %d: %w", name, round+1, err)
				}
				rows[name] = append(rows[name], c)
			}
		}
	}
	return fixedRateMarkdown(rows), nil
}

func fixedRateMarkdown(rows map[string][]cell) string {
	of := func(name string, column int) float64 {
		values := make([]float64, len(rows[name]))
		for i, c := range rows[name] {
			values[i] = c.values[column]
		}
		return median(values)
	}
	lines := [][]string{{"workload and server", "req/s", "CPU µs", "allocs", "p50 ms", "p99 ms", "× limit's p99", "calls", "RSS MB"}}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		workload, _, _ := strings.Cut(name, " ")
		lines = append(lines, []string{
			name, fmt.Sprintf("%.0f", of(name, perSecond)), fmt.Sprintf("%.1f", of(name, cpu)/1e3), fmt.Sprintf("%.0f", of(name, allocs)),
			fmt.Sprintf("%.2f", of(name, p50)/1e6), fmt.Sprintf("%.2f", of(name, p99)/1e6), fmt.Sprintf("%.2f", of(name, p99)/of(workload+" "+limitServer, p99)),
			fmt.Sprintf("%.3f", of(name, upstream)), fmt.Sprintf("%.0f", of(name, resident)/(1<<20)),
		})
	}
	return markdown(lines, 1)
}

// measureFullMemory runs the program in the directory resident and returns its figures as a table.
func measureFullMemory(ctx context.Context, b *builds, _ options) (string, error) {
	program, err := b.build(ctx, "resident", "./bench/resident")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env, cmd.Stderr = environment(), os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return "", err
	}
	lines := [][]string{{"step", "live MB", "RSS MB"}}
	for in := json.NewDecoder(bytes.NewReader(text)); in.More(); {
		var s struct {
			Step      string
			Live, RSS float64
		}
		if err := in.Decode(&s); err != nil {
			return "", err
		}
		lines = append(lines, []string{s.Step, fmt.Sprintf("%.1f", s.Live/(1<<20)), fmt.Sprintf("%.1f", s.RSS/(1<<20))})
	}
	return markdown(lines, 1), nil
}

// measureAtRest builds and starts the program as it is shipped. It measures the time to the first response, the memory one second
// later and the size of the binary.
func measureAtRest(ctx context.Context, b *builds, o options) (string, error) {
	program, err := b.build(ctx, "shipped", "-ldflags=-s -w", ".")
	if err != nil {
		return "", err
	}
	info, err := os.Stat(program)
	if err != nil {
		return "", err
	}
	probed, err := b.oddsgraph(ctx)
	if err != nil {
		return "", err
	}
	v, err := startVenue(ctx, b, probed, 0)
	if err != nil {
		return "", err
	}
	defer v.stop()
	var times, sizes []float64
	for range min(maxStarts, 2*o.rounds+1) {
		begun := time.Now()
		s, err := b.start(ctx, graphServer, program, "--listen", append(slices.Clone(unlimited), "--venue-url="+v.url())...)
		if err != nil {
			return "", err
		}
		_, err = post(ctx, s.url()+"/graphql", []byte(`{"query":"{ __typename }"}`), "")
		times = append(times, float64(time.Since(begun)))
		time.Sleep(time.Second)
		sizes = append(sizes, float64(s.memory()))
		s.stop()
		if err != nil {
			return "", err
		}
	}
	parts, err := contributors(ctx, probed, info.Size())
	if err != nil {
		return "", err
	}
	table := markdown([][]string{
		{"what", "figure"},
		{"start to first answer, to 5 ms", fmt.Sprintf("%.0f ms", median(times)/1e6)},
		{"resident memory a second later", fmt.Sprintf("%.1f MB", median(sizes)/(1<<20))},
		{"binary", fmt.Sprintf("%.1f MB", float64(info.Size())/(1<<20))},
	}, 1)
	return table + "\nThe largest parts of the binary, by `go tool nm -size`:\n\n" + parts, nil
}

// contributors returns a table of the ten parts of a program with the most code and constants. moduleOf defines the parts. It
// attributes the remainder of the program's size to variables and to tables that the linker adds, such as the tables of functions
// and lines.
func contributors(ctx context.Context, program string, size int64) (string, error) {
	text, err := exec.CommandContext(ctx, "go", "tool", "nm", "-size", program).Output()
	if err != nil {
		return "", fmt.Errorf("go tool nm: %w", err)
	}
	sizes := map[string]int{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.ContainsAny(fields[2], "TtRr") { // skip variables, because the file does not contain those that are zero at the start
			continue
		}
		if n, err := strconv.Atoi(fields[1]); err == nil {
			sizes[moduleOf(fields[3])] += n
		}
	}
	rest := int(size)
	for _, n := range sizes {
		rest -= n
	}
	sizes["tables of functions and lines, variables, and the rest"] = rest
	names := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return cmp.Compare(sizes[b], sizes[a]) })
	lines := [][]string{{"part", "MB"}}
	for _, name := range names[:min(10, len(names))] {
		lines = append(lines, []string{name, fmt.Sprintf("%.1f", float64(sizes[name])/(1<<20))})
	}
	return markdown(lines, 1), nil
}

// moduleOf returns the part of a program to which a symbol belongs: a module, a directory of this module, the standard library, or
// types and strings.
func moduleOf(symbol string) string {
	symbol, _, _ = strings.Cut(symbol, "[")
	slash := strings.LastIndexByte(symbol, '/') + 1
	name, _, found := strings.Cut(symbol[slash:], ".")
	path := strings.Split(symbol[:slash]+name, "/")
	switch {
	case !found || strings.Contains(path[0], ":") || strings.Contains(path[0], "*"):
		return "types and strings"
	case strings.Contains(path[0], "."):
		return strings.Join(path[:min(3, len(path))], "/")
	case path[0] == "oddsgraph":
		return strings.Join(path[:min(2, len(path))], "/")
	}
	return "standard library"
}

// benchmarkLayers runs the benchmarks of stream ingest and of watched tokens.
func benchmarkLayers(ctx context.Context, b *builds, o options) (string, error) {
	return goBenchmarks(ctx, b, "./bench/layers", "^(BenchmarkIngest|BenchmarkWatched)$/^(bare|service|tokens=100|tokens=10000)$", "1s", o)
}

// benchmarkColdReads runs the benchmarks of reads that are not cached.
func benchmarkColdReads(ctx context.Context, b *builds, o options) (string, error) {
	return goBenchmarks(ctx, b, "./bench", "^(BenchmarkColdPortfolio|BenchmarkColdPage)$/^latency=5ms$/^oddsgraph$", "3s", o)
}

// goBenchmarks runs benchmarks of a package in a separate process, and returns the lines of their output.
func goBenchmarks(ctx context.Context, b *builds, pkg, names, duration string, o options) (string, error) {
	program := filepath.Join(b.dir, filepath.Base(pkg)+".test")
	cmd := exec.CommandContext(ctx, "go", "test", "-trimpath", "-vet=off", "-run=^$", "-bench="+names, "-benchtime="+duration, fmt.Sprintf("-count=%d", min(o.rounds, 5)), "-o", program, pkg)
	cmd.Dir, cmd.Env = b.root, append(os.Environ(), "CGO_ENABLED=0")
	text, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	var lines strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "Benchmark") {
			lines.WriteString(line)
		}
	}
	if lines.Len() == 0 {
		return "", fmt.Errorf("%s has no benchmark %s\n%s", pkg, names, text)
	}
	return "```text\n" + lines.String() + "```\n", nil
}
