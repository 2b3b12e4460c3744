// Package reqctx carries through a context what every layer may know of a request: the caller and its credentials, what the
// operation does (Log), what its response depends on (Dependencies), and the upstream call that reads for it (Call).
package reqctx
