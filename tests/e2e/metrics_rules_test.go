package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"oddsgraph/tests/tool"
)

// promtool runs the command promtool with args, and with text as its standard input.
func promtool(t testing.TB, text string, args ...string) {
	t.Helper()
	cmd := exec.Command(tool.Require(t, "promtool"), args...)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// checkExposition checks the text of a scrape with promtool.
func checkExposition(t testing.TB, m *scraped) { promtool(t, m.text, "check", "metrics") }

// metricName matches the names of metrics of the program and of its libraries.
var metricName = regexp.MustCompile(`\b(?:oddsgraph|go|process|promhttp)_[a-z0-9_]+`)

// checkQueries checks that the queries of the dashboard and of the alerts use only metrics of the scrape. It also checks that each
// metric of the program is in a query of the dashboard or of an alert.
func checkQueries(t testing.TB, m *scraped) {
	t.Helper()
	shown := map[string]bool{}
	for file, queries := range map[string][]string{"the dashboard": dashboardQueries(t), "an alert": alertLines(t)} {
		for _, query := range queries {
			for _, name := range metricName.FindAllString(query, -1) {
				family := name
				for _, suffix := range []string{"_bucket", "_sum", "_count"} {
					if base := strings.TrimSuffix(name, suffix); base != name {
						if _, ok := m.checked[base]; ok {
							family = base
						}
					}
				}
				if _, ok := m.checked[family]; !ok {
					t.Errorf("a query of %s uses the metric %s, which does not exist: %s", file, name, query)
				}
				shown[family] = true
			}
		}
	}
	for family := range m.checked {
		if strings.HasPrefix(family, "oddsgraph_") && !shown[family] {
			t.Errorf("%s is in no query of the dashboard or of an alert", family)
		}
	}
}

// checkReference checks that docs/metrics.md names each metric of the program that the scrape has, and no other metric.
func checkReference(t testing.TB, m *scraped) {
	t.Helper()
	b, err := os.ReadFile("docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, found := range regexp.MustCompile("`(oddsgraph_[a-z_]+)`").FindAllStringSubmatch(string(b), -1) {
		named[found[1]] = true
		if _, ok := m.checked[found[1]]; !ok {
			t.Errorf("docs/metrics.md names the metric %s, which does not exist", found[1])
		}
	}
	for family := range m.checked {
		if strings.HasPrefix(family, "oddsgraph_") && !named[family] {
			t.Errorf("docs/metrics.md does not name the metric %s", family)
		}
	}
}

// dashboardQueries returns the queries of the dashboard in deploy/grafana.
func dashboardQueries(t testing.TB) (queries []string) {
	t.Helper()
	var board struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	b, err := os.ReadFile("deploy/grafana/oddsgraph.json")
	if err == nil {
		err = json.Unmarshal(b, &board)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			queries = append(queries, target.Expr)
		}
	}
	if len(queries) < 50 {
		t.Fatalf("the dashboard has %d queries, want at least 50", len(queries))
	}
	return queries
}

// alertLines returns the lines of the alerts file in deploy/prometheus.
func alertLines(t testing.TB) []string {
	t.Helper()
	b, err := os.ReadFile("deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(b), "\n")
}

// TestRules uses promtool to check the alerts, to run the tests of the alerts, and to check the dashboard's queries.
func TestRules(t *testing.T) {
	promtool(t, "", "check", "rules", "deploy/prometheus/alerts.yml")
	promtool(t, "", "test", "rules", "deploy/prometheus/alerts_test.yml")
	fixed := strings.NewReplacer("$__rate_interval", "5m", "$job", "oddsgraph", "$instance", ".*")
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for i, query := range dashboardQueries(t) {
		rules = append(rules, rule{fmt.Sprintf("panel:query%d", i), fixed.Replace(query)})
	}
	file := filepath.Join(t.TempDir(), "dashboard.yml") // JSON is valid YAML
	if err := os.WriteFile(file, []byte(asJSON(vars{"groups": []any{vars{"name": "dashboard", "rules": rules}}})), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "check", "rules", file)
}

// TestAlertsAreTested checks that alerts_test.yml names each alert at least twice. One test must show that the alert fires, and one
// that it does not.
func TestAlertsAreTested(t *testing.T) {
	alerts, tests := strings.Join(alertLines(t), "\n"), ""
	if b, err := os.ReadFile("deploy/prometheus/alerts_test.yml"); err == nil {
		tests = string(b)
	}
	for _, alert := range regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(alerts, -1) {
		if strings.Count(tests, "- alertname: "+alert[1]+"\n") < 2 {
			t.Errorf("alert %s has fewer than two tests; want one in which it fires, and one in which it does not", alert[1])
		}
	}
}
