package market_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"oddsgraph/internal/market"
)

// FuzzParseCredentials reads whatever comes as credentials: it is refused as the client's mistake, in words that quote nothing
// of it, or it has an API key, is the same when it is read again, and prints as a fixed text.
func FuzzParseCredentials(f *testing.F) {
	for _, seed := range []string{
		`{"apiKey":"k","secret":"s","passphrase":"p"}`, `{"key":"k","secret":"s"}`, `{"key":"a","apiKey":"b"}`, `{"apiKey":"k","apiKey":"l"}`,
		`{"apiKey":"k","address":"0x` + strings.Repeat("aB", 20) + `"}`, `{"apiKey":"k","address":"me"}`, `{"apiKey":"k","a":{"b":1}}`, `{"apiKey":1}`,
		`{"apiKey":"\ud800"}`, "{\"apiKey\":\"\xff\"}", `{"apiKey":""}`, `{}`, `[]`, `null`, ``, `{"apiKey":"k"} {"apiKey":"l"}`, `{"apiKey":"k"`,
		`{"":"","apiKey":"k"}`, strings.Repeat(`{"a":`, 1000), `{"apiKey":"` + strings.Repeat("k", 5000) + `"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := market.ParseCredentials(b)
		if err != nil {
			if market.CodeOf(err) != market.CodeBadUserInput || len(err.Error()) > 200 {
				t.Errorf("%v", err)
			}
			return
		}
		var fields map[string]string
		if err := json.Unmarshal([]byte(c.Wire()), &fields); err != nil || fields["apiKey"] == "" {
			t.Fatalf("they go out as %q: %v", c.Wire(), err)
		}
		if _, ok := fields["address"]; ok || !json.Valid(b) {
			t.Errorf("%q goes out as %q", b, c.Wire())
		}
		if again, err := market.ParseCredentials([]byte(c.Wire())); len(c.Wire()) <= market.MaxCredentialsLength && (err != nil || again.Wire() != c.Wire()) {
			t.Errorf("%q is not read again: %v", c.Wire(), err)
		}
		if text := fmt.Sprintf("%v %+v %#v %s", c, c, c, *c); len(fields["apiKey"]) > 20 && strings.Contains(text, fields["apiKey"]) {
			t.Errorf("they print as %s", text)
		}
	})
}
