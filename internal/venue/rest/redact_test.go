package rest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"oddsgraph/internal/market"
)

// TestRedactionOfSpellings checks that the redactor recognizes a secret however a venue encodes it for a URL, and keeps the text
// around it.
func TestRedactionOfSpellings(t *testing.T) {
	const secret = `aB+cd/EF "gh%20=ü=zz`
	credentials, err := market.ParseCredentials(fmt.Appendf(nil, `{"apiKey":%q}`, secret))
	if err != nil {
		t.Fatal(err)
	}
	rq := &Request{}
	rq.Query.Set("q", "a client's words & more")
	redact := newRedactor(credentials, rq, http.Header{"KALSHI-ACCESS-KEY": {"Key/of=the+signature"}})
	every := func(s, format string) (out string) {
		for i := range len(s) {
			out += fmt.Sprintf(format, s[i])
		}
		return out
	}
	escaped := url.QueryEscape(secret)
	for name, text := range map[string]string{
		"plain":            secret,
		"upper-case hex":   escaped,
		"lower-case hex":   strings.ToLower(escaped),
		"mixed hex":        strings.ReplaceAll(escaped, "%2B", "%2b"),
		"path":             url.PathEscape(secret),
		"plus for spaces":  strings.ReplaceAll(secret, " ", "+"),
		"every character":  every(secret, "%%%02x"),
		"twice":            url.QueryEscape(strings.ToLower(escaped)),
		"an escaped digit": strings.Replace(escaped, "%2", "%%32", 1),
		"upper case":       strings.ToUpper(secret[:5]) + secret[5:],
		"base64":           url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(secret))),
		"base64 of URLs":   base64.URLEncoding.EncodeToString([]byte(secret)),
		"client's words":   strings.ToLower(url.QueryEscape("a client's words & more")),
		"signature":        "key%2fof%3Dthe%2bsignature",
	} {
		if got := strings.TrimRight(redact("Bad: 50%25 "+text), "="); got != "Bad: 50%25 [redacted]" {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if got := redact("100% of %zz+ and %4"); got != "100% of %zz+ and %4" {
		t.Errorf("got %q, want the text unchanged", got)
	}
}
