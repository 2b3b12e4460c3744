package hosts_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"oddsgraph/app/hosts"
)

func TestGuard(t *testing.T) {
	loopback, private := net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)
	for _, test := range []struct {
		name   string
		names  []string
		filter func(*http.Request) bool
		host   string
		local  net.IP
		want   int
	}{
		{"an IPv4 address", nil, hosts.OnLoopback, "127.0.0.1:8080", loopback, 200},
		{"an IPv6 address", nil, hosts.OnLoopback, "[::1]:8080", loopback, 200},
		{"an address without a port", nil, hosts.OnLoopback, "[::1]", loopback, 200},
		{"localhost", nil, hosts.OnLoopback, "LocalHost:8080", loopback, 200},
		{"another name", nil, hosts.OnLoopback, "evil.example:8080", loopback, 403},
		{"a name that begins with localhost", nil, hosts.OnLoopback, "localhost.evil.example", loopback, 403},
		{"no host", nil, hosts.OnLoopback, "", loopback, 200},
		{"another name over the network", nil, hosts.OnLoopback, "oddsgraph:8080", private, 200},
		{"a known name", []string{"odds.example"}, hosts.Always, "ODDS.example:443", private, 200},
		{"a name that ends with a known one", []string{"odds.example"}, hosts.Always, "evil-odds.example", private, 403},
		{"an unknown name over the network", []string{"odds.example"}, hosts.Always, "evil.example", private, 403},
		{"an address beside known names", []string{"odds.example"}, hosts.Always, "10.0.0.1:8080", private, 200},
		{"any name", []string{hosts.Any}, hosts.Always, "evil.example", loopback, 200},
	} {
		next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = test.host
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: test.local, Port: 8080}))
		w := httptest.NewRecorder()
		if hosts.Guard(test.names, hosts.Refuse("refused"), test.filter, next).ServeHTTP(w, r); w.Code != test.want {
			t.Errorf("%s: got status %d, want %d", test.name, w.Code, test.want)
		}
	}
}

// TestValidHostDoesNotAllocate checks that Guard allocates nothing for a valid host.
func TestValidHostDoesNotAllocate(t *testing.T) {
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	guard := hosts.Guard([]string{"odds.example"}, hosts.Refuse("refused"), hosts.Always, next)
	for _, host := range []string{"localhost", "localhost:8080", "odds.example", "127.0.0.1:8080", "[::1]:8080"} {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		r.Host = host
		if n := testing.AllocsPerRun(10, func() { guard.ServeHTTP(w, r) }); n > 0 {
			t.Errorf("Guard makes %.0f allocations for the host %s, want 0", n, host)
		}
	}
}
