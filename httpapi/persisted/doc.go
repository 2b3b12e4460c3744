// Package persisted finds the text of a document that a client names by a hash or an id instead of sending it.
//
// Automatic persisted queries are what clients registered themselves: any valid document, forgotten when there are too
// many. Trusted documents are those of a manifest that an operator gives, made when a frontend is built; they are never
// forgotten, and in ModeRequire nothing else is executed.
package persisted
