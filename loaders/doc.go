// Package loaders reads all data of a response.
//
// A Set belongs to one response and one goroutine. Each event of a subscription is a response, too. A Set stores the value of each
// key that it has read, so all fields of a response get the same value for a key. Three parts bring the values:
//
//   - A pass executes the operation once; see graph/exec. Its reads do not block. A read returns a value of the cache or of an
//     earlier pass, or ErrPending. The Set collects the keys that were pending. The output of the first pass without them is the
//     response.
//   - The dataloader of each kind of data loads these keys between two passes, in the batches of the cache: the keys of one
//     endpoint, or single keys if the venue takes no lists. The thunks of a batch return its values. So the pass is the window in
//     which a batch forms, and no timer ends it.
//   - The cache is the source of the dataloader. It shares upstream calls between responses. The cancellation of one response does
//     not affect the others.
package loaders
