package exec_test

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oddsgraph/graph"
	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/upstream"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
)

// universe is a venue with random data. Some values do not exist, some must be fetched, and some fetches fail. The seed of the
// universe and the key determine each value, so that all reads of a key return the same value.
type universe struct {
	seed uint64
	// misses is the percentage of keys whose values must be fetched. failures is the percentage of keys whose fetches fail, and
	// absences the percentage of keys without a value.
	misses, failures, absences int
	// damaged is the percentage of lists in which some rows could not be decoded.
	damaged int
	// hangs is the percentage of keys whose fetches never return. panics is the percentage of resolver calls that panic.
	hangs, panics int
	// fetched counts the fetches in contexts with fromMemoryKey. There should be none.
	fetched atomic.Int64
	// handles maps a random number, which identifies a cache entry, to the handle of the entry.
	handles sync.Map
	// books maps tokens to the books that were read, so that all reads of a token return the same book.
	books sync.Map
}

var (
	now     = time.Date(2026, 3, 14, 15, 9, 26, 535_000_000, time.UTC)
	wallets = []market.Address{"0x1111111111111111111111111111111111111111", "0x2222222222222222222222222222222222222222"}
)

const (
	tokens  = 12
	markets = 6
	events  = 3
)

// texts contains texts that venues might send and that are hard to encode in JSON.
var texts = []string{
	"plain", "", "two words", "ümläut und ß", "日本語", "👍 emoji", `quote " and \ backslash`, "tab\tline\nreturn\r", "\x00\x01\x1f\x7f", "</script>&",
	"\u2028\u2029", "bad \xff\xfe utf-8 \xc3", "\xed\xa0\x80", "{\"json\": [1]}", strings.Repeat("long ", 100),
}

var numbers = []string{
	"0", "1", "0.5", "0.50", "-3.25", "0.000000000001", "123456789012345678901234567890.123456789", "1e30", "1.5e-20", "99999999.99", "0.00",
	"-0", "1e64", "7", "0.3333333333333333333333333333333333",
}

func (u *universe) random(key string) *rand.Rand {
	h := fnv.New64a()
	_, _ = io.WriteString(h, key)
	return rand.New(rand.NewPCG(u.seed, h.Sum64()))
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func percent(r *rand.Rand, n int) bool { return r.IntN(100) < n }

func decimal(r *rand.Rand) market.Decimal { return market.MustDecimal(pick(r, numbers)) }

func price(r *rand.Rand) market.Decimal { return market.NewDecimal(int64(r.IntN(1001)), -3) }

func maybe[T any](r *rand.Rand, v T) *T {
	if percent(r, 25) {
		return nil
	}
	return &v
}

func instant(r *rand.Rand) time.Time {
	switch r.IntN(4) {
	case 0:
		return time.Time{}
	case 1:
		return now.Add(time.Duration(r.Int64N(int64(1e6 * time.Hour)))).In(time.FixedZone("x", r.IntN(20000)-10000))
	default:
		return now.Add(-time.Duration(r.Int64N(int64(1000 * time.Hour))))
	}
}

func tokenID(n int) string  { return fmt.Sprintf("token-%d", n) }
func marketID(n int) string { return fmt.Sprintf("market-%d", n) }
func eventID(n int) string  { return fmt.Sprintf("event-%d", n) }

func (u *universe) meta(r *rand.Rand) reads.Meta {
	return reads.Meta{AsOf: instant(r), ReceivedAt: now.Add(-time.Duration(r.IntN(1e9))), Source: pick(r, []market.Source{market.SourceREST, market.SourceStream}),
		Stale: percent(r, 20)}
}

func (u *universe) leftOut(r *rand.Rand) (out market.LeftOut) {
	if percent(r, u.damaged) {
		out = append(out, market.Errorf(market.CodeUpstreamBadResponse, "row 3 could not be read"))
	}
	return out
}

func (u *universe) market(n int, summary bool) *market.Market {
	r := u.random("market " + marketID(n))
	m := &market.Market{
		MarketID: marketID(n), Slug: fmt.Sprintf("slug-%d", n), Question: pick(r, texts), GroupItemTitle: pick(r, texts), Description: pick(r, texts),
		Image: pick(r, texts), Category: pick(r, texts), Status: pick(r, []market.Status{market.StatusOpen, market.StatusResolved, market.StatusUnknown, market.StatusClosed, "BRAND NEW"}),
		StatusRaw: pick(r, texts), AcceptingOrders: maybe(r, percent(r, 50)), StartsAt: instant(r), EndsAt: instant(r), UpdatedAt: instant(r),
		Volume: maybe(r, decimal(r)), Volume24h: maybe(r, decimal(r)), Liquidity: maybe(r, decimal(r)), TickSize: maybe(r, decimal(r)), MinOrderSize: maybe(r, decimal(r)),
	}
	for range r.IntN(4) {
		m.Tags = append(m.Tags, pick(r, texts))
	}
	if e := r.IntN(events + 1); e < events {
		// With the title and the category, Market.event does not depend on the selected fields, which gqlgen's executor cannot tell.
		m.EventID, m.EventSlug = eventID(e), fmt.Sprintf("event-slug-%d", e)
		m.EventTitle, m.Category = cmp.Or(pick(r, texts), "a title"), cmp.Or(m.Category, "a category")
	}
	for i := range 2 {
		o := market.Outcome{TokenID: tokenID(2*n + i), Label: pick(r, []string{"YES", "no", "Other", pick(r, texts)}), Price: maybe(r, price(r))}
		if m.Status == market.StatusResolved && percent(r, 80) {
			won := i == n%2
			o.Winner = &won
		}
		m.Outcomes = append(m.Outcomes, o)
	}
	if m.Status == market.StatusResolved && percent(r, 70) {
		m.Resolution = &market.Resolution{Outcome: pick(r, []string{"", m.Outcomes[0].Label}), ResolvedAt: instant(r), Source: pick(r, texts)}
	}
	if summary {
		m.Summary, m.Description, m.Resolution = true, "", nil
	}
	return m
}

func (u *universe) positions(a market.Address) []market.Position {
	r := u.random("positions " + string(a))
	var list []market.Position
	for i := range r.IntN(9) {
		n := r.IntN(tokens)
		p := market.Position{MarketID: marketID(n / 2), TokenID: tokenID(n), Outcome: fmt.Sprint(i, pick(r, texts)), Size: decimal(r), AvgPrice: maybe(r, price(r)),
			CurrentPrice: maybe(r, price(r)), UnrealizedPnl: maybe(r, decimal(r))}
		if percent(r, 30) { // a position without a token id: the market and the outcome's label identify the token
			p.TokenID, p.Outcome = "", u.market(n/2, false).Outcomes[n%2].Label
		}
		list = append(list, p)
	}
	return list
}

func (u *universe) orders(a market.Address) []market.Order {
	r := u.random("orders " + string(a))
	var list []market.Order
	for i := range r.IntN(6) {
		n := r.IntN(tokens)
		list = append(list, market.Order{OrderID: fmt.Sprint("order", i), MarketID: pick(r, []string{"", marketID(n / 2)}), TokenID: pick(r, []string{"", tokenID(n)}),
			Side: pick(r, []market.OrderSide{market.SideBuy, market.SideSell, market.SideUnknown}), SideRaw: pick(r, texts), Outcome: pick(r, texts),
			Price: price(r), Size: decimal(r), FilledSize: price(r), Status: market.OrderOpen, StatusRaw: pick(r, texts), CreatedAt: instant(r)})
	}
	return list
}

func (u *universe) book(id string) *market.Book {
	if b, ok := u.books.Load(id); ok {
		return b.(*market.Book)
	}
	r := u.random("book " + id)
	b := &market.Book{TokenID: id, Timestamp: instant(r), Spread: maybe(r, price(r)), Epoch: pick(r, texts), Seq: uint64(r.IntN(3)), Hash: pick(r, texts), Depth: queries.MaxBookDepth}
	var bids, asks []market.Level
	for i := range r.IntN(70) {
		bids = append(bids, market.Level{Price: market.NewDecimal(int64(500-i), -3), Size: price(r)})
	}
	for i := range r.IntN(70) {
		asks = append(asks, market.Level{Price: market.NewDecimal(int64(501+i), -3), Size: price(r)})
	}
	b.Bids, b.Asks = market.NewSide(bids), market.NewSide(asks)
	first, _ := u.books.LoadOrStore(id, b)
	return first.(*market.Book)
}

// source is a reads.Source over the universe.
type source[K comparable, T any] struct {
	u    *universe
	name string
	// value returns the value of a key, or nil if the key has no value.
	value func(key K, r *rand.Rand) *T
	// entry maps a key to the key of its cache entry. If entry is nil, both keys are equal.
	entry func(key K) string
}

func (s source[K, T]) outcome(key K) (r *rand.Rand, inMemory, fails bool) {
	name := fmt.Sprint(key)
	if s.entry != nil {
		name = s.entry(key)
	}
	r = s.u.random(s.name + " " + name)
	return r, !percent(r, s.u.misses), percent(r, s.u.failures)
}

func (s source[K, T]) read(key K, r *rand.Rand) (read reads.Value[*T]) {
	absent := percent(r, s.u.absences)
	read.Meta = s.u.meta(r)
	handle, _ := s.u.handles.LoadOrStore(r.Uint64(), reads.NewHandle(now))
	read.Handle = handle.(*reads.Handle)
	if !absent {
		read.Value = s.value(key, r)
	}
	return read
}

// Lookup implements reads.Source.
func (s source[K, T]) Lookup(_ context.Context, keys []K, out []reads.Result[*T], missing []int) []int {
	for i, key := range keys {
		r, inMemory, fails := s.outcome(key)
		if !inMemory || fails {
			missing = append(missing, i)
			continue
		}
		out[i].Value = s.read(key, r)
	}
	return missing
}

// Refresh implements reads.Source.
func (source[K, T]) Refresh(context.Context, []K) {}

// Batches implements reads.Source.
func (source[K, T]) Batches(keys []K) [][]K { return [][]K{keys} }

// Calls implements reads.Source.
func (source[K, T]) Calls(keys []K) int { return len(keys) }

// Fetch implements reads.Source.
func (s source[K, T]) Fetch(ctx context.Context, keys []K) []reads.Result[*T] {
	if ctx.Value(fromMemoryKey{}) != nil {
		s.u.fetched.Add(1)
	}
	out := make([]reads.Result[*T], len(keys))
	for i, key := range keys {
		r, _, fails := s.outcome(key)
		if percent(s.u.random(fmt.Sprint("hang ", s.name, key)), s.u.hangs) {
			<-ctx.Done()
			out[i].Err = ctx.Err()
			continue
		}
		if fails {
			out[i].Err = pick(r, []error{
				market.Errorf(market.CodeUpstreamTimeout, "the venue took too long"), upstream.RateLimited(time.Second), fmt.Errorf("secret %v", key),
			})
			continue
		}
		out[i].Value = s.read(key, r)
	}
	return out
}

func (u *universe) sources() loaders.Sources {
	number := func(id, prefix string) int {
		var n int
		if _, err := fmt.Sscanf(id, prefix+"-%d", &n); err != nil {
			return -1
		}
		return n
	}
	known := func(id string) bool { n := number(id, "token"); return n >= 0 && n < tokens }
	return loaders.Sources{
		Prices: source[string, market.Price]{u: u, name: "price", value: func(id string, r *rand.Rand) *market.Price {
			if !known(id) {
				return nil
			}
			return &market.Price{TokenID: id, Price: price(r), Basis: pick(r, []market.PriceBasis{market.BasisVenue, market.BasisLast, market.BasisMidpoint}), Timestamp: instant(r)}
		}},
		Spreads: source[string, market.Spread]{u: u, name: "spread", value: func(id string, r *rand.Rand) *market.Spread {
			if !known(id) {
				return nil
			}
			return &market.Spread{TokenID: id, BestBid: maybe(r, price(r)), BestAsk: maybe(r, price(r)), Spread: maybe(r, price(r)), Timestamp: instant(r)}
		}},
		Books: source[queries.Book, market.Book]{u: u, name: "book", entry: func(q queries.Book) string { return q.TokenID }, value: func(q queries.Book, _ *rand.Rand) *market.Book {
			if !known(q.TokenID) {
				return nil
			}
			return u.book(q.TokenID) // the book may be deeper than requested, like a cached book
		}},
		Histories: source[queries.PriceHistory, market.PriceHistory]{u: u, name: "history", value: func(q queries.PriceHistory, r *rand.Rand) *market.PriceHistory {
			h := &market.PriceHistory{TokenID: q.TokenID, From: q.From, To: q.To, LeftOut: u.leftOut(r)}
			for i := range r.IntN(20) {
				h.Points = append(h.Points, market.PricePoint{Timestamp: now.Add(time.Duration(i) * time.Hour), Price: price(r), Volume: maybe(r, decimal(r))})
			}
			return h
		}},
		Markets: source[market.MarketRef, market.Market]{u: u, name: "market", value: func(ref market.MarketRef, _ *rand.Rand) *market.Market {
			n := number(ref.Value, map[market.MarketRefKind]string{market.ByMarketID: "market", market.BySlug: "slug", market.ByToken: "token"}[ref.By])
			if ref.By == market.ByToken && n >= 0 {
				n /= 2
			}
			if n < 0 || n >= markets {
				return nil
			}
			return u.market(n, false)
		}},
		Events: source[market.EventRef, market.Event]{u: u, name: "event", value: func(ref market.EventRef, r *rand.Rand) *market.Event {
			n := max(number(ref.EventID, "event"), number(strings.Replace(ref.EventSlug, "event-slug", "event", 1), "event"))
			if n < 0 || n >= events {
				return nil
			}
			e := &market.Event{EventID: eventID(n), Slug: pick(r, texts), Title: pick(r, texts), LeftOut: u.leftOut(r)}
			for i := range markets {
				if percent(r, 50) {
					e.Include(u.market(i, true))
				}
			}
			return e
		}},
		Balances: source[market.Address, market.Balance]{u: u, name: "balance", value: func(_ market.Address, r *rand.Rand) *market.Balance {
			return &market.Balance{PortfolioValue: maybe(r, decimal(r)), CashBalance: maybe(r, decimal(r)), PositionsValue: maybe(r, decimal(r)), TotalValue: maybe(r, decimal(r)), UpdatedAt: instant(r)}
		}},
		Positions: source[market.Address, []market.Position]{u: u, name: "positions", value: func(a market.Address, _ *rand.Rand) *[]market.Position {
			list := u.positions(a)
			return &list
		}},
		Orders: source[market.Address, []market.Order]{u: u, name: "orders", value: func(a market.Address, _ *rand.Rand) *[]market.Order {
			list := u.orders(a)
			return &list
		}},
		Searches:      source[queries.SearchKey, queries.SearchPage]{u: u, name: "search", value: u.search},
		EventSearches: source[queries.SearchKey, queries.EventPage]{u: u, name: "event search", value: u.searchEvents},
		Categories: source[string, queries.Categories]{u: u, name: "categories", value: func(_ string, r *rand.Rand) *queries.Categories {
			return &queries.Categories{List: []queries.Category{{Name: pick(r, texts), OpenMarkets: r.IntN(9), Complete: true}, {Name: pick(r, texts), IsTag: true}}}
		}},
		MarketTrades: source[queries.MarketTrades, queries.TradePage]{u: u, name: "public trades", value: func(q queries.MarketTrades, r *rand.Rand) *queries.TradePage {
			return u.trades(queries.TradesKey{Query: queries.Trades{Limit: q.Limit, Page: q.Page}}, r)
		}},
		Trades:  source[queries.TradesKey, queries.TradePage]{u: u, name: "trades", value: u.trades},
		Records: source[queries.HistoryKey, queries.HistoryPage]{u: u, name: "history", value: u.history},
	}
}

func (u *universe) search(q queries.SearchKey, r *rand.Rand) *queries.SearchPage {
	p := &queries.SearchPage{Total: maybe(r, r.IntN(100)), LeftOut: u.leftOut(r)}
	if q.Page == "" && percent(r, 40) {
		p.Next = "2"
	}
	for n := range min(q.Limit, markets) {
		if percent(r, 70) {
			p.Markets = append(p.Markets, u.market(n, percent(r, 60)))
		}
	}
	return p
}

func (u *universe) searchEvents(q queries.SearchKey, r *rand.Rand) *queries.EventPage {
	q.Limit = markets
	p := queries.GroupByEvent(u.search(q, r))
	for i := range p.Events {
		e := &p.Events[i]
		if e.Whole = percent(r, 50); e.Whole {
			for _, m := range e.Matches {
				e.Include(m)
			}
		}
	}
	return p
}

func (u *universe) trades(key queries.TradesKey, r *rand.Rand) *queries.TradePage {
	q := key.Query
	p := &queries.TradePage{Total: maybe(r, r.IntN(100)), LeftOut: u.leftOut(r)}
	for i := range min(q.Limit, r.IntN(6)) {
		n := r.IntN(tokens)
		p.Trades = append(p.Trades, market.Trade{TradeID: pick(r, []string{"", fmt.Sprint(q.Page, i)}), MarketID: pick(r, []string{"", marketID(n / 2)}), TokenID: pick(r, []string{"", tokenID(n)}),
			Outcome: pick(r, texts), Side: market.SideSell, SideRaw: pick(r, texts), Price: price(r), Size: decimal(r), Fee: maybe(r, decimal(r)), Timestamp: instant(r), TransactionHash: pick(r, texts)})
	}
	return p
}

func (u *universe) history(key queries.HistoryKey, r *rand.Rand) *queries.HistoryPage {
	q := key.Page
	p := &queries.HistoryPage{Total: maybe(r, r.IntN(100)), LeftOut: u.leftOut(r)}
	for i := range min(q.Limit, r.IntN(6)) {
		p.Records = append(p.Records, market.HistoryRecord{ID: fmt.Sprint(q.Page, i), Kind: pick(r, []market.HistoryKind{market.HistoryTrade, market.HistoryUnknown}), KindRaw: pick(r, texts),
			Timestamp: instant(r), Amount: maybe(r, decimal(r)), MarketID: pick(r, []string{"", marketID(r.IntN(markets))}), Outcome: pick(r, texts),
			Side: pick(r, []market.OrderSide{"", market.SideBuy}), Price: maybe(r, price(r)), Size: maybe(r, decimal(r)), TransactionHash: pick(r, texts)})
	}
	return p
}

// panicky makes some resolvers panic for some of their arguments.
type panicky struct {
	*resolvers.Resolver
	u *universe
}

func (p panicky) maybePanic(of ...any) {
	if key := fmt.Sprint("panic ", of); percent(p.u.random(key), p.u.panics) {
		panic(key)
	}
}

func (p panicky) Query() graph.QueryResolver   { return panickyQuery{p.Resolver.Query(), p} }
func (p panicky) Token() graph.TokenResolver   { return panickyToken{p.Resolver.Token(), p} }
func (p panicky) User() graph.UserResolver     { return panickyUser{p.Resolver.User(), p} }
func (p panicky) Market() graph.MarketResolver { return panickyMarket{p.Resolver.Market(), p} }

type panickyQuery struct {
	graph.QueryResolver
	p panicky
}

func (q panickyQuery) Tokens(ctx context.Context, ids []string) ([]*model.Token, error) {
	q.p.maybePanic("tokens", ids)
	return q.QueryResolver.Tokens(ctx, ids)
}

func (q panickyQuery) Nodes(ctx context.Context, ids []string) ([]model.Node, error) {
	q.p.maybePanic("nodes", ids)
	return q.QueryResolver.Nodes(ctx, ids)
}

type panickyToken struct {
	graph.TokenResolver
	p panicky
}

func (t panickyToken) Price(ctx context.Context, obj *model.Token) (*model.TokenPrice, error) {
	t.p.maybePanic("price", obj.TokenID)
	return t.TokenResolver.Price(ctx, obj)
}

func (t panickyToken) Market(ctx context.Context, obj *model.Token) (*model.Market, error) {
	t.p.maybePanic("market", obj.TokenID)
	return t.TokenResolver.Market(ctx, obj)
}

type panickyUser struct {
	graph.UserResolver
	p panicky
}

func (r panickyUser) Balance(ctx context.Context, obj *model.User) (*model.Balance, error) {
	r.p.maybePanic("balance", obj.Address)
	return r.UserResolver.Balance(ctx, obj)
}

type panickyMarket struct {
	graph.MarketResolver
	p panicky
}

func (m panickyMarket) Description(ctx context.Context, obj *model.Market) (*string, error) {
	m.p.maybePanic("description", obj.MarketID)
	return m.MarketResolver.Description(ctx, obj)
}

// status returns the value of serviceStatus.
func status(context.Context) model.ServiceStatus {
	return model.ServiceStatus{Version: texts[6], Stream: model.StreamStatus{State: model.StreamStateLive, Since: now, Connections: 2}, ThrottledUntil: &now}
}

// ids returns valid and invalid global ids. The first four are invalid.
func (u *universe) ids() []string {
	ids := []string{"", "bad", model.EncodeID("Balance", "x"), model.EncodeID(model.KindUser, "0x1")}
	for n := range 4 {
		ids = append(ids, model.EncodeID(model.KindToken, tokenID(n)), model.EncodeID(model.KindMarket, marketID(n)), model.EncodeID(model.KindEvent, eventID(n)))
	}
	for _, a := range wallets {
		ids = append(ids, model.EncodeID(model.KindUser, string(a)))
		for i, p := range u.positions(a) {
			ids = append(ids, model.PositionID(a, &u.positions(a)[i]), model.EncodeID(model.KindPosition, string(a), p.MarketID, "gone"))
		}
		for _, o := range u.orders(a) {
			ids = append(ids, model.EncodeID(model.KindOrder, string(a), o.OrderID))
		}
	}
	return slices.Compact(ids)
}
