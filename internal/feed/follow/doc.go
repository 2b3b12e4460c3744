// Package follow turns the feed's topics into typed streams of events, one for each subscription of the graph.
//
// A stream yields [Event] values: the present state first, then its changes. It ends with its context, when the reader stops, or
// with an error, which is the last value. A failure that the stream survives is an event with a Problem.
//
// # One loop and its bodies
//
// A [loop] waits for the feed, for timers, for REST reads and for readers that join. It calls a [body], which implements one kind
// of subscription. The body's methods run one at a time on the goroutine that ranges over the stream, and never wait. Four
// subscriptions show a value that is replaced as a whole (prices, book, orders, balance) and share the body [states]. Markets, the
// tape, own trades and the portfolio have a body each. The stream's status does not use the feed and has its own small loop.
//
// # What a read settles
//
// A stream reads over REST at its start, after changes that the stream only announces, after a gap, and every pollInterval for
// values that the stream does not send. One read at a time runs beside the loop. [pending] decides what its result settles:
//
//   - readStarted marks everything that is pending. The result settles only what was marked. Later additions stay pending and lead
//     to another read.
//   - After a failure or a stale result everything stays pending. The next read is delayed: by half a second, doubled each time up
//     to half a minute, or longer if the venue's rate limit or the age of its response demands that.
//   - If the stream has replaced a value during the read, the result is dropped.
//
// So an event never shows a value from before the change that it reports, and no change is lost because a read failed.
//
// # The first event
//
// Each stream sends INITIAL or a Problem within [Source].Timeout. It reports the first failure of each kind once and keeps reading.
// A state that is not live is never sent as INITIAL: the stream reads over REST instead, as a query would.
//
// # Readers that join
//
// Equal subscriptions share one stream ([Group]). A reader that joins gets the present state between two events: at once if the
// stream is live and nothing is pending, otherwise after the next read. So the state is never older than a query's response.
//
// # Boundaries
//
// This package imports market and feed. The caller passes reads as functions. They may wait, must obey their context, and one
// stream calls them one at a time. Package resolvers checks arguments and converts events into the graph's types.
package follow
