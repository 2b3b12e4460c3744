// Package ratelimit keeps the service within the rate that its venue allows, and spends that rate where users feel it.
//
// A window is a log of the calls of the last minute, so there are never more than the limit in any 60 seconds, not even
// at the start, where a token bucket would let nearly twice as many pass. There is one window for the public calls of
// this address and one for each set of credentials that the venue has accepted.
//
// What cannot leave at once waits for its turn. Whoever would wait longer than it has time is refused at once, with the
// time at which its turn would have come. The order is:
//
//  1. A caller who has had its share, a quarter of the window, comes after those who have not, and leaves them what is
//     theirs: it gets more only from what remains when every other caller who asked within the last minute had its share.
//     A lone caller may have everything.
//  2. A priority that has had less than a twentieth of the window comes before those that have had more, so that each
//     kind of data gets something.
//  3. Then priority counts, and then who came first. The order of arrival, rather than that of deadlines, is what makes
//     the time that is told to a caller true: nobody of its own kind can come in between.
//
// Refreshes of stale data have the lowest claim. They wait behind everybody and leave a quarter of the window to the others;
// while less than half of it is left they are spaced out, so that what is between lasts until there is more.
//
// Inherit says what other processes may have spent. Until that is known to have left the minute, a window has a reserve: the
// margin of its limit that is never used otherwise. So a process that spent everything else may be followed by a new one at
// once. A record of calls, or the venue's word on how many calls remain, takes the place of the reserve.
package ratelimit
