// Package pages serves the pages in a browser and the files that they load.
package pages

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"oddsgraph/httpapi/content"
)

// hashedName matches the names of immutable files. These names contain a hash of the file's content.
var hashedName = regexp.MustCompile(`-[A-Z2-7]{8}\.\w+$`)

// typeOf contains the media types of files by extension.
var typeOf = map[string]string{
	".html":  "text/html; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".css":   "text/css; charset=utf-8",
	".txt":   "text/plain; charset=utf-8",
	".svg":   "image/svg+xml",
	".tgz":   "application/gzip",
	".woff":  "font/woff",
	".woff2": "font/woff2",
}

// compressedAs contains the extensions of compressed files by content coding.
var compressedAs = map[string]string{"br": ".br", "gzip": ".gz"}

var precompressed = []string{"br", "gzip"}

// layers serves each file from the first file system that contains it.
type layers []fs.FS

// Handle serves the pages with mux. Each file comes from the first of files that contains it.
func Handle(mux *http.ServeMux, files []fs.FS) {
	p := layers(files)
	mux.Handle("GET /{$}", p.page(pagePolicy, "index.html", "plain.html"))
	mux.Handle("GET /live", p.page(livePolicy, "live.html", "plain.html"))
	mux.HandleFunc("GET /live/{page...}", redirectToLive)
	mux.Handle("GET /plain", p.page(pagePolicy, "plain.html"))
	mux.HandleFunc("GET /kit.tgz", func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, "kit.tgz") })
	mux.HandleFunc("GET /assets/{name}", func(w http.ResponseWriter, r *http.Request) {
		p.serve(w, r, "assets/"+r.PathValue("name"))
	})
}

// redirectToLive redirects /live/PAGE to /live#/PAGE, because the live page keeps its addresses in the fragment of the URL. The new
// address is relative, so that it is right behind a proxy that removes a prefix of the path. http.Redirect would make it absolute.
func redirectToLive(w http.ResponseWriter, r *http.Request) {
	to := url.URL{Path: strings.Repeat("../", strings.Count(r.URL.EscapedPath(), "/")-1) + "live"}
	status := http.StatusMovedPermanently
	if page := r.PathValue("page"); page != "" {
		to.Fragment, status = "/"+page, http.StatusFound
	}
	w.Header().Set("Location", to.String())
	w.WriteHeader(status)
}

// page returns a handler that serves the first file in names that exists, with a Content-Security-Policy.
func (p layers) page(policy []string, names ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Security-Policy"] = policy
		p.serve(w, r, names...)
	})
}

// serve serves the first file in names that exists. If the file also exists in the content coding that content.Encoding returns,
// serve serves the compressed file. Files with an extension that is not in typeOf are not served.
func (p layers) serve(w http.ResponseWriter, r *http.Request, names ...string) {
	layer, name, file := p.find(names)
	if file == nil || typeOf[path.Ext(name)] == "" {
		http.NotFound(w, r)
		return
	}
	defer file.Close()
	h := w.Header()
	h.Set("Content-Type", typeOf[path.Ext(name)])
	h.Set("Vary", "Accept-Encoding")
	tag := name
	if hashedName.MatchString(name) {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		h.Set("Cache-Control", "no-cache") // caches must revalidate
		tag = digest(file)
	}
	if encoding := content.Encoding(r.Header.Values("Accept-Encoding"), precompressed); encoding != "" {
		if compressed := openFile(layer, name+compressedAs[encoding]); compressed != nil {
			defer compressed.Close()
			h.Set("Content-Encoding", encoding)
			file, tag = compressed, tag+compressedAs[encoding]
		}
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(chunked{w}, r, "", time.Time{}, file)
}

// find opens the first file in names that exists. file is nil if none exists.
func (p layers) find(names []string) (layer fs.FS, name string, file io.ReadSeekCloser) {
	for _, name := range names {
		for _, layer := range p {
			if file := openFile(layer, name); file != nil {
				return layer, name, file
			}
		}
	}
	return nil, "", nil
}

// openFile returns a file, or nil if the file does not exist or is a directory.
func openFile(layer fs.FS, name string) io.ReadSeekCloser {
	file, err := layer.Open(name)
	if err != nil {
		return nil
	}
	if found, ok := file.(io.ReadSeekCloser); ok {
		return found
	}
	_ = file.Close() // the name is a directory
	return nil
}

// digest returns a short hash of a file's content and rewinds the file.
func digest(file io.ReadSeeker) string {
	hash := sha256.New()
	_, _ = io.Copy(hash, file) // the file is in memory, so reading it does not fail
	_, _ = file.Seek(0, io.SeekStart)
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:12])
}

// pagePolicy allows a page to load files only from this service, and images also from data: URLs. No site may show the page in
// a frame. livePolicy also allows images from any host, because a venue's pictures may be anywhere. Neither must be changed.
var (
	pagePolicy = policyOf("'self' data:")
	livePolicy = policyOf("'self' data: https:")
)

func policyOf(images string) []string {
	return []string{"default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src " + images + "; " +
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}
}
