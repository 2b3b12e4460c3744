package demo

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestStrictVenueIsDocumented checks that docs/venues/generic.md lists the parameters and members of a strict venue, and no others.
func TestStrictVenueIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/venues/generic.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "A strict venue takes these parameters")
	table, _, _ = strings.Cut(table, "\n## ")
	quoted := regexp.MustCompile("`([^`]+)`")
	words := func(cell string) (out []string) {
		for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
			out = append(out, m[1])
		}
		return out
	}
	seen := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || len(words(cells[1])) == 0 {
			continue
		}
		names := words(cells[1])
		known := slices.Concat(names, []string{"OPEN"})
		for i := range endpoints {
			e := &endpoints[i]
			if !slices.Contains(names, e.name()) {
				continue
			}
			seen++
			for _, p := range e.strict.parameters {
				if !slices.Contains(words(cells[2]), p) {
					t.Errorf("parameter %s of %s is missing", p, e.name())
				}
			}
			for _, m := range e.strict.members {
				// The table lists the members bids and asks of a book, but not the members price and size of a level.
				if !slices.Contains(words(cells[3]), m) && m != "price" && m != "size" && m != e.name() {
					t.Errorf("member %s of %s is missing", m, e.name())
				}
			}
			known = slices.Concat(known, e.strict.parameters, e.strict.members)
		}
		for _, word := range append(words(cells[2]), words(cells[3])...) {
			if !slices.Contains(known, word) {
				t.Errorf("%v do not have %s", names, word)
			}
		}
	}
	if seen != len(endpoints) {
		t.Errorf("got %d of %d endpoints documented", seen, len(endpoints))
	}
}
