package main

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"oddsgraph/internal/demo"
)

// TestCheck checks that venue.check accepts the venue's values and refuses a response in which one string is wrong.
func TestCheck(t *testing.T) {
	s := httptest.NewServer(demo.New(demo.Config{Markets: 200, Control: true}))
	defer s.Close()
	v := venue{s.URL}
	l, err := v.list(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range newWorkloads(l, variety{1, 1, 1}) {
		q := w.requests[0].question
		want, err := v.answer(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := json.Marshal(object{"data": want})
		if err != nil {
			t.Fatal(err)
		}
		if err := v.check(t.Context(), q, answer); err != nil {
			t.Errorf("%s: the check refuses the venue's own values: %v", w.name, err)
		}
		for _, value := range leaves(want, nil) {
			wrong := strings.Replace(string(answer), `:"`+value+`"`, `:"wrong"`, 1)
			if wrong == string(answer) {
				t.Fatalf("%s: %q is not in %s", w.name, value, answer)
			}
			if err := v.check(t.Context(), q, []byte(wrong)); err == nil {
				t.Errorf("%s: the check accepts an answer in which %q was replaced", w.name, value)
			}
		}
	}
}

// leaves appends the strings in the decoded response v to the slice found. It reads only the first two elements of each list.
func leaves(v any, found []string) []string {
	switch v := v.(type) {
	case string:
		return append(found, v)
	case []any:
		for _, e := range v[:min(len(v), 2)] {
			found = leaves(e, found)
		}
	case object:
		for _, e := range v {
			found = leaves(e, found)
		}
	}
	return found
}
