package persisted

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"go.uber.org/goleak"

	"oddsgraph/internal/market"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	known   = "query Known { a }"
	unnamed = "{ b }"
	free    = "query Free { c }"
)

// rejectInvalid is a Config.Validate that refuses every document that contains the text "invalid".
func rejectInvalid(text string) (*ast.QueryDocument, error) {
	if strings.Contains(text, "invalid") {
		return nil, errors.New("there is no field invalid")
	}
	return parser.ParseQuery(&ast.Source{Input: text})
}

func hexOf(text string) string { h := hashOf(text); return hex.EncodeToString(h[:]) }

func apq(digits string) json.RawMessage {
	return json.RawMessage(`{"persistedQuery":{"version":1,"sha256Hash":"` + digits + `"}}`)
}

// relay returns a manifest with two documents: one with its hash as id, and one with the id custom-1.
func relay() string {
	b, err := json.Marshal(map[string]string{hexOf(known): known, "custom-1": unnamed})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, mode Mode, automatic int) *Store {
	t.Helper()
	cfg := Config{AutomaticBytes: automatic, Mode: mode, Validate: rejectInvalid, Log: slog.New(slog.DiscardHandler)}
	if mode != ModeOff {
		cfg.Manifest = filepath.Join(t.TempDir(), "manifest.json")
		write(t, cfg.Manifest, relay())
	}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// answer returns the result of Resolve as a text.
func answer(s *Store, r Request) string {
	d, err := s.Resolve(r)
	var known *market.Error
	switch {
	case errors.As(err, &known) && d != Document{}:
		return "both an error and a document"
	case errors.As(err, &known):
		return string(known.Code) + " " + known.Message
	case err != nil:
		return "unknown error " + err.Error()
	}
	out := d.Text
	if d.Name != "" {
		out += " trusted as " + d.Name
	}
	if d.registry != nil {
		out += " to register"
	}
	return out
}

func TestResolve(t *testing.T) {
	const (
		notFound     = "PERSISTED_QUERY_NOT_FOUND PersistedQueryNotFound"
		notInBuild   = "PERSISTED_QUERY_NOT_FOUND no trusted document has this id; the service's manifest may be from another build of the client"
		notSupported = "PERSISTED_QUERY_NOT_SUPPORTED PersistedQueryNotSupported"
		forbidden    = "FORBIDDEN this document is not trusted: this service executes only the documents of its manifest"
		mismatch     = "BAD_USER_INPUT provided sha does not match query"
		otherText    = "BAD_USER_INPUT the id belongs to another document than query"
		hashOnly     = "BAD_USER_INPUT a document id must be a hash here: sha256: and 64 hex digits"
		nothing      = "BAD_USER_INPUT send the text of a document, or the id of a known document"
		trustedKnown = known + " trusted as Known"
	)
	upper := strings.ToUpper(hexOf(free))
	for _, test := range []struct {
		what string
		r    Request
		// The expected results, with these documents:
		//   - off: no persisted documents
		//   - automatic: automatic documents
		//   - allow: trusted and automatic documents
		//   - allowOnly: trusted documents
		//   - require: trusted documents; all others are refused
		off, automatic, allow, allowOnly, require string
	}{
		{"text", Request{Query: free}, free, free, free, free, forbidden},
		{"trusted text", Request{Query: known}, known, known, trustedKnown, trustedKnown, trustedKnown},
		{"trusted text, changed", Request{Query: known + " "}, known + " ", known + " ", known + " ", known + " ", forbidden},
		{"nothing", Request{}, nothing, nothing, nothing, nothing, nothing},
		{"nothing, with extensions", Request{Extensions: json.RawMessage(`{"persistedQuery":null,"other":1}`)}, nothing, nothing, nothing, nothing, nothing},
		{"unknown hash", Request{Extensions: apq(hexOf(free))}, notSupported, notFound, notFound, notFound, notInBuild},
		{"unknown hash as id", Request{DocumentID: "sha256:" + hexOf(free)}, notSupported, notFound, notFound, notFound, notInBuild},
		{"unknown id", Request{DocumentID: "other"}, notSupported, hashOnly, notFound, notFound, notInBuild},
		{"trusted hash", Request{Extensions: apq(hexOf(known))}, notSupported, notFound, trustedKnown, trustedKnown, trustedKnown},
		{"trusted hash as id", Request{DocumentID: "sha256:" + hexOf(known)}, notSupported, notFound, trustedKnown, trustedKnown, trustedKnown},
		{"trusted hash as bare id", Request{DocumentID: hexOf(known)}, notSupported, notFound, trustedKnown, trustedKnown, trustedKnown},
		{"trusted hash in upper case", Request{DocumentID: "sha256:" + strings.ToUpper(hexOf(known))}, notSupported, notFound, trustedKnown, trustedKnown, trustedKnown},
		{"trusted id", Request{DocumentID: "custom-1"}, notSupported, hashOnly, unnamed + " trusted as custom-1", unnamed + " trusted as custom-1", unnamed + " trusted as custom-1"},
		{"trusted id as hash", Request{Extensions: apq("custom-1")}, notSupported, hashOnly, unnamed + " trusted as custom-1", unnamed + " trusted as custom-1", unnamed + " trusted as custom-1"},
		{"hash of a document with an id", Request{DocumentID: "sha256:" + hexOf(unnamed)}, notSupported, notFound, unnamed + " trusted as custom-1", unnamed + " trusted as custom-1", unnamed + " trusted as custom-1"},
		{"both ids", Request{DocumentID: "sha256:" + hexOf(known), Extensions: apq(hexOf(known))}, notSupported, notFound, trustedKnown, trustedKnown, trustedKnown},
		{"text and hash", Request{Query: free, Extensions: apq(hexOf(free))}, notSupported, free + " to register", free + " to register", free, forbidden},
		{"text and hash in upper case", Request{Query: free, Extensions: apq(upper)}, notSupported, free + " to register", free + " to register", free, forbidden},
		{"text and hash as id", Request{Query: free, DocumentID: "sha256:" + hexOf(free)}, notSupported, free + " to register", free + " to register", free, forbidden},
		{"trusted text and hash", Request{Query: known, Extensions: apq(hexOf(known))}, notSupported, known + " to register", trustedKnown, trustedKnown, trustedKnown},
		{"text and another hash", Request{Query: free, Extensions: apq(hexOf(known))}, notSupported, mismatch, mismatch, mismatch, mismatch},
		{"trusted text and another hash", Request{Query: known, Extensions: apq(hexOf(free))}, notSupported, mismatch, mismatch, mismatch, mismatch},
		{"text and a trusted id", Request{Query: free, DocumentID: "custom-1"}, notSupported, hashOnly, otherText, otherText, otherText},
		{"trusted text and another trusted id", Request{Query: known, DocumentID: "custom-1"}, notSupported, hashOnly, otherText, otherText, otherText},
		{"text and an unknown id", Request{Query: free, DocumentID: "other"}, notSupported, hashOnly, free, free, forbidden},
	} {
		for mode, want := range map[*Store]string{
			open(t, ModeOff, 0): test.off, open(t, ModeOff, 1<<20): test.automatic, open(t, ModeAllow, 1<<20): test.allow,
			open(t, ModeAllow, 0): test.allowOnly, open(t, ModeRequire, 1<<20): test.require,
		} {
			if got := answer(mode, test.r); got != want {
				t.Errorf("%s in mode %s, automatic %v:\n got %s\nwant %s", test.what, mode.mode, mode.automatic != nil, got, want)
			}
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	const form = "BAD_USER_INPUT a document id is sha256: followed by the 64 hex digits of the SHA-256 of the document's text, or an id of letters, digits and - . _ ~ after an optional prefix x-…:"
	s := open(t, ModeAllow, 1<<20)
	for extensions, want := range map[string]string{
		`{"persistedQuery":1}`:  "BAD_USER_INPUT extensions.persistedQuery must be an object",
		`{"persistedQuery":[]}`: "BAD_USER_INPUT extensions.persistedQuery must be an object",
		`{"persistedQuery":{}}`: "BAD_USER_INPUT unsupported persisted query version: send extensions.persistedQuery.version 1",
		`{"persistedQuery":{"version":2,"sha256Hash":"` + hexOf(free) + `"}}`:      "BAD_USER_INPUT unsupported persisted query version: send extensions.persistedQuery.version 1",
		`{"persistedQuery":{"version":"1","sha256Hash":"` + hexOf(free) + `"}}`:    "BAD_USER_INPUT unsupported persisted query version: send extensions.persistedQuery.version 1",
		`{"persistedQuery":{"version":1}}`:                                         "BAD_USER_INPUT extensions.persistedQuery.sha256Hash must be a string",
		`{"persistedQuery":{"version":1,"sha256Hash":7}}`:                          "BAD_USER_INPUT extensions.persistedQuery.sha256Hash must be a string",
		`{"persistedQuery":{"version":1,"sha256Hash":""}}`:                         form,
		`{"persistedQuery":{"version":1,"sha256Hash":"` + hexOf(free)[1:] + ` "}}`: form,
		`[]`: "BAD_USER_INPUT extensions must be an object",
	} {
		if got := answer(s, Request{Query: free, Extensions: json.RawMessage(extensions)}); got != want {
			t.Errorf("%s\n got %s\nwant %s", extensions, got, want)
		}
	}
	for documentID, want := range map[string]string{
		"a/b":                                    form,
		"..":                                     form,
		"a b":                                    form,
		"é":                                      form,
		"sha256:":                                form,
		"sha256:" + hexOf(free)[1:]:              form,
		"sha256:" + hexOf(free) + "a":            form,
		"sha256:g" + hexOf(free)[1:]:             form,
		"sha512:abc":                             form,
		"x-:abc":                                 form,
		"x-a:":                                   form,
		"x-a:b:c":                                form,
		"x-a b:c":                                form,
		"x-" + strings.Repeat("a", maxID) + ":b": "BAD_USER_INPUT a document id is at most 256 characters long",
		"x-a:b":                                  "PERSISTED_QUERY_NOT_FOUND PersistedQueryNotFound",
		strings.Repeat("f", 32):                  "PERSISTED_QUERY_NOT_FOUND PersistedQueryNotFound",
	} {
		if got := answer(s, Request{DocumentID: documentID}); got != want {
			t.Errorf("%s\n got %s\nwant %s", documentID, got, want)
		}
	}
	r := Request{DocumentID: "sha256:" + hexOf(free), Extensions: apq(hexOf(known))}
	if got := answer(s, r); got != "BAD_USER_INPUT documentId and extensions.persistedQuery name different documents" {
		t.Errorf("a request with two different ids: got %s", got)
	}
}

// TestRegister checks that a document is found by its hash only after a call of Register.
func TestRegister(t *testing.T) {
	s := open(t, ModeOff, 1<<20)
	byHash := Request{Extensions: apq(hexOf(free))}
	if _, err := s.Resolve(byHash); market.CodeOf(err) != market.CodePersistedNotFound {
		t.Fatalf("a hash in an empty store: error %v, want the code %s", err, market.CodePersistedNotFound)
	}
	for range 2 {
		d, err := s.Resolve(Request{Query: free, Extensions: apq(hexOf(free))})
		if err != nil || d.Text != free {
			t.Fatalf("the document with its hash: got %+v, error %v", d, err)
		}
		if _, err := s.Resolve(byHash); market.CodeOf(err) != market.CodePersistedNotFound {
			t.Fatal("the document was stored before Register was called")
		}
	}
	d, err := s.Resolve(Request{Query: free, Extensions: apq(hexOf(free))})
	if err != nil {
		t.Fatal(err)
	}
	d.Register()
	for _, r := range []Request{byHash, {DocumentID: "sha256:" + hexOf(free)}, {Extensions: apq(strings.ToUpper(hexOf(free)))}} {
		if d, err := s.Resolve(r); err != nil || d.Text != free || d.Name != "" {
			t.Errorf("the hash of a registered document: got %+v, error %v", d, err)
		}
	}
	d, err = s.Resolve(Request{Query: known}) // a request without a hash
	if err != nil {
		t.Fatal(err)
	}
	d.Register()
	if _, err := s.Resolve(Request{Extensions: apq(hexOf(known))}); market.CodeOf(err) != market.CodePersistedNotFound {
		t.Error("Register stored a document although its request had no hash")
	}
	Document{}.Register()
}

func TestOpenRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manifest.json")
	write(t, path, relay())
	broken := filepath.Join(t.TempDir(), "broken.json")
	write(t, broken, `{"custom-1":"{ invalid }"}`)
	for _, test := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, `the mode of trusted documents is off, allow or require, not ""`},
		{Config{Mode: "on", Manifest: path}, `the mode of trusted documents is off, allow or require, not "on"`},
		{Config{Mode: ModeRequire}, "trusted documents need a manifest"},
		{Config{Mode: ModeOff, Manifest: path}, "there is a manifest, but trusted documents are off"},
		{Config{Mode: ModeAllow, Manifest: path + "x"}, "manifest " + path + "x: no such file or directory"},
		{Config{Mode: ModeAllow, Manifest: broken}, "manifest " + broken + `: document "custom-1": there is no field invalid`},
	} {
		test.cfg.Validate, test.cfg.Log = rejectInvalid, slog.New(slog.DiscardHandler)
		if _, err := Open(test.cfg); err == nil || err.Error() != test.want {
			t.Errorf("%+v\n got the error %v\nwant the error %s", test.cfg, err, test.want)
		}
	}
	s, err := Open(Config{Mode: ModeOff})
	if err != nil {
		t.Fatal(err)
	}
	s.Run(context.Background()) // returns at once in ModeOff
	if s.Reload() != nil || s.Status() != (Status{}) {
		t.Error("in ModeOff, Reload returned an error or Status is not zero")
	}
}

// TestPagesAreTrusted checks that valid documents of the service's own pages are trusted in all modes except ModeOff.
func TestPagesAreTrusted(t *testing.T) {
	const page, invalid = "query Page { d }", "{ invalid }"
	path := filepath.Join(t.TempDir(), "manifest.json")
	write(t, path, relay())
	for mode, others := range map[Mode]bool{ModeRequire: false, ModeAllow: true} {
		s, err := Open(Config{Mode: mode, Manifest: path, Validate: rejectInvalid, Pages: []string{page, invalid, known, "{ d }"}, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range map[string]Request{"text": {Query: page}, "hash": {DocumentID: "sha256:" + hexOf(page)}} {
			if d, err := s.Resolve(r); err != nil || d.Text != page || d.Name != "Page" {
				t.Errorf("mode %s, a page's document by its %s: got %+v, error %v", mode, name, d, err)
			}
		}
		if d, err := s.Resolve(Request{Query: "{ d }"}); err != nil || d.Name != "sha256:"+hexOf("{ d }") {
			t.Errorf("mode %s, a page's document without a name: got %+v, error %v; want its id as its name", mode, d, err)
		}
		if d, err := s.Resolve(Request{Query: known}); err != nil || d.Name != "Known" {
			t.Errorf("mode %s, a document of the manifest: got %+v, error %v", mode, d, err)
		}
		for _, text := range []string{invalid, free} {
			if d, err := s.Resolve(Request{Query: text}); (err == nil) != others || d.Name != "" {
				t.Errorf("mode %s, the untrusted text %s: got %+v, error %v; want it accepted: %v, and without a name", mode, text, d, err, others)
			}
		}
		if trusted := s.Status().Trusted; trusted != 2 {
			t.Errorf("mode %s: the manifest has %d documents, want 2", mode, trusted)
		}
	}
	s, err := Open(Config{Mode: ModeOff, Pages: []string{page}})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := s.Resolve(Request{Query: page}); err != nil || d.Name != "" {
		t.Errorf("in ModeOff, a page's document: got %+v, error %v; want a document without a name", d, err)
	}
}
