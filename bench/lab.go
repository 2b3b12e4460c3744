package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The servers, in the order in which each round measures them.
const (
	limitServer = "limit"
	plainServer = "plain"
	// graphServer is oddsgraph with its response cache. uncachedServer is oddsgraph without a response cache, so that it executes
	// every query.
	graphServer    = "oddsgraph"
	uncachedServer = "uncached"
)

// lab is a venue, the servers in front of it and the workloads.
type lab struct {
	venue     venue
	servers   []*server
	workloads []workload
	listing   *listing
	// answers are the expected response bodies by server, workload and request.
	answers     map[*server][][][]byte
	connections int
	// every is the time between two requests under load; see task.
	every  time.Duration
	moving bool
	// patience is how old the prices of a response may be when the prices of the venue move.
	patience time.Duration
	process  *server // process of the venue
}

// warm keeps all data fresh, so that oddsgraph reads nothing twice from a venue whose prices do not move. The portfolios of V1's
// 1,000 wallets need more cache memory than the default.
var warm = []string{"--cache-memory=1GiB", "--cache-price-fresh=1h", "--cache-book-fresh=1h", "--cache-market-fresh=1h", "--cache-user-fresh=1h"}

// unlimited lets oddsgraph call the venue without a rate limit, as the plain server does.
var unlimited = []string{"--log-level=warn", "--venue-public-per-minute=0", "--venue-key-per-minute=0"}

// newLab starts a venue and the servers in front of it, and sends every request to every server once.
func newLab(ctx context.Context, b *builds, o options, t *table) (_ *lab, err error) {
	l := &lab{connections: o.connections, moving: t.moving, patience: o.behind, answers: map[*server][][][]byte{}}
	defer func() {
		if err != nil {
			l.stop()
		}
	}()
	program, err := b.oddsgraph(ctx)
	if err != nil {
		return nil, err
	}
	if l.process, err = startVenue(ctx, b, program, t.latency); err != nil {
		return nil, err
	}
	l.venue = venue{l.process.url()}
	if l.listing, err = l.venue.list(ctx, o.variety.markets); err != nil {
		return nil, err
	}
	if err := l.choose(newWorkloads(l.listing, o.variety), o.workloads); err != nil {
		return nil, err
	}

	if err := l.startServers(ctx, b, o, t, program); err != nil {
		return nil, err
	}
	slices.SortFunc(l.servers, func(a, b *server) int { return order(a.name) - order(b.name) })
	return l, nil
}

// startServers starts all servers in front of the venue. program is the path of oddsgraph.
func (l *lab) startServers(ctx context.Context, b *builds, o options, t *table, program string) error {
	// There may be 10,000 subscribers, each with its own connection.
	flags := slices.Concat(unlimited, []string{"--max-connections=20000", "--venue-url=" + l.process.url(), "--stream-url=ws://" + l.process.address + "/ws"})
	if !t.moving {
		flags = append(flags, warm...)
	}
	flags = append(flags, o.flags...) // a later flag overrides an earlier flag with the same name
	subject, err := l.start(ctx, b, graphServer, program, flags)
	if err != nil {
		return err
	}
	if l.varied() {
		noResponseCache, err := withoutResponseCache(ctx, program)
		if err != nil {
			return err
		}
		t.note(noResponseCache == nil, "This oddsgraph has no response cache: uncached is the same program.")
		if _, err := l.start(ctx, b, uncachedServer, program, append(flags, noResponseCache...)); err != nil {
			return err
		}
	}
	if o.plain {
		if program, err = b.plain(ctx); err != nil {
			return err
		}
		if _, err := l.start(ctx, b, plainServer, program, []string{"--venue-url=" + l.process.url()}); err != nil {
			return err
		}
	}
	if program, err = b.limit(ctx); err != nil {
		return err
	}
	file := filepath.Join(b.dir, "answers.json")
	if err := l.write(file, subject); err != nil {
		return err
	}
	if _, err := l.start(ctx, b, limitServer, program, []string{"--answers=" + file}); err != nil {
		return err
	}
	return nil
}

func order(server string) int {
	return slices.Index([]string{limitServer, plainServer, graphServer, uncachedServer}, server)
}

// startVenue starts a demo venue whose prices move only on request.
func startVenue(ctx context.Context, b *builds, program string, latency time.Duration) (*server, error) {
	return b.start(ctx, "venue", program, "--demo-listen", "venue", "--demo-still", "--demo-control", "--log-level=warn", "--demo-latency="+latency.String())
}

// start starts a server, records its responses and compares some of them with the venue.
func (l *lab) start(ctx context.Context, b *builds, name, program string, flags []string) (*server, error) {
	s, err := b.start(ctx, name, program, "--listen", flags...)
	if err != nil {
		return nil, err
	}
	l.servers = append(l.servers, s)
	return s, l.record(ctx, s)
}

func (l *lab) stop() {
	for _, s := range l.servers {
		s.stop()
	}
	if l.process != nil {
		l.process.stop()
	}
}

// choose sets the workloads of the lab to those with the given names, or to all if there are no names. A lab whose prices move
// leaves out workloads without tokens.
func (l *lab) choose(all []workload, names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(all, func(w workload) bool { return w.name == name }) {
			return fmt.Errorf("there is no workload %q", name)
		}
	}
	for _, w := range all {
		if (len(names) == 0 || slices.Contains(names, w.name)) && (!l.moving || w.tokens != nil) {
			l.workloads = append(l.workloads, w)
		}
	}
	return nil
}

func (l *lab) varied() bool {
	return slices.ContainsFunc(l.workloads, func(w workload) bool { return w.varied })
}

// suits reports whether a server is measured with a workload. The server without a response cache is measured only with workloads
// whose requests vary.
func (l *lab) suits(s *server, w int) bool {
	return s.name != uncachedServer || l.workloads[w].varied
}

// The benchmark compares one in checkEvery responses with the venue.
const checkEvery = 10

// record sends every request to a server once. From then on, the server must return the same responses.
func (l *lab) record(ctx context.Context, s *server) error {
	connections, err := l.dial(ctx, s)
	if err != nil {
		return err
	}
	defer closeAll(connections)
	for w := range l.workloads {
		requests := l.workloads[w].requests
		answers := make([][]byte, len(requests))
		_, err := run(ctx, connections, task{requests: requests, once: true, keep: func(n int, answer []byte) error {
			answers[n] = slices.Clone(answer)
			if n%checkEvery > 0 {
				return nil
			}
			return l.venue.check(ctx, requests[n].question, answer)
		}})
		if err != nil {
			return fmt.Errorf("%s: %s: %w", s.name, l.workloads[w].name, err)
		}
		l.answers[s] = append(l.answers[s], answers)
	}
	return nil
}

// write writes the responses of a server to a file for the program limit.
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

const (
	// settleRun is the duration of one warm-up run on a venue whose prices move. A server first reads over REST. It subscribes to the
	// stream after it has received several requests for the tokens. Warm-up runs repeat until the server keeps up with the venue.
	settleRun   = 500 * time.Millisecond
	maxLag      = 250 * time.Millisecond // the warm-up ends when no price in a response is older than this
	maxSettling = 10 * time.Second       // maximum duration of the warm-up
)

// view is the number of calls that the venue has received and the metrics of a server.
type view struct {
	calls    int64
	counters counters
}

func (l *lab) dial(ctx context.Context, s *server) ([]*connection, error) {
	connections := make([]*connection, 0, l.connections)
	for range l.connections {
		c, err := dial(ctx, s.address)
		if err != nil {
			closeAll(connections)
			return nil, err
		}
		connections = append(connections, c)
	}
	return connections, nil
}

func closeAll(connections []*connection) {
	for _, c := range connections {
		c.close()
	}
}

// profileTime is the duration of each CPU profile.
const profileTime = 5 * time.Second

// profile writes one CPU profile per workload and one allocation profile for each server except plain.
func (l *lab) profile(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	suffix := map[bool]string{true: ".moving"}[l.moving]
	for _, s := range l.servers {
		if s.name == plainServer {
			continue
		}
		for w := range l.workloads {
			if !l.suits(s, w) {
				continue
			}
			made := make(chan error, 1)
			go func() {
				file := filepath.Join(dir, l.workloads[w].name+suffix+"."+s.name+".cpu.pprof")
				made <- s.profile(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", profileTime/time.Second), file)
			}()
			_, err := l.measure(ctx, s, w, profileTime)
			if err = errors.Join(err, <-made); err != nil {
				return err
			}
		}
		if err := s.profile(ctx, "/debug/pprof/allocs", filepath.Join(dir, "allocs"+suffix+"."+s.name+".pprof")); err != nil {
			return err
		}
	}
	return nil
}
