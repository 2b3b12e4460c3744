package cache

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testVenue is a venue.Reader whose results a test sets. It has a value for every key that is not in unknown. In a list, an id that begins
// with "bad" gets an error.
type testVenue struct {
	mu    sync.Mutex
	asked []ask
	// bookDepths are the depths of all calls for books.
	bookDepths []int
	// running is the number of calls in flight, and mostRunning is the greatest number of calls that were in flight at once.
	running, mostRunning int
	unknown              map[string]bool

	// latency is the duration of each call. If blocked is set, each call waits until the test receives from blocked.
	latency time.Duration
	blocked chan struct{}
	// fail returns the error of each call. It may panic.
	fail func(a ask) error
	// batch is the greatest number of ids in a list call; the default is 40. cost returns the result of Cost; the default is 1.
	batch int
	cost  func(keys int) int
	// unsupported contains the endpoints that Can refuses.
	unsupported map[upstream.Endpoint]bool
	// These functions make values. If a function is nil, the venue returns a default value.
	market func(id string) *market.Market
	book   func(token string, depth int) *market.Book
	search func(q queries.Search) *queries.SearchPage
	short  bool // whether the response to a list lacks the result of the first key
}

// ask is a call that the venue got.
type ask struct {
	endpoint    upstream.Endpoint
	keys        []string
	ctx         context.Context
	call        upstream.Call
	at          time.Time
	credentials string // in wire form
}

func (v *testVenue) call(ctx context.Context, call upstream.Call, e upstream.Endpoint, keys ...string) error {
	if err := call.Admit(ctx); err != nil {
		return err
	}
	a := ask{endpoint: e, keys: slices.Clone(keys), ctx: ctx, call: call, at: time.Now()}
	if c := call.Credentials; c != nil {
		a.credentials = c.Wire()
	}
	v.mu.Lock()
	v.asked = append(v.asked, a)
	v.running++
	v.mostRunning = max(v.mostRunning, v.running)
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		v.running--
		v.mu.Unlock()
		if w := call.Waiters; w != nil {
			w.NoteCall(upstream.HTTPCall{Endpoint: e.String(), Keys: len(keys), Started: a.at, Elapsed: time.Since(a.at), Outcome: upstream.OutcomeOK})
		}
	}()
	if v.blocked != nil {
		select {
		case v.blocked <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if v.latency > 0 {
		select {
		case <-time.After(v.latency):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if v.fail != nil {
		return v.fail(a)
	}
	return nil
}

// calls returns the calls to the given endpoints, or all calls if no endpoint is given.
func (v *testVenue) calls(endpoints ...upstream.Endpoint) []ask {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []ask
	for _, a := range v.asked {
		if len(endpoints) == 0 || slices.Contains(endpoints, a.endpoint) {
			out = append(out, a)
		}
	}
	return out
}

// counts returns the number of reads of each key.
func (v *testVenue) counts() map[string]int {
	out := map[string]int{}
	for _, a := range v.calls() {
		for _, k := range a.keys {
			out[k]++
		}
	}
	return out
}

func (v *testVenue) knows(id string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return !v.unknown[id]
}

func (v *testVenue) setUnknown(id string, unknown bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.unknown == nil {
		v.unknown = map[string]bool{}
	}
	v.unknown[id] = unknown
}

func eachOf[T any](v *testVenue, ctx context.Context, call upstream.Call, e upstream.Endpoint, keys []string, value func(id string) *T) ([]upstream.Result[*T], error) {
	if err := v.call(ctx, call, e, keys...); err != nil {
		return nil, err
	}
	out := make([]upstream.Result[*T], len(keys))
	for i, id := range keys {
		switch {
		case strings.HasPrefix(id, "bad"):
			out[i].Err = market.Errorf(market.CodeUpstreamBadResponse, "a bad element")
		case v.knows(id):
			out[i].Value = value(id)
		}
	}
	if v.short {
		out = out[1:]
	}
	return out, nil
}

func single[T any](v *testVenue, ctx context.Context, call upstream.Call, e upstream.Endpoint, key string, value func() *T) (*T, error) {
	if err := v.call(ctx, call, e, key); err != nil || !v.knows(key) {
		return nil, err
	}
	return value(), nil
}

func (v *testVenue) Prices(ctx context.Context, call upstream.Call, ids []string) ([]upstream.Result[*market.Price], error) {
	return eachOf(v, ctx, call, upstream.EndpointPrices, ids, func(id string) *market.Price { return &market.Price{TokenID: id, Basis: market.BasisVenue} })
}

func (v *testVenue) Spreads(ctx context.Context, call upstream.Call, ids []string) ([]upstream.Result[*market.Spread], error) {
	return eachOf(v, ctx, call, upstream.EndpointSpreads, ids, func(id string) *market.Spread { return &market.Spread{TokenID: id} })
}

func (v *testVenue) Can(e upstream.Endpoint) error {
	if v.unsupported[e] {
		return market.Errorf(market.CodeUnsupported, "the venue does not serve %s", e)
	}
	return nil
}

func (v *testVenue) MaxKeys(e upstream.Endpoint) int {
	switch e {
	case upstream.EndpointPrices, upstream.EndpointSpreads, upstream.EndpointMarketsByID, upstream.EndpointMarketsByToken:
		return or(v.batch, 40)
	}
	return 1
}

func (v *testVenue) Cost(_ upstream.Endpoint, keys, _ int) int {
	if v.cost == nil {
		return 1
	}
	return v.cost(keys)
}

func (v *testVenue) Books(ctx context.Context, call upstream.Call, books []queries.Book) ([]upstream.Result[*market.Book], error) {
	return answer(v.Book(ctx, call, books[0].TokenID, books[0].Depth))
}

func (v *testVenue) PriceHistories(ctx context.Context, call upstream.Call, histories []queries.PriceHistory) ([]upstream.Result[*market.PriceHistory], error) {
	return answer(v.PriceHistory(ctx, call, histories[0].TokenID, histories[0].From, histories[0].To))
}

func (v *testVenue) Event(ctx context.Context, call upstream.Call, ref market.EventRef) (*market.Event, error) {
	var e *market.Event
	for q := (queries.Search{EventID: ref.EventID, EventSlug: ref.EventSlug}); ; {
		page, err := v.Search(ctx, call, q)
		if err != nil || page == nil {
			return nil, err
		}
		if e == nil {
			e = &market.Event{EventID: ref.EventID, Slug: ref.EventSlug}
		}
		for _, m := range page.Markets {
			e.Include(m)
		}
		if q.Page = page.Next; q.Page == "" {
			return e, nil
		}
	}
}

func (v *testVenue) SearchEvents(ctx context.Context, call upstream.Call, q queries.Search) (*queries.EventPage, error) {
	page, err := v.Search(ctx, call, q)
	if err != nil || page == nil {
		return nil, err
	}
	return queries.GroupByEvent(page), nil
}

func (v *testVenue) Categories(ctx context.Context, call upstream.Call) (*queries.Categories, error) {
	return queries.CountCategories(func(page string) (*queries.SearchPage, error) { return v.Search(ctx, call, queries.Search{Page: page}) })
}

func (v *testVenue) MarketTrades(ctx context.Context, call upstream.Call, q queries.MarketTrades) (*queries.TradePage, error) {
	return single(v, ctx, call, upstream.EndpointMarketTrades, q.MarketID+q.TokenID, func() *queries.TradePage {
		return &queries.TradePage{Trades: []market.Trade{{MarketID: q.MarketID, TokenID: q.TokenID, Side: market.SideBuy, Timestamp: time.Unix(9, 0)}}, Next: fmt.Sprint(q.Limit, q.Page)}
	})
}

func (v *testVenue) Book(ctx context.Context, call upstream.Call, id string, depth int) (*market.Book, error) {
	v.mu.Lock()
	v.bookDepths = append(v.bookDepths, depth)
	v.mu.Unlock()
	return single(v, ctx, call, upstream.EndpointBook, id, func() *market.Book {
		if v.book != nil {
			return v.book(id, depth)
		}
		return &market.Book{TokenID: id, Depth: depth, Bids: side(depth, -1), Asks: side(depth, 1)}
	})
}

// side returns a side with the given number of levels, whose prices rise (order 1) or fall (order -1) from 0.5.
func side(levels, order int) market.Side {
	list := make([]market.Level, levels)
	for i := range list {
		list[i] = market.Level{Price: market.NewDecimal(5000+int64(order*i), -4), Size: one}
	}
	return market.NewSide(list)
}

func (v *testVenue) PriceHistory(ctx context.Context, call upstream.Call, id string, from, to market.Date) (*market.PriceHistory, error) {
	return single(v, ctx, call, upstream.EndpointPriceHistory, id, func() *market.PriceHistory {
		return &market.PriceHistory{TokenID: id, From: from, To: to}
	})
}

func (v *testVenue) Search(ctx context.Context, call upstream.Call, q queries.Search) (*queries.SearchPage, error) {
	return single(v, ctx, call, upstream.EndpointSearch, q.Text+q.EventID+q.EventSlug+q.Page, func() *queries.SearchPage {
		if v.search != nil {
			return v.search(q)
		}
		return &queries.SearchPage{Markets: []*market.Market{{MarketID: "m1", Status: market.StatusOpen, EventID: q.EventID, EventSlug: q.EventSlug}}}
	})
}

func (v *testVenue) marketOf(id string) *market.Market {
	if v.market != nil {
		return v.market(id)
	}
	return &market.Market{MarketID: id, Status: market.StatusOpen}
}

func (v *testVenue) MarketsByID(ctx context.Context, call upstream.Call, ids []string) ([]upstream.Result[*market.Market], error) {
	return eachOf(v, ctx, call, upstream.EndpointMarketsByID, ids, v.marketOf)
}

func (v *testVenue) MarketsByToken(ctx context.Context, call upstream.Call, ids []string) ([]upstream.Result[*market.Market], error) {
	return eachOf(v, ctx, call, upstream.EndpointMarketsByToken, ids, v.marketOf)
}

func (v *testVenue) MarketBySlug(ctx context.Context, call upstream.Call, slug string) (*market.Market, error) {
	return single(v, ctx, call, upstream.EndpointMarketBySlug, slug, func() *market.Market { return v.marketOf(slug) })
}

// fingerprint returns a hash of credentials as a number. The venue puts the fingerprint into all values of user data.
func fingerprint(c *market.Credentials) string {
	h := fnv.New64a()
	if c != nil {
		_, _ = h.Write([]byte(c.Wire()))
	}
	return strconv.FormatUint(h.Sum64(), 10)
}

func (v *testVenue) Balance(ctx context.Context, call upstream.Call, a market.Address) (*market.Balance, error) {
	return single(v, ctx, call, upstream.EndpointBalance, string(a), func() *market.Balance {
		cash := market.MustDecimal(fingerprint(call.Credentials))
		return &market.Balance{CashBalance: &cash}
	})
}

func (v *testVenue) Positions(ctx context.Context, call upstream.Call, a market.Address) ([]market.Position, error) {
	p, err := single(v, ctx, call, upstream.EndpointPositions, string(a), func() *market.Position { return &market.Position{Outcome: fingerprint(call.Credentials)} })
	if p == nil {
		return nil, err
	}
	return []market.Position{*p}, nil
}

func (v *testVenue) Orders(ctx context.Context, call upstream.Call, a market.Address) ([]market.Order, error) {
	o, err := single(v, ctx, call, upstream.EndpointOrders, string(a), func() *market.Order { return &market.Order{Outcome: fingerprint(call.Credentials)} })
	if o == nil {
		return nil, err
	}
	return []market.Order{*o}, nil
}

func (v *testVenue) Trades(ctx context.Context, call upstream.Call, a market.Address, q queries.Trades) (*queries.TradePage, error) {
	return single(v, ctx, call, upstream.EndpointTrades, string(a), func() *queries.TradePage {
		return &queries.TradePage{Trades: []market.Trade{{Outcome: fingerprint(call.Credentials), MarketID: q.MarketID}}, Next: fmt.Sprint(q.From, q.To, q.Limit, q.Page)}
	})
}

func (v *testVenue) History(ctx context.Context, call upstream.Call, a market.Address, q queries.History) (*queries.HistoryPage, error) {
	return single(v, ctx, call, upstream.EndpointHistory, string(a), func() *queries.HistoryPage {
		return &queries.HistoryPage{Records: []market.HistoryRecord{{Outcome: fingerprint(call.Credentials)}}, Next: fmt.Sprint(q.Kinds, q.From, q.To, q.Limit, q.Page)}
	})
}

// open returns a cache in front of v. The cache is closed at the end of the test. Call open in a synctest bubble.
func open(t *testing.T, v venue.Reader, change ...func(*Config)) *Cache {
	t.Helper()
	cfg := DefaultConfig()
	for _, f := range change {
		f(&cfg)
	}
	c := New(v, cfg)
	t.Cleanup(c.Close)
	return c
}

// readAll reads keys as package loaders does: it looks up all keys, refreshes the stale ones and fetches the missing ones.
func readAll[K comparable, T any](ctx context.Context, s reads.Source[K, T], keys ...K) []reads.Result[*T] {
	out := make([]reads.Result[*T], len(keys))
	missing := s.Lookup(ctx, keys, out, nil)
	var stale []K
	for i := range out {
		if out[i].Value.Stale {
			stale = append(stale, keys[i])
		}
	}
	s.Refresh(ctx, stale)
	if len(missing) == 0 {
		return out
	}
	rest := make([]K, len(missing))
	for j, i := range missing {
		rest[j] = keys[i]
	}
	for j, r := range s.Fetch(ctx, rest) {
		out[missing[j]] = r
	}
	return out
}

func readOne[K comparable, T any](ctx context.Context, s reads.Source[K, T], key K) (reads.Value[*T], error) {
	r := readAll(ctx, s, key)[0]
	return r.Value, r.Err
}

func mustRead[K comparable, T any](t *testing.T, s reads.Source[K, T], key K) reads.Value[*T] {
	t.Helper()
	r, err := readOne(t.Context(), s, key)
	if err != nil {
		t.Fatalf("reading %+v: %v", key, err)
	}
	return r
}

func ids(prefix string, from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("%s%03d", prefix, i))
	}
	return out
}
