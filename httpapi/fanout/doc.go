// Package fanout executes equal subscriptions once. Subscriptions with the same document, operation, variables and rights are
// members of one group. The group executes the subscription, encodes each event once and appends the bytes to every member's
// queue.
//
// A subscription to a list of ids may be a member of several groups, one for each id. All subscriptions whose lists contain an id
// share the group of that id.
//
// A slow member never delays the other members. The Mode in the follow.Envelope of an event says what happens if a member reads
// its queue too slowly:
//
//   - Replace: a newer event of the same topic may replace the event.
//   - Append: the event waits in the queue. If more than Limits.Events such events wait, the member ends.
//   - Delta: the event waits in the queue. If more than Limits.Deltas such events wait, the member restarts from the present state.
//
// A member that joins after the first event of a group first gets the present state, and then the events after that state.
package fanout
