// Command bench puts the same load on three servers in turn, each a process of its own: limit, which knows the answers;
// plain, which is gqlgen with a dataloader as one writes it first; and oddsgraph. It prints what a query cost in each.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"oddsgraph/bench/probe"
)

// The servers, in the order in which each round asks them.
const (
	limitServer = "limit"
	plainServer = "plain"
	graphServer = "oddsgraph"
)

// options are the flags.
type options struct {
	duration    time.Duration
	rounds      int
	connections int
	latency     time.Duration
	workloads   string
	plain       bool
	flags       string
	benchfmt    string
	profile     string
}

func main() {
	var o options
	flag.DurationVar(&o.duration, "duration", time.Minute, "how long the servers are under load, all in all")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds, of which the table shows the medians")
	flag.IntVar(&o.connections, "connections", 64, "clients, each on a connection of its own")
	flag.DurationVar(&o.latency, "latency", 0, "least time that each answer of the venue takes")
	flag.StringVar(&o.workloads, "workloads", "", "names of the workloads, such as W1,V3; empty is all")
	flag.BoolVar(&o.plain, "plain", true, "measure the plain server too")
	flag.StringVar(&o.flags, "flags", "", "more `flags` for oddsgraph, separated by spaces")
	flag.StringVar(&o.benchfmt, "benchfmt", "", "`file` to write every round to, for benchstat")
	flag.StringVar(&o.profile, "profile", "", "`directory` to write profiles of oddsgraph to, one of each workload")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := measure(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measure does what the flags say and prints the table to out.
func measure(ctx context.Context, o options, out io.Writer) error {
	if o.rounds < 1 || o.connections < 1 {
		return errors.New("there is at least one round and one connection")
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, err := newBuilds(ctx, dir)
	if err != nil {
		return err
	}
	l, err := newLab(ctx, b, o)
	if err != nil {
		return err
	}
	defer l.stop()

	fmt.Fprintln(out, machine())
	each := o.duration / time.Duration(o.rounds*len(l.workloads)*len(l.servers))
	t := &table{rounds: o.rounds}
	for round := range o.rounds {
		for w := range l.workloads {
			for _, s := range l.servers {
				c, err := l.measure(ctx, s, w, each)
				if err != nil {
					return fmt.Errorf("%s, %s, round %d: %w", l.workloads[w].name, s.name, round+1, err)
				}
				t.add(l.workloads[w], s.name, c)
			}
		}
	}
	if err := t.print(out); err != nil {
		return err
	}
	if o.benchfmt != "" {
		if err := os.WriteFile(o.benchfmt, t.benchfmt(), 0o644); err != nil {
			return err
		}
	}
	if o.profile != "" {
		return l.profile(ctx, o.profile)
	}
	return nil
}

// lab is a venue, the servers over it and the workloads.
type lab struct {
	venue     *server
	servers   []*server
	workloads []workload
	// answers are the expected ones by server, workload and request.
	answers     map[*server][][][]byte
	connections int
}

func newLab(ctx context.Context, b *builds, o options) (_ *lab, err error) {
	l := &lab{connections: o.connections, answers: map[*server][][][]byte{}}
	defer func() {
		if err != nil {
			l.stop()
		}
	}()
	program, err := b.oddsgraph(ctx)
	if err != nil {
		return nil, err
	}
	// The venue stands still, so that every answer can be compared with the first.
	l.venue, err = b.start(ctx, "venue", program, "--demo-listen", "venue", "--demo-still", "--demo-control", "--log-level=warn",
		"--demo-latency="+o.latency.String())
	if err != nil {
		return nil, err
	}
	flags := append([]string{"--venue-url=" + l.venue.url(), "--log-level=warn"}, strings.Fields(o.flags)...)
	subject, err := b.start(ctx, graphServer, program, "--listen", flags...)
	if err != nil {
		return nil, err
	}
	l.servers = append(l.servers, subject)
	listing, err := newListing(ctx, subject.url())
	if err != nil {
		return nil, err
	}
	if err := l.choose(newWorkloads(listing), o.workloads); err != nil {
		return nil, err
	}
	if err := l.record(ctx, subject); err != nil {
		return nil, err
	}

	if o.plain {
		if program, err = b.plain(ctx); err != nil {
			return nil, err
		}
		s, err := b.start(ctx, plainServer, program, "--listen", "--venue-url="+l.venue.url())
		if err != nil {
			return nil, err
		}
		l.servers = slices.Insert(l.servers, 0, s)
		if err := l.record(ctx, s); err != nil {
			return nil, err
		}
		if err := l.compare(s, subject); err != nil {
			return nil, err
		}
	}

	if program, err = b.limit(ctx); err != nil {
		return nil, err
	}
	file := filepath.Join(b.dir, "answers.json")
	if err := l.write(file, subject); err != nil {
		return nil, err
	}
	s, err := b.start(ctx, limitServer, program, "--listen", "--answers="+file)
	if err != nil {
		return nil, err
	}
	l.servers = slices.Insert(l.servers, 0, s)
	l.answers[s] = l.answers[subject]
	return l, nil
}

func (l *lab) stop() {
	for _, s := range l.servers {
		s.stop()
	}
	if l.venue != nil {
		l.venue.stop()
	}
}

// choose keeps the workloads that are named; an empty list names all.
func (l *lab) choose(all []workload, names string) error {
	if names == "" {
		l.workloads = all
		return nil
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(w workload) bool { return w.name == name })
		if i < 0 {
			return fmt.Errorf("there is no workload %q", name)
		}
		l.workloads = append(l.workloads, all[i])
	}
	return nil
}

// record asks a server everything once. Its answers are those that it has to give from then on.
func (l *lab) record(ctx context.Context, s *server) error {
	c, err := dial(ctx, s.address)
	if err != nil {
		return err
	}
	defer c.close()
	for _, w := range l.workloads {
		answers := make([][]byte, len(w.requests))
		for i, r := range w.requests {
			answer, err := c.ask(r.wire)
			if err == nil {
				var data any
				err = readData(answer, &data)
			}
			if err != nil {
				return fmt.Errorf("%s: %s: %w", s.name, w.name, err)
			}
			answers[i] = slices.Clone(answer)
		}
		l.answers[s] = append(l.answers[s], answers)
	}
	return nil
}

// compare fails unless two servers give the same data.
func (l *lab) compare(s, other *server) error {
	for w := range l.workloads {
		for i := range l.answers[s][w] {
			var data, want any
			if err := errors.Join(readData(l.answers[s][w][i], &data), readData(l.answers[other][w][i], &want)); err != nil {
				return err
			}
			if !reflect.DeepEqual(data, want) {
				return fmt.Errorf("%s: %s says\n%.1000s\nand %s\n%.1000s", l.workloads[w].name, s.name, l.answers[s][w][i], other.name, l.answers[other][w][i])
			}
		}
	}
	return nil
}

// write writes the answers of a server to a file for the limit.
func (l *lab) write(file string, s *server) error {
	type answer struct {
		Request []byte `json:"request"`
		Answer  []byte `json:"answer"`
	}
	var all []answer
	for w := range l.workloads {
		for i, r := range l.workloads[w].requests {
			all = append(all, answer{r.body, l.answers[s][w][i]})
		}
	}
	b, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}

// measure puts a workload on a server, for a fifth of the time to warm up and then for the time.
func (l *lab) measure(ctx context.Context, s *server, w int, d time.Duration) (c cell, err error) {
	connections, err := l.dial(ctx, s)
	if err != nil {
		return c, err
	}
	defer func() {
		for _, c := range connections {
			c.close()
		}
	}()
	if _, err := run(ctx, connections, l.workloads[w].requests, l.answers[s][w], d/5); err != nil {
		return c, err
	}
	callsBefore, err := l.calls(ctx)
	if err != nil {
		return c, err
	}
	before, err := s.usage(ctx)
	if err != nil {
		return c, err
	}
	ownBefore := probe.Read()
	load, err := run(ctx, connections, l.workloads[w].requests, l.answers[s][w], d)
	if err != nil {
		return c, err
	}
	own := probe.Read()
	after, err := s.usage(ctx)
	if err != nil {
		return c, err
	}
	calls, err := l.calls(ctx)
	if err != nil {
		return c, err
	}
	n := float64(len(load.latencies))
	return cell{
		queries: len(load.latencies),
		values: [columns]float64{
			perSecond: n / load.elapsed.Seconds(),
			cpu:       float64(after.CPU-before.CPU) / n,
			allocs:    float64(after.Allocs-before.Allocs) / n,
			heapBytes: float64(after.Bytes-before.Bytes) / n,
			p50:       float64(load.percentile(.5)),
			p99:       float64(load.percentile(.99)),
			upstream:  float64(calls-callsBefore) / n,
			resident:  float64(s.memory()),
			clientCPU: float64(own.CPU-ownBefore.CPU) / n,
		},
	}, nil
}

func (l *lab) dial(ctx context.Context, s *server) ([]*connection, error) {
	connections := make([]*connection, l.connections)
	for i := range connections {
		c, err := dial(ctx, s.address)
		if err != nil {
			return nil, err
		}
		connections[i] = c
	}
	return connections, nil
}

// calls returns how many requests the venue has had.
func (l *lab) calls(ctx context.Context) (n int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.venue.url()+"/__control/stats", nil)
	if err != nil {
		return 0, err
	}
	b, err := fetch(req)
	if err != nil {
		return 0, err
	}
	var stats struct {
		Requests map[string]int64 `json:"requests"`
	}
	if err := json.Unmarshal(b, &stats); err != nil {
		return 0, err
	}
	for _, count := range stats.Requests {
		n += count
	}
	return n, nil
}

// profileTime is how long each workload is profiled.
const profileTime = 5 * time.Second

// profile writes a CPU profile of oddsgraph under each workload, and one of all its allocations.
func (l *lab) profile(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	s := l.servers[len(l.servers)-1]
	for w := range l.workloads {
		made := make(chan error, 1)
		go func() {
			made <- s.profile(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", profileTime/time.Second), filepath.Join(dir, l.workloads[w].name+".cpu.pprof"))
		}()
		_, err := l.measure(ctx, s, w, profileTime)
		if err = errors.Join(err, <-made); err != nil {
			return err
		}
	}
	return s.profile(ctx, "/debug/pprof/allocs", filepath.Join(dir, "allocs.pprof"))
}
