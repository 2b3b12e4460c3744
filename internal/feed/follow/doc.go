// Package follow turns the feed's topics into typed streams of events, one for each subscription of the graph.
//
// A stream yields [Event] values: the present state first, then its changes. A stream ends when its context ends or when its
// reader stops. It may also end with an error, which is its last value. An event with a Problem reports a failure that does not
// end the stream.
//
// # One loop and its bodies
//
// A [loop] waits for the feed, for timers, for REST reads and for readers that join. It calls a [body], which implements one kind
// of subscription. The methods of a body run one at a time, on the goroutine that ranges over the stream, and never wait. Prices,
// book, orders and balance share the body [states], because each new value replaces the whole old value. Markets, the tape, own
// trades and the portfolio have one body each. The status of the stream does not use the feed and has its own small loop.
//
// # What a read settles
//
// A subscription reads over REST in four cases: at its start, after the venue's stream has announced a change without its
// values, after a gap, and every pollInterval while the venue's stream sends no value. One read at a time runs beside the loop.
// [pending] decides what the result of a read settles:
//
//   - readStarted marks everything that is pending. The result settles only what was marked. What is added later stays pending
//     and causes another read.
//   - After a failure or a stale result, everything stays pending, and the next read is delayed. The delay starts at half a
//     second and doubles each time, up to half a minute. It is longer if the venue's rate limit or the age of its response
//     requires that.
//   - If the venue's stream sends a value during the read, the result of the read is dropped.
//
// So an event that reports a change never contains a value from before that change, and a failed read loses no change.
//
// # The first event
//
// Each stream sends INITIAL or a Problem within [Source].Timeout. If reads fail before the first event of a key, the stream sends
// at most one Problem for the key and goes on reading. A state of the feed that is not live is never sent as INITIAL: the stream
// reads over REST instead, as a query would.
//
// # Readers that join
//
// Equal subscriptions share one stream ([Group]). A reader that joins gets the present state between two events. If the stream is
// live and nothing is pending, the reader gets the state at once. Otherwise the reader gets the state after the next read. So the
// state is never older than the response to a query.
//
// # Boundaries
//
// The caller passes REST reads as functions. A read may wait and must obey its context. One stream calls one read at a time.
// Package resolvers checks arguments and converts events into the types of the graph.
package follow
