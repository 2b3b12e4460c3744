// Package feed keeps the venue's live state: for every topic that somebody watches, the present state, made of a snapshot
// and the changes since.
//
// A topic's messages are checked against their numbers. After a gap the topic is stale, nothing of it is published, and a
// new snapshot replaces, never merges with, what was known. Topics are counted: the first watch opens one upstream, the
// last one closes it after a linger.
//
// Watches never slow the feed down. A state (a price, a book, an account) is replaced: a watch is signalled and finds the
// newest one, so a slow reader skips states but never misses the last. What must not be skipped (trades, changes of a
// market) queues up to a bound, past which the watch ends with an error. Differences between states, such as a book's
// deltas, are made by the reader between what it showed last and what is now, so they can't be lost.
//
// The room for public topics is shared. The readers of one caller hold a quarter of it for sure, and more while there is
// room that nobody needs: a caller who has less of it, or what queries ask for, takes such a topic back, and its watches end
// with an error, after which values may be polled. So a lone caller has all of it. Only states are lent so; what is told once,
// such as trades, is watched past a quarter only while less than half of the room is taken. A topic that several callers watch
// counts for one of them. Accounts have room of their own.
//
// What queries ask for again and again is watched too, a price or a book as it was asked for, up to half of the room and as
// far as subscribers leave it. Where that is full, a caller who has less of it takes the place of the one who has most,
// and what nobody has asked for lately gives way. What there was no room for is tried again every second.
//
// Everything live also goes to the Sink, so that queries read what subscribers see.
package feed
