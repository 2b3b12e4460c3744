package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

// TestExamples checks every query in examples/ on two dates. Only the values in the map absent may be missing. The number of calls
// must be the number in examples/README.md.
func TestExamples(t *testing.T) {
	t.Parallel()
	absent := map[string][]string{ // maps the name of an example to the paths of the absent values, without list indexes
		"portfolio":           {},
		"market-page":         {"market.resolution"},
		"event-page":          {},
		"price-board":         {},
		"search":              {},
		"history-and-candles": {},
		"trade-ticket":        {},
		"venues":              {"searchMarkets.nodes.venue", "serviceStatus.venues.throttledUntil"},
	}
	files, err := filepath.Glob("examples/*.graphql")
	if err != nil || len(files) != len(absent) {
		t.Fatalf("error %v; found %d examples, want %d", err, len(files), len(absent))
	}
	readme := read(t, "examples/README.md")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".graphql")
		t.Run(name, func(t *testing.T) {
			query := read(t, file)
			wantExplained(t, file, query)
			var variables vars
			decode(t, read(t, "examples/"+name+".json"), &variables)
			for _, later := range []time.Duration{0, 400*24*time.Hour + 5*time.Hour} {
				row := regexp.MustCompile(`\(` + name + `\.graphql\).*\| (\d+) \|`).FindStringSubmatch(readme)
				if row == nil {
					t.Fatal("README.md does not say how many calls the example takes")
				}
				var data any
				calls := int64(0)
				synctest.Test(t, func(t *testing.T) {
					s := startInBubble(t, startTime.Add(later))
					for _, n := range s.callsDuring(func() { data = s.ask(t, query, variables, keyOf50) }) {
						calls += n[0]
					}
				})
				if took := fmt.Sprint(calls); took != row[1] {
					t.Errorf("the example takes %s calls, README.md says %s", took, row[1])
				}
				for _, path := range missing(data, "") {
					if !slices.Contains(absent[name], path) {
						t.Errorf("the response has no value at %s", path)
					}
				}
			}
		})
	}
}

// missing returns the distinct paths of nulls, empty strings and empty lists. The paths have no list indexes.
func missing(v any, path string) []string {
	var found []string
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			found = append(found, missing(child, strings.TrimPrefix(path+"."+name, "."))...)
		}
	case []any:
		if len(v) == 0 {
			return []string{path}
		}
		for _, child := range v {
			found = append(found, missing(child, path)...)
		}
	case nil:
		return []string{path}
	case string:
		if v == "" {
			return []string{path}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// wantExplained checks that an example begins with a comment and has one named operation with variables.
func wantExplained(t *testing.T, file, query string) {
	t.Helper()
	if !strings.HasPrefix(query, "# ") {
		t.Error("the example does not begin with a comment that says what the example is for")
	}
	doc, err := parser.ParseQuery(&ast.Source{Name: file, Input: query})
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Operations) != 1 || doc.Operations[0].Name == "" || len(doc.Operations[0].VariableDefinitions) == 0 {
		t.Error("the example is not one named operation with variables")
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(file) == ".json" && !json.Valid(b) {
		t.Fatalf("%s is no JSON", file)
	}
	return string(b)
}

func TestExamplesByDriver(t *testing.T) {
	t.Parallel()
	for _, venue := range capabilities {
		for i, c := range venue.examples {
			t.Run(venue.Driver+" "+c.example+" "+strconv.Itoa(i), func(t *testing.T) { checkExample(t, venue.Driver, c) })
		}
	}
}

// indexes matches the indexes in the path of a value.
var indexes = regexp.MustCompile(`\.\d+`)

func checkExample(t *testing.T, driver string, c exampleResult) {
	t.Helper()
	var variables vars
	decode(t, read(t, "examples/"+c.example+".json"), &variables)
	var data any
	var failed []graphError
	synctest.Test(t, func(t *testing.T) {
		s := startInBubble(t, startTime, "--demo-driver="+driver, "--venue-driver="+driver)
		sent := translateStrings(map[string]any(variables), s.simulatedID).(map[string]any)
		maps.Copy(sent, c.change)
		data, failed = s.query(t, read(t, "examples/"+c.example+".graphql"), sent, keyOf50)
	})
	var errors []string
	for _, e := range failed {
		errors = append(errors, indexes.ReplaceAllString(e.String(), ""))
	}
	slices.Sort(errors)
	if errors = slices.Compact(errors); !slices.Equal(errors, c.unsupported) {
		t.Errorf("got the errors %v, want %v; all errors: %+v", errors, c.unsupported, failed)
	}
	for _, path := range missing(data, "") {
		if !slices.Contains(c.absent, path) && !slices.Contains(c.unsupported, path+" UNSUPPORTED") {
			t.Errorf("the response has no value at %s", path)
		}
	}
}

// simulatedID translates an id of the generic demo venue to the id that the simulator of Polymarket or Kalshi uses. It returns ""
// if demoID is not an id of the demo venue, or if the service runs neither simulator.
func (s *service) simulatedID(demoID string) string {
	switch {
	case s.Demo.Polymarket != nil:
		return s.Demo.Polymarket.ID(demoID)
	case s.Demo.Kalshi != nil:
		return s.Demo.Kalshi.ID(demoID)
	}
	return ""
}

// translateStrings returns a copy of a JSON value. It calls translate for each string in the value, and replaces the string by the
// result if the result is not empty.
func translateStrings(value any, translate func(string) string) any {
	switch v := value.(type) {
	case string:
		if other := translate(v); other != "" {
			return other
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = translateStrings(v[i], translate)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for name := range v {
			out[name] = translateStrings(v[name], translate)
		}
		return out
	}
	return value
}

// TestExamplesOnStrictVenue runs the queries in examples/ against a strict venue, and checks the calls and the missing values. The
// venue accepts lists of tokens for prices and spreads, but only one market per call.
func TestExamplesOnStrictVenue(t *testing.T) {
	for name, want := range map[string]struct {
		// calls counts the calls to each endpoint. A refused call for a list of markets or tokens counts too.
		calls map[string]int64
		// absent holds the paths, without list indexes, of values that may be null. The books of this venue have no time and no
		// sequence number. An open market has no resolution.
		absent []string
	}{
		"event-page":          {calls: map[string]int64{"market-search": 1, "prices": 1}},
		"price-board":         {calls: map[string]int64{"market-details": 8, "prices": 1, "spreads": 1}},
		"search":              {calls: map[string]int64{"market-search": 1, "prices": 1}},
		"history-and-candles": {calls: map[string]int64{"market-details": 1, "price-history": 1}},
		"trade-ticket": {
			calls:  map[string]int64{"market-details": 1, "orderbook": 1, "spreads": 1},
			absent: []string{"token.fillEstimate.freshness.asOf"},
		},
		"market-page": {
			calls:  map[string]int64{"market-details": 1, "orderbook": 3, "prices": 1, "spreads": 1},
			absent: []string{"market.resolution", "market.tokens.orderbook.sequence"},
		},
		// The venue may cut a list after 50 rows. The service therefore reads positions and orders once more, with an offset.
		"portfolio": {calls: map[string]int64{"balance": 1, "market-details": 49, "orders": 2, "positions": 2, "prices": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var variables vars
			decode(t, read(t, "examples/"+name+".json"), &variables)
			var data any
			calls := map[string]int64{}
			synctest.Test(t, func(t *testing.T) {
				s := startInBubble(t, startTime, "--demo-strict")
				got := s.callsDuring(func() { data = s.ask(t, read(t, "examples/"+name+".graphql"), variables, keyOf50) })
				for endpoint, n := range got {
					calls[endpoint] = n[0]
				}
			})
			for _, path := range missing(data, "") {
				if !slices.Contains(want.absent, path) {
					t.Errorf("the response has no value at %s", path)
				}
			}
			if !maps.Equal(calls, want.calls) {
				t.Errorf("got the calls %v, want %v", calls, want.calls)
			}
		})
	}
}
