// Package ratelimit keeps the service within the rate limit of the venue. It divides the limit among the clients, which are named
// callers here.
//
// # Windows
//
// A window is a log of the calls of the last minute. A call is sent only if the log contains fewer calls than the limit. So no
// period of 60 seconds contains more calls than the limit. The public window counts the calls without credentials, which the venue
// counts by IP address. But if such a call goes to a Family of endpoints, only the window of the family counts the call. Each set
// of credentials that the venue has accepted has its own window.
//
// # Order
//
// A read makes a reservation for its first call; see Budget.Reserve. If the call cannot be sent at once, the reservation waits in a
// queue. The turn of a reservation is the time at which its call is expected to be sent. If the turn is too late for the deadline
// of the read, the reservation is refused at once. The error contains the wait until the turn. The queue is served in this order:
//
//  1. Callers that have used less than their share go first. A share is a quarter of the window. A caller that has used its
//     share gets only calls that the other callers of the last minute cannot claim for their shares. A lone caller may use the
//     whole window.
//  2. If rule 1 does not decide, a priority with fewer calls in the window than a twentieth of the limit goes first. So each kind
//     of data gets some calls.
//  3. If rules 1 and 2 do not decide, the greater priority goes first, then the earlier arrival. So a later reservation of the same
//     priority does not make an earlier reservation wait longer.
//
// Refreshes of stale data go last and leave a quarter of the window free. While less than half of the window is free, refreshes are
// spread over the time until the oldest call leaves the window.
//
// # Start
//
// A new process does not know which calls an earlier process made in the last minute. Until those calls have left the window, the
// new process uses only the margin: the last twentieth of the limit, which processes normally leave unused. So the new process can
// make calls at once, even if the earlier process used up the rest of the limit. If the earlier process has recorded its calls, or
// if the venue reports how many calls remain, the new process uses all remaining calls. The allowance of a process says which part
// of the limit the process may use; see Budget.Inherit.
//
// # Several processes
//
// Several processes can share the limits; see Sharing. A Ledger grants calls to all of these processes. Each process also has a
// reserve: a few calls that it may make without the ledger. The pool of a window contains the granted calls and the reserve.
package ratelimit
