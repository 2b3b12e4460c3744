package app

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"path/filepath"
	"strings"
	"testing"

	"oddsgraph/internal/config"
	"oddsgraph/internal/venue/drivers"
	"oddsgraph/internal/venue/stream"
)

// TestVenueKeySettings checks the settings of the operator's API key.
func TestVenueKeySettings(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	good := write(t, dir, "good.pem", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)})))
	bad, long := write(t, dir, "bad.pem", "TOPSECRET"), write(t, dir, "long.pem", strings.Repeat("TOPSECRET", maxKeyFile))
	for name, test := range map[string]struct {
		driver, id, file string
		signs            bool
		want             string
	}{
		"neither id nor file":     {"kalshi", "", "", false, ""},
		"id and file":             {"kalshi", "id", good, true, ""},
		"no id":                   {"kalshi", "", good, false, "belong together"},
		"no file":                 {"kalshi", "id", "", false, "belong together"},
		"absent file":             {"kalshi", "id", filepath.Join(dir, "absent"), false, "cannot be read"},
		"file without PEM":        {"kalshi", "id", bad, false, "contains no PEM block"},
		"too long file":           {"kalshi", "id", long, false, "it cannot be a key"},
		"driver without API keys": {"generic", "id", good, false, "uses no API key"},
	} {
		cfg := &config.Config{Venue: config.Venue{Driver: test.driver, URL: "http://venue.invalid", KeyID: test.id, KeyFile: test.file}}
		key, err := venueKey(cfg.Venue, nil)
		var out stream.Config
		if err == nil {
			client, err := drivers.Open(venueConfig(cfg, cfg.Venue.URL, key))
			if err != nil {
				t.Errorf("%s: the driver returned %v", name, err)
				continue
			}
			out = withProtocol(cfg, client, stream.Config{})
		}
		if signs := out.Protocol != nil && out.Protocol.Header != nil; signs != test.signs || (err == nil) != (test.want == "") || signs != (out.URL != "") {
			t.Errorf("%s: got the stream configuration %+v and the error %v, want signed requests %v and an error with %q", name, out, err, test.signs, test.want)
			continue
		}
		if err != nil && (!strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "ODDSGRAPH_VENUE_KEY_FILE") || strings.Contains(err.Error(), "TOPSECRET")) {
			t.Errorf("%s: got the error %q, want %q and the name of the variable, without the text of the key file", name, err, test.want)
		}
		if out.Protocol == nil {
			continue
		}
		if h, err := out.Protocol.Header("/"); err != nil || h.Get("Kalshi-Access-Key") != "id" {
			t.Errorf("%s: got the header %v and the error %v, want the key id in Kalshi-Access-Key", name, h, err)
		}
	}
}
