// Package stream is the client of the venue's WebSocket stream. It subscribes to topics over a pool of connections, reopens lost
// connections, and decodes frames into messages. The client does not keep the state of topics. A Handler checks the sequence
// numbers, assembles books and distributes messages to readers.
//
// Each open connection has at least three goroutines: one reads and decodes frames, one writes frames, and one does everything
// else, including all calls of the Handler. The Handler may call the Client, because the Client holds no lock during these calls.
package stream
