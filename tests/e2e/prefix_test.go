package e2e

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"

	"oddsgraph/web"
)

// TestPathPrefix checks that the pages work behind a proxy that removes a prefix of the path: all addresses in the pages and in
// redirects are relative, and so are the addresses in the scripts of the built pages.
func TestPathPrefix(t *testing.T) {
	s := start(t)
	target, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(http.StripPrefix("/odds", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}))
	defer proxy.Close()
	get := func(at string) (body string, final *url.URL) {
		resp, err := http.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: got the status %s and the error %v, want 200", at, resp.Status, err)
		}
		return string(text), resp.Request.URL
	}
	for _, page := range []string{"/odds/", "/odds/live", "/odds/plain", "/odds/live/", "/odds/live/market/a%20b/1"} {
		html, final := get(proxy.URL + page)
		links := regexp.MustCompile(`(?:href|src)="([^"]+)"`).FindAllStringSubmatch(html, -1)
		if len(links) < 3 || strings.HasPrefix(page, "/odds/live") && final.Path != "/odds/live" {
			t.Errorf("%s: got the page of %s with the links %v", page, final, links)
		}
		for _, link := range links {
			to, err := final.Parse(link[1])
			if err != nil {
				t.Fatal(err)
			}
			get(to.String())
		}
	}
	resp, err := http.Post(proxy.URL+"/odds/graphql", "application/json", strings.NewReader(`{"query":"{ __typename }"}`))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("a query through the proxy: %v %v", resp, err)
	}
	_ = resp.Body.Close()

	absolute := regexp.MustCompile("[\"'`](?:/graphql|/live|/assets/|/demo/control|/schema\\.graphql)\\b")
	for _, pages := range []fs.FS{web.Built(), web.Plain()} {
		err := fs.WalkDir(pages, ".", func(name string, _ fs.DirEntry, err error) error {
			if ext := path.Ext(name); err != nil || ext != ".js" && ext != ".html" && ext != ".css" {
				return err
			}
			text, err := fs.ReadFile(pages, name)
			if found := absolute.FindAllString(string(text), -1); found != nil {
				t.Errorf("%s has the absolute addresses %v", name, found)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
