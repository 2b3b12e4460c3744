package drivers

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/kalshi"
	"oddsgraph/internal/venue/stream"
)

// StreamConfig configures the stream of a driver.
type StreamConfig struct {
	// Driver is one of the names that Names returns. If Driver is empty, the driver is Generic.
	Driver string
	// URL is the address of the stream. If URL is empty, the stream has the driver's default address. If the driver also has no
	// default address, there is no stream.
	URL string
	// Key is the operator's API key at the venue. It may be empty.
	Key   APIKey
	Clock market.Clock
}

// OpenStream returns the address and the protocol of a driver's stream. An empty address means that there is no stream. If the
// protocol is nil, the driver is a venue.Streamer, which provides it. Errors contain no part of the key.
func OpenStream(cfg StreamConfig) (address string, p *stream.Protocol, err error) {
	open := registry[cmp.Or(cfg.Driver, Generic)].stream
	if open == nil {
		return "", nil, refuseKey(cfg)
	}
	return open(cfg)
}

func refuseKey(c StreamConfig) error {
	if len(c.Key.PEM) > 0 {
		return fmt.Errorf("the driver %q uses no API key", c.Driver)
	}
	return nil
}

// openKalshiStream returns a protocol that signs each handshake. Without a key there is no stream, because Kalshi refuses unsigned
// handshakes.
func openKalshiStream(c StreamConfig) (string, *stream.Protocol, error) {
	key, err := kalshiKey(c.Key)
	if key == nil {
		return "", nil, err
	}
	address := cmp.Or(c.URL, kalshi.StreamURL)
	u, err := url.Parse(address)
	if err != nil {
		return "", nil, fmt.Errorf("the address of the stream cannot be parsed")
	}
	return address, kalshi.Protocol(func() (http.Header, error) { return key.Headers(http.MethodGet, u.EscapedPath(), c.Clock.Now()) }), nil
}
