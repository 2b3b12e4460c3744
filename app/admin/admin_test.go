package admin_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"oddsgraph/app/admin"
)

func handler() http.Handler {
	respond := func(what string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(what)) })
	}
	return admin.New(admin.Config{
		Metrics: respond("metrics"), Health: respond("health"), Ready: respond("ready"), Version: "v1", Started: time.Unix(0, 0),
		Flush: func(string, string) (int, error) { return 1, nil },
	})
}

// TestForeignPagesAndHostsAreRefused checks that the handler refuses requests from pages of other origins. On a loopback address, the handler must
// also refuse every host name except localhost.
func TestForeignPagesAndHostsAreRefused(t *testing.T) {
	loopback, private := net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)
	for _, test := range []struct {
		name, method, host string
		local              net.IP
		headers            map[string]string
		want               int
	}{
		{"IP address", "GET", "127.0.0.1:9091", loopback, nil, 200},
		{"localhost", "GET", "localhost:9091", loopback, nil, 200},
		{"DNS rebinding", "GET", "evil.example:9091", loopback, nil, 403},
		{"host name over the network", "GET", "oddsgraph:9091", private, nil, 200},
		{"a program that is not a browser", "POST", "localhost:9091", loopback, nil, 200},
		{"a page of another site", "POST", "localhost:9091", loopback, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"a page in an old browser", "POST", "localhost:9091", loopback, map[string]string{"Origin": "https://evil.example"}, 403},
		{"an image of another site", "GET", "localhost:9091", loopback, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"a page of another port", "GET", "localhost:9091", loopback, map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		{"a fetch in an old browser", "GET", "localhost:9091", loopback, map[string]string{"Origin": "http://localhost:8080"}, 403},
		{"a sandboxed page", "POST", "localhost:9091", loopback, map[string]string{"Origin": "null"}, 403},
		{"the address bar", "GET", "localhost:9091", loopback, map[string]string{"Sec-Fetch-Site": "none"}, 200},
		{"a link on our own page", "GET", "localhost:9091", loopback, map[string]string{"Sec-Fetch-Site": "same-origin"}, 200},
	} {
		path := "/metrics"
		if test.method == "POST" {
			path = "/cache/flush?kind=price"
		}
		r := httptest.NewRequest(test.method, path, nil)
		r.Host = test.host
		for name, value := range test.headers {
			r.Header.Set(name, value)
		}
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: test.local, Port: 9091}))
		w := httptest.NewRecorder()
		if handler().ServeHTTP(w, r); w.Code != test.want {
			t.Errorf("%s: got status %d, want %d", test.name, w.Code, test.want)
		}
	}
}

func TestPaths(t *testing.T) {
	for request, want := range map[string]int{
		"GET /metrics": 200, "GET /healthz": 200, "GET /readyz": 200, "GET /buildinfo": 200, "GET /debug/pprof/": 200, "GET /debug/pprof/goroutine": 200,
		"GET /debug/pprof/cmdline": 404, "GET /": 404, "POST /metrics": 405, "GET /cache/flush": 405,
		"GET /debug/pprof/trace?seconds=36000": 400, "GET /debug/pprof/profile?seconds=61": 400, "GET /debug/pprof/heap?seconds=61": 400,
		"GET /debug/pprof/trace?seconds=NaN": 400, "GET /debug/pprof/trace?seconds=-1": 400, "GET /debug/pprof/trace?seconds=0.01": 200, "POST /debug/pprof/profile": 405,
	} {
		method, path, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		if handler().ServeHTTP(w, httptest.NewRequest(method, path, nil)); w.Code != want {
			t.Errorf("%s: got status %d, want %d", request, w.Code, want)
		}
	}
}
