package app

import (
	"errors"
	"fmt"
	"io"
	"os"

	"oddsgraph/internal/config"
	"oddsgraph/internal/market"
	"oddsgraph/internal/venue"
	"oddsgraph/internal/venue/stream"
)

// maxKeyFile is the greatest size in bytes of a file with a private key.
const maxKeyFile = 64 << 10

// readKey returns the content of the file that --venue-key-file names. It returns nil if neither --venue-key-file nor
// --venue-key-id is set.
func readKey(v config.Venue) ([]byte, error) {
	switch {
	case v.KeyFile == "" && v.KeyID == "":
		return nil, nil
	case v.KeyFile == "" || v.KeyID == "":
		return nil, errors.New("--venue-key-id (ODDSGRAPH_VENUE_KEY_ID) and --venue-key-file (ODDSGRAPH_VENUE_KEY_FILE) belong together; set both, or neither")
	}
	f, err := os.Open(v.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("--venue-key-file (ODDSGRAPH_VENUE_KEY_FILE) cannot be read: %w", err)
	}
	defer func() { _ = f.Close() }() // an error does not matter, because the file was only read
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, fmt.Errorf("--venue-key-file (ODDSGRAPH_VENUE_KEY_FILE) cannot be read: %w", err)
	}
	if len(text) > maxKeyFile {
		return nil, fmt.Errorf("--venue-key-file (ODDSGRAPH_VENUE_KEY_FILE) names %s, which has more than %d bytes, so it cannot be a key", v.KeyFile, maxKeyFile)
	}
	return text, nil
}

// streamConfig returns the URL and the protocol of the venue's stream. The URL is empty if the venue has no stream. d is nil without
// an embedded demo venue.
func streamConfig(cfg *config.Config, d *demoVenue, clock market.Clock) (out stream.Config, err error) {
	c := venue.StreamConfig{Driver: cfg.Venue.Driver, URL: cfg.StreamURL, KeyID: cfg.Venue.KeyID, Clock: clock}
	if c.Key, err = readKey(cfg.Venue); err != nil {
		return out, err
	}
	if d != nil {
		if !cfg.Demo.Stream {
			return out, nil
		}
		c.URL, c.KeyID, c.Key = "ws://"+d.Addr().String()+d.streamPath, d.keyID, d.key
	}
	if out.URL, out.Protocol, err = venue.OpenStream(c); err != nil {
		return out, fmt.Errorf("--venue-key-file (ODDSGRAPH_VENUE_KEY_FILE) is %s: %w", cfg.Venue.KeyFile, err)
	}
	return out, nil
}
