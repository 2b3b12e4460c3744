package httpapi

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/internal/request"
	"oddsgraph/tests/tool"
)

func TestDocumentsAreCached(t *testing.T) {
	c := newDocumentCache(testConfig(t))
	for _, text := range []string{`{ __typename }`, `{ nope }`, `{`, `{ a: __typename ...F } fragment F on Query { ...F }`} {
		if first := c.load(text, false); c.load(text, false) != first {
			t.Errorf("%s was parsed again", text)
		}
	}
	if a, b := c.load(`{ __typename }`, false), c.load(`{__typename}`, false); a == b || a.hash == b.hash {
		t.Error("two different texts share a document or a hash")
	}
}

// TestSizeWithReplacedEscapes checks that the size of a document includes the second text that it needs if the guard replaces
// escapes. An escape in a comment needs no second text.
func TestSizeWithReplacedEscapes(t *testing.T) {
	c := newDocumentCache(testConfig(t))
	comment := strings.Repeat("#", 10_000)
	sizeOf := func(id, comment string) int { return c.load(`{ token(tokenId: "`+id+`") { id } }`+comment, false).size }
	if once, twice := sizeOf(`\n`, comment+`\u`), sizeOf(`\u{A}`, comment); twice-once < len(comment) {
		t.Errorf("the sizes are %d without and %d with a second text, want a difference of at least %d", once, twice, len(comment))
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
		c.load(fmt.Sprintf("{ a%d: __typename }", i), false)
	}
	if c.cache.Len() != maxDocuments || c.bytes != total() {
		t.Errorf("the cache has %d documents with %d bytes in total and counts %d bytes, want %d documents and equal bytes", c.cache.Len(), total(), c.bytes, maxDocuments)
	}
	long := strings.Repeat("#", 45_000)
	for i := range 1100 {
		for range 2 {
			c.load(fmt.Sprintf("{ b%d: __typename }%s", i, long), false)
		}
	}
	if c.bytes > MaxDocumentBytes || c.bytes != total() || c.cache.Len() < maxDocuments*3/4 {
		t.Errorf("the cache has %d long documents with %d bytes in total and counts %d bytes, want at least %d documents and at most %d bytes", c.cache.Len(), total(), c.bytes, maxDocuments*3/4, MaxDocumentBytes)
	}
}

// TestDocumentsSentOnceEvictNothing checks that a full cache stores only trusted documents and documents that are sent twice.
func TestDocumentsSentOnceEvictNothing(t *testing.T) {
	for name, more := range map[string]string{"many": "", "long": strings.Repeat("#", 64_000)} {
		c := newDocumentCache(testConfig(t))
		const inUse = `{ inUse: __typename }`
		doc := c.load(inUse, false)
		for i := range maxDocuments + 200 {
			c.load(fmt.Sprintf("{ a%d: __typename }%s", i, more), false)
		}
		full := c.cache.Len()
		for i := range 1000 {
			c.load(fmt.Sprintf("{ b%d: __typename }%s", i, more), false)
		}
		if c.find(inUse) != doc || c.cache.Len() < full-1 {
			t.Errorf("%s: documents that were sent only once have evicted other documents: %d of %d are still cached", name, c.cache.Len(), full)
		}
		for text, trusted := range map[string]bool{"{ again: __typename }": false, "{ trusted: __typename }": true} {
			c.load(text+more, trusted)
			if !trusted && more == "" && c.find(text) != nil {
				t.Errorf("%s: a document that was sent once is cached", name)
			}
			if first := c.load(text+more, trusted); c.load(text+more, trusted) != first {
				t.Errorf("%s: %s is not cached", name, text)
			}
		}
	}
}

// TestSizeOfDocuments checks that documents need 0.25 to 1.5 times the memory that sizeOf returns.
func TestSizeOfDocuments(t *testing.T) {
	if tool.Unraced(t) {
		return
	}
	long := strings.Repeat("x", 60_000)
	for name, text := range map[string]string{
		"fields":        `{token(tokenId:"1"){` + fields(180, "a%d:id ") + `}}`,
		"objects":       "{" + fields(20, "a%d:searchMarkets{nodes{id marketId slug question image category status startsAt endsAt volume liquidity tickSize event{id title}}}") + "}",
		"a list of ids": "{tokens(tokenIds:[" + fields(900, `"%d" `) + "]){id}}",
		"a long id":     `{token(tokenId:"` + long + `"){id}}`,
		"a comment":     "{__typename}#" + long,
		"refused":       "{" + fields(90, "volume%0120d ") + "}",
	} {
		c := newDocumentCache(testConfig(t))
		const documents = 20
		before := liveBytes()
		for i := range documents {
			c.load(fmt.Sprintf("%s #%d", text, i), false)
		}
		took, counted := float64(liveBytes()-before), float64(c.bytes)
		if c.cache.Len() != documents || took > 1.5*counted || took < counted/4 {
			t.Errorf("%s: the cache counts %.0f bytes for a document that needs %.0f bytes, want 0.25 to 1.5 times the counted bytes", name, counted/documents, took/documents)
		}
		runtime.KeepAlive(c)
	}
}

// TestConcurrentLoadsStoreOneDocument checks that the cache stores a document once if many goroutines load it at the same time.
func TestConcurrentLoadsStoreOneDocument(t *testing.T) {
	c := newDocumentCache(testConfig(t))
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() { c.load(`{ __typename }`, false) })
	}
	wg.Wait()
	if c.cache.Len() != 1 || c.bytes != c.load(`{ __typename }`, false).size {
		t.Errorf("the cache has %d documents and counts %d bytes, want one document", c.cache.Len(), c.bytes)
	}
}

func TestErrorsOfADocument(t *testing.T) {
	for document, want := range map[string]int{
		`{ nope }`: 1, `{ nope nope }`: 2,
		`{ ...F ...F } fragment F on Query { nope }`: 1, // one error for all spreads of the fragment
		"{" + fields(100, " f%d") + "}":              maxErrors + 1,
	} {
		if errs := newDocumentCache(testConfig(t)).load(document, false).errs; len(errs) != want {
			t.Errorf("%.80s has %d errors, want %d: %v", document, len(errs), want, errs)
		}
	}
}

func fields(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func TestSuggestionsSetting(t *testing.T) {
	documents := map[string]string{ // documents whose errors suggest names of the schema
		`{ tokn(tokenId: "1") { id } }`: "token", `{ token(tokenID: "1") { id } }`: "tokenId",
		`{ token(tokenId: "1") { candles(interval: HOURS) { open } } }`: "HOUR", `{ searchMarkets(filter: {statuss: OPEN}) { totalCount } }`: "status"}
	for _, suggestions := range []bool{true, false} {
		cfg := testConfig(t)
		cfg.Suggestions = suggestions
		c := newDocumentCache(cfg)
		for document, name := range documents {
			said := fmt.Sprint(c.load(document, false).errs)
			if strings.Contains(said, "Did you mean") != suggestions || suggestions && !strings.Contains(said, name) {
				t.Errorf("suggestions %v: %s has the errors %s", suggestions, document, said)
			}
		}
	}
}

func TestCanonicalVariables(t *testing.T) {
	e := newEngine(testConfig(t), &identities{})
	const query = `query ($f: MarketSearchFilter, $n: Int = 7, $a: String!) { searchMarkets(query: $a, first: $n, filter: $f) { totalCount } }`
	canonical := func(variables string) string {
		op, refused := e.prepare(t.Context(), &request.Log{}, &params{Query: query, Variables: variables}, admitAtOnce)
		if refused != nil {
			t.Fatalf("%s: %s", variables, appendResponse(nil, refused))
		}
		return string(op.canonicalVariables())
	}
	want := canonical(`{"a":"x","f":{"category":"c","status":["OPEN"]}}`)
	if want != `{"a":"x","f":{"category":"c","status":["OPEN"]},"n":7}` {
		t.Errorf("the canonical form is %s, want sorted keys and the default value of n", want)
	}
	for _, same := range []string{
		`{"f":{"status":["OPEN"],"category":"c"},"a":"x"}`, `{ "n" : 7, "a": "\u0078", "f":{"category":"c","status":["OPEN"]}, "more": 1 }`,
	} {
		if got := canonical(same); got != want {
			t.Errorf("the canonical form of %s is %s, want %s", same, got, want)
		}
	}
	for _, other := range []string{`{"a":"x"}`, `{"a":"y","f":{"category":"c","status":["OPEN"]}}`, `{"a":"x","n":8,"f":{"category":"c","status":["OPEN"]}}`} {
		if got := canonical(other); got == want {
			t.Errorf("the canonical form of %s is %s, want another form", other, got)
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
