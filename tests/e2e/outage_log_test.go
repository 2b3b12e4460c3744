package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/demo/faults"
)

// TestLogOfAnOutage checks the lines from a start over an outage of the venue to the stop. Health checks and failed calls have no
// further lines at the level info.
func TestLogOfAnOutage(t *testing.T) {
	venue := newSlowVenue(t)
	s, stop := startLiveRigged(t, withoutRetries, "--venue-url="+venue.URL, "--hosts=odds.example", "--log-level=info")
	read := func(token string) {
		s.query(t, `query($t: String!) { token(tokenId: $t) { orderbook { spread } } }`, vars{"t": token}, anonymous)
	}
	if err := venue.faults.Set([]faults.Fault{{Kind: faults.Status, Status: 503}}); err != nil {
		t.Fatal(err)
	}
	read("1")
	read("2")
	s.get(t, "/healthz")
	s.get(t, "/readyz")
	if err := venue.faults.Set(nil); err != nil {
		t.Fatal(err)
	}
	read("3")
	r := s.newRequest(t, "GET", "/healthz", "")
	r.Host = "evil.example"
	s.do(t, r)
	if err := stop(); err != nil {
		t.Error(err)
	}
	wants := []string{
		`level=INFO msg="calls to the venue are limited" per_minute=95`,
		`level=INFO msg="oddsgraph is ready"`,
		`level=WARN msg="a call to the venue has failed" endpoint=orderbook reason="status 503: `,
		`level=INFO msg="the venue answers again" endpoint=orderbook since=`,
		`level=INFO msg=request method=GET route="" status=403`,
		`level=INFO msg="draining: /readyz answers 503" drain_delay=0s`,
		`level=INFO msg="stopping: no new connections are accepted" operations=0 websockets=0 event_streams=0`,
		`level=INFO msg=stopped`,
	}
	for line := range strings.Lines(s.log.String()) {
		_, line, _ = strings.Cut(line, " ")
		if strings.HasPrefix(line, "level=WARN msg=operation ") || strings.HasPrefix(line, "level=INFO msg=operation ") {
			continue
		}
		if len(wants) == 0 || !strings.HasPrefix(line, wants[0]) {
			t.Fatalf("the log has the line %q, want next %q", line, wants)
		}
		if strings.Contains(wants[0], "403") && !strings.Contains(line, `host=evil.example reason="this name is not served here;`) {
			t.Errorf("the line of a refused request lacks host or reason: %s", line)
		}
		wants = wants[1:]
	}
	if len(wants) > 0 {
		t.Errorf("the log lacks the lines %q:\n%s", wants, s.log)
	}
}

// TestStartErrorsAreLogged checks that a program that cannot start writes the reason as a line of the configured format.
func TestStartErrorsAreLogged(t *testing.T) {
	s := start(t)
	taken := strings.TrimPrefix(s.URL(), "http://")
	for _, test := range []struct{ arg, want string }{{"--listen=" + taken, "address already in use"}, {"--max-operations=-1", "--max-operations"}} {
		var log bytes.Buffer
		if err := run(t.Context(), []string{"--log-format=json", "--admin-listen=off", "--demo-listen=127.0.0.1:0", "--demo-markets=20", test.arg}, nil, nil, &log); err == nil {
			t.Errorf("%s: the program has started", test.arg)
		}
		text := strings.TrimSpace(log.String())
		var line struct{ Level, Error string }
		last := text[strings.LastIndexByte(text, '\n')+1:]
		if err := json.Unmarshal([]byte(last), &line); err != nil || line.Level != "ERROR" || !strings.Contains(line.Error, test.want) {
			t.Errorf("%s: the log ends with %q, want an error with %s", test.arg, last, test.want)
		}
	}
}

// TestVenueClock checks that the log and the metrics show the difference between the clock of the venue and that of this host. The
// date of a cached response does not count.
func TestVenueClock(t *testing.T) {
	venue := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		if strings.Contains(r.URL.String(), "cached") {
			w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
			w.Header().Set("Age", "3600")
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"bids":[],"asks":[],"spread":null}`))
	}))
	defer venue.Close()
	s := start(t, "--venue-url="+venue.URL)
	for _, token := range []string{"1", "2", "3", "4", "cached"} {
		s.query(t, `query($t: String!) { token(tokenId: $t) { orderbook { spread } } }`, vars{"t": token}, anonymous)
	}
	if n := strings.Count(s.log.String(), "other=venue other_ahead=59m5"); n != 1 {
		t.Errorf("the log has %d warnings about the clock, want 1:\n%s", n, s.log)
	}
	s.scrape(t).wantBetween(`oddsgraph_clock_offset_seconds{clock="venue"}`, 3590, 3600)
}
