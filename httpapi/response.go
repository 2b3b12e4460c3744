package httpapi

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/99designs/gqlgen/graphql"
)

// appendResponse appends a response as JSON. If Data is nil, the response has no member "data". If Data is the text null, the
// member is null. The errors come first, as the GraphQL specification recommends.
func appendResponse(buf []byte, r *graphql.Response) []byte {
	buf = append(buf, '{')
	member := func(name string) {
		if buf[len(buf)-1] != '{' {
			buf = append(buf, ',')
		}
		buf = append(buf, '"')
		buf = append(buf, name...)
		buf = append(buf, '"', ':')
	}
	if len(r.Errors) > 0 {
		member("errors")
		buf = appendJSON(buf, r.Errors)
	}
	if r.Data != nil {
		member("data")
		buf = append(buf, r.Data...)
	}
	if len(r.Extensions) > 0 {
		member("extensions")
		buf = appendJSON(buf, r.Extensions)
	}
	return append(buf, '}')
}

func appendJSON(buf []byte, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("httpapi: " + err.Error()) // errors and extensions hold texts, numbers, lists and maps
	}
	return append(buf, b...)
}

// maxPooled bounds the capacity of a buffer that is kept for reuse.
const maxPooled = 256 << 10

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func getBuffer() *bytes.Buffer {
	b, _ := buffers.Get().(*bytes.Buffer)
	b.Reset()
	return b
}

func putBuffer(b *bytes.Buffer) {
	if b.Cap() <= maxPooled {
		buffers.Put(b)
	}
}
