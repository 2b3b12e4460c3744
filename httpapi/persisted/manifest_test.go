package persisted

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
)

func apollo(operations ...string) string {
	return `{"format":"apollo-persisted-query-manifest","version":1,"operations":[` + strings.Join(operations, ",") + `]}`
}

func op(id, name, kind, body string) string {
	b, err := json.Marshal(map[string]string{"id": id, "name": name, "type": kind, "body": body, "clientName": "web"})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestManifests(t *testing.T) {
	const two = "query Two { a } subscription Other { b }"
	sub := "subscription Prices { price }"
	for name, test := range map[string]struct {
		content string
		// want maps the id of each document to its name.
		want map[string]string
	}{
		"Apollo": {
			apollo(op(hexOf(known), "Known", "query", known), op("two", "Other", "subscription", two), op("p", "Prices", "subscription", sub), op("p2", "Prices", "subscription", sub)),
			map[string]string{hexOf(known): "Known", "two": "Other", hexOf(two): "Other", "p": "Prices", "p2": "Prices"},
		},
		"Relay": {
			`{"11111111111111111111111111111111":"query Known { a }","x-relay:1":"{ b }","format1":"query Two { a } query Other { b }"}`,
			map[string]string{"11111111111111111111111111111111": "Known", "x-relay:1": "x-relay:1", "format1": "format1", hexOf(known): "Known"},
		},
		"the same twice": {
			apollo(op("a", "Known", "query", known), op("a", "Known", "query", known)),
			map[string]string{"a": "Known"},
		},
	} {
		m, err := parseManifest([]byte(test.content), rejectInvalid)
		if err != nil {
			t.Errorf("%s: the manifest was refused: %v", name, err)
			continue
		}
		for documentID, want := range test.want {
			i, err := parseID(documentID)
			if err != nil {
				t.Fatal(err)
			}
			if found := m.find(i); found == nil || found.name != want {
				t.Errorf("%s: the id %s belongs to the document %+v, want a document with the name %s", name, documentID, found, want)
			}
		}
	}
}

func TestManifestRefuses(t *testing.T) {
	const wantFormat = `the manifest must have the format "apollo-persisted-query-manifest" and version 1`
	const wantFields = "operations[1] must be an object with the strings id, name, type and body"
	a := op("a", "Known", "query", known)
	long := "query Known { a } #" + strings.Repeat("x", maxText)
	for content, want := range map[string]string{
		`[]`:                             "the manifest must be an object",
		`{}`:                             "the manifest has no documents",
		apollo():                         "the manifest has no documents",
		`{"format":"other","version":1}`: wantFormat,
		`{"format":1}`:                   wantFormat,
		`{"format":null}`:                wantFormat,
		strings.Replace(apollo(a), `"version":1`, `"version":2`, 1):                wantFormat,
		strings.Replace(apollo(a), `"version":1,`, ``, 1):                          wantFormat,
		`{"format":"apollo-persisted-query-manifest","version":1}`:                 "operations must be a list",
		`{"format":"apollo-persisted-query-manifest","version":1,"operations":{}}`: "operations must be a list",
		apollo(a, `1`): wantFields,
		apollo(a, op("", "Known", "query", known)):                   wantFields,
		apollo(a, op("b", "", "query", known)):                       wantFields,
		apollo(a, op("b", "Known", "", known)):                       wantFields,
		apollo(a, op("b", "Known", "query", "")):                     wantFields,
		apollo(a, `{"id":1,"name":"a","type":"query","body":"x"}`):   wantFields,
		apollo(a, op("a", "Free", "query", free)):                    `document "a": another document has the same id`,
		apollo(op("a", "Unknown", "query", known)):                   `document "a": it has no operation Unknown`,
		apollo(op("a", "Known", "mutation", known)):                  `document "a": its operation Known is a query, not a mutation`,
		apollo(op("a", "Known", "query", "query Known { invalid }")): `document "a": there is no field invalid`,
		apollo(op("a", "Known", "query", "query Known {")):           `document "a": input:1:14: Expected Name, found <EOF>`,
		apollo(op("a", "Known", "query", long)):                      `document "a": it is longer than 65536 bytes`,
		apollo(op("a/b", "Known", "query", known)):                   `document "a/b": an id is ` + idForm,
		apollo(op(hexOf(free), "Known", "query", known)):             `document "` + hexOf(free) + `": its id is a hash, but its text has the hash ` + hexOf(known),
		`{"` + hexOf(free) + `":"query Known { a }"}`:                `document "` + hexOf(free) + `": its id is a hash, but its text has the hash ` + hexOf(known),
		`{"a":1}`:                   `document "a" must be a string; a manifest is a map of ids to texts, or has the format "apollo-persisted-query-manifest"`,
		`{"a":"{ b }","a":"{ b }"}`: `document "a" is present twice`,
		`{"` + strings.Repeat("a", 257) + `":"{ b }"}`:      `document "` + strings.Repeat("a", 257) + `": an id is at most 256 characters long`,
		`{"a":"{ invalid }","b":"{ a }","c":"{ invalid }"}`: "document \"a\": there is no field invalid\ndocument \"c\": there is no field invalid",
	} {
		if m, err := parseManifest([]byte(content), rejectInvalid); err == nil || err.Error() != want {
			t.Errorf("%.300s\n got the error %v\nwant the error %s\n(the manifest is %v)", content, err, want, m)
		}
	}
}

func TestManifestLimits(t *testing.T) {
	texts := make(map[string]string, maxDocuments+1)
	operations := make([]string, 0, maxDocuments+1)
	for i := range maxDocuments + 1 {
		id, text := fmt.Sprint("id-", i), fmt.Sprintf("query Q%d { a }", i)
		texts[id] = text
		operations = append(operations, op(id, fmt.Sprint("Q", i), "query", text))
	}
	tooMany, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	delete(texts, "id-0")
	enough, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{string(enough), apollo(operations[1:]...)} {
		if m, err := parseManifest([]byte(content), rejectInvalid); err != nil || len(m.byHash) != maxDocuments {
			t.Errorf("a manifest with the greatest number of documents, %d, was refused or lost documents: error %v", maxDocuments, err)
		}
	}
	for _, content := range []string{string(tooMany), apollo(operations...)} {
		if _, err := parseManifest([]byte(content), rejectInvalid); err == nil || err.Error() != "the manifest has more than 10000 documents" {
			t.Errorf("a manifest with 10001 documents: error %v", err)
		}
	}
	_, err = parseManifest([]byte(strings.ReplaceAll(string(enough), "{ a }", "{ invalid }")), rejectInvalid)
	if lines := strings.Split(err.Error(), "\n"); len(lines) != maxReasons+1 || lines[maxReasons] != "and 9990 more documents" {
		t.Errorf("the error for 10000 invalid documents is %v, want %d lines and \"and 9990 more documents\"", err, maxReasons)
	}
}

// FuzzManifest checks that the documents of an accepted manifest are validated and have correct hashes and ids.
func FuzzManifest(f *testing.F) {
	for _, seed := range []string{relay(), apollo(op("a", "Known", "query", known)), `{"format":{}}`, `{"a":"{ invalid }"}`, `{"a":`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		validated := map[string]bool{}
		m, err := parseManifest(content, func(text string) (*ast.QueryDocument, error) { validated[text] = true; return rejectInvalid(text) })
		if err != nil {
			return
		}
		for h, d := range m.byHash {
			if h != hashOf(d.text) || h != d.hash || !validated[d.text] || d.name == "" || len(d.name) > max(maxID, len(d.text)) {
				t.Fatalf("the document %+v has a wrong hash or name, or was not validated", d)
			}
		}
		for name, d := range m.byID {
			if i, err := parseID(name); err != nil || i.custom != name || m.byHash[d.hash] != d {
				t.Fatalf("the id %q is not a valid id of the document %+v", name, d)
			}
		}
	})
}

// FuzzResolve checks that a request gets the text that it sent, and that only the documents of the manifest are trusted.
func FuzzResolve(f *testing.F) {
	f.Add(free, "", []byte(apq(hexOf(free))))
	f.Add("", "custom-1", []byte(nil))
	f.Add("", "sha256:"+hexOf(known), []byte(`{"persistedQuery":{"version":1.0}}`))
	f.Add("", "", []byte(`{"persistedQuery":{"version":1,"sha256Hash":"\u0061"},"a":[{}]}`))
	s := open(f, ModeAllow, 1<<16)
	f.Fuzz(func(t *testing.T, query, documentID string, extensions []byte) {
		d, err := s.Resolve(Request{Query: query, DocumentID: documentID, Extensions: extensions})
		switch {
		case err != nil && d != Document{}:
			t.Fatal("Resolve returned an error and a document")
		case err != nil:
			return
		case query != "" && d.Text != query:
			t.Fatalf("the client sent the text %q, but Resolve returned %q", query, d.Text)
		case (d.Name != "") != (d.Text == known || d.Text == unnamed):
			t.Fatalf("the document %+v must have a name only if it is in the manifest", d)
		case d.registry != nil && d.hash != hashOf(d.Text):
			t.Fatalf("the document %+v would be registered with a wrong hash", d)
		}
		d.Register()
	})
}
