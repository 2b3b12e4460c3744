// Package request stores the values of a request in its context. The values are the client and its credentials, the log of the
// operation's work (Log), the dependencies of its response (Dependencies), and the call to the venue (Call).
package request
