// Package shared defines what replicas share through Redis: records of public data, and grants of calls to the venue.
package shared

import "time"

// Record is a value in the cache that replicas share. Value is empty if the venue does not know the key.
type Record struct {
	Key   string
	Value []byte
	// Keep is the lifetime of the record. If it is 0, the record is not stored.
	Keep time.Duration
}

// Found receives the record of the key at index i. It reports whether the replica uses the record. value is empty if the venue does
// not know the key. requestedAt and receivedAt are the times of the call to the venue and of the venue's response.
type Found func(i int, value []byte, requestedAt, receivedAt time.Time) (accepted bool)

// Grant is the answer of the ledger of calls.
type Grant struct {
	// Away is true if the ledger did not answer. The other fields except Again are then zero.
	Away bool
	// Calls contains the names of the granted calls.
	Calls []string
	// Left is the number of calls that the ledger could still grant. Assumed is the number of calls that it counts only because it
	// does not know what was made before it was created.
	Left, Assumed int
	// Again is the wait until the ledger may grant calls again if Left is 0, or until it is asked again if Away is true.
	Again time.Duration
	// Hold is the time for which the venue still refuses calls.
	Hold time.Duration
}
