// Command run runs subscribers in a separate process. It reads orders from standard input and writes reports to standard
// output, in JSON.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"oddsgraph/bench/subscribers"
)

func main() {
	address := flag.String("address", "", "`host:port` of the server")
	n := flag.Int("n", 1, "number of subscribers")
	document := flag.String("document", "", "the subscription; empty subscribes to nothing")
	tokens := flag.String("tokens", "", "ids separated by commas; each subscriber gets a list of 8 of them as the variable ids")
	flag.Parse()
	var ids []string
	if *tokens != "" {
		ids = strings.Split(*tokens, ",")
	}
	if err := subscribers.Serve(*address, *n, *document, ids, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "subscribers:", err)
		os.Exit(1)
	}
}
