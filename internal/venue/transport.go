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
	// maxInFlight bounds the calls under way to one endpoint: as many as the cache makes at once for one kind of user data, where
	// every account is a call of its own, so that slow answers keep nobody waiting for a slot. maxConns bounds the connections to
	// the venue: as many as the endpoints can use, so that none waits for another's.
	maxInFlight       = 64
	maxConns          = maxInFlight * len(paths)
	maxIdleConns      = 32
	maxResponseHeader = 64 << 10
	// maxErrorBody bounds what is read of an answer that is an error anyway.
	maxErrorBody = 64 << 10
	// An answer of more than bombSize bytes that is more than bombRatio times as large as what was received is refused.
	bombSize  = 1 << 20
	bombRatio = 100
)

// newTransport returns a transport without proxy, cookies and transparent decompression: the client must see how many
// bytes were received to refuse a decompression bomb.
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

// Why a body is refused although the connection held.
var (
	errTooLarge = errors.New("the body is larger than the limit")
	errBomb     = errors.New("the body is compressed beyond reason")
	errEncoding = errors.New("the body has an unknown or broken content encoding")
)

// readBody returns the decompressed body of at most limit bytes. An error that is none of the three above came from the
// connection.
func readBody(resp *http.Response, limit int64) ([]byte, error) {
	if resp.ContentLength > limit {
		return nil, errTooLarge
	}
	received := &counter{r: resp.Body}
	var r io.Reader = received
	switch strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))) {
	case "", "identity":
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(received)
		if err != nil {
			return nil, received.blame(errEncoding)
		}
		r = &inflated{z: z, received: received}
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

// counter counts what came over the connection and keeps the connection's error apart from the decompressor's.
type counter struct {
	r   io.Reader
	n   int64
	err error
}

// Read reads from the connection.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

// blame returns the connection's error where there was one, else err.
func (c *counter) blame(err error) error {
	if c.err != nil {
		return c.err
	}
	return err
}

// inflated decompresses and refuses bombs long before they reach the size limit.
type inflated struct {
	z        *gzip.Reader
	received *counter
	n        int64
}

// Read reads decompressed bytes.
func (f *inflated) Read(p []byte) (int, error) {
	n, err := f.z.Read(p)
	f.n += int64(n)
	if f.n > bombSize && f.n > bombRatio*f.received.n {
		return n, errBomb
	}
	if err != nil && err != io.EOF {
		err = f.received.blame(errEncoding)
	}
	return n, err
}
