package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// shared builds each program under test once.
var shared *builds

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "bench")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		if shared, err = newBuilds(context.Background(), dir); err != nil {
			panic(err)
		}
		return m.Run()
	}())
}

func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("this test builds and runs the servers")
	}
	// The plain server is left out, because its generated code does not exist in a fresh clone.
	o := options{
		duration: 50 * time.Millisecond, rounds: 1, connections: 4, latencies: []time.Duration{0}, variety: variety{8, 4, 4}, behind: time.Hour,
		subscribers: []int{20}, events: 3, out: t.TempDir(), benchfmt: t.TempDir() + "/rounds",
	}
	var out strings.Builder
	if err := measure(t.Context(), shared, o, &out); err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{
		`W[1-4] +\| limit`: 4 + 3, `W[1-4] +\| oddsgraph`: 4 + 3,
		`V[1-3] +\| limit`: 3, `V[1-3] +\| oddsgraph`: 3, `V[1-3] +\| uncached`: 3,
		`20 +\| broadcast`: 1, `20 +\| oddsgraph`: 1,
		`20, lists +\| broadcast`: 1, `20, lists +\| oddsgraph`: 1,
	}
	for row, want := range rows {
		if got := regexp.MustCompile(`(?m)^\| `+row+` +\|`).FindAllString(out.String(), -1); len(got) != want {
			t.Errorf("the output has %d rows that match %s, want %d", len(got), row, want)
		}
	}
	for _, row := range []string{`[WV][1-4] with one failing field`, `[WV]3 with one invalid id of 50`} {
		want := map[bool]int{true: 7, false: 2}[strings.Contains(row, "field")]
		if got := regexp.MustCompile(`(?m)^\| `+row+` +\|`).FindAllString(out.String(), -1); len(got) != want {
			t.Errorf("the output has %d rows that match %s, want %d", len(got), row, want)
		}
	}
	rounds, err := os.ReadFile(o.benchfmt)
	if err != nil || strings.Count(string(rounds), "\nBenchmarkServe/") != 23 || strings.Count(string(rounds), "\nBenchmarkDeliver/") != 2 || strings.Count(string(rounds), "\nBenchmarkDeliverLists/") != 2 {
		t.Errorf("the file of rounds is %s (error %v), want 23 lines of BenchmarkServe, and 2 each of BenchmarkDeliver and BenchmarkDeliverLists", rounds, err)
	}
	results, err := os.ReadFile(o.out + "/results.md")
	if err != nil || !strings.HasSuffix(string(results), out.String()) {
		t.Errorf("results.md is %s (error %v), want the printed tables at its end", results, err)
	}
	picture, err := os.ReadFile(o.out + "/chart.svg")
	if err := errors.Join(err, xml.Unmarshal(picture, new(struct{}))); err != nil || strings.Count(string(picture), `<rect class="cached"`) != 8 {
		t.Errorf("chart.svg is %s (error %v), want valid XML with 8 rectangles of the class cached", picture, err)
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

func TestConnection(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("X-Venue-Credentials") {
		case "chunks":
			for part := range slices.Chunk([]byte(long), 30_000) {
				_, _ = w.Write(part)
				w.(http.Flusher).Flush()
			}
		case "long":
			w.Header().Set("Content-Length", fmt.Sprint(len(long)))
			_, _ = fmt.Fprint(w, long)
		case "bad":
			http.Error(w, "no", http.StatusBadRequest)
		default:
			_, _ = fmt.Fprint(w, "short")
		}
	}))
	defer s.Close()
	c, err := dial(t.Context(), s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for _, test := range []struct{ credentials, want string }{{"", "short"}, {"chunks", long}, {"long", long}, {"", "short"}} {
		got, err := c.ask(wire("/graphql", []byte("{}"), test.credentials))
		if err != nil || string(got) != test.want {
			t.Fatalf("credentials %q: got the body %.20q of %d bytes and the error %v, want the body %.20q", test.credentials, got, len(got), err, test.want)
		}
	}
	if _, err := c.ask(wire("/graphql", []byte("{}"), "bad")); err == nil || !strings.Contains(err.Error(), "400: no") {
		t.Errorf("got the error %v for a response with status 400, want an error with the status and the body", err)
	}
}

func TestRun(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "{}") }))
	defer s.Close()
	for want, ok := range map[string]bool{"{}": true, "[]": false} {
		c, err := dial(t.Context(), s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		requests := []request{newRequest(typenameQuery, "", nil, question{})}
		l, err := run(t.Context(), []*connection{c}, task{requests: requests, answers: [][]byte{[]byte(want)}, once: true})
		if (err == nil) != ok || ok && len(l.latencies) != 1 {
			t.Errorf("with the expected body %s: got %d latencies and the error %v", want, len(l.latencies), err)
		}
		c.close()
	}
}

func TestMedianAndPercentile(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 5}, 5}} {
		if got := median(test.values); got != test.want {
			t.Errorf("the median of %v is %v, want %v", test.values, got, test.want)
		}
	}
	l := &load{}
	for i := range 100 {
		l.latencies = append(l.latencies, time.Duration(i))
	}
	if a, b, c := l.percentile(.5), l.percentile(.99), l.percentile(1); a != 50 || b != 99 || c != 99 {
		t.Errorf("the percentiles 50, 99 and 100 of 0 to 99 are %d, %d and %d, want 50, 99 and 99", a, b, c)
	}
}
