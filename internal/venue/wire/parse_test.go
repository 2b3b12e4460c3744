package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// reference decodes one JSON value with encoding/json.
func reference(b []byte) (v any, ok bool) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil, false
	}
	return v, len(bytes.TrimSpace(b[d.InputOffset():])) == 0
}

// tree converts a Value to the types of encoding/json. It also checks that Elements, Members, Member, Parent and Field agree.
func tree(t *testing.T, v Value) any {
	t.Helper()
	switch v.Kind() {
	case Null:
		return nil
	case True, False:
		return v.Kind() == True
	case Number:
		return json.Number(v.Text())
	case String:
		return v.Text()
	case List:
		list := []any{}
		for _, e := range v.Elements() {
			if e.Parent() != v {
				t.Errorf("Parent of the element %s is not the list %s", e.JSON(), v.JSON())
			}
			list = append(list, tree(t, e))
		}
		return list
	case Object:
		object, members := map[string]any{}, v.Members()
		var first Value
		names := slices.Sorted(maps.Keys(members))
		for _, name := range names {
			m := members[name]
			if m.Parent() != v || v.Member(name) != m || !(Field{names: []string{name}}).PresentIn(v) {
				t.Errorf("Members, Member, Parent and PresentIn disagree about %q: Members has %s and Member returns %s in %s", name, m.JSON(), v.Member(name).JSON(), v.JSON())
			}
			if first.IsNull() && !m.IsNull() {
				first = m
			}
			object[name] = tree(t, m)
		}
		if got := (Field{names: names}).Of(v); got != first {
			t.Errorf("Field.Of with the names %q returned %s, want %s", names, got.JSON(), first.JSON())
		}
		return object
	}
	t.Fatalf("the value %s has the unknown kind %d", v.JSON(), v.Kind())
	return nil
}

func compareParse(t *testing.T, b []byte) {
	t.Helper()
	want, ok := reference(b)
	v, err := Parse(b)
	var got any
	if err == nil {
		got = tree(t, v)
	}
	if ok != (err == nil) || ok && !reflect.DeepEqual(got, want) {
		t.Errorf("Parse(%q) returned\n%#v and the error %v, want\n%#v, valid JSON: %v", b, got, err, want, ok)
	}
}

// edgeCases contains valid and invalid JSON documents. JSON libraries differ in how they read many of these documents.
var edgeCases = []string{
	`{"a":1,"a":2,"b":{"a":null}}`, `{"b":1,"a":2,"a":null,"c":3,"b":4}`, `{"a":null,"\u0061":null}`, `{"a":null,"b":0,"\u0061":1}`, `{"":"","\u0061":"\u00e4\n\"\\\/"}`, `["\ud83d\udc4d","\ud800","\udc00x","\ud800\u0041"]`,
	"[\"\xff\", \"\xc3\", \"ü\", \"\xed\xa0\x80\"]", "{\"\xff\":1,\"\ufffd\":2}", `[1.50,-0,1e400,123456789012345678901234567890,0.10e-7]`,
	`[]`, `{}`, `[[],{},[{}]]`, ` true `, `null`, `"x"`, `7`, "\"\x7f\"", "\"\x01\"", `[1,]`, `{"a":1,}`, `{"a"}`, `{1:2}`, `[1 2]`, `01`, `+1`, `.5`, `1.`, `nul`, `[`,
	`{"a":`, `"`, `1 2`, `[]]`, `//`, `NaN`, "\xef\xbb\xbf{}", "[\"\\x\"]", `["\u12"]`, `{"a":[{"b":1,"c":2},{"b":3},{"b":4,"c":5,"d":6,"e":7}]}`,
}

// TestParseMatchesEncodingJSON checks that Parse and encoding/json read the same values from the edge cases and the golden files.
func TestParseMatchesEncodingJSON(t *testing.T) {
	for _, text := range edgeCases {
		compareParse(t, []byte(text))
	}
	files, err := filepath.Glob("../../../tests/testdata/venue/*/*.json")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		compareParse(t, b)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range edgeCases {
		f.Add([]byte(text))
	}
	f.Fuzz(compareParse)
}

// TestParseAllocatesForTheDocumentOnly checks that Parse makes far fewer allocations than a document has values.
func TestParseAllocatesForTheDocumentOnly(t *testing.T) {
	const rows, values = 200, 200 * 12
	text := []byte(`[` + strings.Repeat(`{"a":"x","b":"\n","c":1,"d":null,"e":[true,{}],"f":"","g":0.5,"h":"y","i":"z"},`, rows) + `{}]`)
	n := testing.AllocsPerRun(20, func() {
		if _, err := Parse(text); err != nil {
			t.Fatal(err)
		}
	})
	if n > values/4 {
		t.Errorf("Parse made %v allocations for %d values, want at most %d", n, values, values/4)
	}
}

// TestDocumentsAreIndependent checks that a document does not change when the same pooled parser reads other documents.
func TestDocumentsAreIndependent(t *testing.T) {
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
			t.Errorf("member %d has become %s", n, got)
		}
	}
}
