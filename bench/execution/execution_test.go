// Package execution measures the execution of operations, without a transport. All data are in the cache.
package execution

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"

	"oddsgraph/graph"
	"oddsgraph/graph/exec"
	"oddsgraph/internal/cache"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// graphService executes documents over a cache in front of a demo venue, without a transport.
type graphService struct {
	venue    *demo.Venue
	sources  loaders.Sources
	schema   graphql.ExecutableSchema
	exec     *executor.Executor
	compiler *exec.Compiler
}

func newGraphService(t testing.TB) *graphService {
	t.Helper()
	s := &graphService{venue: demo.New(demo.Config{Seed: 1})}
	endpoint := httptest.NewServer(s.venue)
	t.Cleanup(endpoint.Close)
	client, err := venue.Open(venue.Config{Config: rest.Config{BaseURL: endpoint.URL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	cfg := cache.DefaultConfig()
	cfg.Clock = market.SystemClock{}
	for _, k := range []*cache.Kind{&cfg.Price, &cfg.Book, &cfg.Spread, &cfg.Market, &cfg.Search, &cfg.History, &cfg.User} {
		k.Fresh = 1 << 50 // entries do not expire
	}
	c := cache.New(client, cfg)
	t.Cleanup(c.Close)
	s.sources = loaders.Sources{
		Prices: c.Prices(), Spreads: c.Spreads(), Books: c.Books(), Histories: c.Histories(), Markets: c.Markets(), Events: c.Events(),
		Searches: c.Searches(), EventSearches: c.EventSearches(), Categories: c.Categories(), MarketTrades: c.MarketTrades(), Balances: c.Balances(), Positions: c.Positions(), Orders: c.Orders(), Trades: c.Trades(), Records: c.Records(),
	}
	g := graph.Config{Resolvers: &resolvers.Resolver{Clock: market.SystemClock{}, Sources: s.sources}}
	s.schema, s.compiler = graph.NewExecutableSchema(g), graph.NewCompiler(g)
	s.exec = executor.New(s.schema)
	return s
}

// execution is an operation with its variables.
type execution struct {
	*graphService
	ctx       context.Context
	doc       *ast.QueryDocument
	variables map[string]any
	operation *exec.Operation
}

func (s *graphService) execution(t testing.TB, document string, variables map[string]any, credentials string) *execution {
	t.Helper()
	doc, errs := gqlparser.LoadQueryWithRules(s.schema.Schema(), document, nil)
	if errs != nil {
		t.Fatal(errs)
	}
	x := &execution{graphService: s, ctx: context.Background(), doc: doc}
	var err error
	if x.variables, err = validator.VariableValues(s.schema.Schema(), doc.Operations[0], variables); err != nil {
		t.Fatal(err)
	}
	if credentials != "" {
		c, err := market.ParseCredentials([]byte(credentials))
		if err != nil {
			t.Fatal(err)
		}
		x.ctx = reqctx.WithCredentials(x.ctx, c)
	}
	x.operation = s.compiler.Operation(doc, doc.Operations[0], func(int) {})
	return x
}

// BenchmarkReplacedBooks executes the page of a market. In "reads=N", the benchmark clears the cached JSON of the books before
// every Nth execution, as if new books replaced them. In "no texts", books do not cache their JSON.
func BenchmarkReplacedBooks(b *testing.B) {
	s := newGraphService(b)
	page := s.executions(b)["market"]
	books := s.sources.Books
	run := func(name string, reads int) {
		b.Run(name, func(b *testing.B) {
			r := &copyingSource{Source: books, keep: reads > 0, rendered: map[queries.Book]*market.Rendered{}}
			s.sources.Books = r
			b.ReportAllocs()
			var buf []byte
			for n := 0; b.Loop(); n++ {
				if reads > 0 && n%reads == 0 {
					clear(r.rendered)
				}
				var ok bool
				if buf, ok = page.execute(buf[:0]); !ok {
					b.Fatal("the response has errors, or a value is not in the cache")
				}
			}
		})
	}
	run("no texts", 0)
	for _, reads := range []int{1, 2, 3, 5, 10} {
		run(fmt.Sprintf("reads=%d", reads), reads)
	}
}

// copyingSource is a source that returns copies of books. If keep is true, all copies of a book share the JSON that is cached in
// rendered.
type copyingSource struct {
	loaders.Source[queries.Book, market.Book]
	keep     bool
	rendered map[queries.Book]*market.Rendered
}

func (r *copyingSource) Lookup(ctx context.Context, keys []queries.Book, out []market.Result[market.Read[*market.Book]], missing []int) []int {
	missing = r.Source.Lookup(ctx, keys, out, missing)
	for i, key := range keys {
		if out[i].Value.Value == nil {
			continue
		}
		b := *out[i].Value.Value
		if b.Rendered = r.rendered[key]; b.Rendered == nil && r.keep {
			b.Rendered = new(market.Rendered)
			r.rendered[key] = b.Rendered
		}
		out[i].Value.Value = &b
	}
	return missing
}

// executeWithGqlgen executes the operation with gqlgen, in passes. Resolvers run one at a time, because a loaders.Set is not safe
// for concurrent use.
func (x *execution) executeWithGqlgen() (resp *graphql.Response) {
	ctx, set, _ := loaders.With(x.ctx, x.sources)
	defer set.Done()
	var turn sync.Mutex
	set.Complete(ctx, func() {
		next, ctx := x.exec.DispatchOperation(ctx, &graphql.OperationContext{
			Doc: x.doc, Operation: x.doc.Operations[0], Variables: x.variables, RecoverFunc: resolvers.Recover,
			ResolverMiddleware: func(ctx context.Context, next graphql.Resolver) (any, error) {
				turn.Lock()
				defer turn.Unlock()
				return next(ctx)
			},
			RootResolverMiddleware: func(ctx context.Context, next graphql.RootResolver) graphql.Marshaler { return next(ctx) },
		})
		resp = next(ctx)
	})
	return resp
}

// execute executes the operation once with our executor. It returns false if the response has errors, or if a value is not in the
// cache.
func (x *execution) execute(buf []byte) ([]byte, bool) {
	ctx, set, _ := loaders.With(x.ctx, x.sources)
	defer set.Done()
	data, errs := x.operation.Execute(ctx, x.variables, buf, nil)
	return data, len(errs) == 0 && !set.Pending()
}

// These are the documents of the workloads. wholePortfolioQuery selects more fields of a portfolio than portfolioQuery.
const (
	portfolioQuery = `query Portfolio($address: Address!) {
  user(address: $address) {
    positions(first: 50) {
      nodes { marketId outcome size avgPrice market { question slug } token { tokenId outcome price { price } } }
    }
  }
}`
	marketQuery = `query MarketPage($id: String!) {
  market(marketId: $id) {
    question slug category
    tokens { tokenId outcome price { price } orderbook(depth: 20) { bids { price size } asks { price size } } }
  }
}`
	pricesQuery         = `query Prices($ids: [String!]!) { tokenPrices(tokenIds: $ids) { tokenId price } }`
	typenameQuery       = `{ __typename }`
	wholePortfolioQuery = `query Portfolio($address: Address!) {
  user(address: $address) {
    positions(first: 50) {
      nodes {
        id marketId outcome size avgPrice
        market { question slug }
        token { id price { price } outcome }
        valuation { price value unrealizedPnl unrealizedPnlPercent }
      }
    }
  }
}`
)

// holder is the address of the demo account with 50 positions. anyCredentials open every account.
const (
	holder            = "0x2222222222222222222222222222222222222222"
	holderCredentials = `{"apiKey":"demo-50","secret":"demo","passphrase":"demo"}`
	anyCredentials    = `{"apiKey":"demo","secret":"demo","passphrase":"demo"}`
)

// executions returns the executions of the documents by name, and caches all data that they select. It fails if gqlgen and our
// executor return different responses.
func (s *graphService) executions(t testing.TB) map[string]*execution {
	t.Helper()
	var ids []string
	var marketID string
	for _, token := range s.venue.Tokens() {
		if token.Status != "OPEN" {
			continue
		}
		if len(ids) < 50 {
			ids = append(ids, token.TokenID)
		}
		if marketID == "" {
			x := s.execution(t, marketQuery, map[string]any{"id": token.MarketID}, "")
			if hasDeepBooks(t, x.executeWithGqlgen().Data) {
				marketID = token.MarketID
			}
		}
	}
	out := map[string]*execution{
		"portfolio":      s.execution(t, portfolioQuery, map[string]any{"address": holder}, holderCredentials),
		"wholePortfolio": s.execution(t, wholePortfolioQuery, map[string]any{"address": holder}, holderCredentials),
		"market":         s.execution(t, marketQuery, map[string]any{"id": marketID}, ""),
		"prices":         s.execution(t, pricesQuery, map[string]any{"ids": ids}, ""),
		"typename":       s.execution(t, typenameQuery, nil, ""),
	}
	for name, x := range out {
		first, again := x.executeWithGqlgen(), x.executeWithGqlgen()
		if len(first.Errors) > 0 || !bytes.Equal(first.Data, again.Data) {
			t.Fatalf("%s: gqlgen returns the errors %v, or different data the second time", name, first.Errors)
		}
		data, ok := x.execute(nil)
		if !ok || !bytes.Equal(data, first.Data) {
			t.Fatalf("%s: our executor returns (complete: %v)\n%s\nwant the data of gqlgen\n%s", name, ok, data, first.Data)
		}
	}
	return out
}

// hasDeepBooks reports whether a market page has two tokens whose books have at least 20 levels on each side.
func hasDeepBooks(t testing.TB, data []byte) bool {
	t.Helper()
	var page struct {
		Market struct {
			Tokens []struct {
				Orderbook struct{ Bids, Asks []json.RawMessage }
			}
		}
	}
	if err := json.Unmarshal(data, &page); err != nil {
		t.Fatal(err)
	}
	for _, token := range page.Market.Tokens {
		if len(token.Orderbook.Bids) < 20 || len(token.Orderbook.Asks) < 20 {
			return false
		}
	}
	return len(page.Market.Tokens) == 2
}

// TestCompiledAllocations bounds the allocations of a portfolio of 50 cached positions.
func TestCompiledAllocations(t *testing.T) {
	x := newGraphService(t).executions(t)["wholePortfolio"]
	var buf []byte
	if n := testing.AllocsPerRun(50, func() { buf, _ = x.execute(buf[:0]) }); n >= 300 {
		t.Errorf("got %.0f allocations for 50 positions, want fewer than 300", n)
	}
}

// TestListsAreLookedUpAtOnce checks that one look-up reads all markets of a portfolio, and one look-up reads all its prices. Values
// that are not selected must not be looked up.
func TestListsAreLookedUpAtOnce(t *testing.T) {
	s := newGraphService(t)
	executions := s.executions(t)
	markets, prices := &countingSource[market.MarketRef, market.Market]{Source: s.sources.Markets}, &countingSource[string, market.Price]{Source: s.sources.Prices}
	s.sources.Markets, s.sources.Prices = markets, prices
	for name, x := range executions {
		markets.keys, prices.keys = nil, nil
		if _, ok := x.execute(nil); !ok {
			t.Fatalf("%s: the response has errors, or a value is not in the cache", name)
		}
		var wantMarkets, wantPrices []int
		switch name {
		case "portfolio", "wholePortfolio":
			wantMarkets, wantPrices = []int{49}, []int{50} // two positions are in one market
		case "market":
			wantMarkets, wantPrices = []int{1}, []int{1, 1}
		case "prices":
			wantPrices = []int{50}
		}
		if !slices.Equal(markets.keys, wantMarkets) || !slices.Equal(prices.keys, wantPrices) {
			t.Errorf("%s: got look-ups of %v markets and %v prices, want %v and %v", name, markets.keys, prices.keys, wantMarkets, wantPrices)
		}
	}
	for document, want := range map[string][2]int{
		`{ user(address: $address) { positions(first: 3) { edges { node { outcome m: market { slug } } } } } }`:                          {3, 0},
		`{ user(address: $address) { positions(first: 3) { nodes { token { tokenId p: price { price } } } } } }`:                         {0, 3},
		`{ user(address: $address) { positions(first: 3) { nodes { size } nodes { ... on Position { token { outcomeKind } } } } } }`:     {3, 0},
		`{ user(address: $address) { positions(first: 3) { totalCount nodes { token { tokenId price @skip(if: true) { price } } } } } }`: {0, 0},
	} {
		x := s.execution(t, "query($address: Address!) "+document, map[string]any{"address": holder}, holderCredentials)
		markets.keys, prices.keys = nil, nil
		if _, ok := x.execute(nil); !ok {
			t.Errorf("%s: the response has errors, or a value is not in the cache", document)
		}
		if got := [2]int{sum(markets.keys), sum(prices.keys)}; got != want || len(markets.keys) > 1 || len(prices.keys) > 1 {
			t.Errorf("%s: got look-ups of %v markets and %v prices, want %v", document, markets.keys, prices.keys, want)
		}
	}
}

func sum(ns []int) (n int) {
	for _, add := range ns {
		n += add
	}
	return n
}

// countingSource is a source that records the number of keys of each look-up.
type countingSource[K comparable, T any] struct {
	loaders.Source[K, T]
	keys []int
}

func (c *countingSource[K, T]) Lookup(ctx context.Context, keys []K, out []market.Result[market.Read[*T]], missing []int) []int {
	c.keys = append(c.keys, len(keys))
	return c.Source.Lookup(ctx, keys, out, missing)
}

// BenchmarkMiss executes a portfolio whose last price is not in the cache.
func BenchmarkMiss(b *testing.B) {
	s := newGraphService(b)
	for name, x := range s.executions(b) {
		if name != "portfolio" {
			continue
		}
		var page struct {
			User struct {
				Positions struct {
					Nodes []struct{ Token struct{ TokenID string } }
				}
			}
		}
		if err := json.Unmarshal(x.executeWithGqlgen().Data, &page); err != nil {
			b.Fatal(err)
		}
		nodes := page.User.Positions.Nodes
		s.sources.Prices = withoutKey{s.sources.Prices, nodes[len(nodes)-1].Token.TokenID}
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := x.execute(nil); ok {
				b.Fatal("the execution missed no value, want one missing price")
			}
		}
	}
}

// BenchmarkPasses executes a portfolio that is not in the cache. Every fetch returns at once, so the benchmark measures the passes
// without the calls.
func BenchmarkPasses(b *testing.B) {
	s := newGraphService(b)
	x := s.executions(b)["portfolio"]
	s.sources.Positions = fetchOnly[market.Address, []market.Position]{s.sources.Positions}
	s.sources.Markets = fetchOnly[market.MarketRef, market.Market]{s.sources.Markets}
	s.sources.Prices = fetchOnly[string, market.Price]{s.sources.Prices}
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		ctx, set, _ := loaders.With(x.ctx, s.sources)
		var errs []exec.Error
		set.Complete(ctx, func() { buf, errs = x.operation.Execute(ctx, x.variables, buf[:0], nil) })
		set.Done()
		if len(errs) > 0 {
			b.Fatal(errs[0].Err)
		}
	}
}

// fetchOnly is a source that finds nothing in Lookup. Fetch returns the values of another source.
type fetchOnly[K comparable, T any] struct{ loaders.Source[K, T] }

func (s fetchOnly[K, T]) Lookup(_ context.Context, keys []K, _ []market.Result[market.Read[*T]], missing []int) []int {
	for i := range keys {
		missing = append(missing, i)
	}
	return missing
}

func (s fetchOnly[K, T]) Fetch(ctx context.Context, keys []K) []market.Result[market.Read[*T]] {
	out := make([]market.Result[market.Read[*T]], len(keys))
	s.Source.Lookup(ctx, keys, out, nil)
	return out
}

// withoutKey is a source that lacks one key. A Lookup that includes the missing key reads no other key.
type withoutKey struct {
	loaders.Source[string, market.Price]
	key string
}

func (w withoutKey) Lookup(ctx context.Context, keys []string, out []market.Result[market.Read[*market.Price]], missing []int) []int {
	if i := slices.Index(keys, w.key); i >= 0 {
		return append(missing, i)
	}
	return w.Source.Lookup(ctx, keys, out, missing)
}

// BenchmarkVaried executes the portfolios of many wallets, the pages of many markets, and many sets of prices. Their data do not
// fit into the processor's caches. cpu-ns/op is the processor time of the process. It varies less than ns/op on a busy machine.
func BenchmarkVaried(b *testing.B) {
	s := newGraphService(b)
	var tokens, markets []string
	for _, token := range s.venue.Tokens() {
		if token.Status == "OPEN" {
			tokens, markets = append(tokens, token.TokenID), append(markets, token.MarketID)
		}
	}
	markets = slices.Compact(markets)
	random := rand.New(rand.NewPCG(1, 2))
	for _, w := range []struct {
		name  string
		count int
		of    func(i int) *execution
	}{
		{"portfolios", 1000, func(i int) *execution {
			address := fmt.Sprintf("0x%016x%024x", i*0x9e3779b9, i)
			return s.execution(b, portfolioQuery, map[string]any{"address": address}, anyCredentials)
		}},
		{"markets", 200, func(i int) *execution { return s.execution(b, marketQuery, map[string]any{"id": markets[i]}, "") }},
		{"prices", 400, func(int) *execution {
			random.Shuffle(len(tokens), func(i, j int) { tokens[i], tokens[j] = tokens[j], tokens[i] })
			return s.execution(b, pricesQuery, map[string]any{"ids": slices.Clone(tokens[:50])}, "")
		}},
	} {
		b.Run(w.name, func(b *testing.B) {
			all := make([]*execution, w.count)
			for i := range all {
				all[i] = w.of(i)
				if resp := all[i].executeWithGqlgen(); len(resp.Errors) > 0 {
					b.Fatal(resp.Errors)
				}
				all[i].operation = all[0].operation
			}
			b.ReportAllocs()
			var buf []byte
			before := cpu(b)
			for i := 0; b.Loop(); i++ {
				var ok bool
				if buf, ok = all[i%len(all)].execute(buf[:0]); !ok {
					b.Fatal("the response has errors, or a value is not in the cache")
				}
			}
			b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpu returns the processor time of the process.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkExecute executes cached documents with gqlgen and with our executor.
func BenchmarkExecute(b *testing.B) {
	for name, x := range newGraphService(b).executions(b) {
		b.Run(name+"/library", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x.executeWithGqlgen()
			}
		})
		b.Run(name+"/executor", func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				buf, _ = x.execute(buf[:0])
			}
		})
	}
}
