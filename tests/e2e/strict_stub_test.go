package e2e

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// strictStub is a venue whose endpoints the test defines. It responds with 404 for other paths, and refuses unknown parameters.
type strictStub struct {
	*httptest.Server
	endpoints map[string]strictEndpoint

	mu    sync.Mutex
	asked []string // the received calls, each with its endpoint, its sorted parameters and its status
}

// strictEndpoint is an endpoint of a strictStub.
type strictEndpoint struct {
	// parameters lists the accepted parameters, separated by spaces.
	parameters string
	answer     func(r *http.Request, q url.Values) (status int, body string)
}

// newStrictStub starts a strictStub. The keys of endpoints are the last segments of the paths.
func newStrictStub(t testing.TB, endpoints map[string]strictEndpoint) *strictStub {
	s := &strictStub{endpoints: endpoints}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *strictStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, q := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:], r.URL.Query()
	e, known := s.endpoints[name]
	status, body := http.StatusNotFound, `{"success":false,"message":"no such endpoint"}`
	names := ""
	for _, parameter := range slices.Sorted(maps.Keys(q)) {
		names += " " + parameter
		if known && !slices.Contains(strings.Fields(e.parameters), parameter) {
			status, body = http.StatusBadRequest, `{"success":false,"message":"unknown parameter"}`
			known = false
		}
	}
	if known {
		status, body = e.answer(r, q)
	}
	s.mu.Lock()
	s.asked = append(s.asked, fmt.Sprintf("%s%s %d", name, names, status))
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// always returns a function that returns status 200 and the given body.
func always(body string) func(*http.Request, url.Values) (int, string) {
	return func(*http.Request, url.Values) (int, string) { return http.StatusOK, body }
}
