package rest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

// TestARequestWithABodyIsAPost checks that the client sends a request with a body as POST, with the whole body in each attempt. It
// must send a request without a body as GET.
func TestARequestWithABodyIsAPost(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get("Content-Type"), " ", r.ContentLength, " ", string(body)))
		w.Header().Set("Content-Type", "application/json")
		if len(got) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	defer server.Close()
	c, err := rest.New(rest.Config{BaseURL: server.URL + "/base", Paths: rest.Paths{upstream.EndpointPrices: "/prices"}, Rand: func() float64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	v, err := c.Get(t.Context(), upstream.Call{}, &rest.Request{Endpoint: upstream.EndpointPrices, Path: "/last", Body: []byte(`["1"]`)})
	if err != nil || v.Member("ok").IsNull() {
		t.Fatalf("Get returned %s and the error %v (%s), want a member ok", v.JSON(), err, market.CodeOf(err))
	}
	if _, err = c.Get(t.Context(), upstream.Call{}, &rest.Request{Endpoint: upstream.EndpointPrices}); err != nil {
		t.Fatal(err)
	}
	post := `POST /base/last application/json 5 ["1"]`
	if want := []string{post, post, "GET /base/prices  0 "}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the venue received the requests\n%q\nwant\n%q", got, want)
	}
}
