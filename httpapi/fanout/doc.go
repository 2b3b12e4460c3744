// Package fanout executes equal subscriptions once. Subscriptions with the same document, variables and rights are members
// of one group. The group executes the subscription, encodes each event once and appends the bytes to every member's queue.
//
// A subscription to a list of ids may be a member of several groups, one for each id. All subscriptions whose lists contain an id
// share the group of that id.
//
// The group never waits for a slow member. The envelope of an event says what happens in a queue that is not read: a newer
// event replaces the event, the event waits within a limit, or the member restarts from the present state.
//
// Members that join later get the present state from the execution, and then the events after that state.
package fanout
