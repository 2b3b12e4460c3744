package main

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHandler(t *testing.T) {
	const one, other = `{"query":"q","variables":{"n":1}}`, `{"query":"q","variables":{"n":2}}`
	h, err := newHandler([]Answer{{[]byte(one), []byte(`{"data":1}`)}, {[]byte(other), []byte(`{"data":22}`)}})
	if err != nil {
		t.Fatal(err)
	}
	for request, want := range map[string]string{
		one:   `200 10 {"data":1}`,
		other: `200 11 {"data":22}`,
		`{"operationName":"x","variables":{"n":1},"query":"q"}`: `200 10 {"data":1}`,
		`{"query":"q"}`: `404  this request has no answer`,
		`{`:             `400  unexpected end of JSON input`,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/graphql", strings.NewReader(request)))
		got := strings.Join([]string{w.Result().Status[:3], w.Header().Get("Content-Length"), strings.TrimSpace(w.Body.String())}, " ")
		if got != want {
			t.Errorf("%s: got %s, want %s", request, got, want)
		}
	}
}
