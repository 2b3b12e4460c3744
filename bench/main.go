// Command bench puts the same load on several server processes, one after the other. The program limit returns stored
// responses. The program plain is a simple server with gqlgen and a dataloader. Oddsgraph runs with and without its response
// cache. Afterwards bench measures many subscribers of one token and of lists of tokens, several replicas, and failing queries.
// It prints the cost of a query and of a delivered message for each server.
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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options are the values of the flags.
type options struct {
	duration    time.Duration
	rounds      int
	connections int
	latencies   []time.Duration
	workloads   []string
	variety     variety
	behind      time.Duration
	plain       bool
	subscribers []int
	events      int
	replicas    []int
	flags       []string
	out         string
	benchfmt    string
	profile     string
	// against is the revision with which the working tree is compared. If it is empty, there is no comparison.
	against string
	// failing makes bench measure only the cost of failures: each workload without and with a failure.
	failing bool
	// edges makes bench measure only the parts in edges.go.
	edges bool
}

// chooses reports whether a workload is selected: by its name, or because no names are given.
func (o *options) chooses(w workload) bool {
	return len(o.workloads) == 0 || slices.Contains(o.workloads, w.name)
}

// inPairs returns the options for alternating pairs of short runs. There are six pairs for each round, but at most 30 pairs in all.
func (o options) inPairs() options {
	o.rounds, o.duration, o.latencies = min(30, 6*o.rounds), min(o.duration, 300*time.Millisecond), []time.Duration{0}
	return o
}

// quick has the options of a short run that only tests whether everything works.
var quick = options{
	duration: 200 * time.Millisecond, rounds: 1, latencies: []time.Duration{0}, variety: variety{100, 20, 40},
	subscribers: []int{200}, events: 10, replicas: []int{1, 2, 3},
}

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = buildAndMeasure(ctx, o)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	short := f.Bool("quick", false, "short run that only tests whether everything works: one round, few subscribers, no latency; -out has no effect")
	f.DurationVar(&o.duration, "duration", 3*time.Second, "duration of each measurement of a server with a workload")
	f.IntVar(&o.rounds, "rounds", 5, "number of rounds; the tables show the medians of all rounds")
	f.IntVar(&o.connections, "connections", 64, "number of clients; each client has its own connection")
	latencies := f.String("latency", "0,5ms", "latencies of the venue; the workloads are measured with each of them")
	workloads := f.String("workloads", "", "names of the workloads, such as W1,V3; empty means all workloads, and none means no workload")
	f.IntVar(&o.variety.wallets, "wallets", 1000, "wallets of V1")
	f.IntVar(&o.variety.markets, "markets", 200, "markets of V2")
	f.IntVar(&o.variety.boards, "boards", 400, "sets of prices of V3")
	f.DurationVar(&o.behind, "behind", 1500*time.Millisecond, "maximum age of the prices in an answer while the prices of the venue move")
	f.BoolVar(&o.plain, "plain", true, "measure the plain server too")
	subscribers := f.String("subscribers", "2000,10000", "numbers of subscribers; empty means that no subscribers are measured")
	replicas := f.String("replicas", "1,2,3", "numbers of replicas; empty means that no replicas are measured")
	f.IntVar(&o.events, "events", 30, "events of one token that subscribers get in each round, ten a second")
	flags := f.String("flags", "", "additional `flags` for oddsgraph, separated by spaces")
	f.StringVar(&o.out, "out", "", "`directory` for results.md and chart.svg; they are written only if all workloads were measured without latency")
	f.StringVar(&o.benchfmt, "benchfmt", "", "`file` for the results of every round, in the format of benchstat")
	f.StringVar(&o.profile, "profile", "", "`directory` for CPU profiles of oddsgraph and limit, one for each workload with the last latency")
	f.StringVar(&o.against, "against", "", "`revision` to compare the working tree with, in alternating pairs of runs; the defaults are then -rounds=30 and -duration=300ms")
	f.BoolVar(&o.failing, "failing", false, "measure only failures: each workload without and with a failing field or an invalid id, in pairs of runs as for -against")
	f.BoolVar(&o.edges, "edges", false, "measure only a fixed rate, accounts that expire, memory, start, size, layers and cold reads")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.against != "" || o.failing {
		pairDefaults(f, &o, latencies)
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag", f.Arg(0))
	}
	var errs [4]error
	o.workloads, errs[0] = split(*workloads, func(s string) (string, error) { return s, nil })
	o.latencies, errs[1] = split(*latencies, parseLatency)
	o.subscribers, errs[2] = split(*subscribers, strconv.Atoi)
	o.replicas, errs[3] = split(*replicas, strconv.Atoi)
	if err := errors.Join(errs[:]...); err != nil {
		return o, err
	}
	o.flags = strings.Fields(*flags)
	if *short {
		o.duration, o.rounds, o.latencies, o.variety = quick.duration, quick.rounds, quick.latencies, quick.variety
		o.subscribers, o.events, o.replicas, o.out = quick.subscribers, quick.events, quick.replicas, ""
	}
	counted := append([]int{o.rounds, o.connections, o.events, o.variety.wallets, o.variety.markets, o.variety.boards}, o.replicas...)
	if slices.Min(counted) < 1 {
		return o, errors.New("-rounds, -connections, -events, -wallets, -markets, -boards and the numbers of -replicas must be at least 1")
	}
	return o, nil
}

// pairDefaults sets the defaults for pairs of short runs. It does not change flags that the command line sets.
func pairDefaults(f *flag.FlagSet, o *options, latencies *string) {
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if !given["rounds"] {
		o.rounds = 30
	}
	if !given["duration"] {
		o.duration = 300 * time.Millisecond
	}
	if !given["latency"] {
		*latencies = "0"
	}
}

func parseLatency(s string) (time.Duration, error) {
	if s == "0" {
		return 0, nil
	}
	return time.ParseDuration(s)
}

func split[T any](list string, read func(string) (T, error)) (out []T, err error) {
	if list == "" {
		return nil, nil
	}
	for s := range strings.SplitSeq(list, ",") {
		v, err := read(s)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// buildAndMeasure builds the programs in a temporary directory and measures them.
func buildAndMeasure(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, err := newBuilds(ctx, dir)
	if err != nil {
		return err
	}
	switch {
	case o.against != "":
		return compare(ctx, b, o, os.Stdout)
	case o.edges:
		return measureEdges(ctx, b, o, os.Stdout)
	case o.failing:
		all, err := compareFailures(ctx, b, o)
		fmt.Fprintf(os.Stdout, "%s.\n\n%s", machine(), failuresMarkdown(all, o))
		return err
	}
	return measure(ctx, b, o, os.Stdout)
}

// measure measures the workloads, subscribers, replicas and failures that the options select, prints the tables to out, and writes
// the files that the options name.
func measure(ctx context.Context, b *builds, o options, out io.Writer) error {
	r := &report{machine: machine(), rounds: o.rounds, connections: o.connections}
	if !slices.Equal(o.workloads, []string{"none"}) {
		for _, latency := range o.latencies {
			for _, moving := range []bool{false, true} {
				t := &table{latency: latency, moving: moving}
				if err := serve(ctx, b, o, t); err != nil {
					return fmt.Errorf("%s: %w", t.title(), err)
				}
				r.tables = append(r.tables, t)
			}
		}
	}
	for _, n := range o.subscribers {
		c, err := subscribe(ctx, b, o, n)
		if err != nil {
			return fmt.Errorf("%d subscribers: %w", n, err)
		}
		lists, err := subscribeLists(ctx, b, o, n)
		if err != nil {
			return fmt.Errorf("%d subscribers of lists: %w", n, err)
		}
		r.crowds = append(r.crowds, c, lists)
	}
	if len(o.replicas) > 0 {
		var err error
		if r.fleets, err = measureFleets(ctx, b, o); err != nil {
			return fmt.Errorf("replicas: %w", err)
		}
	}
	if len(o.workloads) == 0 {
		inPairs, err := o.inPairs(), error(nil)
		if r.failures, err = compareFailures(ctx, b, inPairs); err != nil {
			return err
		}
		r.failuresIn = inPairs
	}
	text := r.markdown()
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	if o.benchfmt != "" {
		if err := os.WriteFile(o.benchfmt, r.benchfmt(), 0o644); err != nil {
			return err
		}
	}
	if o.out == "" {
		return nil
	}
	var picture bytes.Buffer
	if !r.chart(&picture) {
		return nil // incomplete results must not overwrite complete results
	}
	return errors.Join(
		os.WriteFile(filepath.Join(o.out, "results.md"), []byte("# Results of `make bench`\n\n"+text), 0o644),
		os.WriteFile(filepath.Join(o.out, "chart.svg"), picture.Bytes(), 0o644),
	)
}

// serve starts a venue and servers, measures the workloads and adds the results to the table. It also writes profiles if the
// options name a directory for them.
func serve(ctx context.Context, b *builds, o options, t *table) error {
	l, err := newLab(ctx, b, o, t)
	if err != nil {
		return err
	}
	defer l.stop()
	for round := range o.rounds {
		for w := range l.workloads {
			for _, s := range l.servers {
				if !l.suits(s, w) {
					continue
				}
				c, err := l.measure(ctx, s, w, o.duration)
				if err != nil {
					return fmt.Errorf("%s, %s, round %d: %w", l.workloads[w].name, s.name, round+1, err)
				}
				t.add(l.workloads[w], s.name, c)
			}
		}
	}
	if o.profile == "" {
		return nil
	}
	return l.profile(ctx, o.profile)
}
