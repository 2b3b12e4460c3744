// Package stream is the client of the venue's WebSocket stream. It keeps a set of topics subscribed over a pool of
// connections that it opens, watches over and opens again, and turns their frames into market.Messages. It keeps no
// state of what the topics say and knows nothing of who reads them: checking sequence numbers, putting books together
// and fan-out are for the Handler.
//
// Of each connection one goroutine reads and decodes, one writes, and one does everything else, the calls of the Handler
// among it. The Handler is never called with a lock held, so it may call the Client.
package stream
