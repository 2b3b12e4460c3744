// Package feed keeps the live state of the venue's stream: for each watched topic a snapshot with all later changes applied.
//
// # Topics and watches
//
// A topic is open while it has watches, and for a linger after the last one. The feed checks the sequence numbers of a topic's
// messages. After a gap the topic is stale and publishes nothing until a new snapshot has replaced the state. Snapshots are never
// merged with an older state.
//
// Readers never slow the feed down. A state (a price, a book, an account) is replaced, and the reader is signalled: a slow reader
// skips states, but always gets the last one. Trades and market changes are queued. A watch whose queue is full ends with an error.
// Readers compute differences between states themselves, for example the deltas of a book.
//
// Sink gets every live state, so that queries return what subscribers see.
//
// # Room for public topics
//
// The venue limits the topics of a connection, so callers share the room:
//
//   - Each caller is sure of a quarter. A topic that several callers watch counts for one of them.
//   - Beyond its quarter a caller may watch prices and books while there is room. The feed ends these watches with an error when
//     others need the room, and their clients can poll instead. So a lone caller has all of the room.
//   - Beyond its quarter a caller may watch trades and markets only while less than half of the room is taken, because polling
//     cannot replace them.
//   - Prices and books that queries poll often are watched too (an auto-watch), in at most half of the room. When that half is full,
//     callers with few auto-watches replace those of callers with many. Auto-watches without recent polls are closed, and those
//     without room are tried again every second.
//
// Accounts have room of their own.
package feed
