package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestSubscribersOfOneAccountShare has four clients subscribe with the same text: two with the credentials of one account, one with
// those of another account, and one without credentials. Only the two share an execution.
func TestSubscribersOfOneAccountShare(t *testing.T) {
	r := newReaders(t)
	for _, credentials := range []string{credentialsOf("alice"), credentialsOf("alice"), credentialsOf("bob"), ""} {
		w := &tape{ResponseRecorder: httptest.NewRecorder()}
		request := httptest.NewRequestWithContext(r.ctx, http.MethodPost, PathGraphQL+"?from=192.0.2.1",
			strings.NewReader(`{"query":"subscription { streamStatusChanged { state } }"}`))
		request.Header.Set("Content-Type", typeJSON)
		request.Header.Set("Accept", typeEvents)
		if credentials != "" {
			request.Header.Set(CredentialsHeader, credentials)
		}
		r.all.Go(func() { r.api.ServeHTTP(w, request) })
	}
	eventually(t, func() bool { return r.api.Stats().Groups.Members == 4 })
	if got := r.api.Stats().Groups; got.Groups != 3 {
		t.Errorf("%d groups execute the subscriptions of three callers; want one each", got.Groups)
	}
}
