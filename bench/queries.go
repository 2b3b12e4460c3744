package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

const connections = 64

func (b *bench) queryBenchmarks(ctx context.Context) (all []benchmark, err error) {
	workloads, err := b.venue.workloads(ctx, b.variety)
	if err != nil {
		return nil, err
	}
	servers, err := b.queryServers(workloads)
	for _, w := range workloads {
		// A request that does not vary is not measured without the cache of whole responses.
		suited := slices.DeleteFunc(slices.Clone(servers), func(s server) bool { return s.kind == uncachedServer && len(w.requests) == 1 })
		all = append(all, benchmark{querySection, w.name, suited, func(ctx context.Context, p *process) (figures, error) {
			return b.measureQueries(ctx, p, w.requests)
		}})
	}
	return all, err
}

// walletCurve measures V1 with 1, 5 and 20 times as many wallets.
func (b *bench) walletCurve(ctx context.Context) ([]benchmark, error) {
	return b.curve(ctx, "V1", b.venue.wallets)
}

// pageCurve measures V2 with 1, 5 and 20 times as many pages. It needs as many markets with books.
func (b *bench) pageCurve(ctx context.Context) ([]benchmark, error) {
	return b.curve(ctx, "V2", b.venue.pages)
}

func (b *bench) curve(ctx context.Context, name string, read func(ctx context.Context, n int) ([]*request, error)) (all []benchmark, err error) {
	if !b.measuresCurves() {
		return nil, nil
	}
	requests, err := read(ctx, 20*b.variety)
	if err != nil {
		return nil, err
	}
	for _, n := range []int{b.variety, 5 * b.variety, 20 * b.variety} {
		all = append(all, benchmark{curveSection, fmt.Sprintf("Curve/of=%s/n=%d", name, n), b.graphServers(graphServer), func(ctx context.Context, p *process) (figures, error) {
			return b.measureQueries(ctx, p, requests[:n])
		}})
	}
	return all, nil
}

// curves is the value of -run for the curves alone.
const curves = "Curve"

// measuresCurves reports whether -run asks for the curves. They take minutes, because everything is read for the first time.
func (b *bench) measuresCurves() bool { return strings.Contains(b.filter.String(), curves) }

// measureQueries sends each request once and measures the requests that follow.
func (b *bench) measureQueries(ctx context.Context, p *process, requests []*request) (f figures, err error) {
	c, err := dial(p, connections)
	if err != nil {
		return f, err
	}
	defer c.close()
	if _, err := c.send(ctx, requests, 0); err != nil {
		return f, err
	}
	return b.observe(ctx, p, func() (*load, error) { return c.send(ctx, requests, b.duration) })
}

func (b *bench) observe(ctx context.Context, p *process, put func() (*load, error)) (f figures, err error) {
	before, err := b.usage(ctx, p)
	if err != nil {
		return f, err
	}
	var profiling errgroup.Group
	profiling.Go(func() error { return p.writeProfile(ctx, b.duration) })
	l, err := put()
	if err := errors.Join(err, profiling.Wait()); err != nil {
		return f, err
	}
	if len(l.latencies) == 0 {
		return f, errors.New("no event arrived")
	}
	after, err := b.usage(ctx, p)
	n := float64(len(l.latencies))
	f = figures{len(l.latencies), map[*unit]float64{
		nsPerOp: float64(l.elapsed) / n, perSecond: n * float64(time.Second) / float64(l.elapsed),
		p50: l.percentile(.5), p99: l.percentile(.99), resident: after[resident],
	}}
	for _, u := range []*unit{cpuPerOp, allocsPerOp, bytesPerOp, callsPerOp, hitsPerOp} {
		f.values[u] = (after[u] - before[u]) / n
	}
	if l.cpu > 0 {
		f.values[cpuPerOp] = float64(l.cpu) / n
	}
	if l.expected > 0 {
		f.values[arrivedPerOp] = n / float64(l.expected)
	}
	return f, err
}

// coldBenchmarks measure single queries that find nothing in the cache of oddsgraph.
func (b *bench) coldBenchmarks(ctx context.Context) ([]benchmark, error) {
	portfolio, err := b.venue.wallets(ctx, 1)
	if err != nil {
		return nil, err
	}
	page, err := b.venue.searchPage(ctx)
	servers := b.graphServers(graphServer)
	return []benchmark{
		{coldSection, "ColdPortfolio", append(b.plainServers(), servers...), func(ctx context.Context, p *process) (figures, error) {
			return b.measureCold(ctx, p, portfolio[0])
		}},
		{coldSection, "ColdPage", servers, func(ctx context.Context, p *process) (figures, error) { return b.measureCold(ctx, p, page) }},
	}, err
}

// measureCold sends one query after the other. Before each query it removes everything that the query reads from the cache. The
// figures include the allocations for that, but not its processor time.
func (b *bench) measureCold(ctx context.Context, p *process, query *request) (f figures, err error) {
	c, err := dial(p, 1)
	if err != nil {
		return f, err
	}
	defer c.close()
	ask := func(total *load) error {
		for _, kind := range []string{"response", "positions", "market", "search", "price", "book"} {
			if _, err := fetch(ctx, http.MethodPost, p.admin+"/cache/flush?kind="+kind, ""); err != nil {
				return err
			}
		}
		before, err := cpuTime(p.cmd.Process.Pid)
		if err != nil {
			return err
		}
		l, err := c.send(ctx, []*request{query}, 0)
		if err != nil {
			return err
		}
		after, err := cpuTime(p.cmd.Process.Pid)
		total.elapsed, total.latencies, total.cpu = total.elapsed+l.elapsed, append(total.latencies, l.latencies...), total.cpu+after-before
		return err
	}
	for range 5 { // opens the connections and compiles the document
		if err := ask(&load{}); err != nil {
			return f, err
		}
	}
	f, err = b.observe(ctx, p, func() (*load, error) {
		total := &load{}
		for begun := time.Now(); len(total.latencies) == 0 || time.Since(begun) < b.duration; {
			if err := ask(total); err != nil {
				return nil, err
			}
		}
		slices.Sort(total.latencies)
		return total, nil
	})
	if made := f.values[callsPerOp]; err == nil && made < 3 { // a portfolio needs the positions, their markets and their prices
		err = fmt.Errorf("the query made %v calls to the venue, want 3: something was in the cache", made)
	}
	return f, err
}
