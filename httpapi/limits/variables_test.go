package limits

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"oddsgraph/internal/market"
)

// TestVariables checks the limits of bytes, depth and list items.
func TestVariables(t *testing.T) {
	g := newGuard(t, func(l *Limits) { l.VariableBytes, l.Depth, l.ListItems = 100, 4, 5 })
	for _, test := range []struct{ raw, rule, says string }{
		{"", "", ""},
		{"null", "", ""},
		{"{}", "", ""},
		{`{"a":"` + strings.Repeat("x", 92) + `"}`, "", ""},
		{`{"a":"` + strings.Repeat("x", 93) + `"}`, RuleVariableBytes, "the variables have 101 bytes; at most 100"},
		{`{"a":[[[]]]}`, "", ""},
		{`{"a":[[[[]]]]}`, RuleDepth, "nested more than 4 deep"},
		{`{"a":[{"b":[]}]}`, "", ""},
		{`{"a":[{"b":[{}]}]}`, RuleDepth, "nested more than 4 deep"},
		{`{"a":[],"b":[[[]]],"c":{"d":{"e":1}}}`, "", ""},
		{`{"a":[1,2,3,4,5]}`, "", ""},
		{`{"a":[1,2,3,4,5,6]}`, RuleListItems, "more than 5 items"},
		{`{"a":[[1,2,3],[1,2,3],3,4,5],"b":[1,2,3]}`, "", ""},
		{`{"a":[[1,2,3],[1,2,3],3,4,5,[]]}`, RuleListItems, "more than 5 items"},
		{`{"a":1,"b":2,"c":3,"d":4,"e":5}`, "", ""},
		{`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}`, RuleListItems, "more than 5 items"},
		// Commas and brackets in strings do not count.
		{`{"a":"[[[[[[[,,,,,,,,{{{{{{"}`, "", ""},
		{`{"a":"\"[[[[[[[,,,,,,,,{{{{{{"}`, "", ""},
		{`{"a":"\\","b":[[[[]]]]}`, RuleDepth, ""},
		{`{"a":"\\\"[[[[[[","b":1}`, "", ""},
		{`{"\",,,,,,,":1}`, "", ""},
		// Variables accepts invalid JSON, because the decoder refuses it later.
		{`}}}}]]]],,,,,,,,{}`, "", ""},
		{`"`, "", ""},
		{`{"a":"\`, "", ""},
	} {
		err := g.Variables(test.raw)
		var known *market.Error
		if Rule(err) != test.rule || test.rule != "" && (!errors.As(err, &known) || known.Code != market.CodeBadUserInput || !strings.Contains(known.Message, test.says)) {
			t.Errorf("%s\n Variables returned %v (rule %q); want the rule %q and the text %q", test.raw, err, Rule(err), test.rule, test.says)
		}
	}
}

// TestHostileVariables checks that hostile variables are refused and need little memory.
func TestHostileVariables(t *testing.T) {
	g := newGuard(t)
	for name, test := range map[string]struct{ raw, rule string }{
		"10 MB":         {`{"a":"` + strings.Repeat("x", 10<<20) + `"}`, RuleVariableBytes},
		"deep lists":    {`{"a":` + strings.Repeat("[", 10_000), RuleDepth},
		"deep objects":  {strings.Repeat(`{"a":`, 10_000), RuleDepth},
		"60,001 items":  {`{"a":[` + strings.Repeat("1,", 60_000) + `1]}`, RuleListItems},
		"25,001 fields": {`{` + strings.Repeat(`"":0,`, 25_000) + `"":0}`, RuleListItems},
	} {
		err := error(nil)
		bytes, mallocs := countAllocations(func() { err = g.Variables(test.raw) })
		if Rule(err) != test.rule || bytes > 10_000 || mallocs > 100 {
			t.Errorf("%s: Variables returned %v (rule %q) with %d bytes in %d allocations; want the rule %q, at most 10,000 bytes and 100 allocations", name, err, Rule(err), bytes, mallocs, test.rule)
		}
	}
	const good = `{"a":["1","2"],"b":{"c":[{"d":1}]}}`
	if n := testing.AllocsPerRun(100, func() { _ = g.Variables(good) }); n > 0 {
		t.Errorf("accepted variables take %v allocations, want 0", n)
	}
}

// measureJSON computes the depth of a decoded value, and the length of its longest list or object.
func measureJSON(v any, level int, deepest, longest *int) {
	*deepest = max(*deepest, level)
	each := func(n int) { *longest = max(*longest, n) }
	switch v := v.(type) {
	case []any:
		each(len(v))
		for _, item := range v {
			measureJSON(item, level+ownLevel(item), deepest, longest)
		}
	case map[string]any:
		each(len(v))
		for _, item := range v {
			measureJSON(item, level+ownLevel(item), deepest, longest)
		}
	}
}

// ownLevel returns 1 for a list or object, because it adds a level, and 0 for any other value.
func ownLevel(v any) int {
	switch v.(type) {
	case []any, map[string]any:
		return 1
	default:
		return 0
	}
}

// FuzzVariables checks that accepted JSON is within the limits, and that refused JSON without objects exceeds a limit.
func FuzzVariables(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,2,3,4]}`, `{"a":[[[[1]]]],"b":"\"[["}`, `{"a":"\\","b":{"c":[{}]}}`, `[1,,2`, `"\`, `{"a":"\u0022[,"}`, "\xff\"["} {
		f.Add([]byte(seed))
	}
	g := newGuard(f, func(l *Limits) { l.VariableBytes, l.Depth, l.ListItems = 200, 4, 5 })
	f.Fuzz(func(t *testing.T, raw []byte) {
		err := g.Variables(string(raw))
		var v any
		if json.Unmarshal(raw, &v) != nil {
			return
		}
		var deepest, longest int
		measureJSON(v, ownLevel(v), &deepest, &longest)
		within := len(raw) <= 200 && deepest <= 4 && longest <= 5
		if err == nil && !within {
			t.Errorf("%q exceeds a limit but was accepted: %d bytes, depth %d, %d items", raw, len(raw), deepest, longest)
		}
		// The refusal of input with objects is not checked, because the decoder merges members with equal names.
		if err != nil && within && !strings.Contains(string(raw), "{") {
			t.Errorf("%q is within the limits but was refused: %v", raw, err)
		}
	})
}
