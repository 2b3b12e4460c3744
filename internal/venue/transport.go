package venue

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// maxInFlight bounds the calls in flight to one endpoint. With the default InFlight the cache makes at most as many calls at once for one kind of
	// account data, so slow responses delay no others. maxConns bounds the connections to the venue. All endpoints together
	// need no more.
	maxInFlight       = 64
	maxConns          = maxInFlight * len(paths)
	maxIdleConns      = 32
	maxResponseHeader = 64 << 10
	// maxErrorBody is the greatest number of bytes that are read of an error response.
	maxErrorBody = 64 << 10
	// A decompressed response of more than bombSize bytes is refused if it is more than bombRatio times as large as the
	// received one.
	bombSize  = 1 << 20
	bombRatio = 100
)

// newTransport returns a transport without proxy, cookies and transparent decompression. The client must see the number of
// received bytes to refuse a decompression bomb.
func newTransport() *http.Transport {
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
	errBomb     = errors.New("the body is compressed beyond reason")
	errEncoding = errors.New("the body has an unknown or broken content encoding")
)

// readBody returns the decompressed body, at most limit bytes. An error other than the three above is from the connection.
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
		r = &inflatedReader{z: z, received: received}
	default:
		return nil, errEncoding
	}
	var buf bytes.Buffer
	if n := resp.ContentLength; n > 0 {
		buf.Grow(int(n) + bytes.MinRead)
	}
	switch n, err := buf.ReadFrom(io.LimitReader(r, limit+1)); {
	case err != nil:
		return nil, err
	case n > limit:
		return nil, errTooLarge
	}
	return buf.Bytes(), nil
}

// receivedReader counts the received bytes and keeps the error of the connection apart from those of the decompressor.
type receivedReader struct {
	r   io.Reader
	n   int64
	err error
}

// Read reads from the connection.
func (c *receivedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

// orReadError returns the error of the connection, or err if there is none.
func (c *receivedReader) orReadError(err error) error {
	if c.err != nil {
		return c.err
	}
	return err
}

// inflatedReader decompresses, and refuses a bomb long before it reaches the size limit.
type inflatedReader struct {
	z        *gzip.Reader
	received *receivedReader
	n        int64
}

// Read reads decompressed bytes.
func (f *inflatedReader) Read(p []byte) (int, error) {
	n, err := f.z.Read(p)
	f.n += int64(n)
	if f.n > bombSize && f.n > bombRatio*f.received.n {
		return n, errBomb
	}
	if err != nil && err != io.EOF {
		err = f.received.orReadError(errEncoding)
	}
	return n, err
}
