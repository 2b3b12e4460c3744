package limits

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestDocumentation compares the table of docs/limits.md with the rules and their defaults.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]int64{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([0-9,]+) \\|").FindAllStringSubmatch(string(text), -1) {
		if documented[row[1]], err = strconv.ParseInt(strings.ReplaceAll(row[2], ",", ""), 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	limits := reflect.ValueOf(Default())
	words := regexp.MustCompile("([a-z])([A-Z])")
	for i := range limits.NumField() {
		rule := strings.ToLower(words.ReplaceAllString(limits.Type().Field(i).Name, "${1}_$2"))
		if n, ok := documented[rule]; !ok || n != limits.Field(i).Int() {
			t.Errorf("the default of %s is %d, but docs/limits.md says %d", rule, limits.Field(i).Int(), n)
		}
		delete(documented, rule)
	}
	for rule := range documented {
		t.Errorf("docs/limits.md lists %s, which is not a limit", rule)
	}
	for _, rule := range []string{RuleFragmentCycle, RuleSyntax, RuleCalls} {
		if !strings.Contains(string(text), "`"+rule+"`") {
			t.Errorf("docs/limits.md does not contain the rule %s", rule)
		}
	}
	prices := fmt.Sprintf("1 point for each value, %d points for each id in a list of ids, and %d,%03d points for each", keyPoints, callPoints/1000, callPoints%1000)
	if !strings.Contains(string(text), prices) {
		t.Errorf("docs/limits.md does not contain the text %q", prices)
	}
}
