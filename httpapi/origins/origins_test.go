package origins

import (
	"net/http/httptest"
	"testing"
)

func TestOriginsOfWebSockets(t *testing.T) {
	for _, test := range []struct {
		configured []string
		origin     []string
		want       bool
	}{
		{nil, nil, true}, // no browser, so no Origin
		{nil, []string{"http://graph.example"}, true},
		{nil, []string{"https://GRAPH.example"}, true},
		{nil, []string{"http://graph.example:8080"}, false},
		{nil, []string{"http://graph.example.evil"}, false},
		{nil, []string{"http://evil.example"}, false},
		{nil, []string{"null"}, false},
		{nil, []string{""}, false},
		{nil, []string{"http://graph.example", "http://evil.example"}, false},
		{nil, []string{"%zz"}, false},
		{[]string{"https://App.example"}, []string{"https://app.example"}, true},
		{[]string{"https://app.example"}, []string{"HTTPS://APP.example"}, true},
		{[]string{"https://app.example"}, []string{"http://app.example"}, false},
		{[]string{"https://app.example"}, []string{"https://app.example:444"}, false},
		{[]string{"https://app.example"}, []string{"https://graph.example"}, true},
		{[]string{"*"}, []string{"https://evil.example"}, true},
		{[]string{"*"}, []string{"null"}, true},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://graph.example/graphql", nil)
		r.Header["Origin"] = test.origin
		if test.origin == nil {
			r.Header.Del("Origin")
		}
		if got := New(test.configured, false, nil).Check(r) == nil; got != test.want {
			t.Errorf("the origin %q with %q configured is allowed: %v, want %v", test.origin, test.configured, got, test.want)
		}
	}
}
