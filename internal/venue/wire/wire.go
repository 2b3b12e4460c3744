// Package wire reads the JSON of a prediction-market venue for the REST client and the stream.
//
// Venues write the same value in many forms. A field may have several names. Numbers and lists may be inside strings. Times are in
// seconds, milliseconds or ISO 8601. The levels of a book are objects or pairs. The package reads all these forms into the types of
// package market. The packages that use wire decide whether a bad row is left out or makes the whole list bad.
package wire
