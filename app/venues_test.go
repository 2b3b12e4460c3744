package app

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oddsgraph/internal/config"
	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/telemetry"
	"oddsgraph/internal/upstream"
)

func parse(t *testing.T, args string) *config.Config {
	t.Helper()
	cfg, err := config.Parse(strings.Fields(args), nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestValidateVenues(t *testing.T) {
	file := write(t, t.TempDir(), "other.env", "ODDSGRAPH_VENUE_URL=https://a.example")
	same := write(t, t.TempDir(), "k.env", "ODDSGRAPH_VENUE_DRIVER=kalshi")
	eight := "--more-venues=kalshi" + strings.Repeat(","+file, 7)
	for args, want := range map[string]string{
		"--more-venues=kalshi,polymarket":                           "",
		"--more-venues=kalshi," + file:                              "",
		"--demo-driver=polymarket,kalshi":                           "",
		"--demo-driver=generic,polymarket,kalshi":                   "",
		"--more-venues=unknown":                                     "venue unknown: --venue-driver=unknown (ODDSGRAPH_VENUE_DRIVER) names no driver",
		"--more-venues=generic":                                     "venue generic: the driver generic needs ODDSGRAPH_VENUE_URL",
		"--venue-driver=kalshi --more-venues=kalshi":                "venue kalshi: another venue has this name",
		"--venue-driver=kalshi --more-venues=" + same:               "venue k: kalshi is the same venue",
		"--more-venues=" + file + " --venue-url=https://a.example/": "venue other: generic is the same venue",
		"--more-venues=" + file + "," + file:                        "venue other: another venue has this name",
		"--demo-driver=kalshi,kalshi":                               "venue kalshi: another venue has this name",
		"--shared-url=redis://a --venue-url=https://a.example --demo-driver=generic --more-venues=kalshi --shared-replicas=500": "--shared-replicas (500) is more",
		eight: "are 9 venues; want at most 8",
	} {
		if err := validate(parse(t, args)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got the error %v, want %q", args, err, want)
		}
	}
}

// openVenues opens a service without starting it.
func openVenues(t *testing.T, args string) *App {
	t.Helper()
	s, err := Open(parse(t, "--listen=127.0.0.1:0 --admin-listen=127.0.0.1:0 --demo-markets=40 --demo-still "+args), telemetry.NewLogger(io.Discard, nil, "text"), market.SystemClock{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.opened.close)
	return s
}

// series returns the names and labels of the service's own metrics, except those of processes and builds.
func series(s *App) (all []string) {
	w := httptest.NewRecorder()
	s.Metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "oddsgraph_") && !strings.HasPrefix(line, "oddsgraph_build") {
			all = append(all, line[:strings.LastIndexByte(line, ' ')])
		}
	}
	return all
}

// TestMetricsOfVenues checks that a service with one venue has no label venue, and that one with two has the same series for each
// venue, and no others.
func TestMetricsOfVenues(t *testing.T) {
	want := map[string]int{}
	for _, one := range series(openVenues(t, "--venue-driver=polymarket --demo-driver=polymarket")) {
		if want[one] = 1; strings.Contains(one, "venue=") {
			t.Errorf("with one venue, there is %s", one)
		}
	}
	ofVenue := 0
	for _, one := range series(openVenues(t, "--demo-driver=polymarket,kalshi")) {
		if strings.Contains(one, `venue="kalshi"`) {
			ofVenue++
			continue
		}
		one = strings.NewReplacer(`,venue="polymarket"`, "", `{venue="polymarket"}`, "", `venue="polymarket",`, "").Replace(one)
		if want[one]--; want[one] < 0 {
			t.Errorf("with two venues, there is also %s", one)
		}
	}
	for one, n := range want {
		if n > 0 {
			t.Errorf("with two venues, %s is missing", one)
		}
	}
	if ofVenue < len(want)/3 {
		t.Errorf("the further venue has %d of %d series", ofVenue, len(want))
	}
}

// TestStateOfVenues checks that one ready venue makes the service ready, that the text of /readyz names the venue that fails, that the
// venues share the memory of the cache, and that a flush finds the venue of a key.
func TestStateOfVenues(t *testing.T) {
	s := openVenues(t, "--demo-driver=polymarket,kalshi --cache-memory=8MiB")
	if got := s.impairment(); got != "" {
		t.Errorf("the text of /readyz is %q, want nothing", got)
	}
	for range failureThreshold {
		s.Venues[1].health.reach.note(503, s.clock.Now())
	}
	if got := s.impairment(); !strings.HasPrefix(got, "kalshi: the venue has not answered since ") || strings.Contains(got, "\n") {
		t.Errorf("the text of /readyz is %q, want one line about kalshi", got)
	}
	s.Venue.health.answered = make(chan struct{})
	if err := s.Ready(); err != nil {
		t.Errorf("with one venue that has answered, Ready returns %v", err)
	}
	if err := s.Venues[1].Client.Can(upstream.EndpointBalance); market.CodeOf(err) != market.CodeUnsupported || s.Venues[1].Client.Can(upstream.EndpointPrices) != nil {
		t.Errorf("for accounts of the further venue, got error %v, want UNSUPPORTED, and no error for prices", err)
	}
	w, err := s.Venues[1].wiring(nil)
	if err != nil || w.Reads.Memory != 4<<20 || !w.Client.NoCredentials || !w.Stream.NoCredentials || w.Client.CredentialsMode != "none" {
		t.Errorf("the further venue has %d bytes and the mode %s, and may get credentials: %t and %t; error %v", w.Reads.Memory, w.Client.CredentialsMode, !w.Client.NoCredentials, !w.Stream.NoCredentials, err)
	}
	session := &reads.Session{}
	for _, u := range s.Venues {
		for _, id := range []string{"T", "U"} {
			u.Cache.StreamPrice(session, &market.Price{TokenID: market.Qualify(u.name, id)}, reads.Meta{ReceivedAt: s.clock.Now()})
		}
	}
	for _, f := range []struct {
		key     string
		entries int
	}{{"kalshi:T", 1}, {"kalshi:", 1}, {"kalshi:U", 0}, {"T", 1}, {"", 1}} {
		if n, err := s.flush("price", f.key); n != f.entries || err != nil {
			t.Errorf("a flush of the key %q removed %d entries, want %d; error %v", f.key, n, f.entries, err)
		}
	}
	if w, err = s.Venue.wiring(nil); err != nil || w.Reads.Memory != 4<<20 || w.Client.NoCredentials {
		t.Errorf("the first venue has %d bytes and takes no credentials: %t; error %v", w.Reads.Memory, w.Client.NoCredentials, err)
	}
}

// TestDemoOfVenues checks that the status says which venues are embedded, and that the control endpoints reach each of them.
func TestDemoOfVenues(t *testing.T) {
	for args, want := range map[string][3]bool{
		"--demo-driver=polymarket,kalshi":                                         {true, true, true},
		"--venue-driver=polymarket --demo-driver=polymarket --more-venues=kalshi": {false, true, false},
	} {
		s := openVenues(t, args+" --demo-control")
		status := s.Status(t.Context())
		if got := [3]bool{status.Demo, status.Venues[0].Demo, status.Venues[1].Demo}; got != want {
			t.Errorf("%s: all venues, the first and the further one are embedded: %v, want %v", args, got, want)
		}
		send := func(h http.Handler, path, body string) int {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			h.ServeHTTP(w, r)
			return w.Code
		}
		front := s.withDemoControl(s.Venue.cfg, http.NotFoundHandler())
		got := send(front, "http://127.0.0.1/demo/control/kalshi/faults", `{"faults":[{"kind":"status","status":418}]}`)
		if further := s.Venues[1].demo; further == nil && got != 404 || further != nil && (got != 200 || send(further.handler, "/", "") != 418) {
			t.Errorf("%s: setting a fault at the further venue got the status %d", args, got)
		}
		if got := send(s.Demo.handler, "/", ""); got == 418 {
			t.Errorf("%s: the first venue has the fault", args)
		}
	}
}
