// Package graphqlws serves GraphQL over WebSocket with the protocol graphql-transport-ws, see
// https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md. It implements the protocol and the sockets; an
// Operator authenticates clients and executes operations.
//
// An idle socket has one goroutine, which reads. A second goroutine writes while there are frames to write. One
// goroutine of the server pings all sockets and closes those whose client is silent or does not read.
package graphqlws
