// Package ratelimit keeps the service within the rate limit of the venue. It divides the limit among the clients, which are named
// callers here.
//
// # Windows
//
// A window is a log of the calls of the last minute. A call is sent only if the log contains fewer calls than the usable limit; see
// Usable. The public window counts the calls without credentials, which the venue counts by IP address. But if such a call goes to a
// Family of endpoints, only the window of the family counts the call. Each set of credentials that the venue has accepted has its
// own window.
//
// # Order
//
// A read makes a reservation for its first call; see Budget.Reserve. If the call cannot be sent at once, the reservation waits in a
// queue, which is served in this order:
//
//  1. Callers that have used less than their share go first. A share is a quarter of the window. A caller that has used its
//     share gets only calls that the other callers of the last minute cannot claim for their shares. A lone caller may use the
//     whole window.
//  2. If rule 1 does not decide, a priority with fewer answered calls in the window than a twentieth of the limit goes first. So
//     each kind of data gets some answers.
//  3. If rules 1 and 2 do not decide, the greater priority goes first, then the earlier arrival.
//
// Refreshes of stale data go last and leave a quarter of the window free.
//
// A waiting reservation is refused when as many calls as wait before it cannot leave the window in time for its deadline. The error
// contains the time until they have left. That is a hint: later reservations with a greater priority may go first. A caller that
// joins a waiting read is refused by the same rule, while the read goes on for callers with later deadlines.
//
// # Calls of others
//
// A window also counts calls that this process has not made; see others. A new process assumes that half of each window was used,
// evenly over the last period, because it may follow another process. So it can make half of the calls at once and the rest within
// a period. Meanwhile only a few calls are in flight, because the venue may refuse all of them. The venue's rate-limit headers
// replace the assumption. A process that follows one that used up the limit gets a 429, and counts the whole limit as
// used. Then one call is in flight at a time, and the pauses after further refusals grow; see window.refused.
//
// # Several processes
//
// Several processes can share the limits; see Sharing. A Ledger grants calls to all of these processes. While the ledger does not
// answer, each process uses an equal part of the limit, under the same assumption as at a start.
package ratelimit
