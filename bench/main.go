// Command bench measures the processor time of servers for a query and for the delivery of an event. Each server is a process of its
// own in front of the same venue: limit writes stored responses, plain is a simple server with gqlgen, and oddsgraph runs with and
// without its cache of whole responses. bench prints each run as a line of Go's benchmark format, and then tables of the medians.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
)

type options struct {
	oddsgraph                    []string
	plain, out, file, profile    string
	rounds, variety, subscribers int
	duration                     time.Duration
	filter                       *regexp.Regexp
}

func main() {
	if err := command(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	if len(args) == 2 && args[0] == limitCommand {
		return serveLimit(args[1])
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return measure(ctx, o, os.Stdout)
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.Func("oddsgraph", "`path` of the program (default bin/oddsgraph); give the flag twice to compare two programs", func(path string) error {
		o.oddsgraph = append(o.oddsgraph, path)
		return nil
	})
	f.StringVar(&o.plain, "plain", "bin/plain", "`path` of the plain server; empty leaves it out")
	f.IntVar(&o.rounds, "rounds", 3, "number of rounds; the tables show the medians")
	f.DurationVar(&o.duration, "duration", 2*time.Second, "duration of each run of a server")
	f.IntVar(&o.variety, "variety", 1000, "number of different requests of V1, V2 and V3")
	f.IntVar(&o.subscribers, "subscribers", 10_000, "number of subscribers; a fifth of them is measured too")
	filter := f.String("run", "", "`regexp` that chooses the benchmarks, such as V1, V.*venue=foreign or Subscribers.*2000")
	f.StringVar(&o.out, "out", "", "`directory` for results.md and chart.svg, or with -run Curve for curve.svg")
	f.StringVar(&o.file, "benchfmt", "", "`file` for the lines of all runs, for benchstat")
	f.StringVar(&o.profile, "profile", "", "existing `directory` for CPU profiles of oddsgraph")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if len(o.oddsgraph) == 0 {
		o.oddsgraph = []string{"bin/oddsgraph"}
	}
	o.filter, err = regexp.Compile(*filter)
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q is no flag", f.Arg(0))
	case min(o.rounds, o.variety, o.subscribers/5, int(o.duration/time.Millisecond)) < 1:
		return o, errors.New("-rounds, -variety, -subscribers or -duration is too small")
	case o.out != "" && (*filter != "" && *filter != curves || len(o.oddsgraph) > 1):
		return o, errors.New("-out needs all benchmarks, or -run Curve, and one program, because incomplete results must not overwrite complete ones")
	}
	return o, err
}

// bench is one run of the command.
type bench struct {
	options
	dir   string // for temporary files
	lines io.Writer
	venue *venue
	// machine describes the computer. busy says what else ran on it.
	machine, busy string
	mode          venueMode
	results       []result
}

func measure(ctx context.Context, o options, out io.Writer) (err error) {
	b := &bench{options: o}
	b.machine, b.busy = machine()
	if b.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	var lines bytes.Buffer
	b.lines = io.MultiWriter(out, &lines)
	fmt.Fprintf(b.lines, "goos: %s\ngoarch: %s\npkg: oddsgraph/bench\n", runtime.GOOS, runtime.GOARCH)
	for _, b.mode = range b.modes() {
		if err := b.measureMode(ctx); err != nil {
			return fmt.Errorf("%s: %w", b.mode.about, err)
		}
	}
	files := map[string]string{o.file: lines.String()}
	switch {
	case o.out == "":
	case b.measuresCurves():
		files[filepath.Join(o.out, curveFile)] = b.curveChart()
	default:
		files[filepath.Join(o.out, "results.md")], files[filepath.Join(o.out, "chart.svg")] = b.markdown(), b.chart()
	}
	delete(files, "")
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "\n%s", b.markdown())
	return err
}

// benchmark is a list of servers that are measured in turn. run measures the process of a server.
type benchmark struct {
	section *section
	name    string
	servers []server
	run     func(ctx context.Context, p *process) (figures, error)
}

// measureMode measures all benchmarks over one venue. The subscribers come last, because their prices move.
func (b *bench) measureMode(ctx context.Context) error {
	if b.mode.name == "large" && !b.measuresCurves() {
		return nil
	}
	p, err := start(ctx, b.oddsgraph[0], append([]string{"venue", "--demo-listen=127.0.0.1:0"}, arguments(append(demoFlags, b.mode.flags...)...)...)...)
	if err != nil {
		return err
	}
	defer p.stop()
	if b.venue, err = readVenue(ctx, p.url); err != nil {
		return err
	}
	for _, part := range b.mode.parts {
		benchmarks, err := part(b, ctx)
		if err != nil {
			return err
		}
		for range b.rounds {
			for _, k := range benchmarks {
				if err := b.measureRound(ctx, k); err != nil {
					return fmt.Errorf("%s: %w", k.name, err)
				}
			}
		}
	}
	return nil
}

// measureRound measures the servers of a benchmark in turn, so that other load on the machine affects all of them. A new process for
// each run shows what a server does in its first seconds, and no run gains from what earlier runs left in a cache.
func (b *bench) measureRound(ctx context.Context, k benchmark) error {
	name := k.name + "/venue=" + b.mode.name
	if !b.filter.MatchString(name) {
		return nil
	}
	for _, s := range k.servers {
		p, err := s.start(ctx)
		if err != nil {
			return err
		}
		if b.profile != "" && (s.kind == graphServer || s.kind == uncachedServer) {
			p.profile = filepath.Join(b.profile, strings.ReplaceAll(name+"."+s.name, "/", ".")+".pprof")
		}
		f, err := k.run(ctx, p)
		p.stop()
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		b.add(k, s, f)
	}
	return nil
}
