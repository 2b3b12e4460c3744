package e2e

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"

	"oddsgraph/app"
	"oddsgraph/graph"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// execute executes a query with the given sources, as the HTTP API does. It stores the response's dependencies in the variables
// that recorders point to.
func execute(t *testing.T, s *service, ctx context.Context, of loaders.Sources, query string, variables vars, recorders ...**reqctx.Dependencies) *graphql.Response {
	t.Helper()
	compiler := graph.NewCompiler(graph.Config{Resolvers: &resolvers.Resolver{Status: s.Status, Clock: s.clock}})
	doc, invalid := gqlparser.LoadQueryWithRules(compiler.Schema(), query, nil)
	if invalid != nil {
		t.Fatal(invalid)
	}
	values, err := validator.VariableValues(compiler.Schema(), doc.Operations[0], variables)
	if err != nil {
		t.Fatal(err)
	}
	operation := compiler.Operation(doc, doc.Operations[0], func(int) {})
	ctx, set, recorder := loaders.With(ctx, of)
	defer set.Done()
	for _, r := range recorders {
		*r = recorder
	}
	resp := &graphql.Response{}
	set.Complete(ctx, func() {
		data, errs := operation.Execute(ctx, values, nil, nil)
		resp = &graphql.Response{Data: data}
		for i := range errs {
			resp.Errors = append(resp.Errors, gqlerror.WrapPath(errs[i].Path(), errs[i].Err))
		}
	})
	return resp
}

// record executes a query that must not fail. It returns the data and the handles of the cache entries that the query read.
func record(t *testing.T, s *service, ctx context.Context, of loaders.Sources, query string, variables vars) (data any, handles map[*market.Handle]bool) {
	t.Helper()
	var recorder *reqctx.Dependencies
	resp := execute(t, s, ctx, of, query, variables, &recorder)
	if len(resp.Errors) > 0 {
		t.Fatal(resp.Errors)
	}
	if err := json.Unmarshal(resp.Data, &data); err != nil {
		t.Fatal(err)
	}
	handles = make(map[*market.Handle]bool)
	for _, h := range recorder.Handles() {
		handles[h] = true
	}
	return data, handles
}

// take removes the handles of the keys' cache entries from the map recorded. It fails the test if a key is not cached, if its cache
// entry was replaced, or if the map lacks the handle of the entry.
func take[K comparable, T any](t *testing.T, ctx context.Context, what string, recorded map[*market.Handle]bool, from loaders.Source[K, T], keys ...K) {
	t.Helper()
	out := make([]market.Result[market.Read[*T]], len(keys))
	if missing := from.Lookup(ctx, keys, out, nil); len(missing) > 0 {
		t.Errorf("%s: %d of %d keys are not cached", what, len(missing), len(keys))
		return
	}
	for i := range out {
		h := out[i].Value.Handle
		if !recorded[h] {
			t.Errorf("%s: the handle of %v was not recorded, or for something else too", what, keys[i])
		}
		if h.Version() != 0 {
			t.Errorf("%s: the entry of %v was replaced", what, keys[i])
		}
	}
	for i := range out {
		delete(recorded, out[i].Value.Handle)
	}
}

// TestTheRecorderHoldsWhatWasRead checks that the recorded handles are exactly those of the cache entries that a query needs.
func TestTheRecorderHoldsWhatWasRead(t *testing.T) {
	s := start(t)
	c, err := market.ParseCredentials([]byte(`{"apiKey":"demo-50","secret":"demo","passphrase":"demo"}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx := reqctx.WithCredentials(t.Context(), c)
	// These queries read other cache entries, whose handles must not be recorded.
	s.ask(t, `query ($ids: [String!]!) { tokens(tokenIds: $ids) { price { price } spread { spread } market { slug } } }`, vars{"ids": s.openTokens(100)}, anonymous)
	s.ask(t, portfolioQuery, vars{"address": addressOf50}, keyOfAny)

	for _, state := range []string{"cold", "cached"} {
		t.Run(state, func(t *testing.T) {
			data, recorded := record(t, s, ctx, app.Sources(s.Cache, 0), portfolioQuery, vars{"address": addressOf50})
			if n := len(list(data, "user.positions.nodes")); n != 50 {
				t.Fatalf("%d positions", n)
			}
			var tokens []string
			var markets []market.MarketRef
			seen := map[string]bool{}
			for _, p := range s.venue.Positions(addressOf50) {
				tokens = append(tokens, p.TokenID)
				if !seen[p.MarketID] {
					seen[p.MarketID] = true
					markets = append(markets, market.MarketRef{By: market.ByMarketID, Value: p.MarketID})
				}
			}
			of := app.Sources(s.Cache, 0)
			take(t, ctx, "balance", recorded, of.Balances, addressOf50)
			take(t, ctx, "positions", recorded, of.Positions, addressOf50)
			take(t, ctx, "markets", recorded, of.Markets, markets...)
			take(t, ctx, "prices", recorded, of.Prices, tokens...)
			if len(recorded) > 0 {
				t.Errorf("%d handles of nothing that was read", len(recorded))
			}
		})
	}
	t.Run("absence and lists", func(t *testing.T) {
		open := s.openTokens(1)[0]
		_, recorded := record(t, s, ctx, app.Sources(s.Cache, 0), `query ($open: String!) {
		  markets(marketIds: ["none"]) { slug }
		  tokens(tokenIds: [$open, "none"]) { price { price } spread { spread } orderbook(depth: 3) { spread } fillEstimate(side: BUY, size: 1) { cost } history { from } candles { open } market { slug } }
		  event(eventId: "10001") { title }
		  user(address: "`+addressOf50+`") { orders { totalCount } }
		}`, vars{"open": open})
		of := app.Sources(s.Cache, 0)
		take(t, ctx, "prices", recorded, of.Prices, open, "none")
		take(t, ctx, "spreads", recorded, of.Spreads, open, "none")
		for _, id := range []string{open, "none"} { // the query's two depths of a book use one cache entry
			take(t, ctx, "book", recorded, of.Books, queries.Book{TokenID: id, Depth: queries.MaxBookDepth})
			today := market.DateOf(s.clock.Now())
			take(t, ctx, "history", recorded, of.Histories, queries.PriceHistory{TokenID: id, From: today - 6, To: today})
		}
		take(t, ctx, "markets", recorded, of.Markets, market.MarketRef{Value: "none"}, market.MarketRef{By: market.ByToken, Value: open}, market.MarketRef{By: market.ByToken, Value: "none"})
		take(t, ctx, "event", recorded, of.Events, market.EventRef{EventID: "10001"})
		take(t, ctx, "orders", recorded, of.Orders, addressOf50)
		if len(recorded) > 0 {
			t.Errorf("%d handles of nothing that was read", len(recorded))
		}
	})
}
