package pages

import (
	"io"
	"net/http"
	"runtime"
)

// chunk is the number of bytes of a file that are copied at a time. A client that does not read uses the memory of one chunk.
const chunk = 16 << 10

// chunked writes a response in chunks and yields the processor after each chunk. Otherwise each goroutine that serves a file would
// fill the kernel buffer of its connection, often megabytes, without a pause. Queries would then wait for hundreds of such
// goroutines.
type chunked struct{ http.ResponseWriter }

func (c chunked) Write(p []byte) (n int, err error) {
	n, err = c.ResponseWriter.Write(p)
	runtime.Gosched()
	return n, err
}

func (c chunked) ReadFrom(r io.Reader) (n int64, err error) {
	return io.CopyBuffer(struct{ io.Writer }{c}, r, make([]byte, chunk))
}
