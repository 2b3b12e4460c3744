// Package cache caches data of the venue and decides when to fetch it again.
//
// Every kind of data has a store: an LRU of entries with a fresh and a stale time. Fresh entries are served, stale entries are served and
// refreshed once, and missing keys are fetched through a coalescer. The coalescer joins equal keys of all requests and packs different
// keys into the fewest calls. The cache offers the reads of the venue as Sources for the loaders.
//
// The entries of each kind are bounded in number and in bytes. Each kind has a fixed share of Config.Memory. The size of an entry is
// estimated when it is stored. An entry larger than its share is not cached.
//
// An entry never changes. Its market.Handle reports when it was replaced or evicted. An absence has an entry, too.
package cache
