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

// TestReadinessWithoutSearch checks the readiness probe. Its venues lack some endpoints, or some of their endpoints fail.
func TestReadinessWithoutSearch(t *testing.T) {
	failing := func(status int) strictEndpoint {
		return strictEndpoint{"q limit sort order tokenId tokenIds", func(*http.Request, url.Values) (int, string) {
			return status, `{"success":false,"message":"out of order"}`
		}}
	}
	empty := strictEndpoint{"tokenId tokenIds", always(`{"prices":[]}`)}
	for name, test := range map[string]struct {
		endpoints map[string]strictEndpoint
		want      int
	}{
		"search is missing":             {map[string]strictEndpoint{"prices": empty}, http.StatusOK},
		"search fails":                  {map[string]strictEndpoint{"market-search": failing(http.StatusInternalServerError), "prices": empty}, http.StatusOK},
		"search takes other parameters": {map[string]strictEndpoint{"market-search": {"text", always(`[]`)}}, http.StatusOK},
		"search and prices fail":        {map[string]strictEndpoint{"market-search": failing(http.StatusInternalServerError), "prices": failing(http.StatusBadGateway)}, http.StatusServiceUnavailable},
		"all endpoints are missing":     {nil, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			venue := newStrictStub(t, test.endpoints)
			s := start(t, "--venue-url="+venue.URL, "--venue-retries=0")
			for range 3 {
				if got := s.get(t, "/readyz"); got.status != test.want {
					t.Errorf("/readyz: got status %d and %s, want %d", got.status, got.body, test.want)
				}
			}
			venue.mu.Lock()
			defer venue.mu.Unlock()
			if len(venue.asked) > 4 {
				t.Errorf("the venue received the calls %q, want at most 4", venue.asked)
			}
		})
	}
}

// TestReadinessByCallsOfClients checks that a successful call for a client makes the service ready. The venue lacks the endpoints
// that the readiness probe calls.
func TestReadinessByCallsOfClients(t *testing.T) {
	venue := newStrictStub(t, map[string]strictEndpoint{"orderbook": {"tokenId depth", always(`{"bids":[],"asks":[],"spread":null}`)}})
	s := start(t, "--venue-url="+venue.URL)
	if got := s.get(t, "/readyz"); got.status != http.StatusServiceUnavailable {
		t.Errorf("/readyz: got status %d before the venue has answered a call, want 503", got.status)
	}
	s.ask(t, `{ token(tokenId: "7") { orderbook { bids { price } } } }`, nil, anonymous)
	if got := s.get(t, "/readyz"); got.status != http.StatusOK {
		t.Errorf("/readyz: got status %d after the venue has answered a call, want 200", got.status)
	}
}
