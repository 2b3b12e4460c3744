// Package graphqlws serves GraphQL over WebSocket with the protocol graphql-transport-ws
// (https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md). An Operator authenticates clients and executes operations.
//
// An idle socket has one goroutine, which reads. A second goroutine exists while there are frames to write. One goroutine of
// the server, the sweeper, pings silent clients. The sweeper also closes a socket if its client stays silent, does not read, or
// sends connection_init or a message too slowly.
package graphqlws
