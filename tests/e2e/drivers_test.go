package e2e

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
)

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
