// Package follow turns the feed's topics into typed streams of events, one for each subscription of the graph.
//
// A stream yields [Event] values: the present state first, then what changes. It ends with its context, when the reader stops,
// or with an error, which is then the last thing that it yields. What fails without ending the stream is an event with a
// Problem.
//
// # One loop, nine bodies
//
// [loop] waits for the feed, for timers, for reads and for readers that join later. It calls a [body], which knows what one
// kind of subscription sends. Its methods run one at a time, on the goroutine that ranges over the stream, and never wait.
// Four subscriptions show a value that is replaced as a whole (prices, book, orders, balance): [states] serves all four. Markets,
// the tape, own trades and the portfolio have a body each. The stream's status needs no feed and has a loop of its own.
//
// # What a read settles
//
// REST is asked at the start, after changes that the stream only announces, after a gap, and every pollEvery for whatever the
// stream does not bring. One read at a time runs beside the loop. [pending] decides what its result settles:
//
//   - begin marks everything that is pending. The result settles that much and no more. What is added while the read is under way
//     stays pending, so a further read follows.
//   - keep leaves everything pending after a failure, and await after a stale result. Both delay the next read: half a second,
//     doubled each time up to half a minute, as long as the venue's budget says, and until the venue has a newer answer.
//   - A value that the stream has replaced while the read was under way is dropped.
//
// So no change is answered by a value from before it, and none is forgotten because a read has failed.
//
// # The first event
//
// Each stream sends INITIAL or a Problem within [Source].Timeout. The first failure of each kind is a Problem once; the reads go
// on. A state of the stream that is not live is never sent as INITIAL: REST is read instead, as a query would.
//
// # Readers that join
//
// Equal subscriptions share one stream ([Group]). A reader that joins is sent the present state between two events: at once where
// the stream is live and nothing is pending, else after the next read. So it is never older than the answer to a query.
//
// # Boundaries
//
// This package imports market and feed. Reads are functions that it is given: they may wait, must obey their context, and
// need not be safe for concurrent use by one stream. Arguments are checked, and events become the graph's types, in package
// resolvers.
package follow
