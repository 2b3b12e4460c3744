// Package fanout executes equal subscriptions once. Subscriptions with the same document, variables and rights are members
// of one group. The group executes the subscription, encodes each event once and appends the bytes to every member's queue.
//
// Nothing waits for a slow member. The event's envelope says what happens in a queue that is not read: a newer event replaces
// the event, the event waits up to a limit, or the member restarts from the present state.
//
// The execution shows the present state to members that join later. The next event they get is the one after that state.
package fanout
