package loaders

import (
	"context"
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
)

// Route returns the sources of the venues with the given names as one. With one venue, it returns all[0] itself. MaxCalls is that of
// all[0], and bounds the calls to all venues together.
func Route(names market.Names, all []Sources) Sources {
	if len(all) == 1 {
		return all[0]
	}
	id, name := names.Find, func(name string) int { return slices.Index(names, name) }
	account := func(a market.Address) int { return id(string(a)) }
	event := func(r market.EventRef) int { return max(id(r.EventID), id(r.EventSlug)) }
	search := func(k queries.SearchKey) int { return name(k.Venue) }
	out := Sources{MaxCalls: all[0].MaxCalls}
	route(names, all, &out, id, func(s *Sources) *reads.Source[string, market.Price] { return &s.Prices })
	route(names, all, &out, id, func(s *Sources) *reads.Source[string, market.Spread] { return &s.Spreads })
	route(names, all, &out, func(b queries.Book) int { return id(b.TokenID) }, func(s *Sources) *reads.Source[queries.Book, market.Book] { return &s.Books })
	route(names, all, &out, func(h queries.PriceHistory) int { return id(h.TokenID) }, func(s *Sources) *reads.Source[queries.PriceHistory, market.PriceHistory] { return &s.Histories })
	route(names, all, &out, func(r market.MarketRef) int { return id(r.Value) }, func(s *Sources) *reads.Source[market.MarketRef, market.Market] { return &s.Markets })
	route(names, all, &out, event, func(s *Sources) *reads.Source[market.EventRef, market.Event] { return &s.Events })
	route(names, all, &out, search, func(s *Sources) *reads.Source[queries.SearchKey, queries.SearchPage] { return &s.Searches })
	route(names, all, &out, search, func(s *Sources) *reads.Source[queries.SearchKey, queries.EventPage] { return &s.EventSearches })
	route(names, all, &out, name, func(s *Sources) *reads.Source[string, queries.Categories] { return &s.Categories })
	route(names, all, &out, func(t queries.MarketTrades) int { return id(t.MarketID) }, func(s *Sources) *reads.Source[queries.MarketTrades, queries.TradePage] { return &s.MarketTrades })
	route(names, all, &out, account, func(s *Sources) *reads.Source[market.Address, market.Balance] { return &s.Balances })
	route(names, all, &out, account, func(s *Sources) *reads.Source[market.Address, []market.Position] { return &s.Positions })
	route(names, all, &out, account, func(s *Sources) *reads.Source[market.Address, []market.Order] { return &s.Orders })
	route(names, all, &out, func(k queries.TradesKey) int { return account(k.Address) }, func(s *Sources) *reads.Source[queries.TradesKey, queries.TradePage] { return &s.Trades })
	route(names, all, &out, func(k queries.HistoryKey) int { return account(k.Address) }, func(s *Sources) *reads.Source[queries.HistoryKey, queries.HistoryPage] { return &s.Records })
	return out
}

// route sets one field of out.
func route[K comparable, T any](names market.Names, all []Sources, out *Sources, venue func(K) int, field func(*Sources) *reads.Source[K, T]) {
	r := &routed[K, T]{names: names, venue: venue}
	for i := range all {
		r.of = append(r.of, *field(&all[i]))
	}
	*field(out) = r
}

// routed is a Source of keys of several venues. venue returns the index in of of a key's venue.
type routed[K comparable, T any] struct {
	names market.Names
	venue func(K) int
	of    []reads.Source[K, T]
}

// group calls f with the keys of each venue that has any.
func (r *routed[K, T]) group(keys []K, f func(venue int, keys []K)) {
	all := make([][]K, len(r.of))
	for _, key := range keys {
		venue := r.venue(key)
		all[venue] = append(all[venue], key)
	}
	for venue, keys := range all {
		if len(keys) > 0 {
			f(venue, keys)
		}
	}
}

// withoutCredentials returns the context for calls to a venue. A further venue takes no credentials.
func withoutCredentials(ctx context.Context, venue int) context.Context {
	if venue == 0 {
		return ctx
	}
	return request.WithCredentials(ctx, nil)
}

// Lookup implements reads.Source. It looks up each run of keys of one venue, which in most lists are all keys.
func (r *routed[K, T]) Lookup(ctx context.Context, keys []K, out []reads.Result[*T], missing []int) []int {
	for i, end := 0, 0; i < len(keys); i = end {
		venue, known := r.venue(keys[i]), len(missing)
		for end = i + 1; end < len(keys) && r.venue(keys[end]) == venue; end++ {
		}
		missing = r.of[venue].Lookup(ctx, keys[i:end], out[i:end], missing)
		for j := known; j < len(missing); j++ {
			missing[j] += i
		}
	}
	return missing
}

// Refresh implements reads.Source.
func (r *routed[K, T]) Refresh(ctx context.Context, keys []K) {
	r.group(keys, func(venue int, keys []K) { r.of[venue].Refresh(withoutCredentials(ctx, venue), keys) })
}

// Calls implements reads.Source.
func (r *routed[K, T]) Calls(keys []K) (n int) {
	r.group(keys, func(venue int, keys []K) { n += r.of[venue].Calls(keys) })
	return n
}

// Batches implements reads.Source. The keys of a batch belong to one venue.
func (r *routed[K, T]) Batches(keys []K) (batches [][]K) {
	r.group(keys, func(venue int, keys []K) { batches = append(batches, r.of[venue].Batches(keys)...) })
	return batches
}

// Fetch implements reads.Source for the keys of one batch. The errors of a further venue contain its name.
func (r *routed[K, T]) Fetch(ctx context.Context, keys []K) []reads.Result[*T] {
	venue := r.venue(keys[0])
	out := r.of[venue].Fetch(withoutCredentials(ctx, venue), keys)
	for i := range out {
		out[i].Err = market.AtVenue(r.names[venue], out[i].Err)
	}
	return out
}
