package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// scraped is a scrape of /metrics.
type scraped struct {
	t       testing.TB
	text    string
	samples map[string]float64 // maps a name with labels, as in the text, to a value
	checked map[string]bool    // maps a family of metrics to true if the test has compared it
}

func (s *service) scrape(t testing.TB) *scraped {
	t.Helper()
	got := s.askAdmin(t, http.MethodGet, "/metrics")
	if got.status != http.StatusOK {
		t.Fatalf("/metrics: %d %.300s", got.status, got.body)
	}
	return readScrape(t, got.body)
}

// readScrape reads the text format of Prometheus.
func readScrape(t testing.TB, text string) *scraped {
	t.Helper()
	m := &scraped{t: t, text: text, samples: map[string]float64{}, checked: map[string]bool{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, _, _ := strings.Cut(rest, " ")
			m.checked[name] = false
			continue
		}
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			value, err := strconv.ParseFloat(line[i+1:], 64)
			if err != nil {
				t.Fatalf("%v in %q", err, line)
			}
			m.samples[line[:i]] = value
		}
	}
	return m
}

// check records that the test has compared the family of a series.
func (m *scraped) check(series string) {
	name, _, _ := strings.Cut(series, "{")
	for _, family := range []string{name, strings.TrimSuffix(name, "_count"), strings.TrimSuffix(name, "_sum"), strings.TrimSuffix(name, "_bucket")} {
		if _, ok := m.checked[family]; ok {
			m.checked[family] = true
		}
	}
}

// want compares a series with an independent count. The parameter series is the metric's name with its labels.
func (m *scraped) want(series string, want float64) {
	m.t.Helper()
	m.check(series)
	if got, ok := m.samples[series]; !ok || got != want {
		m.t.Errorf("%s is %v (in the scrape: %t), want %v", series, got, ok, want)
	}
}

// wantAll is like want, but compares all series of a metric. The parameter want maps the labels of each series to its independent
// count. A series whose count is 0 may be missing.
func (m *scraped) wantAll(metric string, want map[string]float64) {
	m.t.Helper()
	m.check(metric)
	for series, got := range m.samples {
		if name, labels, _ := strings.Cut(series, "{"); name == metric && got != want[strings.TrimSuffix(labels, "}")] {
			m.t.Errorf("%s is %v, want %v", series, got, want[strings.TrimSuffix(labels, "}")])
		}
	}
	for labels, n := range want {
		if _, ok := m.samples[metric+"{"+labels+"}"]; !ok && n != 0 {
			m.t.Errorf("%s{%s} is not in the scrape, want %v", metric, labels, n)
		}
	}
}

// wantBetween checks that the value of a series lies between least and most, inclusive.
func (m *scraped) wantBetween(series string, least, most float64) {
	m.t.Helper()
	m.check(series)
	if got, ok := m.samples[series]; !ok || got < least || got > most {
		m.t.Errorf("%s is %v (in the scrape: %t), want %v to %v", series, got, ok, least, most)
	}
}

// sum adds up the series of a metric that have all given labels.
func (m *scraped) sum(metric string, labels ...string) (n float64) {
	for series, value := range m.samples {
		name, has, _ := strings.Cut(series, "{")
		if name == metric && !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(has, l) }) {
			n += value
		}
	}
	return n
}

// tally counts the operations that the test has sent, by type, name and outcome.
type tally map[string]float64

func (c tally) add(kind, name, outcome string) {
	c[fmt.Sprintf("name=%q,outcome=%q,type=%q", name, outcome, kind)]++
}
