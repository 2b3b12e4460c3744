package httpapi

import (
	"strings"
	"testing"
)

func TestGraphiQLKeepsNoHeaders(t *testing.T) {
	page := string(graphiQL().html)
	if !strings.Contains(page, "shouldPersistHeaders: false") || strings.Contains(page, "shouldPersistHeaders: true") {
		t.Error("the page keeps headers, which hold credentials, on disk")
	}
}

// TestThePolicyOfThePage has all that stands on the page allowed, and no more.
func TestThePolicyOfThePage(t *testing.T) {
	w := send(t, New(testConfig(t)), "GET", "/", "")
	policy, html := w.Header().Get("Content-Security-Policy"), w.Body.String()
	directives := map[string][]string{}
	for directive := range strings.SplitSeq(policy, "; ") {
		name, sources, _ := strings.Cut(directive, " ")
		directives[name] = strings.Fields(sources)
	}
	if n := strings.Count(html, "<script"); n < 3 || len(directives["script-src"]) != n {
		t.Errorf("%d scripts, allowed are %q", n, directives["script-src"])
	}
	if n := strings.Count(html, "<style") + strings.Count(html, `rel="stylesheet"`); n < 2 || len(directives["style-src"]) != n {
		t.Errorf("%d styles, allowed are %q", n, directives["style-src"])
	}
	for _, source := range append(directives["script-src"], directives["style-src"]...) {
		if !strings.HasPrefix(source, "https://cdn.jsdelivr.net/npm/") && !strings.HasPrefix(source, "'sha256-") {
			t.Errorf("%s is allowed", source)
		}
		if strings.HasPrefix(source, "https:") && !strings.Contains(html, `"`+source+`"`) {
			t.Errorf("%s is allowed, but not on the page", source)
		}
	}
	if strings.Count(html, "integrity=") != strings.Count(html, "https://cdn.jsdelivr.net") {
		t.Error("something comes from elsewhere without its hash")
	}
	for name, want := range map[string]string{"default-src": "'none'", "connect-src": "'self'", "frame-ancestors": "'none'", "base-uri": "'none'", "form-action": "'none'"} {
		if strings.Join(directives[name], " ") != want {
			t.Errorf("%s is %q, want %s", name, directives[name], want)
		}
	}
	if w.Header().Get("Referrer-Policy") != "no-referrer" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v", w.Header())
	}
}
