package httpapi

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"oddsgraph/tests/tool"
)

// TestAHitAllocatesLittle bounds the allocations for a cached response.
func TestAHitAllocatesLittle(t *testing.T) {
	if tool.Unraced(t) {
		return
	}
	for name, header := range map[string]http.Header{
		"anonymous":   {"Content-Type": {"application/json"}},
		"zstd":        {"Content-Type": {"application/json"}, "Accept-Encoding": {"zstd"}},
		"credentials": {"Content-Type": {"application/json"}, "Accept-Encoding": {"zstd"}, http.CanonicalHeaderKey(CredentialsHeader): {credentialsOf("alice")}},
	} {
		cfg, source := cachingConfig(t)
		h, body := New(cfg), boardQuery(t)
		r := httptest.NewRequest(http.MethodPost, PathGraphQL, nil)
		reader, w := bytes.NewReader(body), &discard{header: http.Header{}}
		hit := func() {
			reader.Reset(body)
			r.Header, r.Body, r.ContentLength, w.bytes = header, closer{reader}, int64(len(body)), 0
			clear(w.header)
			h.ServeHTTP(w, r)
		}
		hit()
		asked := source.asked.Load()
		n := testing.AllocsPerRun(200, hit)
		if w.status != http.StatusOK || w.bytes == 0 || source.asked.Load() != asked {
			t.Fatalf("%s: got the status %d and %d bytes, and the source was asked %d times; want 200, a body and 0 times", name, w.status, w.bytes, source.asked.Load()-asked)
		}
		t.Logf("%s: %.0f allocations", name, n)
		if n >= 12 {
			t.Errorf("%s: a hit needs %.0f allocations, want less than 12", name, n)
		}
	}
}

func credentialsOf(key string) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"apiKey":%q,"secret":"s","passphrase":"p"}`, key))
}

// closer is a request body. Its Close does nothing.
type closer struct{ *bytes.Reader }

func (closer) Close() error { return nil }
