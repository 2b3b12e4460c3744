package filewatch

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMembersAndElements(t *testing.T) {
	var got []string
	err := Members([]byte(` {"a":1,"b":{"c":[2]},"a":"x"} `), func(name string, value json.RawMessage) error {
		got = append(got, name+"="+string(value))
		return nil
	})
	if want := `a=1 b={"c":[2]} a="x"`; err != nil || strings.Join(got, " ") != want {
		t.Errorf("Members visited %v and returned %v, want %s", got, err, want)
	}
	got = nil
	err = Elements([]byte(`[1, "x" ,[] ]`), func(i int, value json.RawMessage) error {
		got = append(got, string(value))
		return nil
	})
	if want := `1 "x" []`; err != nil || strings.Join(got, " ") != want {
		t.Errorf("Elements visited %v and returned %v, want %s", got, err, want)
	}
	for _, text := range []string{`1`, `null`, `"secret"`, `true`, ``} {
		if err := Members([]byte(text), nil); err == nil || err.Error() != "must be an object" {
			t.Errorf("Members of %s returned the error %v", text, err)
		}
		if err := Elements([]byte(text), nil); err == nil || err.Error() != "must be a list" {
			t.Errorf("Elements of %s returned the error %v", text, err)
		}
	}
	if err := Members([]byte(`[]`), nil); err == nil {
		t.Error("Members accepted a list")
	}
	if err := Elements([]byte(`{}`), nil); err == nil {
		t.Error("Elements accepted an object")
	}
}

func TestText(t *testing.T) {
	if s, ok := Text(json.RawMessage(`"a\n"`)); !ok || s != "a\n" {
		t.Errorf("Text returned %q, %v; want \"a\\n\", true", s, ok)
	}
	for _, text := range []string{`1`, `null`, `[]`, ``, `"a`} {
		if s, ok := Text(json.RawMessage(text)); ok {
			t.Errorf("Text of %s returned %q, want ok to be false", text, s)
		}
	}
}
