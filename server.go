// Command oddsgraph serves prediction-market venues as one GraphQL endpoint.
//
// A request passes through the folders in this order:
//
//	app        the process: configuration, listeners, metrics; Open connects the layers below
//	httpapi    GraphQL over HTTP, WebSocket and event streams; limits, accounts, response cache
//	graph      the schema and its executor
//	resolvers  a function for each field that needs to read data
//	loaders    read each key of a response once, and many keys in one batch
//	internal   cache, rate limit and clients of the venue; feed maintains the state of the venue's stream
package main

import (
	_ "embed"

	"oddsgraph/app"
)

// licenses are the licence texts of the Go code in the program, written by scripts/licenses.
//
//go:embed THIRD_PARTY_LICENSES
var licenses string

func main() { app.Main(licenses) }
