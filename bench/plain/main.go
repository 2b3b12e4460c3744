//go:build ignore

// Command plain runs the plain server. The build must name this file, because the generated package that it imports may be missing.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"oddsgraph/bench/plain"
	"oddsgraph/bench/plain/graph"
	_ "oddsgraph/bench/probe"
)

type resolvers struct{ venue *plain.Venue }

func (r resolvers) Query() graph.QueryResolver       { return plain.Query{} }
func (r resolvers) User() graph.UserResolver         { return plain.Users{Venue: r.venue} }
func (r resolvers) Position() graph.PositionResolver { return plain.Positions{} }
func (r resolvers) Token() graph.TokenResolver       { return plain.Tokens{Venue: r.venue} }

func main() {
	listen := flag.String("listen", "127.0.0.1:8083", "host:port to serve on")
	base := flag.String("venue-url", "", "base `URL` of the venue")
	wait := flag.Duration("wait", time.Millisecond, "how long a loader waits for more keys")
	flag.Parse()
	venue := plain.NewVenue(*base)
	schema := graph.NewExecutableSchema(graph.Config{Resolvers: resolvers{venue}})
	err := http.ListenAndServe(*listen, plain.New(schema, venue, *wait))
	fmt.Fprintln(os.Stderr, "plain:", err)
	os.Exit(1)
}
