package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// beforeServer and nowServer name the earlier and the current program of a comparison.
const (
	beforeServer = "before"
	nowServer    = "now"
)

// coldFlags make every query read the venue: nothing stays fresh, and nothing stale is served.
var coldFlags = []string{
	"--cache-price-fresh=0s", "--cache-price-stale=0s", "--cache-book-fresh=0s", "--cache-book-stale=0s",
	"--cache-market-fresh=0s", "--cache-market-stale=0s", "--cache-user-fresh=0s",
}

// compare measures the program of the working tree against the program of an earlier revision. It measures pairs of short runs of
// the same workload and alternates which program goes first. Workloads that repeat one request run with the response cache.
// Workloads that vary their requests run without it. V1, the portfolios of many wallets, runs a second time with cold caches.
func compare(ctx context.Context, b *builds, o options, out io.Writer) error {
	now, err := b.oddsgraph(ctx)
	if err != nil {
		return err
	}
	before, err := b.oddsgraphAt(ctx, o.against)
	if err != nil {
		return err
	}
	noResponseCache, err := withoutResponseCache(ctx, now)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "The working tree against %s: %d pairs of %v each, %d connections. %s\n\n", o.against, o.rounds, o.duration, o.connections, machine())
	for _, setting := range []struct {
		name   string
		flags  []string
		varied bool
		only   string
	}{
		{"cached", warm, false, ""},
		{"executed", append(slices.Clone(warm), noResponseCache...), true, ""},
		{"cold", append(slices.Clone(coldFlags), noResponseCache...), true, "V1"},
	} {
		p := &pairs{setting: setting.name, sides: [2]string{beforeServer, nowServer}}
		chosen := func(w workload) bool {
			return w.varied == setting.varied && (setting.only == "" || w.name == setting.only) && o.chooses(w)
		}
		if err := p.measure(ctx, b, o, [2]string{before, now}, setting.flags, chosen); err != nil {
			return fmt.Errorf("%s: %w", setting.name, err)
		}
		if _, err := io.WriteString(out, p.markdown()); err != nil {
			return err
		}
	}
	return nil
}

// oddsgraphAt builds the program of a revision in a temporary git work tree.
func (b *builds) oddsgraphAt(ctx context.Context, revision string) (string, error) {
	tree := filepath.Join(b.dir, "tree")
	git := func(args ...string) error {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", b.root}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	if err := git("worktree", "add", "--quiet", "--detach", tree, revision); err != nil {
		return "", err
	}
	defer func() { _ = git("worktree", "remove", "--force", tree) }()
	dir := filepath.Join(b.dir, "before")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	return (&builds{dir: dir, root: tree}).oddsgraph(ctx)
}

// pairs holds the measurements of both sides of a comparison, by workload and by pair of runs.
type pairs struct {
	setting string
	sides   [2]string
	rows    []pairRow
}

// side is a server and the index of the workload that it is measured with.
type side struct {
	server   *server
	workload int
}

type pairRow struct {
	workload    string
	before, now []cell
}

// newPairLab returns a lab with a demo venue whose prices do not move, and without servers.
func newPairLab(ctx context.Context, b *builds, o options, program string) (l *lab, err error) {
	l = &lab{connections: o.connections, answers: map[*server][][][]byte{}}
	if l.process, err = startVenue(ctx, b, program, o.latencies[0]); err != nil {
		return nil, err
	}
	l.venue = venue{l.process.url()}
	if l.listing, err = l.venue.list(ctx, o.variety.markets); err != nil {
		l.stop()
		return nil, err
	}
	return l, nil
}

// flags returns the flags that connect a program to the lab's venue without a limit on its calls.
func (l *lab) flags() []string {
	return append(slices.Clone(unlimited), "--venue-url="+l.process.url(), "--stream-url=ws://"+l.process.address+"/ws")
}

// measure starts a venue whose prices do not move, and both programs in front of the venue. Then it measures the chosen workloads.
func (p *pairs) measure(ctx context.Context, b *builds, o options, programs [2]string, flags []string, chosen func(workload) bool) error {
	l, err := newPairLab(ctx, b, o, programs[1])
	if err != nil {
		return err
	}
	defer l.stop()
	for _, w := range newWorkloads(l.listing, o.variety) {
		if chosen(w) {
			l.workloads = append(l.workloads, w)
		}
	}
	if len(l.workloads) == 0 {
		return nil
	}
	for i, name := range []string{beforeServer, nowServer} {
		supported, err := supportedFlags(ctx, programs[i], flags)
		if err != nil {
			return err
		}
		if _, err := l.start(ctx, b, name, programs[i], slices.Concat(l.flags(), supported, o.flags)); err != nil {
			return err
		}
	}
	for w := range l.workloads {
		if err := p.add(ctx, l, o, l.workloads[w].name, [2]side{{l.servers[0], w}, {l.servers[1], w}}); err != nil {
			return err
		}
	}
	return nil
}

// add measures pairs of short runs and adds a row with the results. In every second pair, the second side goes first.
func (p *pairs) add(ctx context.Context, l *lab, o options, name string, sides [2]side) (err error) {
	row := pairRow{workload: name}
	for n := range o.rounds {
		var cells [2]cell
		for k := range 2 {
			i := (n + k) % 2
			if cells[i], err = l.measure(ctx, sides[i].server, sides[i].workload, o.duration); err != nil {
				return fmt.Errorf("%s, %s, pair %d: %w", name, p.sides[i], n+1, err)
			}
		}
		row.before, row.now = append(row.before, cells[0]), append(row.now, cells[1])
	}
	p.rows = append(p.rows, row)
	return nil
}

// ratios returns one ratio for each pair of runs: the column's value for the second side, divided by the value for the first side.
func (r *pairRow) ratios(column int) []float64 {
	out := make([]float64, len(r.now))
	for i := range out {
		out[i] = r.now[i].values[column] / max(r.before[i].values[column], 1)
	}
	return out
}

// bounds returns a confidence interval for the median of the distribution from which the values were drawn. If there are at
// least five values, the median is below lower with a probability of at most 5 %, and above upper with a probability of at most
// 5 %. This holds for any distribution (binomial order statistics).
func bounds(values []float64) (lower, upper float64) {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	below, term := 0.0, math.Pow(.5, float64(n)) // P(fewer than k of n are below the median)
	k := 0
	for ; k < n/2; k++ {
		if below+term > .05 {
			break
		}
		below += term
		term *= float64(n-k) / float64(k+1)
	}
	k = max(k-1, 0)
	return sorted[k], sorted[n-1-k]
}

// markdown returns a table of medians and a list of all CPU ratios.
func (p *pairs) markdown() string {
	if len(p.rows) == 0 {
		return ""
	}
	a, z := p.sides[0], p.sides[1]
	lines := [][]string{{"workload", a + " CPU µs", z, z + " / " + a, "95 % at least", "at most", a + " allocs", z, a + " KB", z, a + " calls", z}}
	var all strings.Builder
	for _, r := range p.rows {
		before, now := row{cells: r.before}, row{cells: r.now}
		ratios := r.ratios(cpu)
		lower, upper := bounds(ratios)
		lines = append(lines, []string{
			r.workload,
			fmt.Sprintf("%.1f", before.median(cpu)/1e3), fmt.Sprintf("%.1f", now.median(cpu)/1e3),
			fmt.Sprintf("%.3f", median(ratios)), fmt.Sprintf("%.3f", lower), fmt.Sprintf("%.3f", upper),
			fmt.Sprintf("%.1f", before.median(allocs)), fmt.Sprintf("%.1f", now.median(allocs)),
			fmt.Sprintf("%.1f", before.median(heapBytes)/1e3), fmt.Sprintf("%.1f", now.median(heapBytes)/1e3),
			fmt.Sprintf("%.2f", before.median(upstream)), fmt.Sprintf("%.2f", now.median(upstream)),
		})
		fmt.Fprintf(&all, "%s, CPU ratios in order: %.3f\n", r.workload, ratios)
	}
	return "### " + p.setting + "\n\n" + markdown(lines, 1) + "\n" + all.String() + "\n"
}
