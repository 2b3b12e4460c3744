package wire

import (
	"fmt"
	"strings"
	"testing"
)

// TestNamesOfOneMark has objects whose names all have the same mark, and one of them twice.
func TestNamesOfOneMark(t *testing.T) {
	called := func(n int) string { return fmt.Sprintf("a%03dxxxxb", n) }
	for _, members := range []int{1, 8, 500} {
		var text strings.Builder
		for n := range members - 1 {
			fmt.Fprintf(&text, `%q:%d,`, called(n), n)
		}
		object := []byte(`{` + text.String() + `"\u0061000xxxxb":"last"}`)
		compareParse(t, object)
		v, err := Parse(object)
		if err != nil {
			t.Fatal(err)
		}
		if !v.Member(called(0)).Is("last") || v.Member(called(members)).Kind() != Missing {
			t.Errorf("of %d members the first and last is %s, and one that is not there %s", members, v.Member(called(0)).JSON(), v.Member(called(members)).JSON())
		}
	}
	if markOf(called(1)) != markOf(called(499)) {
		t.Error("the names have different marks")
	}
}

// TestDocumentsStandAlone reads a document after others were parsed.
func TestDocumentsStandAlone(t *testing.T) {
	object := func(first int) Value {
		members := map[string]any{}
		for n := range 16 {
			members[fmt.Sprint(first+n)] = n
		}
		return value(t, members)
	}
	first := object(0)
	for n := range 10 {
		object(100 * n)
	}
	for n := range 16 {
		if got := first.Member(fmt.Sprint(n)).Text(); got != fmt.Sprint(n) {
			t.Errorf("member %d is %s", n, got)
		}
	}
}
