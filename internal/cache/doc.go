// Package cache caches data of the venue and decides when the data is fetched again.
//
// Every kind of data has a store: an LRU of entries with a fresh and a stale time. A fresh entry is served. A stale entry is
// served, too, and refreshed in the background. A missing key is fetched through a coalescer: a key that several requests need is
// fetched once, and different keys are put into the fewest calls. Package loaders reads the stores through loaders.Sources.
//
// The entries of each kind are bounded in number and in bytes. Each kind gets a fixed part of Config.Memory. The size of an entry
// is estimated when the entry is stored. An entry larger than the part of its kind is not cached.
//
// The value of an entry never changes. The market.Handle of an entry reports whether the entry was replaced or evicted. Some
// entries are absences. An absence records that the venue does not know a key.
package cache
