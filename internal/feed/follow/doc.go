// Package follow turns topics of package feed into typed streams of events for the subscriptions of the graph. Equal subscriptions
// can share one stream.
//
// A [Stream] yields [Event] values: first the present state, then its changes. A Stream ends when its context ends or when its
// reader stops. It may also end with an error, which it yields last. An event with a Problem reports a failure that does not end
// the Stream. In this package, "subscription" means the client's subscription that a Stream serves. "The venue's stream" means the
// stream whose topics the feed watches.
//
// # One loop and its bodies
//
// A [loop] waits for the feed, for timers, for REST reads and for readers that join. It then calls a [body], which implements one
// kind of subscription. The methods of a body run one at a time, on the goroutine that ranges over the Stream, and never wait.
// Subscriptions of prices, books, orders and balances use the body [states], because each new value replaces the whole old value.
// Subscriptions of markets, public trades, own trades, portfolios and questions have one body each. [StreamStatus] has none: it looks
// at the present state in short intervals.
//
// # REST reads
//
// A subscription reads over REST mainly in these cases:
//   - at its start, if the venue's stream does not send a value soon
//   - after the venue's stream has announced a change without the new values
//   - after a gap
//   - every pollInterval while the venue's stream sends no values
//
// A loop runs one read of a venue at a time, on another goroutine. The type [pending] stores the reason to read and the changes that the read
// must include. The reason and the changes stay pending until a read settles them, which means that they need no further read:
//
//   - A successful read settles everything that was pending when the read started. Reasons and changes that were added during the
//     read stay pending and cause another read.
//   - After a failed read, everything stays pending, and the next read is delayed. A stale result has the same effect, except for a
//     portfolio. The delay is the random readBackoff, and lasts at least until the retry time that an error contains.
//   - If the venue's stream sends a newer value during the read, the body drops the result of the read or reads again.
//
// As a result, an event that reports a change never contains a value from before that change, and a failed read loses no change.
//
// # The first event
//
// Each Stream sends an INITIAL event or a Problem within [Source].Timeout. [StreamStatus] sends a CHANGE event at once instead. If
// reads fail before the first event of a key, the Stream sends at most one Problem for the key and continues to read. A key is the
// id of a token or a market. It is empty for an account. If the state in the feed is not live, the Stream does not send this state
// as INITIAL but reads over REST, like a query. Public trades are an exception: their INITIAL event contains the trades that the feed
// has, and does not wait for REST. If the venue's stream does not begin with the latest trades, a RESYNC adds those that REST has.
//
// # Gaps of public trades
//
// After a gap, new trades wait until a read has given the trades before them. If the read does not reach back to a trade that was
// sent before the gap, if the venue has no list of trades, or if no read succeeds within closeWithin, the event has the mark of a gap.
//
// # Readers that join
//
// A [Group] contains the readers of a Stream that equal subscriptions share. The first event for a reader that joins is the present
// state. If the venue's stream is live and nothing is pending, the reader gets this state at once. If not, the reader waits until a
// read has ended, but at most for pollInterval, and at most for half of [Source].Timeout. After this wait, the reader gets the
// state that the Stream sent most recently.
//
// # Boundaries
//
// Package resolvers passes REST reads as functions, checks the arguments of subscriptions, and converts events into the types of
// the graph. A read may wait and must obey its context. A Stream calls one read at a time.
package follow
