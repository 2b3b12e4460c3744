package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"oddsgraph/httpapi/content"
	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
)

// largeBody is a query with a response of some 60 KB and no reads from the venue.
const largeBody = `{"query":"{ __schema { types { name description fields { name description } } } }"}`

// TestResponseTooLarge checks that a response larger than MaxResponse is replaced by an error.
func TestResponseTooLarge(t *testing.T) {
	for _, test := range []struct{ name, body, path string }{
		{"introspection without reads", largeBody, `"path":["__schema","types",`},
		{"a query that can be cached", manyPrices, `"path":["tokenPrices",`},
		{"nothing but errors", `{"query":"query ($ids: [String!]!) { a: tokens(tokenIds: $ids) { price { price } } }","variables":{"ids":` + manyIDs + `}}`, `"path":["a",`},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg, _ := cachingConfig(t)
			if test.name == "nothing but errors" {
				cfg.Sources.Prices = failing{&nothing{}}
			}
			cfg.MaxResponse = 20_000
			h := New(cfg)
			for range 2 {
				w := post(t, h, test.body, "Accept", content.Response)
				a := answerOf(t, w)
				if w.Code != http.StatusOK || string(a.Data) != "null" || len(a.Errors) != 1 || a.Errors[0].Extensions.Code != "RESPONSE_TOO_LARGE" ||
					!strings.Contains(w.Body.String(), test.path) || w.Body.Len() > 1000 {
					t.Errorf("got %d %.1000s, want one RESPONSE_TOO_LARGE with null data and %s", w.Code, w.Body, test.path)
				}
			}
			if s := h.Stats(); s.Responses.Entries != 0 || s.Output != 0 {
				t.Errorf("%d responses are cached and %d bytes are reserved, want 0 and 0", s.Responses.Entries, s.Output)
			}
			cfg.MaxResponse = 0 // the default
			if a := answerOf(t, post(t, New(cfg), test.body)); len(a.Errors) == 1 {
				t.Errorf("with the default of MaxResponse: got the error %+v, want the whole response", a.Errors)
			}
		})
	}
}

// manyIDs is a JSON list of 400 ids.
var manyIDs = func() string {
	var ids []string
	for i := range 400 {
		ids = append(ids, fmt.Sprintf("%q", fmt.Sprint(i)))
	}
	return "[" + strings.Join(ids, ",") + "]"
}()

// manyPrices requests a response of some 60 KB that can be cached.
var manyPrices = `{"query":"query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { price a: price b: price c: price d: price e: price f: price g: price h: price i: price } }","variables":{"ids":` + manyIDs + `}}`

// failing is a source of prices whose reads fail.
type failing struct{ *nothing }

func (failing) Lookup(_ context.Context, _ []string, into []reads.Result[*market.Price], missing []int) []int {
	for i := range into {
		into[i].Err = market.Errorf(market.CodeUpstreamUnavailable, "down")
	}
	return missing
}

// TestUnreadResponses checks that a client with too many unread responses gets no further long response until it has read them.
// Other clients must still get responses.
func TestUnreadResponses(t *testing.T) {
	for name, body := range map[string]string{"not cached": largeBody, "cached": manyPrices} {
		t.Run(name, func(t *testing.T) {
			cfg, _ := cachingConfig(t)
			cfg.Client = func(r *http.Request) netip.Addr { return netip.MustParseAddr(r.Header.Get("Client")) }
			size := post(t, New(cfg), body, "Client", "192.0.2.1").Body.Len()
			cfg.MaxOutput = 8 * size
			h := New(cfg)
			var reading sync.WaitGroup
			read := make(chan struct{})
			left := 0
			for ; left < 100; left++ {
				w := &stuck{httptest.NewRecorder(), make(chan struct{}), read}
				reading.Go(func() { h.ServeHTTP(w, postRequest(t.Context(), body, "Client", "192.0.2.1")) })
				<-w.writing
				if w.Code == http.StatusServiceUnavailable {
					break
				}
			}
			if held := h.Stats().Output; left < 4 || left > 20 || held > 6*size || held < left*(size-(16<<10))*9/10 {
				t.Errorf("%d responses of %d bytes are unread and hold %d bytes, want 4 to 20 responses and at most %d bytes", left, size, held, 6*size)
			}
			refused := post(t, h, body, "Client", "192.0.2.1")
			if a := answerOf(t, refused); refused.Code != http.StatusServiceUnavailable || refused.Header().Get("Retry-After") != "1" ||
				a.Errors[0].Extensions.Code != "RATE_LIMITED" || a.Data != nil {
				t.Errorf("the next long response: got %d %v %.300s, want 503 and RATE_LIMITED", refused.Code, refused.Header(), refused.Body)
			}
			if w := post(t, h, `{"query":"{ __typename }"}`, "Client", "192.0.2.1"); w.Code != http.StatusOK {
				t.Errorf("a short response: got %d %s, want 200", w.Code, w.Body)
			}
			if w := post(t, h, body, "Client", "192.0.2.2"); w.Code != http.StatusOK || w.Body.Len() != size {
				t.Errorf("the response to another client: got %d %.300s, want 200 and the whole response", w.Code, w.Body)
			}
			close(read)
			reading.Wait()
			if w := post(t, h, body, "Client", "192.0.2.1"); w.Code != http.StatusOK || h.Stats().Output != 0 {
				t.Errorf("after the client has read: got %d %.300s and %d bytes of output, want 200 and 0", w.Code, w.Body, h.Stats().Output)
			}
		})
	}
}
