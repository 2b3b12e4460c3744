package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
