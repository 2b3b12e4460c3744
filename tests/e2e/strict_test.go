package e2e

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"oddsgraph/app"
)

// credentialCounter is a transport that counts the calls with credentials in the query and with credentials in a header.
type credentialCounter struct {
	http.RoundTripper
	mu                sync.Mutex
	inQuery, inHeader int
}

// RoundTrip implements http.RoundTripper.
func (w *credentialCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	if r.URL.Query().Has("credentials") {
		w.inQuery++
	}
	if r.Header.Get("X-Api-Credentials") != "" {
		w.inHeader++
	}
	w.mu.Unlock()
	return w.RoundTripper.RoundTrip(r)
}

// TestCredentialsReachTheDemoVenue checks whether the service sends credentials in the query or in a header.
func TestCredentialsReachTheDemoVenue(t *testing.T) {
	for args, want := range map[string][2]int{ // the number of calls with credentials in the query, and in a header
		"":                          {0, 1},
		"--venue-credentials=query": {1, 0},
		"--demo-strict":             {1, 0},
		"--demo-strict --venue-credentials=query": {1, 0},
	} {
		t.Run(args, func(t *testing.T) {
			seen := &credentialCounter{RoundTripper: http.DefaultTransport.(*http.Transport).Clone()}
			t.Cleanup(func() { seen.RoundTripper.(*http.Transport).CloseIdleConnections() })
			s := startRigged(t, startTime, func(w *app.Wiring) { w.Client.Transport = seen }, strings.Fields(args)...)
			s.query(t, `query ($a: Address!) { user(address: $a) { balance { totalValue } } }`, vars{"a": addressOf3}, keyOf3)
			if got := [2]int{seen.inQuery, seen.inHeader}; got != want {
				t.Errorf("%d calls had credentials in the query and %d in a header, want %d and %d", got[0], got[1], want[0], want[1])
			}
		})
	}
}
