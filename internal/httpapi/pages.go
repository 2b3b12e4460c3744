package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"

	"github.com/99designs/gqlgen/graphql/playground"
)

// page is an HTML page with the Content-Security-Policy that allows what is on it and nothing else.
type page struct {
	html   []byte
	policy string
}

// ServeHTTP implements http.Handler.
func (p *page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Security-Policy", p.policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(p.html)
}

// graphiQL returns the page for exploring, whose scripts come from a public network. The library's own page keeps the
// headers that are typed into it on disk, and credentials live in memory only.
func graphiQL() *page {
	rendered := httptest.NewRecorder()
	playground.Handler("oddsgraph", PathGraphQL)(rendered, httptest.NewRequest(http.MethodGet, "/", nil))
	html := bytes.ReplaceAll(rendered.Body.Bytes(), []byte("shouldPersistHeaders: true"), []byte("shouldPersistHeaders: false"))
	return &page{html, pagePolicy(html)}
}

var (
	scriptTags  = regexp.MustCompile(`(?s)<script([^>]*)>(.*?)</script>`)
	styleTags   = regexp.MustCompile(`(?s)<style[^>]*>(.*?)</style>`)
	linkTags    = regexp.MustCompile(`(?s)<link[^>]*rel="stylesheet"[^>]*>`)
	sourceOfTag = regexp.MustCompile(`(?:src|href)="([^"]+)"`)
)

// pagePolicy returns the policy of a page: it runs and shows what stands on it or what it names by URL, talks to its own
// host, and is in no frame.
func pagePolicy(html []byte) string {
	var scripts, styles []string
	for _, tag := range scriptTags.FindAllSubmatch(html, -1) {
		scripts = append(scripts, sourceOf(tag[1], tag[2]))
	}
	for _, tag := range styleTags.FindAllSubmatch(html, -1) {
		styles = append(styles, sourceOf(nil, tag[1]))
	}
	for _, tag := range linkTags.FindAll(html, -1) {
		styles = append(styles, sourceOf(tag, nil))
	}
	return strings.Join([]string{
		"default-src 'none'", "script-src " + strings.Join(scripts, " "), "style-src " + strings.Join(styles, " "),
		"style-src-attr 'unsafe-inline'", "font-src data:", "img-src 'self' data:", "connect-src 'self'",
		"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
	}, "; ")
}

// sourceOf returns the source expression of an element: its URL, or the hash of its text.
func sourceOf(attributes, text []byte) string {
	if url := sourceOfTag.FindSubmatch(attributes); url != nil {
		return string(url[1])
	}
	hash := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
}

// The values of the headers of secured. They are shared and must not be changed.
var (
	noSniffing = []string{"nosniff"}
	noReferrer = []string{"no-referrer"}
	noContent  = []string{"default-src 'none'; frame-ancestors 'none'"}
)

// secured gives responses the headers that keep browsers from making more of them than they are.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["X-Content-Type-Options"], h["Referrer-Policy"] = noSniffing, noReferrer
		h["Content-Security-Policy"] = noContent // unless it is a page
		next.ServeHTTP(w, r)
	})
}
