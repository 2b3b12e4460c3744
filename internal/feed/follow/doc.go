// Package follow turns topics of the feed into typed streams of events for the subscriptions of the graph.
//
// A stream yields [Event] values: first the present state, then its changes. A stream ends when its context ends or when its reader
// stops. It may also end with an error, which it yields last. An event with a Problem reports a failure that does not end the
// stream.
//
// # One loop and its bodies
//
// A [loop] waits for the feed, for timers, for REST reads and for readers that join. It then calls a [body], which implements one
// kind of subscription. The methods of a body run one at a time, on the goroutine that ranges over the stream, and never wait.
// Subscriptions of prices, books, orders and balances have the same body, [states], because each new value replaces the whole old
// value. Subscriptions of markets, public trades, own trades and portfolios have one body each. [StreamStatus] does not use the
// feed and has its own loop.
//
// # REST reads
//
// A subscription reads over REST in four cases:
//   - at its start, if the venue's stream does not send a value soon
//   - after the venue's stream has announced a change without its values
//   - after a gap
//   - every pollInterval while the venue's stream sends no values
//
// A loop runs one read at a time, on another goroutine. A reason to read, or a change that a read must include, is called pending.
// [pending] decides what is no longer pending after a read:
//
//   - A successful read settles what was pending when the read started. Additions during the read stay pending and cause another
//     read.
//   - After a failure or a stale result, everything stays pending, and the next read is delayed. The delay starts at retryAfter and
//     doubles each time, up to maxRetryAfter. It is longer if the venue's rate limit or the age of its response requires that.
//   - If the venue's stream sends a value during the read, the result of the read is dropped.
//
// As a result, an event that reports a change never contains a value from before that change, and a failed read loses no change.
//
// # The first event
//
// Each stream sends an INITIAL event or a Problem within [Source].Timeout. If reads fail before the first event of a key, the
// stream sends at most one Problem for the key and continues to read. If the state in the feed is not live, the stream does not
// send it as INITIAL but reads over REST, like a query.
//
// # Readers that join
//
// Equal subscriptions share one stream ([Group]). A reader that joins first gets the present state. If the stream is live and
// nothing is pending, the reader gets the state at once. If not, the reader gets the state after the next read. Therefore the state
// is never older than the response to a query.
//
// # Boundaries
//
// The caller passes REST reads as functions. A read may wait and must obey its context. A stream calls one read at a time. Package
// resolvers checks the arguments of subscriptions and converts events into the types of the graph.
package follow
