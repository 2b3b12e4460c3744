// Package persisted finds the text of a document that a client names by a hash or an id.
//
// Clients register automatic persisted queries themselves: any valid document, until others displace it. Operators give
// trusted documents in a manifest that a frontend's build writes. Trusted documents are never displaced; with
// ModeRequire nothing else is executed.
package persisted
