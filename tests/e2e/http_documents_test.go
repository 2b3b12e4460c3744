package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"oddsgraph/httpapi"
)

func hashOf(text string) string {
	hash := sha256.Sum256([]byte(text))
	return hex.EncodeToString(hash[:])
}

func (s *service) getQuery(t *testing.T, path string, parameters ...string) response {
	t.Helper()
	values := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		values.Set(parameters[i], parameters[i+1])
	}
	return s.get(t, httpapi.PathGraphQL+path+"?"+values.Encode())
}

func TestTrustedDocuments(t *testing.T) {
	const query, other = `query Trusted { __typename }`, `query Other { __typename }`
	manifest := write(t, t.TempDir(), "manifest.json", asJSON(vars{"trusted-1": query}))
	for mode, code := range map[string]string{"allow": "", "require": "FORBIDDEN"} { // maps each mode to the expected error for a document that is not trusted
		s := start(t, "--documents-trusted="+mode, "--documents-manifest="+manifest)
		for i, got := range []response{s.getQuery(t, "/trusted-1"), s.getQuery(t, "", "query", query), s.getQuery(t, "", "query", other)} {
			refused := i == 2 && code != ""
			if (got.body != `{"data":{"__typename":"Query"}}`) != refused || (got.status == http.StatusForbidden) != refused || refused && !strings.Contains(got.body, code) {
				t.Errorf("--documents-trusted=%s, request %d: got %+v, want refused = %v", mode, i, got, refused)
			}
		}
	}
}
