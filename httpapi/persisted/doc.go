// Package persisted finds the text of a document that a client names by a hash or an id.
//
// A client can register any valid document as an automatic persisted query. The least recently used of these documents are
// evicted when the registered documents need too much memory. Operators provide trusted documents in a manifest, which the
// build of a frontend writes. Trusted documents are never evicted. The documents of the service's own pages are trusted, too.
// In ModeRequire, only trusted documents are executed. In ModeOff, no document is trusted.
package persisted
