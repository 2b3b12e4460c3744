package httpapi

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/internal/market"
)

func TestDocumentsAreKept(t *testing.T) {
	c := newDocumentCache(testConfig(t))
	for _, text := range []string{`{ __typename }`, `{ nope }`, `{`, `{ a: __typename ...F } fragment F on Query { ...F }`} {
		if first := c.load(text); c.load(text) != first {
			t.Errorf("%s was read twice", text)
		}
	}
	if a, b := c.load(`{ __typename }`), c.load(`{__typename}`); a == b || a.hash == b.hash {
		t.Error("two texts are one document")
	}
}

func TestDocumentsMakeRoom(t *testing.T) {
	c := newDocumentCache(testConfig(t))
	total := func() (bytes int) {
		for _, doc := range c.cache.Values() {
			bytes += doc.size
		}
		return bytes
	}
	for i := range 2 * maxDocuments {
		c.load(fmt.Sprintf("{ a%d: __typename }", i))
	}
	if c.cache.Len() != maxDocuments || c.bytes != total() {
		t.Errorf("%d documents, %d bytes counted, %d there", c.cache.Len(), c.bytes, total())
	}
	long := strings.Repeat("#", 60_000)
	for i := range 100 {
		c.load(fmt.Sprintf("{ b%d: __typename }%s", i, long))
	}
	if c.bytes > maxDocumentBytes || c.bytes != total() || c.cache.Len() > 20 || c.cache.Len() == 0 {
		t.Errorf("%d long documents, %d bytes counted, %d there", c.cache.Len(), c.bytes, total())
	}
}

// TestQuotedDocuments has documents known by how they were written, as long as they are kept.
func TestQuotedDocuments(t *testing.T) {
	c := newDocumentCache(testConfig(t))
	doc := c.load(`{ __typename }`)
	before := c.bytes
	for _, quoted := range []string{`"{ __typename }"`, `"{ __typen\u0061me }"`, `"{ __typen\u0061me }"`} {
		if quoted != doc.quoted && c.loadQuoted([]byte(quoted)) != nil {
			t.Errorf("%s is known before it is told", quoted)
		}
		c.remember(quoted, doc)
		if c.loadQuoted([]byte(quoted)) != doc || len(c.quoted) != 1 {
			t.Errorf("%s is not known; known are %v", quoted, c.quoted)
		}
	}
	if c.bytes != before+len(`"{ __typen\u0061me }"`) || c.bytes != doc.size {
		t.Errorf("%d bytes counted, %d of the document, which had %d", c.bytes, doc.size, before)
	}
	for i := range maxDocuments - 1 {
		c.load(fmt.Sprintf("{ a%d: __typename }", i))
	}
	if c.loadQuoted([]byte(`"{ __typen\u0061me }"`)) != doc { // and so it is used, and stays longer than the others
		t.Error("it was let go of")
	}
	c.load(`{ b: __typename }`)
	if c.loadQuoted([]byte(`"{ __typen\u0061me }"`)) != doc {
		t.Error("what was just used has gone")
	}
	for i := range maxDocuments {
		c.load(fmt.Sprintf("{ c%d: __typename }", i))
	}
	if c.loadQuoted([]byte(`"{ __typen\u0061me }"`)) != nil || len(c.quoted) != 0 {
		t.Errorf("%d documents are known that are not kept", len(c.quoted))
	}
	c.remember(`"{ __typename }"`, doc)
	if len(c.quoted) != 0 {
		t.Error("a document that has gone is remembered")
	}
}

// TestOneDocumentByMany has many read a document at once.
func TestOneDocumentByMany(t *testing.T) {
	c := newDocumentCache(testConfig(t))
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() { c.load(`{ __typename }`) })
	}
	wg.Wait()
	if c.cache.Len() != 1 || c.bytes != c.load(`{ __typename }`).size {
		t.Errorf("%d documents, %d bytes", c.cache.Len(), c.bytes)
	}
}

func TestErrorsOfADocument(t *testing.T) {
	for document, want := range map[string]int{
		`{ nope }`: 1, `{ nope nope }`: 2,
		`{ ...F ...F } fragment F on Query { nope }`: 1, // in one place, however often it is met
		"{" + fields(100) + "}":                      maxErrors + 1,
	} {
		if errs := newDocumentCache(testConfig(t)).load(document).errs; len(errs) != want {
			t.Errorf("%.80s has %d errors, want %d: %v", document, len(errs), want, errs)
		}
	}
}

func fields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " f%d", i)
	}
	return b.String()
}

func TestSuggestionsAndIntrospectionAreSwitchedOff(t *testing.T) {
	documents := map[string]string{ // what hints at a name of the schema when it may
		`{ tokn(tokenId: "1") { id } }`: "token", `{ token(tokenID: "1") { id } }`: "tokenId",
		`{ token(tokenId: "1") { candles(interval: HOURS) { open } } }`: "HOUR", `{ searchMarkets(filter: {statuss: OPEN}) { totalCount } }`: "status"}
	for _, suggestions := range []bool{true, false} {
		cfg := testConfig(t)
		cfg.Suggestions = suggestions
		c := newDocumentCache(cfg)
		for document, name := range documents {
			said := fmt.Sprint(c.load(document).errs)
			if strings.Contains(said, "Did you mean") != suggestions || suggestions && !strings.Contains(said, name) {
				t.Errorf("suggestions %v: %s: %s", suggestions, document, said)
			}
		}
	}
	cfg := testConfig(t)
	cfg.Introspection = false
	c := newDocumentCache(cfg)
	for document, want := range map[string]int{`{ __typename }`: 0, `{ __schema { queryType { name } } }`: 1, `{ ...F } fragment F on Query { __type(name: "Token") { name } }`: 1} {
		if errs := c.load(document).errs; len(errs) != want {
			t.Errorf("%s: %v", document, errs)
		}
	}
}

func TestValidator(t *testing.T) {
	validate := Validator(testConfig(t))
	if err := validate(`query A { __typename }`); err != nil {
		t.Error(err)
	}
	if err := validate(`{ nope }`); err == nil || !strings.Contains(err.Error(), "nope") {
		t.Error(err)
	}
}

func TestCanonicalVariables(t *testing.T) {
	e := newEngine(testConfig(t), &identities{})
	const query = `query ($f: MarketSearchFilter, $n: Int = 7, $a: String!) { searchMarkets(query: $a, first: $n, filter: $f) { totalCount } }`
	canonical := func(variables string) string {
		op, refused := e.prepare(t.Context(), &market.Journal{}, &params{Query: query, Variables: variables})
		if refused != nil {
			t.Fatalf("%s: %s", variables, appendResponse(nil, refused))
		}
		return string(op.canonicalVariables())
	}
	want := canonical(`{"a":"x","f":{"category":"c","status":["OPEN"]}}`)
	if want != `{"a":"x","f":{"category":"c","status":["OPEN"]},"n":7}` {
		t.Error(want)
	}
	for _, same := range []string{
		`{"f":{"status":["OPEN"],"category":"c"},"a":"x"}`, `{ "n" : 7, "a": "\u0078", "f":{"category":"c","status":["OPEN"]}, "more": 1 }`,
	} {
		if got := canonical(same); got != want {
			t.Errorf("%s is %s", same, got)
		}
	}
	for _, other := range []string{`{"a":"x"}`, `{"a":"y","f":{"category":"c","status":["OPEN"]}}`, `{"a":"x","n":8,"f":{"category":"c","status":["OPEN"]}}`} {
		if got := canonical(other); got == want {
			t.Errorf("%s is %s", other, got)
		}
	}
}

func TestAppendResponse(t *testing.T) {
	errs := gqlerror.List{{Message: "no \"x\"", Extensions: map[string]any{"code": "C"}}}
	for want, resp := range map[string]*graphql.Response{
		`{"data":{"a": 1}}`: {Data: []byte(`{"a": 1}`)},
		`{"data":null}`:     {Data: []byte("null")},
		`{"errors":[{"message":"no \"x\"","extensions":{"code":"C"}}]}`:                                {Errors: errs},
		`{"errors":[{"message":"no \"x\"","extensions":{"code":"C"}}],"data":null}`:                    {Errors: errs, Data: []byte("null")},
		`{"data":{},"extensions":{"b":1}}`:                                                             {Data: []byte("{}"), Extensions: map[string]any{"b": 1}},
		`{"errors":[{"message":"no \"x\"","extensions":{"code":"C"}}],"data":{},"extensions":{"b":1}}`: {Errors: errs, Data: []byte("{}"), Extensions: map[string]any{"b": 1}},
		`{}`: {},
	} {
		if got := string(appendResponse([]byte("x"), resp)); got != "x"+want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
