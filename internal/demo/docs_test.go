package demo

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestStrictVenueIsDocumented checks the table of a strict venue in docs/venues/generic.md. For each endpoint, the table must list
// exactly the parameters and response members that the strict venue allows.
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
					t.Errorf("the table lacks the parameter %s of %s", p, e.name())
				}
			}
			for _, m := range e.strict.members {
				// The table lists the members bids and asks of a book, but not the members price and size of a level.
				if !slices.Contains(words(cells[3]), m) && m != "price" && m != "size" && m != e.name() {
					t.Errorf("the table lacks the member %s of %s", m, e.name())
				}
			}
			known = slices.Concat(known, e.strict.parameters, e.strict.members)
		}
		for _, word := range append(words(cells[2]), words(cells[3])...) {
			if !slices.Contains(known, word) {
				t.Errorf("the table lists %s for %v, but the strict venue does not allow it there", word, names)
			}
		}
	}
	if seen != len(endpoints) {
		t.Errorf("the table lists %d of %d endpoints", seen, len(endpoints))
	}
}
