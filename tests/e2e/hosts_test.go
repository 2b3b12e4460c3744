package e2e

import (
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestForeignHostNamesAreRefused checks that the service refuses foreign host names on loopback and with --hosts. With --hosts=*,
// the service must accept these names. A web page could send requests with a foreign host name by DNS rebinding.
func TestForeignHostNamesAreRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		want map[string]int // expected status by host name
	}{
		{"on loopback", nil, map[string]int{"": 200, "localhost": 200, "evil.example": 403, "odds.example": 403}},
		{"on loopback with a name", []string{"--hosts=odds.example"}, map[string]int{"": 200, "localhost": 200, "evil.example": 403, "odds.example": 200}},
		{"on loopback with any name", []string{"--hosts=*"}, map[string]int{"": 200, "evil.example": 200}},
		{"on every interface", []string{"--listen=:0"}, map[string]int{"": 200, "evil.example": 200}},
		{"on every interface with a name", []string{"--listen=:0", "--hosts=odds.example"}, map[string]int{"": 200, "evil.example": 403, "odds.example": 200}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, test.args...)
			_, port, _ := net.SplitHostPort(s.Addr().String())
			for host, want := range test.want {
				for _, path := range []string{"/graphql", "/healthz"} {
					r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:"+port+path, strings.NewReader(`{"query":"{ __typename }"}`))
					if err != nil {
						t.Fatal(err)
					}
					if path == "/healthz" {
						r.Method = http.MethodGet
					}
					r.Header.Set("Content-Type", "application/json")
					if host != "" {
						r.Host = host + ":" + port
					}
					if resp := s.do(t, r); resp.status != want {
						t.Errorf("%s with the host %q: got status %d, want %d: %s", path, host, resp.status, want, resp.body)
					}
				}
			}
		})
	}
}
