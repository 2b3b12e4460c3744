package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"oddsgraph/tests/tool"
)

// replicaServer is the prefix of the names of replicas.
const replicaServer = "replica"

const (
	metricSharedCalls = "oddsgraph_shared_calls_total"
	metricConnected   = "oddsgraph_shared_connected"
	// replicaLatency is the latency of the replicas' venue. Without latency, replicas would rarely read the same value at the
	// same time.
	replicaLatency = 5 * time.Millisecond
)

// fleets has the measurements of different numbers of replicas. Each replica has the same number of clients.
type fleets struct {
	// missing says why there are no measurements. It is empty if there are measurements.
	missing  string
	requests int
	rows     []*fleetRow
}

// fleetRow has the rounds for one number of replicas and one workload, with or without a Redis.
type fleetRow struct {
	replicas int
	redis    bool
	// cold means that the caches are empty at first and each replica gets each request once.
	cold   bool
	rounds []fleetRound
}

// fleetRound is one round. cpu is the CPU time of all replicas per query. cpu, p50 and p99 are in nanoseconds. The numbers of
// calls and ids are totals of the round.
type fleetRound struct{ queries, perSecond, cpu, p50, p99, venueCalls, venueIDs, redisCalls float64 }

// measureFleets measures each number of replicas, without and with a Redis.
func measureFleets(ctx context.Context, b *builds, o options) (*fleets, error) {
	out := &fleets{}
	program, err := b.oddsgraph(ctx)
	if err != nil {
		return nil, err
	}
	process, err := startVenue(ctx, b, program, replicaLatency)
	if err != nil {
		return nil, err
	}
	defer process.stop()
	v := venue{process.url()}
	listing, err := v.list(ctx, o.variety.markets)
	if err != nil {
		return nil, err
	}
	var requests []request
	for _, w := range newWorkloads(listing, o.variety) {
		if w.name == "V2" || w.name == "V3" {
			requests = append(requests, w.requests...)
		}
	}
	out.requests = len(requests)
	for _, n := range o.replicas {
		for _, shares := range []bool{false, true} {
			out.rows = append(out.rows, &fleetRow{replicas: n, redis: shares, cold: true}, &fleetRow{replicas: n, redis: shares})
		}
	}
	for range o.rounds {
		for pair := range slices.Chunk(out.rows, 2) {
			err := measureFleet(ctx, b, o, v, requests, pair[0], pair[1])
			if missing := tool.MissingError(""); errors.As(err, &missing) {
				return &fleets{missing: err.Error()}, nil
			}
			if err != nil {
				return nil, fmt.Errorf("%d replicas, Redis %v: %w", pair[0].replicas, pair[0].redis, err)
			}
		}
	}
	return out, nil
}

// measureFleet starts replicas and measures one round of the cold and the warm workload.
func measureFleet(ctx context.Context, b *builds, o options, v venue, requests []request, cold, warmed *fleetRow) error {
	f, err := startFleet(ctx, b, o, v, cold.replicas, cold.redis)
	if err != nil {
		return err
	}
	defer f.stop()
	f.answers = make([][][]byte, len(f.replicas))
	for i := range f.answers {
		f.answers[i] = make([][]byte, len(requests))
	}
	round, err := f.measure(ctx, func(i int) task {
		return task{requests: requests, once: true, keep: func(n int, answer []byte) error {
			f.answers[i][n] = slices.Clone(answer)
			return nil
		}}
	})
	if err == nil {
		err = f.check(ctx, requests)
	}
	if err != nil {
		return fmt.Errorf("cold: %w", err)
	}
	cold.rounds = append(cold.rounds, round)
	ask := func(d time.Duration) func(i int) task {
		return func(i int) task { return task{requests: requests, answers: f.answers[i], duration: d} }
	}
	if _, err = f.measure(ctx, ask(o.duration/5)); err == nil {
		round, err = f.measure(ctx, ask(o.duration))
	}
	if err != nil {
		return fmt.Errorf("warm: %w", err)
	}
	warmed.rounds = append(warmed.rounds, round)
	return nil
}

// fleet has the replicas of one round, and for each replica the connections and the first response to each request.
type fleet struct {
	venue       venue
	redis       *tool.Redis // nil if the replicas share nothing
	replicas    []*server
	connections [][]*connection
	answers     [][][]byte
}

// startFleet starts n replicas with empty caches. If shares is true, it also starts a Redis that the replicas share.
func startFleet(ctx context.Context, b *builds, o options, v venue, n int, shares bool) (f *fleet, err error) {
	f = &fleet{venue: v}
	defer func() {
		if err != nil {
			f.stop()
		}
	}()
	program, err := b.oddsgraph(ctx)
	if err != nil {
		return nil, err
	}
	flags := slices.Concat(unlimited, warm, []string{"--venue-url=" + v.url})
	if shares {
		if f.redis, err = tool.OpenRedis(b.dir); err != nil {
			return nil, err
		}
		if err := tool.OpenLedger(v.url, f.redis.Run); err != nil {
			return nil, err
		}
		// The replicas' shared ledger counts calls only if the venue has a limit. The processors may be busy, so the timeout is
		// longer than the default.
		flags = append(flags, "--venue-public-per-minute=1000000", "--shared-url="+f.redis.URL(), "--shared-timeout=1s", "--shared-replicas="+strconv.Itoa(n))
	}
	for i := range n {
		s, err := b.start(ctx, replicaServer+strconv.Itoa(i+1), program, "--listen", append(flags, o.flags...)...)
		if err != nil {
			return nil, err
		}
		f.replicas = append(f.replicas, s)
		if err := f.dial(ctx, s, max(1, o.connections/n)); err != nil {
			return nil, err
		}
	}
	return f, f.awaitRedis(ctx)
}

// check compares some of the first responses of each replica with the venue. It calls the venue, so it must run after the
// measurement of the venue calls.
func (f *fleet) check(ctx context.Context, requests []request) error {
	for _, answers := range f.answers {
		for n := 0; n < len(requests); n += checkEvery {
			if err := f.venue.check(ctx, requests[n].question, answers[n]); err != nil {
				return err
			}
		}
	}
	return nil
}

// dial opens n connections to a replica.
func (f *fleet) dial(ctx context.Context, s *server, n int) error {
	var connections []*connection
	defer func() { f.connections = append(f.connections, connections) }()
	for range n {
		c, err := dial(ctx, s.address)
		if err != nil {
			return err
		}
		connections = append(connections, c)
	}
	return nil
}

// awaitRedis waits until all replicas use the Redis.
func (f *fleet) awaitRedis(ctx context.Context) error {
	if f.redis == nil {
		return nil
	}
	for _, s := range f.replicas {
		for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			c, err := s.counters(ctx)
			if err != nil {
				return err
			}
			if c.sum(metricConnected) == 1 {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%s does not use the Redis", s.name)
			}
		}
	}
	return nil
}

func (f *fleet) stop() {
	for _, connections := range f.connections {
		closeAll(connections)
	}
	for _, s := range f.replicas {
		s.stop()
	}
	if f.redis != nil {
		f.redis.Kill()
	}
}

// fleetUsage has the resources that the replicas have used so far and the calls that the venue and Redis have received.
type fleetUsage struct {
	cpu                              time.Duration
	venueCalls, venueIDs, redisCalls float64
}

func (f *fleet) usage(ctx context.Context) (u fleetUsage, err error) {
	calls, ids, err := f.venue.stats(ctx)
	if err != nil {
		return u, err
	}
	u.venueCalls, u.venueIDs = float64(calls), float64(ids)
	for _, s := range f.replicas {
		c, err := s.counters(ctx)
		if err != nil {
			return u, err
		}
		u.redisCalls += c.sum(metricSharedCalls) - c.sum(metricSharedCalls, `result="refused"`)
		usage, err := s.usage(ctx)
		if err != nil {
			return u, err
		}
		u.cpu += time.Duration(usage.CPU)
	}
	return u, nil
}

// measure runs the clients of all replicas at the same time, each with the task of its replica, and returns the figures of the
// round.
func (f *fleet) measure(ctx context.Context, of func(replica int) task) (r fleetRound, err error) {
	before, err := f.usage(ctx)
	if err != nil {
		return r, err
	}
	var wg sync.WaitGroup
	loads, errs, start := make([]*load, len(f.replicas)), make([]error, len(f.replicas)), time.Now()
	for i := range f.replicas {
		wg.Go(func() { loads[i], errs[i] = run(ctx, f.connections[i], of(i)) })
	}
	wg.Wait()
	elapsed := time.Since(start)
	if err := errors.Join(errs...); err != nil {
		return r, err
	}
	after, err := f.usage(ctx)
	if err != nil {
		return r, err
	}
	all := &load{}
	for _, l := range loads {
		all.latencies = append(all.latencies, l.latencies...)
	}
	slices.Sort(all.latencies)
	n := float64(len(all.latencies))
	return fleetRound{
		queries: n, perSecond: n / elapsed.Seconds(), cpu: float64(after.cpu-before.cpu) / n,
		p50: float64(all.percentile(.5)), p99: float64(all.percentile(.99)),
		venueCalls: after.venueCalls - before.venueCalls, venueIDs: after.venueIDs - before.venueIDs, redisCalls: after.redisCalls - before.redisCalls,
	}, nil
}

func (r *fleetRow) workload() string {
	if r.cold {
		return "cold"
	}
	return "warm"
}

func (r *fleetRow) shares() string {
	if r.redis {
		return "yes"
	}
	return "no"
}

// markdown returns a table of the medians.
func (f *fleets) markdown() string {
	if f.missing != "" {
		return "Not measured: " + f.missing + ".\n"
	}
	lines := [][]string{{"workload", "Redis", "replicas", "queries", "req/s", "CPU µs", "p50 ms", "p99 ms", "venue calls", "venue ids", "Redis calls", "Redis calls a query"}}
	for _, workload := range []string{"cold", "warm"} {
		for _, r := range f.rows {
			if r.workload() != workload {
				continue
			}
			of := func(figure func(fleetRound) float64) float64 {
				values := make([]float64, len(r.rounds))
				for i, round := range r.rounds {
					values[i] = figure(round)
				}
				return median(values)
			}
			lines = append(lines, []string{
				workload, r.shares(), strconv.Itoa(r.replicas),
				fmt.Sprintf("%.0f", of(func(r fleetRound) float64 { return r.queries })),
				fmt.Sprintf("%.0f", of(func(r fleetRound) float64 { return r.perSecond })),
				fmt.Sprintf("%.1f", of(func(r fleetRound) float64 { return r.cpu })/1e3),
				fmt.Sprintf("%.2f", of(func(r fleetRound) float64 { return r.p50 })/1e6),
				fmt.Sprintf("%.2f", of(func(r fleetRound) float64 { return r.p99 })/1e6),
				fmt.Sprintf("%.0f", of(func(r fleetRound) float64 { return r.venueCalls })),
				fmt.Sprintf("%.0f", of(func(r fleetRound) float64 { return r.venueIDs })),
				fmt.Sprintf("%.0f", of(func(r fleetRound) float64 { return r.redisCalls })),
				fmt.Sprintf("%.3f", of(func(r fleetRound) float64 { return r.redisCalls / r.queries })),
			})
		}
	}
	return fmt.Sprintf("%d different queries: market pages and sets of 50 prices, over a venue with %v of latency.\n\n%s", f.requests, replicaLatency, markdown(lines, 2))
}

// benchfmt returns every round in the format of Go's benchmarks.
func (f *fleets) benchfmt() string {
	var b strings.Builder
	for _, r := range f.rows {
		for _, round := range r.rounds {
			fmt.Fprintf(&b, "BenchmarkReplicas/replicas=%d/redis=%s/%s %.0f %.0f cpu-ns/op %.0f p50-ns %.0f p99-ns %.1f req/s %.4f calls/op %.4f redis-calls/op\n",
				r.replicas, r.shares(), r.workload(), round.queries, round.cpu, round.p50, round.p99, round.perSecond, round.venueCalls/round.queries, round.redisCalls/round.queries)
		}
	}
	return b.String()
}
