package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// shared are the programs that the tests build, once.
var shared struct {
	builds
	oddsgraph, plain func() (string, error)
}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "bench")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		b, err := newBuilds(context.Background(), dir)
		if err != nil {
			panic(err)
		}
		shared.builds = *b
		shared.oddsgraph = sync.OnceValues(func() (string, error) { return b.oddsgraph(context.Background()) })
		shared.plain = sync.OnceValues(func() (string, error) { return b.plain(context.Background()) })
		return m.Run()
	}())
}

func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds and runs the servers")
	}
	var out strings.Builder
	// Without the plain server, whose generated half isn't there on a fresh clone.
	o := options{duration: time.Second, rounds: 1, connections: 4, benchfmt: t.TempDir() + "/rounds"}
	if err := measure(t.Context(), o, &out); err != nil {
		t.Fatal(err)
	}
	for _, w := range []string{"W1", "W2", "W3", "V3", "W4"} {
		for _, s := range []string{limitServer, graphServer} {
			if !strings.Contains(out.String(), fmt.Sprintf("\n| %-8s | %-9s |", w, s)) {
				t.Errorf("no row of %s under %s", s, w)
			}
		}
	}
	rounds, err := os.ReadFile(o.benchfmt)
	if err != nil || strings.Count(string(rounds), "\nBenchmarkServe/") != 10 {
		t.Errorf("the rounds are %s, %v", rounds, err)
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
		got, err := c.ask(wire([]byte("{}"), test.credentials))
		if err != nil || string(got) != test.want {
			t.Fatalf("%q: %.20q of %d bytes, %v", test.credentials, got, len(got), err)
		}
	}
	if _, err := c.ask(wire([]byte("{}"), "bad")); err == nil || !strings.Contains(err.Error(), "400: no") {
		t.Errorf("a 400 gave %v", err)
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
		requests := []request{newRequest(typenameQuery, "", nil, "")}
		l, err := run(t.Context(), []*connection{c}, requests, [][]byte{[]byte(want)}, 0)
		if (err == nil) != ok || ok && len(l.latencies) != 1 {
			t.Errorf("with %s expected: %d answers, %v", want, len(l.latencies), err)
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
			t.Errorf("median of %v is %v", test.values, got)
		}
	}
	l := &load{}
	for i := range 100 {
		l.latencies = append(l.latencies, time.Duration(i))
	}
	if a, b, c := l.percentile(.5), l.percentile(.99), l.percentile(1); a != 50 || b != 99 || c != 99 {
		t.Errorf("percentiles are %d, %d, %d", a, b, c)
	}
}
