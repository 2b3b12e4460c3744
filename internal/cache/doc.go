// Package cache caches data of the venue and decides when the data is fetched again.
//
// Every kind of data has a store with a list of entries. What differs from kind to kind is in the kind, a type in a file of its name:
// the times, the endpoints, the keys, the order of values, their weight. An entry is fresh for a time, and then stale for a time. A fresh
// entry is served. A stale entry is served, too, and refreshed in the background. The store fetches a missing key through a
// coalescer. The coalescer fetches a key once, even if several requests need it, and puts different keys into the fewest calls.
// Package loaders reads the stores through loaders.Sources.
//
// Config.Memory bounds the memory of all entries. The kinds share it; see pool. The store estimates the size of an entry when it
// stores the entry.
//
// The value of an entry never changes. The reads.Handle of an entry reports whether the entry was replaced or evicted. Some
// entries are absences. An absence records that the venue does not know a key.
package cache
