package drivers

import (
	"strings"
	"testing"

	"oddsgraph/internal/venue/rest"
)

func TestOpen(t *testing.T) {
	for name, ok := range map[string]bool{"": true, Generic: true, "kalshi": true, "polymarket": true, "Generic": false, "unknown": false} {
		d, err := Open(Config{Driver: name, Config: rest.Config{BaseURL: "http://venue.invalid"}})
		if (err == nil) != ok {
			t.Errorf("Open with the driver %q returned the error %v, want success: %t", name, err, ok)
		}
		if err == nil {
			d.Close()
		} else if !strings.Contains(err.Error(), strings.Join(Names(), ", ")) {
			t.Errorf("the error for the driver %q does not name all drivers: %v", name, err)
		}
	}
}
