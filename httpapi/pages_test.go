package httpapi

import (
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
)

func pageFiles(names ...string) fstest.MapFS {
	files := fstest.MapFS{}
	for _, name := range names {
		files[name] = &fstest.MapFile{Data: []byte("content of " + name)}
	}
	return files
}

// pagesConfig returns testConfig with the plain page. If built is true, it adds the other pages.
func pagesConfig(t *testing.T, built bool) Config {
	cfg := testConfig(t)
	if built {
		cfg.Pages = append(cfg.Pages, pageFiles("index.html", "index.html.br", "live.html", "assets/page-ABCDEF23.js", "assets/page-ABCDEF23.js.br",
			"assets/page-ABCDEF23.js.gz", "assets/font-ABCDEF23.woff2", "assets/secret.key"))
	}
	cfg.Pages = append(cfg.Pages, fs.FS(pageFiles("plain.html", "assets/plain.css")))
	return cfg
}

func TestPages(t *testing.T) {
	api := New(pagesConfig(t, true))
	const immutable, revalidated = "public, max-age=31536000, immutable", "no-cache"
	for _, test := range []struct{ path, accept, file, mime, encoding, cache string }{
		{"/", "", "index.html", "text/html; charset=utf-8", "", revalidated},
		{"/", "gzip, deflate, br, zstd", "index.html.br", "text/html; charset=utf-8", "br", revalidated},
		{"/", "gzip", "index.html", "text/html; charset=utf-8", "", revalidated}, // index.html.gz does not exist
		{"/live", "br", "live.html", "text/html; charset=utf-8", "", revalidated},
		{"/plain", "", "plain.html", "text/html; charset=utf-8", "", revalidated},
		{"/assets/page-ABCDEF23.js", "", "assets/page-ABCDEF23.js", "text/javascript; charset=utf-8", "", immutable},
		{"/assets/page-ABCDEF23.js", "gzip, br", "assets/page-ABCDEF23.js.br", "text/javascript; charset=utf-8", "br", immutable},
		{"/assets/page-ABCDEF23.js", "gzip, br;q=0", "assets/page-ABCDEF23.js.gz", "text/javascript; charset=utf-8", "gzip", immutable},
		{"/assets/page-ABCDEF23.js", "zstd", "assets/page-ABCDEF23.js", "text/javascript; charset=utf-8", "", immutable},
		{"/assets/font-ABCDEF23.woff2", "br", "assets/font-ABCDEF23.woff2", "font/woff2", "", immutable},
		{"/assets/plain.css", "", "assets/plain.css", "text/css; charset=utf-8", "", revalidated},
	} {
		w := send(t, api, http.MethodGet, test.path, "", "Accept-Encoding", test.accept)
		h := w.Header()
		if w.Code != http.StatusOK || w.Body.String() != "content of "+test.file {
			t.Errorf("%s with Accept-Encoding %q: got %d %q, want the content of %s", test.path, test.accept, w.Code, w.Body, test.file)
		}
		if h.Get("Content-Type") != test.mime || h.Get("Content-Encoding") != test.encoding || h.Get("Cache-Control") != test.cache || h.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s with Accept-Encoding %q: got the headers %v", test.path, test.accept, h)
		}
		if again := send(t, api, http.MethodGet, test.path, "", "Accept-Encoding", test.accept, "If-None-Match", h.Get("ETag")); again.Code != http.StatusNotModified {
			t.Errorf("%s with its ETag %s: got the status %d, want 304", test.path, h.Get("ETag"), again.Code)
		}
		if head := send(t, api, http.MethodHead, test.path, ""); head.Code != http.StatusOK || head.Body.Len() > 0 {
			t.Errorf("HEAD %s: got the status %d and %d bytes, want 200 and no body", test.path, head.Code, head.Body.Len())
		}
	}
	if w := send(t, api, http.MethodGet, "/live/market/a%20b/1", ""); w.Code != http.StatusFound || w.Header().Get("Location") != "../../../live#/market/a%20b/1" {
		t.Errorf("/live/market/a b/1: got the status %d and the location %q", w.Code, w.Header().Get("Location"))
	}
	if w := send(t, api, http.MethodGet, "/live/", ""); w.Code != http.StatusMovedPermanently || w.Header().Get("Location") != "../live" {
		t.Errorf("/live/: got the status %d and the location %q", w.Code, w.Header().Get("Location"))
	}
	for _, path := range []string{"/assets/", "/assets/page-ABCDEF23.js.br", "/assets/secret.key", "/assets/..%2findex.html", "/assets/nothing.js", "/index.html", "/nothing"} {
		if w := send(t, api, http.MethodGet, path, ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: got the status %d, want 404", path, w.Code)
		}
	}
	tags := map[string]string{}
	for _, accept := range []string{"", "br", "gzip"} {
		tag := send(t, api, http.MethodGet, "/assets/page-ABCDEF23.js", "", "Accept-Encoding", accept).Header().Get("ETag")
		if other, taken := tags[tag]; taken {
			t.Errorf("got the ETag %s for both %q and %q", tag, other, accept)
		}
		tags[tag] = accept
	}
}

// TestThePlainPage checks that the service serves the plain page if the other pages are not built.
func TestThePlainPage(t *testing.T) {
	api := New(pagesConfig(t, false))
	for _, path := range []string{"/", "/live", "/plain"} {
		if w := send(t, api, http.MethodGet, path, ""); w.Code != http.StatusOK || w.Body.String() != "content of plain.html" {
			t.Errorf("%s: got %d %q, want the plain page", path, w.Code, w.Body)
		}
	}
}

// TestThePolicyOfPages checks that the Content-Security-Policy allows only the service's own files, images from data: URLs, and on
// the live board also the venue's pictures.
func TestThePolicyOfPages(t *testing.T) {
	api := New(pagesConfig(t, true))
	for _, path := range []string{"/", "/live", "/plain"} {
		h := send(t, api, http.MethodGet, path, "").Header()
		directives := map[string]string{}
		for directive := range strings.SplitSeq(h.Get("Content-Security-Policy"), "; ") {
			name, sources, _ := strings.Cut(directive, " ")
			directives[name] = sources
		}
		for name, sources := range directives {
			switch name {
			case "default-src", "base-uri", "form-action", "frame-ancestors":
				if sources != "'none'" {
					t.Errorf("%s: the directive %s is %s, want 'none'", path, name, sources)
				}
			case "img-src":
				if want := map[bool]string{false: "'self' data:", true: "'self' data: https:"}[path == "/live"]; sources != want {
					t.Errorf("%s: the directive %s is %s, want %s", path, name, sources, want)
				}
			default:
				if sources != "'self'" {
					t.Errorf("%s: the directive %s is %s, want 'self'", path, name, sources)
				}
			}
		}
		for _, name := range []string{"default-src", "script-src", "style-src", "connect-src", "base-uri", "form-action", "frame-ancestors"} {
			if directives[name] == "" {
				t.Errorf("%s: the policy has no directive %s", path, name)
			}
		}
		if h.Get("Referrer-Policy") != "no-referrer" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: got the headers %v, want no-referrer and nosniff", path, h)
		}
	}
	if got := send(t, api, http.MethodGet, "/assets/page-ABCDEF23.js", "").Header().Get("Content-Security-Policy"); got != noContent[0] {
		t.Errorf("the policy of an asset is %s, want %s", got, noContent[0])
	}
}
