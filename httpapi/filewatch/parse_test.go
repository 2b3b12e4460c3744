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
		t.Errorf("%v %v", got, err)
	}
	got = nil
	err = Elements([]byte(`[1, "x" ,[] ]`), func(i int, value json.RawMessage) error {
		got = append(got, string(value))
		return nil
	})
	if want := `1 "x" []`; err != nil || strings.Join(got, " ") != want {
		t.Errorf("%v %v", got, err)
	}
	for _, text := range []string{`1`, `null`, `"secret"`, `true`, ``} {
		if err := Members([]byte(text), nil); err == nil || err.Error() != "must be an object" {
			t.Errorf("%s: %v", text, err)
		}
		if err := Elements([]byte(text), nil); err == nil || err.Error() != "must be a list" {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := Members([]byte(`[]`), nil); err == nil {
		t.Error("a list is no object")
	}
	if err := Elements([]byte(`{}`), nil); err == nil {
		t.Error("an object is no list")
	}
}

func TestText(t *testing.T) {
	if s, ok := Text(json.RawMessage(`"a\n"`)); !ok || s != "a\n" {
		t.Errorf("%q %v", s, ok)
	}
	for _, text := range []string{`1`, `null`, `[]`, ``, `"a`} {
		if s, ok := Text(json.RawMessage(text)); ok {
			t.Errorf("%s is %q", text, s)
		}
	}
}
