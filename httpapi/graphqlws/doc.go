// Package graphqlws serves GraphQL over WebSocket by the protocol graphql-transport-ws, as
// https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md describes it. It knows the protocol and the sockets; what
// an operation is and who may ask are its caller's matter.
//
// A socket costs one goroutine that reads. Frames are written by a goroutine that lives only while there are any, and one
// goroutine for all sockets sends pings and closes those whose client is silent or does not read.
package graphqlws
