// Package cache caches data of the venue and decides when the data is fetched again.
//
// Every kind of data has a store: an LRU of entries with a fresh and a stale time. A fresh entry is served. A stale entry is
// served, too, and refreshed in the background. A missing key is fetched through a coalescer, which fetches equal keys of all
// requests once and puts different keys into the fewest calls. Package loaders reads the stores, which are the fields of
// loaders.Sources.
//
// The entries of each kind are bounded in number and in bytes. Each kind has a fixed share of Config.Memory. The size of an
// entry is estimated when the entry is stored. An entry larger than the share of its kind is not cached.
//
// The value of an entry never changes. Its market.Handle reports that the entry was replaced or evicted. An absence is an
// entry, too: it records that the venue does not know a key.
package cache
