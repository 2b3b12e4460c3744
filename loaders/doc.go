// Package loaders reads everything that a response is built from.
//
// A Set belongs to one response, in a subscription to one event, and to one goroutine. It has one table per kind of data, and a
// key has one value within it, whichever field reads it.
//
// A response is made in passes. A read never waits: it returns what the cache or an earlier call gave, or ErrPending. The first
// pass finds what can be read from the cache and notes the rest. Fetch sends the missing keys, all of one kind in one batch, and
// the next pass finds their values. A pass without a pending read is the response.
//
// Sharing between responses is the cache's task, so an error is never remembered past its response, and no other client's
// cancellation is felt.
package loaders
