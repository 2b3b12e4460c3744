// Package fanout executes equal subscriptions once. Subscriptions with the same document, variables and rights are members of one
// group. The group executes the subscription, encodes each event once and appends the bytes to every member's queue.
//
// A subscription to a list of ids may be a member of several groups, one for each id. All subscriptions whose lists contain an id
// share the group of that id.
//
// The group never waits for a slow member. The envelope of an event says what happens if a member does not read its queue: a
// newer event replaces the event, the event waits within a limit, or the member restarts from the present state.
//
// A member that joins a running group first gets the present state, and then the events after that state.
package fanout
