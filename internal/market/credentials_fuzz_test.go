package market_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"oddsgraph/internal/market"
)

// FuzzParseCredentials checks that Wire returns the input without surrounding white space, and that printed credentials do not
// contain this text. For invalid input, ParseCredentials returns a BAD_USER_INPUT error of at most 200 bytes.
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
				t.Errorf("got error %v, want BAD_USER_INPUT with at most 200 bytes", err)
			}
			return
		}
		if !json.Valid(b) || c.Wire() != strings.Trim(string(b), " \t\r\n") || !strings.HasPrefix(c.Wire(), "{") {
			t.Errorf("Wire of %q returned %q, want the JSON object without white space around it", b, c.Wire())
		}
		if again, err := market.ParseCredentials([]byte(c.Wire())); err != nil || again.Wire() != c.Wire() {
			t.Errorf("parsing the result %q of Wire again: got error %v, or another text", c.Wire(), err)
		}
		if text := fmt.Sprintf("%v %+v %#v %s", c, c, c, *c); len(c.Wire()) > 20 && strings.Contains(text, c.Wire()) {
			t.Errorf("the credentials print as %s", text)
		}
	})
}
