// Package fanout executes equal subscriptions once: all that ask for the same with the same rights are members of one
// group, which runs the subscription, makes the bytes of each event once and lays them into every member's queue.
//
// Nothing waits for a member. What becomes of an event in the queue of one that reads too slowly is said by the event's
// envelope: it is replaced by the next, or waits up to a bound, or the member starts anew from the present state.
//
// Whoever joins later is shown the present state by the execution itself, between two events, so that the next event that
// it gets is the one after the state that it was shown.
package fanout
