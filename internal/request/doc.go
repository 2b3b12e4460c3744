// Package request describes a client's request: the client, the log of the operation (Log), and what its response depends on
// (Dependencies). A Request travels in the context.
package request
