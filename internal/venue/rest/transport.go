package rest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"oddsgraph/internal/upstream"
)

const (
	// maxConns bounds the connections to the venue. It is large enough for the 64 reads of each endpoint that the cache makes at once.
	maxConns          = 64 * upstream.Endpoints
	maxIdleConns      = 32
	maxResponseHeader = 64 << 10
	maxErrorBody      = 64 << 10
)

// NewTransport returns a transport without a proxy and without transparent decompression. The client decompresses responses itself, so
// that it can tell an error of the connection from a broken encoding.
func NewTransport() *http.Transport {
	dialer := net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    maxIdleConns,
		MaxConnsPerHost:        maxConns,
		MaxResponseHeaderBytes: maxResponseHeader,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    5 * time.Second,
	}
}

// The errors of readBody.
var (
	errTooLarge = errors.New("the body is larger than the limit")
	errEncoding = errors.New("the body has an unknown or broken content encoding")
)

// readBody returns the decompressed body. Any error other than the two above is an error of the connection.
func readBody(resp *http.Response, limit int64) ([]byte, error) {
	if resp.ContentLength > limit {
		return nil, errTooLarge
	}
	received := &receivedReader{r: resp.Body}
	var r io.Reader = received
	switch strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))) {
	case "", "identity":
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(received)
		if err != nil {
			return nil, received.orReadError(errEncoding)
		}
		r = z
	default:
		return nil, errEncoding
	}
	var buf bytes.Buffer
	if n := resp.ContentLength; n > 0 {
		buf.Grow(int(n) + bytes.MinRead)
	}
	switch n, err := buf.ReadFrom(io.LimitReader(r, limit+1)); {
	case err != nil:
		return nil, received.orReadError(errEncoding)
	case n > limit:
		return nil, errTooLarge
	}
	return buf.Bytes(), nil
}

// receivedReader stores the error of the connection, because the decompressor may return another error.
type receivedReader struct {
	r   io.Reader
	err error
}

func (c *receivedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

func (c *receivedReader) orReadError(err error) error {
	if c.err != nil {
		return c.err
	}
	return err
}
