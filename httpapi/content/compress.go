package content

import (
	"bytes"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// MinCompressed is the size in bytes from which compressing a response pays.
const MinCompressed = 1 << 10

// These levels reduce a response to about a tenth of its size. Higher levels need more time for little gain.
const (
	brotliLevel = 1
	gzipLevel   = 5
)

var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20))
	if err != nil {
		panic("content: " + err.Error()) // the options are constants
	}
	return e
})

type encoder interface {
	io.WriteCloser
	Reset(w io.Writer)
}

var brotlis = sync.Pool{New: func() any { return encoder(brotli.NewWriterLevel(nil, brotliLevel)) }}

var gzips = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzipLevel)
	if err != nil {
		panic("content: " + err.Error()) // the level is a constant
	}
	return encoder(w)
}}

// Compress appends b to buf in one of Encodings.
func Compress(buf *bytes.Buffer, b []byte, encoding string) {
	if encoding == "zstd" {
		buf.Write(zstdEncoder().EncodeAll(b, buf.AvailableBuffer()))
		return
	}
	pool := &gzips
	if encoding == "br" {
		pool = &brotlis
	}
	w, _ := pool.Get().(encoder)
	defer pool.Put(w)
	w.Reset(buf)
	_, _ = w.Write(b) // writing to a bytes.Buffer does not fail
	_ = w.Close()
}
