package httpapi

import (
	"io"
	"net/http"
	"runtime"
	"sync"
)

// chunk is the number of bytes of a file that are copied at a time. A client that does not read uses the memory of one chunk.
const chunk = 16 << 10

// chunks are the buffers of chunked.
var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// chunked writes a response in chunks and yields the processor after each chunk. Without these pauses, a goroutine would fill the
// kernel buffer of its connection in one go. The buffer may have megabytes. Queries would wait for hundreds of such goroutines.
type chunked struct{ http.ResponseWriter }

// Write implements io.Writer.
func (c chunked) Write(p []byte) (n int, err error) {
	n, err = c.ResponseWriter.Write(p)
	runtime.Gosched()
	return n, err
}

// ReadFrom implements io.ReaderFrom.
func (c chunked) ReadFrom(r io.Reader) (n int64, err error) {
	buffer := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buffer)
	return io.CopyBuffer(struct{ io.Writer }{c}, r, buffer[:])
}
