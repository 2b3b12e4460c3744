// Command run is the subscribers as a process: it takes orders on standard input and reports on standard output, in JSON.
package main

import (
	"flag"
	"fmt"
	"os"

	"oddsgraph/bench/subscribers"
)

func main() {
	address := flag.String("address", "", "`host:port` of the server")
	n := flag.Int("n", 1, "number of subscribers")
	document := flag.String("document", "", "the subscription; empty subscribes to nothing")
	flag.Parse()
	if err := subscribers.Serve(*address, *n, *document, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "subscribers:", err)
		os.Exit(1)
	}
}
