// Package reqctx stores in a context the values of a request that every layer may use: the caller and its credentials, the log
// of the operation's work (Log), the dependencies of its response (Dependencies), and the call to the venue (Call).
package reqctx
