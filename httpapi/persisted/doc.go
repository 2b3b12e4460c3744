// Package persisted finds the text of a document that a client names by a hash or an id.
//
// A client can register any valid document as an automatic persisted query. Such a document is kept until others displace it.
// Operators provide trusted documents in a manifest, which the build of a frontend writes. Trusted documents are never
// displaced. The documents of the service's own pages are trusted, too. With ModeRequire, only trusted documents are executed.
package persisted
