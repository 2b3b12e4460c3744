// Package feed maintains the live state of each watched topic of the venue's stream: a snapshot with all later changes applied.
//
// # Topics and watches
//
// A topic is open while it has watches. After its last watch was closed, it stays open for a while, its linger (Config.Linger). The
// feed checks the sequence numbers of a topic's messages. After a gap the topic is stale and publishes nothing until a new snapshot
// has replaced the state. A snapshot is never merged with an older state.
//
// A slow reader never slows the feed down. A new state (a price, a book, an account) replaces the old state, and the feed
// signals the reader. So a slow reader skips states, but always gets the last state. Trades and market changes are queued. A
// watch whose queue is full ends with an error. Readers compute differences between states themselves, for example the deltas
// of a book.
//
// The feed passes every live state to Sink, so that queries return what subscribers see.
//
// # Room for public topics
//
// The venue limits the number of topics of each connection. The room is the number of topics that all connections together allow.
// Callers share the room:
//
//   - Each caller may always use a quarter of the room, its share. A topic that several callers watch counts against the share of
//     only one of them.
//   - Beyond its share a caller may watch prices and books while there is room, so a lone caller can use all of the room. When
//     other callers need the room, the feed ends these watches with an error. Their clients can poll instead.
//   - Beyond its share a caller may watch trades and markets only while less than half of the room is used. The feed does not
//     end these watches, because clients could not poll instead.
//   - The feed also watches prices and books that queries poll often. These auto-watches use at most half of the room. When
//     that half is full, a caller with few auto-watches may replace an auto-watch of a caller with many. An auto-watch without
//     recent polls is closed. If there is no room for an auto-watch, the feed tries again every second.
//
// Accounts have a separate room.
package feed
