package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The servers. oddsgraph is the program itself, and uncached is the program without its cache of whole responses.
const (
	limitServer    = "limit"
	plainServer    = "plain"
	graphServer    = "oddsgraph"
	uncachedServer = "uncached"
)

// server is a server that is measured. name is its kind, and also tells the binaries of oddsgraph apart if there are several.
type server struct {
	kind, name string
	start      func(ctx context.Context) (*process, error)
}

// setting is an argument of a measured program, or several, and the reason for it. The reasons are part of the results.
type setting struct{ args, reason string }

// The settings of oddsgraph: of all servers, of uncached, and of subscribers.
var (
	graphFlag    = setting{"--venue-public-per-minute=1000000 --venue-key-per-minute=1000000", "the venue allows as many calls as the service can count, and the service counts them"}
	uncachedFlag = setting{"--cache-responses=0", "uncached executes every query"}
	crowdFlag    = setting{"--max-connections=11000 --client-operations=30000", "10,000 subscribers at one address need more connections than the default of 3,000, and follow 80,000 ids"}
)

// venueMode is a kind of venue. parts returns what is measured over it.
type venueMode struct {
	name, about string
	flags       []setting // flags of the command venue, besides demoFlags
	// streams is true if the service follows the stream of the venue, and plain is true if the plain server is measured too.
	streams, plain bool
	parts          []func(b *bench, ctx context.Context) ([]benchmark, error)
}

var demoFlags = []setting{
	{"--demo-still", "prices move only on request, so that every response can be compared with the data of the venue"},
	{"--demo-control", "the benchmark moves prices and counts calls"},
	{"--demo-latency=5ms", "a venue is not on the same machine"},
}

var (
	marketsFlag = setting{"--demo-markets=4500", "1,000 of these markets have two books of 20 levels a side"}
	strictFlag  = setting{"--demo-strict", "the venue has only what its description has, so no rate-limit headers"}
)

func (o options) modes() []venueMode {
	large := max(4500, 90*o.variety)
	return []venueMode{
		{
			name: "demo", about: "the demo venue", streams: true, plain: true, flags: []setting{marketsFlag},
			parts: []func(*bench, context.Context) ([]benchmark, error){(*bench).queryBenchmarks, (*bench).coldBenchmarks, (*bench).crowdBenchmarks},
		},
		{
			name: "foreign", about: "a venue without stream and rate-limit headers", flags: []setting{marketsFlag, strictFlag},
			parts: []func(*bench, context.Context) ([]benchmark, error){(*bench).queryBenchmarks, (*bench).walletCurve},
		},
		{
			name: "large", about: "a large venue without stream and rate-limit headers",
			flags: []setting{{fmt.Sprintf("--demo-markets=%d", large), "two ninths of these markets have two books of 20 levels a side"}, strictFlag},
			parts: []func(*bench, context.Context) ([]benchmark, error){(*bench).pageCurve},
		},
	}
}

func arguments(flags ...setting) (args []string) {
	for _, f := range flags {
		args = append(args, strings.Fields(f.args)...)
	}
	return args
}

func (b *bench) graphServers(kind string, flags ...setting) (out []server) {
	args := append([]string{"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--venue-url=" + b.venue.url}, arguments(append(flags, graphFlag)...)...)
	if b.mode.streams {
		args = append(args, "--stream-url=ws"+strings.TrimPrefix(b.venue.url, "http")+"/ws")
	}
	for _, binary := range b.oddsgraph {
		s := server{kind, kind, func(ctx context.Context) (*process, error) { return start(ctx, binary, args...) }}
		if len(b.oddsgraph) > 1 {
			s.name += "/binary=" + strings.ReplaceAll(binary, "/", "_")
		}
		out = append(out, s)
	}
	return out
}

func (b *bench) plainServers() []server {
	if b.plain == "" || !b.mode.plain {
		return nil
	}
	return []server{{plainServer, plainServer, func(ctx context.Context) (*process, error) { return start(ctx, b.plain, "-venue-url="+b.venue.url) }}}
}

// queryServers returns the servers that answer queries, in the order in which each round measures them.
func (b *bench) queryServers(workloads []workload) ([]server, error) {
	stored := map[string][]byte{}
	for _, w := range workloads {
		for _, r := range w.requests {
			stored[string(r.body)] = r.want
		}
	}
	text, err := json.Marshal(stored)
	file := filepath.Join(b.dir, "responses.json")
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	limit := server{limitServer, limitServer, func(ctx context.Context) (*process, error) { return start(ctx, self, limitCommand, file) }}
	return slices.Concat([]server{limit}, b.plainServers(), b.graphServers(graphServer), b.graphServers(uncachedServer, uncachedFlag)), err
}
