package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"oddsgraph/graph"
	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// careless has resolvers that ignore the errors of their reads.
type careless struct{ *resolvers.Resolver }

func (c careless) Query() graph.QueryResolver { return carelessQuery{c.Resolver.Query()} }

type carelessQuery struct{ graph.QueryResolver }

func (q carelessQuery) TokenPrices(ctx context.Context, ids []string) ([]*model.TokenPrice, error) {
	prices, err := q.QueryResolver.TokenPrices(ctx, ids)
	if err != nil {
		return nil, nil
	}
	return prices, nil
}

func (q carelessQuery) Token(ctx context.Context, id string) (*model.Token, error) {
	if _, err := loaders.From(ctx).Prices.Get(id); err != nil {
		return nil, nil
	}
	return q.QueryResolver.Token(ctx, id)
}

// shelf is a source of prices. Lookup finds only the tokens in held. Fetch records its keys in fetched, and fails for the token
// "bad".
type shelf struct {
	memory
	held    []string
	fetched []string
}

func (s *shelf) Lookup(_ context.Context, keys []string, into []reads.Result[*market.Price], missing []int) []int {
	for i, key := range keys {
		if slices.Contains(s.held, key) {
			into[i].Value = s.price(key)
		} else {
			missing = append(missing, i)
		}
	}
	return missing
}

func (s *shelf) Fetch(_ context.Context, keys []string) []reads.Result[*market.Price] {
	s.fetched = append(s.fetched, keys...)
	out := make([]reads.Result[*market.Price], len(keys))
	for i, key := range keys {
		if out[i].Value = s.price(key); key == "bad" {
			out[i] = reads.Result[*market.Price]{Err: market.Errorf(market.CodeUpstreamTimeout, "too late")}
		}
	}
	return out
}

// TestPasses checks the responses to queries whose values are in memory, must be fetched, or cannot be fetched. No key may be
// fetched twice. A cancelled operation must return an error.
func TestPasses(t *testing.T) {
	prices := &shelf{held: []string{"1"}}
	var outcomes []string
	cfg := testConfig(t)
	cfg.Compiler = graph.NewCompiler(graph.Config{Resolvers: careless{&resolvers.Resolver{
		Clock: market.SystemClock{}, Status: func(context.Context) model.ServiceStatus { return model.ServiceStatus{Version: "1"} },
	}}})
	cfg.Sources = loaders.Sources{Prices: prices}
	cfg.Observer = onEnd(func(j *request.Log) {
		outcomes = append(outcomes, j.Type()+" "+j.Outcome)
		if j.Elapsed <= 0 {
			t.Errorf("the log has the duration %v, want more than 0", j.Elapsed)
		}
	})
	h := New(cfg)
	for _, test := range []struct {
		query   string
		want    string
		fetched string
	}{
		{`{ serviceStatus { version } }`, `{"data":{"serviceStatus":{"version":"1"}}}`, ""},
		{`{ tokenPrices(tokenIds: [\"1\"]) { price } serviceStatus { version } }`, `{"data":{"tokenPrices":[{"price":"0.55"}],"serviceStatus":{"version":"1"}}}`, ""},
		{`{ tokenPrices(tokenIds: [\"1\", \"2\"]) { price } serviceStatus { version } }`, `{"data":{"tokenPrices":[{"price":"0.55"},{"price":"0.55"}],"serviceStatus":{"version":"1"}}}`, "2"}, // needs two passes
		{`{ token(tokenId: \"3\") { tokenId } serviceStatus { version } }`, `{"data":{"token":{"tokenId":"3"},"serviceStatus":{"version":"1"}}}`, "3"},                                         // in the first pass, the careless resolver ignores the error for the missing value
		{`{ __type(name: \"Token\") { name } serviceStatus { version } }`, `{"data":{"__type":{"name":"Token"},"serviceStatus":{"version":"1"}}}`, ""},
		{
			`{ tokenPrices(tokenIds: [\"1\", \"2\", \"bad\"]) { price } serviceStatus { version } }`,
			`{"errors":[{"message":"too late","path":["tokenPrices",2],"locations":[{"line":1,"column":3}],"extensions":{"code":"UPSTREAM_TIMEOUT"}}],` +
				`"data":{"tokenPrices":[{"price":"0.55"},{"price":"0.55"},null],"serviceStatus":{"version":"1"}}}`,
			"2 bad",
		},
	} {
		prices.fetched, outcomes = nil, nil
		w := post(t, h, `{"query":"`+test.query+`"}`)
		if w.Code != http.StatusOK || w.Body.String() != test.want {
			t.Errorf("%s: got %d %s, want %s", test.query, w.Code, w.Body, test.want)
		}
		if got := fmt.Sprint(prices.fetched); got != "["+test.fetched+"]" || len(outcomes) != 1 || (outcomes[0] == "query ok") == strings.Contains(test.want, "errors") {
			t.Errorf("%s: the keys %s were fetched and the outcomes are %q, want the keys [%s]", test.query, got, outcomes, test.fetched)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	e := newEngine(cfg, &identities{refusals: noRefusals{}, client: cfg.Client})
	op, refusal := e.prepare(ctx, &request.Log{}, &params{Query: `{ serviceStatus { version } }`}, admitAtOnce)
	if refusal != nil {
		t.Fatal(refusal.Errors)
	}
	cancel()
	if resp := e.execute(ctx, op); resp.Data != nil || len(resp.Errors) != 1 {
		t.Errorf("the cancelled operation has the data %s and the errors %v, want one error without data", resp.Data, resp.Errors)
	}
}

// TestCompiledDocumentsMakeRoom checks that the size of a document includes its compiled operations. A document larger than the
// whole cache (MaxDocumentBytes) must leave the cache.
func TestCompiledDocumentsMakeRoom(t *testing.T) {
	cfg := testConfig(t)
	cfg.Compiler = graph.NewCompiler(graph.Config{Resolvers: &resolvers.Resolver{}})
	c := newDocumentCache(cfg)
	const text = `query ($a: Boolean!) { a: __typename b: __typename @skip(if: $a) }`
	doc := c.load(text, false)
	before := c.bytes
	for _, a := range []bool{true, false, true} {
		if _, errs := doc.plans[doc.ast.Operations[0]].executable.Execute(t.Context(), map[string]any{"a": a}, nil, nil); len(errs) > 0 {
			t.Fatal(errs)
		}
	}
	if grown := c.bytes - before; grown < 100 || c.bytes != doc.size {
		t.Errorf("the cache grew by %d bytes to %d and the document has %d; want at least 100 more, and equal sizes", grown, c.bytes, doc.size)
	}
	c.grow(doc, MaxDocumentBytes)
	if c.cache.Len() != 0 || c.bytes != 0 {
		t.Errorf("after the document grew beyond the cache, %d documents of %d bytes are left, want 0", c.cache.Len(), c.bytes)
	}
	c.grow(doc, 1000)
	if c.bytes != 0 {
		t.Errorf("a document that has left the cache still counts %d bytes", c.bytes)
	}
}
