package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/demo/faults"
)

// wantReadyz checks the response at /readyz on both addresses. The response must arrive within a second.
func (s *service) wantReadyz(t *testing.T, status int, begin string) {
	t.Helper()
	for _, get := range []func() response{
		func() response { return s.get(t, "/readyz") }, func() response { return s.askAdmin(t, http.MethodGet, "/readyz") },
	} {
		began := time.Now()
		got := get()
		if took := time.Since(began); got.status != status || !strings.HasPrefix(got.body, begin) || took > time.Second {
			t.Errorf("/readyz got %+v after %s, want status %d and a body that begins with %q within a second", got, took, status, begin)
		}
	}
}

// TestReadyWithoutTheVenue checks that a new process waits five seconds for a venue that hangs, and that no later failure of the
// venue makes the process unready.
func TestReadyWithoutTheVenue(t *testing.T) {
	venue := newSlowVenue(t)
	defer venue.hold("/api/exchange/market-search")()
	s := startRigged(t, startTime, withoutRetries, "--venue-url="+venue.URL)
	s.wantReadyz(t, http.StatusServiceUnavailable, "starting")
	if path := <-venue.waiting; path != "/api/exchange/market-search" {
		t.Errorf("the first call to the venue is for %s, want a search", path)
	}
	s.clock.Advance(4 * time.Second)
	s.wantReadyz(t, http.StatusServiceUnavailable, "starting")
	s.clock.Advance(time.Second)
	s.wantReadyz(t, http.StatusOK, "ready\n")

	if err := venue.faults.Set([]faults.Fault{{Kind: faults.Status}}); err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"1", "2", "3"} {
		s.query(t, `query($t: String!) { token(tokenId: $t) { orderbook { spread } } }`, vars{"t": token}, anonymous)
	}
	s.wantReadyz(t, http.StatusOK, "ready\nthe venue has not answered since 2026-03-14T15:09:31Z\n")
	if got := s.ask(t, `{ serviceStatus { upstreamReachable } }`, nil, anonymous); at(got, "serviceStatus.upstreamReachable") != false {
		t.Errorf("serviceStatus is %v, want an unreachable venue", got)
	}
}

// TestReadyAfterTheFirstAnswer checks that a new process is ready as soon as the venue has answered, also with an error, and that
// the process makes one call to find out.
func TestReadyAfterTheFirstAnswer(t *testing.T) {
	venue := newStub(t, nil)
	s := start(t, "--venue-url="+venue.URL)
	eventually(t, "the process is ready", func() bool { return s.get(t, "/readyz").status == http.StatusOK })
	s.wantReadyz(t, http.StatusOK, "ready\n")
	venue.mu.Lock()
	defer venue.mu.Unlock()
	if len(venue.counts) != 1 || venue.counts["market-search"][0] != 1 {
		t.Errorf("the venue got the calls %v, want one search", venue.counts)
	}
}
