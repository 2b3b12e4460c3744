// Package cache caches data of the venue and decides when the data is fetched again.
//
// Every kind of data has a store, which is an LRU of entries. An entry is fresh for a time, and then stale for a time. A fresh
// entry is served. A stale entry is served, too, and refreshed in the background. The store fetches a missing key through a
// coalescer. The coalescer fetches a key once, even if several requests need it, and puts different keys into the fewest calls.
// Package loaders reads the stores through loaders.Sources.
//
// The entries of each kind are bounded in number and in bytes. Each kind gets a fixed part of Config.Memory. The store estimates
// the size of an entry when it stores the entry. An entry that is larger than the memory of its kind is not cached.
//
// The value of an entry never changes. The market.Handle of an entry reports whether the entry was replaced or evicted. Some
// entries are absences. An absence records that the venue does not know a key.
package cache
