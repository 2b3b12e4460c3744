//go:build ignore

// Command plain runs the plain server. The build must name this file, because the generated package that it imports may be missing.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"oddsgraph/bench/plain"
	"oddsgraph/bench/plain/graph"
)

type resolvers struct{ venue *plain.Venue }

func (r resolvers) Query() graph.QueryResolver       { return plain.Query{} }
func (r resolvers) User() graph.UserResolver         { return plain.Users{Venue: r.venue} }
func (r resolvers) Position() graph.PositionResolver { return plain.Positions{} }
func (r resolvers) Token() graph.TokenResolver       { return plain.Tokens{Venue: r.venue} }

func main() {
	url := flag.String("venue-url", "", "base `URL` of the venue")
	flag.Parse()
	venue := plain.NewVenue(*url)
	http.Handle("POST /graphql", plain.New(graph.NewExecutableSchema(graph.Config{Resolvers: resolvers{venue}}), venue))
	http.Handle("GET /metrics", promhttp.Handler())
	http.HandleFunc("POST /cache/flush", func(http.ResponseWriter, *http.Request) {}) // it keeps nothing
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		fmt.Fprintf(os.Stderr, "plain: url=http://%s admin=http://%[1]s\n", l.Addr())
		err = http.Serve(l, nil)
	}
	fmt.Fprintln(os.Stderr, "plain:", err)
	os.Exit(1)
}
