package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oddsgraph/httpapi"
)

func hashOf(text string) string {
	hash := sha256.Sum256([]byte(text))
	return hex.EncodeToString(hash[:])
}

// persisted returns the extensions object that names a document by its hash.
func persisted(text string) string {
	return `{"persistedQuery":{"version":1,"sha256Hash":"` + hashOf(text) + `"}}`
}

func (s *service) getQuery(t *testing.T, path string, parameters ...string) response {
	t.Helper()
	values := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		values.Set(parameters[i], parameters[i+1])
	}
	return s.get(t, httpapi.PathGraphQL+path+"?"+values.Encode())
}

func TestAutomaticPersistedQueries(t *testing.T) {
	s := start(t)
	const query, invalid = `query A($n: Boolean = false) { __typename @skip(if: $n) }`, `{ nope }`
	const missing = `{"errors":[{"message":"PersistedQueryNotFound","extensions":{"code":"PERSISTED_QUERY_NOT_FOUND"}}]}`
	const found = `{"data":{"__typename":"Query"}}`
	want := func(what string, got response, body string) {
		t.Helper()
		if got.status != http.StatusOK || got.body != body {
			t.Errorf("%s: %+v", what, got)
		}
	}
	want("a miss", s.getQuery(t, "", "extensions", persisted(query)), missing)
	want("registered", s.getQuery(t, "", "extensions", persisted(query), "query", query), found)
	want("a hit", s.getQuery(t, "", "extensions", persisted(query)), found)
	want("by its id", s.getQuery(t, "", "documentId", "sha256:"+hashOf(query)), found)
	want("by its path", s.getQuery(t, "/sha256:"+hashOf(query)), found)
	want("with variables", s.getQuery(t, "/sha256:"+hashOf(query), "variables", `{"n":true}`), `{"data":{}}`)
	want("by POST", s.do(t, s.request(t, `{"extensions":`+persisted(query)+`}`, anonymous)), found)
	if got := s.getQuery(t, "", "extensions", persisted(query)); got.header.Get("Cache-Control") != "public, max-age=0" || got.header.Get("ETag") == "" {
		t.Errorf("a hit has %v", got.header)
	}
	if got := s.getQuery(t, "", "extensions", persisted("another")); got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("a miss has %v", got.header)
	}
	// The service registers neither an invalid document nor a text that does not match its hash.
	if got := s.getQuery(t, "", "extensions", persisted(invalid), "query", invalid); !strings.Contains(got.body, "GRAPHQL_VALIDATION_FAILED") {
		t.Errorf("invalid: %+v", got)
	}
	want("invalid, by its hash", s.getQuery(t, "", "extensions", persisted(invalid)), missing)
	if got := s.getQuery(t, "", "extensions", persisted("another"), "query", query); !strings.Contains(got.body, "provided sha does not match query") {
		t.Errorf("another text: %+v", got)
	}
	want("another text, by its hash", s.getQuery(t, "", "extensions", persisted("another")), missing)

	s = start(t, "--documents-automatic=0")
	if got := s.getQuery(t, "", "extensions", persisted(query), "query", query); !strings.Contains(got.body, "PersistedQueryNotSupported") {
		t.Errorf("switched off: %+v", got)
	}
}

func TestTrustedDocuments(t *testing.T) {
	const query, other = `query Trusted { __typename }`, `query Other { __typename }`
	dir, manifest := t.TempDir(), ""
	write := func(documents map[string]string) {
		b, err := json.Marshal(documents)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(manifest, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for mode, codes := range map[string][3]string{ // expected error codes for three requests: the trusted document's id, the trusted document's text, and the text of another document
		"off":     {"BAD_USER_INPUT", "", ""},
		"allow":   {"", "", ""},
		"require": {"", "", "FORBIDDEN"},
	} {
		manifest = filepath.Join(dir, mode+".json") // one file for each mode, because the service watches the file and the test changes it
		write(map[string]string{"trusted-1": query})
		args := []string{"--documents-trusted=" + mode}
		if mode != "off" {
			args = append(args, "--documents-manifest="+manifest)
		}
		s := start(t, args...)
		for i, got := range []response{s.getQuery(t, "/trusted-1"), s.getQuery(t, "", "query", query), s.getQuery(t, "", "query", other)} {
			if !strings.Contains(got.body, codes[i]) || (codes[i] == "") != (got.body == `{"data":{"__typename":"Query"}}`) {
				t.Errorf("%s, %d: %+v", mode, i, got)
			}
		}
		if mode == "require" {
			if got := s.getQuery(t, "", "query", other); got.status != http.StatusForbidden {
				t.Errorf("%+v", got)
			}
			write(map[string]string{"trusted-1": query, "other-1": other})
			if err := s.Files.Documents.Reload(); err != nil {
				t.Fatal(err)
			}
			if got := s.getQuery(t, "/other-1"); got.body != `{"data":{"__typename":"Query"}}` {
				t.Errorf("a new one: %+v", got)
			}
			write(map[string]string{"trusted-1": "{ nope }"})
			if err := s.Files.Documents.Reload(); err == nil || !strings.Contains(err.Error(), "trusted-1") {
				t.Errorf("an invalid one: %v", err)
			}
		}
	}
	manifest = filepath.Join(dir, "invalid.json")
	write(map[string]string{"trusted-1": "{ nope }"})
	ctx, cancel := context.WithTimeout(t.Context(), patience) // ends the program if it starts despite the invalid document
	defer cancel()
	err := run(ctx, []string{"--documents-trusted=require", "--documents-manifest=" + manifest, "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--demo-listen=127.0.0.1:0"}, nil, nil, &logBuffer{})
	if err == nil || !strings.Contains(fmt.Sprint(err), "trusted-1") {
		t.Errorf("an invalid one at the start: %v", err)
	}
}
