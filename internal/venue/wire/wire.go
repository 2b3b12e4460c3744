// Package wire reads the JSON of a prediction-market venue, whichever of its many forms a venue writes it in: fields under
// several names, numbers and lists inside strings, times in seconds, milliseconds or ISO 8601, levels as objects or pairs.
//
// It is what the REST client and the stream have in common. It knows values and rows, not endpoints and frames: what a bad
// row costs is decided by them.
package wire
