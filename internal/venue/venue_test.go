package venue

import (
	"strings"
	"testing"

	"oddsgraph/internal/venue/rest"
)

func TestOpen(t *testing.T) {
	for name, ok := range map[string]bool{"": true, Generic: true, "kalshi": true, "polymarket": true, "Generic": false, "unknown": false} {
		d, err := Open(Config{Driver: name, Config: rest.Config{BaseURL: "http://venue.invalid"}})
		if (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
		if err == nil {
			d.Close()
		} else if !strings.Contains(err.Error(), strings.Join(Drivers(), ", ")) {
			t.Errorf("%q: the error does not name the drivers: %v", name, err)
		}
	}
}
