package app

import (
	"errors"
	"fmt"
	"io"
	"os"

	"oddsgraph/internal/config"
	"oddsgraph/internal/venue/drivers"
)

const maxKeyFile = 64 << 10

// venueKey returns this service's API key at the venue: the key that --venue-key-id and --venue-key-file name, or the key of the
// embedded demo venue. It is empty if there is no key. d is nil without an embedded demo venue.
func venueKey(v config.Venue, d *demoVenue) (drivers.APIKey, error) {
	text, err := readKey(v)
	if err != nil {
		return drivers.APIKey{}, err
	}
	if d != nil {
		return drivers.APIKey{ID: d.keyID, PEM: d.key}, nil
	}
	key := drivers.APIKey{ID: v.KeyID, PEM: text}
	if err := drivers.CheckKey(v.Driver, key); err != nil {
		return key, fmt.Errorf("--venue-key-file (ODDSGRAPH_VENUE_KEY_FILE) is %s: %w", v.KeyFile, err)
	}
	return key, nil
}

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
