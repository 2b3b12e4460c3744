// Package ratelimit keeps the service within the rate limit of its venue, and divides the limit between callers.
//
// # Windows
//
// A window is a log of the calls of the last minute. So there are never more calls than the limit in any 60 seconds. A token
// bucket would allow nearly twice the limit in its first minute. One window counts the public calls of this address. Each set of
// credentials that the venue has accepted has its own window.
//
// # Order
//
// A read that cannot leave at once waits in a queue. If it would leave too late for its deadline, it is refused at once, with the
// time of its turn. The order is:
//
//  1. Callers below their share, a quarter of the window, go first. Beyond its share, a caller gets only what remains when every
//     other caller of the last minute has had its share. A lone caller may use the whole window.
//  2. Priorities with less than a twentieth of the window go before the others, so each kind of data gets something.
//  3. The greater priority goes first, then the earlier arrival. By arrival rather than by deadline, no later read of the same
//     kind can go first, so the wait that a caller is told stays true.
//
// Refreshes of stale data go last and leave a quarter of the window to the others. While less than half of the window is free,
// refreshes are spaced out until the oldest call leaves the window.
//
// # Start
//
// Inherit says what other processes may have spent. Until those calls have left the window, this process uses only the reserve:
// the margin of the limit, which is not used otherwise. So a new process can follow at once on one that has used up the limit. A
// record of the calls, or the number of remaining calls that the venue reports, replaces the reserve.
package ratelimit
