// Package wire reads the JSON of a prediction-market venue, whichever of its many forms a venue writes it in: fields under
// several names, numbers and lists inside strings, times in seconds, milliseconds or ISO 8601, levels as objects or pairs.
//
// It is what the REST client and the stream have in common. It knows values and rows, not endpoints and frames: what a bad
// row costs is decided by them.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// MaxValues bounds the number of values in one document, since a decoded value takes many times the memory of its text.
const MaxValues = 500_000

// Why a document cannot be read.
var (
	ErrEmpty     = errors.New("the body is empty")
	ErrTooMany   = errors.New("the body has too many values")
	ErrTruncated = errors.New("the body ends in the middle of its JSON")
	ErrSyntax    = errors.New("the body is not JSON")
	ErrTrailing  = errors.New("the body is more than one JSON value")
)

// Parse reads one JSON value of at most MaxValues values into nil, bool, string, json.Number, []any and map[string]any. It
// is the only place that knows the JSON library. Its errors are those above, and quote nothing of the input.
func Parse(b []byte) (any, error) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, ErrEmpty
	}
	if bytes.Count(b, []byte{','})+bytes.Count(b, []byte{'['})+bytes.Count(b, []byte{'{'}) > MaxValues {
		return nil, ErrTooMany
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	switch err := d.Decode(&v); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, ErrTruncated
	case err != nil:
		return nil, ErrSyntax
	case len(bytes.TrimSpace(b[d.InputOffset():])) > 0:
		return nil, ErrTrailing
	}
	return v, nil
}
