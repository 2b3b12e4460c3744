// Package upstream describes calls to the venue: what is read (Kind) from where (Endpoint), how urgent it is (Priority), what admits
// the calls (Permit), and what became of them (Batch).
package upstream
