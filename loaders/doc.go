// Package loaders is the door through which everything that builds a response reads.
//
// A Set belongs to one response (in a subscription: to one event). Within it a key has one value, whoever asks for it.
// What the cache has is answered at once; the rest enters a dataloader and leaves in one batch: at once where the whole
// list is known (GetMany, Prefetch), after a millisecond for stragglers (Get). A set that gathers waits for nothing: what an
// attempt to make the response lacks leaves together when it is over. Sharing between responses is the cache's
// affair, so an error is never remembered past its response and nobody else's cancellation is felt.
package loaders
