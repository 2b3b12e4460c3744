package demo

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestMethods(t *testing.T) {
	v := New(Config{Markets: 40, Clock: newClock()})
	target := "/api/exchange/prices?tokenId=" + v.listing.tokens[0].id
	for method, status := range map[string]int{"GET": 200, "HEAD": 200, "POST": 405, "DELETE": 405, "OPTIONS": 405} {
		w := handle(v, httptest.NewRequest(method, target, nil))
		if allow := w.Header().Get("Allow"); w.Code != status || (status == 405) != (allow == "GET, HEAD") {
			t.Errorf("%s: got %d and Allow %q, want %d", method, w.Code, allow, status)
		}
	}
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(Config{Markets: 40, Latency: 20 * time.Millisecond})
		began := time.Now()
		if w := send(v, "/api/exchange/market-search"); w.Code != 200 || time.Since(began) != 20*time.Millisecond {
			t.Errorf("got %d after %v, want 200 after 20ms", w.Code, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		began = time.Now()
		w := handle(v, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/exchange/market-search", nil))
		if time.Since(began) != 5*time.Millisecond || w.Body.Len() > 0 {
			t.Errorf("got a response after %v with %d bytes, want none after 5ms", time.Since(began), w.Body.Len())
		}
	})
}
