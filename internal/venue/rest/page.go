package rest

import (
	"encoding/json"

	"oddsgraph/internal/upstream"
)

// MaxCursor is the greatest length in bytes of a venue's cursor.
const MaxCursor = 1024

// maxPageToken bounds the length in bytes of the token of a page.
const maxPageToken = 4 << 10

// PageToken returns the token of a page: the JSON of its start.
func PageToken(start any) string {
	text, err := json.Marshal(start)
	if err != nil {
		panic(err) // the starts of the drivers can always be encoded
	}
	return string(text)
}

// ParsePage reads the result of PageToken into start. An empty token means the first page, and does not change start.
func ParsePage(e upstream.Endpoint, token string, start any) error {
	if token != "" && (len(token) > maxPageToken || json.Unmarshal([]byte(token), start) != nil || PageToken(start) != token) {
		return BadPage(e)
	}
	return nil
}

// BadPage returns the error of a token that is not from PageToken.
func BadPage(e upstream.Endpoint) error { return BadInput(e, "the cursor is not from this service") }
