package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// deadlineRecorder records the write deadline of a response.
type deadlineRecorder struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (r *deadlineRecorder) SetWriteDeadline(t time.Time) error {
	r.deadline = t
	return nil
}

// TestEveryRouteHasAWriteDeadline asks for every route, since a client that does not read must not hold its connection.
func TestEveryRouteHasAWriteDeadline(t *testing.T) {
	cfg := pagesConfig(t, true)
	cfg.Introspection, cfg.Ready = true, func(context.Context) error { return nil }
	api := New(cfg)
	for _, path := range []string{"/", "/live", "/live/", "/plain", "/assets/page-ABCDEF23.js", "/missing", PathSchema, PathHealth, PathReady,
		PathGraphQL + "?query={__typename}", PathGraphQL + "/unknown"} {
		w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
		api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if left := time.Until(w.deadline); left <= 0 || left > writeTimeout {
			t.Errorf("%s answered %d with %v left to read it", path, w.Code, left)
		}
	}
}
