// Package stream is the client of the venue's WebSocket stream. It subscribes to topics over a pool of connections, reconnects, and
// decodes frames into messages. The Handler keeps the state of topics: it checks sequence numbers, assembles books and distributes
// messages to readers.
//
// Each connection has three goroutines: one reads and decodes, one writes, and one does everything else, including all calls of
// the Handler. The Handler is never called with a lock held, so it may call the Client.
package stream
