package main

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oddsgraph/app"
)

// TestMain runs the tests, or the programs that TestMeasure measures: the test binary is each of them, so that the test builds none.
func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == programName:
		app.Main("")
	case len(os.Args) == 3 && os.Args[1] == limitCommand:
		fmt.Fprintln(os.Stderr, serveLimit(os.Args[2]))
		os.Exit(1)
	default:
		goleak.VerifyTestMain(m)
	}
}

const programName = "oddsgraph"

// program returns a path at which the test binary is oddsgraph.
func program(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	path := filepath.Join(t.TempDir(), programName)
	if err == nil {
		err = os.Symlink(self, path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMeasure measures everything for a moment. plain is left out, because its generated code does not exist in a fresh clone.
func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("this test runs the program many times")
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	dir := t.TempDir()
	o, err := parse([]string{
		"-oddsgraph=" + program(t), "-plain=", "-rounds=1", "-duration=50ms", "-variety=4", "-subscribers=200", "-out=" + dir,
		"-benchfmt=" + filepath.Join(dir, "lines.txt"),
	})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := measure(t.Context(), o, &out); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for row, want := range map[string]int{
		`W\d \| limit`: 8, `W\d \| oddsgraph`: 8, `V\d \| limit`: 6, `V\d \| oddsgraph`: 6, `V\d \| uncached`: 6,
		`ColdPortfolio \| oddsgraph`: 1, `ColdPage \| oddsgraph`: 1, `Subscribers/of=(token|lists)/clients=(40|200) \| oddsgraph`: 4,
	} {
		if got := len(regexp.MustCompile(`(?m)^\| `+row+` \| .*\d+\.\d+ \|.* \|$`).FindAllString(read("results.md"), -1)); got != want {
			t.Errorf("results.md has %d rows that match %s, want %d", got, row, want)
		}
	}
	if line := `(?m)^Benchmark[WVCS]\S+/venue=demo/server=\w+-\d+\t\d+\t\S+ ns/op\t\S+ cpu-ns/op\t.*RSS-bytes$`; len(regexp.MustCompile(line).FindAllString(read("lines.txt"), -1)) != 23 {
		t.Errorf("lines.txt has not 23 lines in the format of Go's benchmarks:\n%s", read("lines.txt"))
	}
	for _, args := range []string{"--venue-public-per-minute=1000000", "--cache-responses=0", "--max-connections=11000", "--demo-still"} {
		if !strings.Contains(read("results.md"), args) {
			t.Errorf("results.md does not give a reason for %s", args)
		}
	}
	picture := read("chart.svg")
	if err := xml.Unmarshal([]byte(picture), new(struct{})); err != nil || strings.Count(picture, "<title>") != 10 {
		t.Errorf("chart.svg has %d bars (error %v), want 10", strings.Count(picture, "<title>"), err)
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// TestTwoPrograms checks that two programs are measured in turn and profiled, under names that tell them apart.
func TestTwoPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("this test runs the program many times")
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	old, now := program(t), program(t)
	o, err := parse([]string{"-oddsgraph=" + old, "-oddsgraph=" + now, "-plain=", "-rounds=1", "-duration=50ms", "-variety=4", "-run=W4/venue=demo|Curve/of=V1/n=4/", "-profile=" + filepath.Dir(old)})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := measure(t.Context(), o, &out); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range regexp.MustCompile(`(?m)^BenchmarkW4/venue=demo/server=(\S+)-\d+\t`).FindAllStringSubmatch(out.String(), -1) {
		got = append(got, line[1])
	}
	if n := strings.Count(out.String(), "\nBenchmarkCurve/of=V1/n=4/venue=foreign/"); n != 2 {
		t.Errorf("the working sets were measured %d times, want once for each program", n)
	}
	name := func(path string) string { return "oddsgraph/binary=" + strings.ReplaceAll(path, "/", "_") }
	if want := []string{limitServer, name(old), name(now)}; !slices.Equal(got, want) {
		t.Errorf("the runs are %v, want %v", got, want)
	}
	if profiles, _ := filepath.Glob(filepath.Join(filepath.Dir(old), "W4.venue=demo.oddsgraph.binary=*.pprof")); len(profiles) != 2 {
		t.Errorf("got the profiles %v, want one of each program", profiles)
	}
	if _, err := parse([]string{"-oddsgraph=" + old, "-oddsgraph=" + now, "-out=."}); err == nil {
		t.Error("results.md would get the results of two programs")
	}
}

func TestCheck(t *testing.T) {
	r := newRequest(pricesQuery, object{"ids": []string{"A"}}, "", object{"tokenPrices": []object{{"tokenId": "A", "price": "0.5"}}})
	const right = `{"data":{"tokenPrices":[{"tokenId":"A","price":"0.5"}]}}`
	for range 2 { // the second time, the bytes are known
		if err := r.check([]byte(right)); err != nil {
			t.Error(err)
		}
		for _, wrong := range []string{
			`{"data":{"tokenPrices":[{"tokenId":"A","price":"0.51"}]}}`, `{"data":{"tokenPrices":[null]}}`, `{"data":null}`, `{`,
			`{"data":{"tokenPrices":[{"tokenId":"A","price":"0.5"}]},"errors":[{"message":"late"}]}`,
		} {
			if err := r.check([]byte(wrong)); err == nil {
				t.Errorf("the check accepts the response %s", wrong)
			}
		}
	}
}

// TestSend checks that the clients send each request, and stop at a wrong response or status.
func TestSend(t *testing.T) {
	status, response := http.StatusOK, `{"data":{"__typename":"Query"}}`
	var received atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/graphql" && r.Header.Get("X-Venue-Credentials") == "e30=" {
			received.Add(1)
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, response)
	}))
	defer s.Close()
	dialed := func() clients {
		c, err := dial(&process{url: s.URL}, 2)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.close)
		return c
	}
	queries := make([]*request, 5)
	for i := range queries {
		queries[i] = newRequest(typenameQuery, nil, "{}", object{"__typename": "Query"})
	}
	l, err := dialed().send(t.Context(), queries, 0)
	if err != nil || len(l.latencies) != 5 || received.Load() != 5 {
		t.Fatalf("got %d latencies, %d requests and the error %v, want 5 latencies and requests", len(l.latencies), received.Load(), err)
	}
	response = `{"data":{"__typename":"query"}}`
	if _, err := dialed().send(t.Context(), queries, time.Millisecond); err == nil || !strings.Contains(err.Error(), "the venue says") {
		t.Errorf("the error for a wrong response is %v", err)
	}
	response, status = `{}`, http.StatusTooManyRequests
	if _, err := dialed().send(t.Context(), queries, time.Millisecond); err == nil || !strings.Contains(err.Error(), "429 Too Many Requests") {
		t.Errorf("the error for a wrong status is %v", err)
	}
}

func TestLimit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "responses.json")
	if err := os.WriteFile(file, []byte(`{"{\"query\":\"q\",\"variables\":{\"n\":1}}":"eyJkYXRhIjoxfQ==","{\"query\":\"q\",\"variables\":{\"n\":2}}":"e30="}`), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := loadLimit(file)
	if err != nil {
		t.Fatal(err)
	}
	for request, want := range map[string]string{
		`{"query":"q","variables":{"n":1}}`:                     `200 10 {"data":1}`,
		`{"operationName":"x","variables":{"n":2},"query":"q"}`: `200 2 {}`,
		`{"query":"q"}`: `404  this request has no response`,
		`{`:             `400  unexpected end of JSON input`,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/graphql", strings.NewReader(request)))
		if got := fmt.Sprintf("%d %s %s", w.Code, w.Header().Get("Content-Length"), strings.TrimSpace(w.Body.String())); got != want {
			t.Errorf("%s: got %s, want %s", request, got, want)
		}
	}
}

func TestMedian(t *testing.T) {
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
		t.Errorf("the percentiles 50, 99 and 100 of 0 to 99 are %v, %v and %v, want 50, 99 and 99", a, b, c)
	}
}

func TestCurveChart(t *testing.T) {
	b := &bench{}
	for i, name := range []string{"Curve/of=V1/n=1000", "Curve/of=V2/n=20000"} {
		values := map[*unit]float64{cpuPerOp: float64(i+1) * 2e5, callsPerOp: float64(i) + .25}
		b.results = append(b.results, result{row{curveSection, "foreign", name, graphServer}, figures{1, values}})
	}
	picture := b.curveChart()
	if err := xml.Unmarshal([]byte(picture), new(struct{})); err != nil || strings.Count(picture, "<rect") != 2 {
		t.Errorf("the error is %v, want a chart with two bars:\n%s", err, picture)
	}
	for _, want := range []string{"V1, portfolios: 1000", "200 µs, 0.25 calls", "V2, market pages: 20000", "400 µs, 1.25 calls"} {
		if !strings.Contains(picture, want) {
			t.Errorf("the chart does not say %q", want)
		}
	}
}
