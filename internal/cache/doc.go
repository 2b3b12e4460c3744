// Package cache keeps what the venue said and decides when to ask again.
//
// Every kind of data has a store: an LRU of entries with a fresh and a stale time of their own. Fresh entries answer,
// stale ones answer and are refreshed once, the rest is fetched through a coalescer, which joins equal keys of all
// requests in flight and packs different ones into the fewest upstream calls. The cache decorates the venue: it offers
// the same reads, as Sources that the loaders look up and fetch from.
//
// The entries of each kind are bounded in number and in bytes: each kind has a fixed share of Config.Memory, and each entry is
// weighed by an estimate when it is stored. An entry larger than its share is not kept.
//
// An entry never changes. It has a market.Handle that tells its users when it was replaced or evicted; an absent value
// has an entry as well.
package cache
