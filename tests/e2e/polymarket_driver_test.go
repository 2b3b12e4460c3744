package e2e

import (
	"context"
	"testing"
	"time"

	"oddsgraph/internal/demo"
	simulator "oddsgraph/internal/demo/polymarket"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/venue/polymarket"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/tests/tool"
)

// simulatedDriver is Polymarket's driver, which reads from a simulator of Polymarket. engine is the demo venue whose markets the
// simulator serves.
type simulatedDriver struct {
	*polymarket.Driver
	t      *testing.T
	sim    *simulator.Venue
	engine *demo.Venue
	clock  *tool.Clock
	drift  []string
}

func openSimulated(t *testing.T) *simulatedDriver {
	t.Helper()
	s := &simulatedDriver{t: t, clock: tool.NewClock(startTime)}
	s.sim = simulator.New(demo.Config{Markets: 400, Seed: 1, Clock: s.clock})
	s.engine = s.sim.Engine()
	var err error
	s.Driver, err = polymarket.New(rest.Config{
		BaseURL: "http://simulator.invalid", Transport: &direct{s.sim}, Clock: s.clock, Observer: s, Retries: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Call implements rest.Observer.
func (s *simulatedDriver) Call(string, int, int, string, time.Duration) {}

// Drift implements rest.Observer.
func (s *simulatedDriver) Drift(endpoint, what string) { s.drift = append(s.drift, endpoint+": "+what) }

// calls returns how many requests the simulator has received since calls was last used, by HTTP method and path.
func (s *simulatedDriver) calls() map[string]int64 {
	c := s.sim.Stats().Requests
	s.sim.Reset()
	return c
}

// wantNoDrift fails the test if the driver could not read a part of a response.
func (s *simulatedDriver) wantNoDrift() {
	s.t.Helper()
	if len(s.drift) > 0 {
		s.t.Errorf("the driver could not read %v", s.drift)
	}
}

// results returns the values by id, and fails the test if there is an error.
func results[T any](t *testing.T, ids []string, rows []market.Result[*T], err error) map[string]*T {
	t.Helper()
	if err != nil || len(rows) != len(ids) {
		t.Fatalf("got %d results and the error %v, want %d results", len(rows), err, len(ids))
	}
	out := map[string]*T{}
	for i, r := range rows {
		if r.Err != nil {
			t.Errorf("the result of %s has the error %v", ids[i], r.Err)
		}
		out[ids[i]] = r.Value
	}
	return out
}

func TestPolymarketDriverReadsPrices(t *testing.T) {
	s, ctx := openSimulated(t), context.Background()
	ids := s.sim.TokenIDs()[:500]
	rows, err := s.Prices(ctx, ids)
	prices := results(t, ids, rows, err)
	if c := s.calls(); c["POST /midpoints"] != 1 || c["POST /last-trades-prices"] != 1 || len(c) != 2 {
		t.Errorf("got the calls %v, want one for midpoints and one for last trades", c)
	}
	spreadRows, err := s.Spreads(ctx, ids)
	spreads := results(t, ids, spreadRows, err)
	var wanted []queries.Book
	for _, id := range ids {
		wanted = append(wanted, queries.Book{TokenID: id, Depth: queries.MaxBookDepth})
	}
	bookRows, err := s.Books(ctx, wanted)
	books := results(t, ids, bookRows, err)
	if c := s.calls(); c["POST /books"] != 2 || len(c) != 1 {
		t.Errorf("got the calls %v, want two for books", c)
	}
	withoutPrice, withLastPrice := 0, 0
	for _, id := range ids {
		want, _ := s.sim.Book(id)
		top := topOf(want)
		if got := publishedTop(books[id]); got != top {
			t.Errorf("token %.8s: the best prices of the book are %v, want %v", id, got, top)
		}
		if s := spreads[id]; s == nil || (s.BestBid == nil) != (top.bid == "") || s.BestBid != nil && s.BestBid.String() != top.bid {
			t.Errorf("token %.8s: the spread is %+v, want the best bid %q", id, s, top.bid)
		}
		switch p := prices[id]; {
		case p == nil:
			withoutPrice++
			if top.bid != "" && top.ask != "" {
				t.Errorf("token %.8s has no price, but the best prices %v", id, top)
			}
		case p.Basis == market.BasisLast:
			withLastPrice++
		case p.Basis != market.BasisMidpoint:
			t.Errorf("token %.8s: the price has the basis %s, want MIDPOINT or LAST", id, p.Basis)
		default:
			mid := (want.Bids[0].Price + want.Asks[0].Price) / 2
			if p.Price.String() != mid.String() {
				t.Errorf("token %.8s: the price is %s, want %s", id, p.Price, mid)
			}
		}
	}
	if withoutPrice == 0 || withLastPrice == 0 {
		t.Errorf("%d tokens have no price, and %d have the price of the last trade; want some of each", withoutPrice, withLastPrice)
	}
	s.wantNoDrift()
}

func TestPolymarketDriverReadsMarkets(t *testing.T) {
	s, ctx := openSimulated(t), context.Background()
	var ids []string
	want := map[string]demo.Market{}
	for _, m := range s.engine.Markets() {
		id := s.sim.ID(m.MarketID)
		if _, known := want[id]; !known && m.Binary {
			ids, want[id] = append(ids, id), m
		}
	}
	ids = ids[:200]
	rows, err := s.MarketsByID(ctx, ids)
	statuses := map[string]market.Status{
		"UPCOMING": market.StatusOpen, "OPEN": market.StatusOpen, "CLOSED": market.StatusClosed, "DISPUTED": market.StatusDisputed,
		"RESOLVED": market.StatusResolved, "CANCELLED": market.StatusCancelled,
	}
	seen := map[string]int{}
	for id, m := range results(t, ids, rows, err) {
		w := want[id]
		if m == nil {
			t.Errorf("market %.10s is missing", id)
			continue
		}
		seen[w.Status]++
		if m.Status != statuses[w.Status] || m.Question != w.Question || m.Slug != w.Slug || len(m.Outcomes) != 2 {
			t.Errorf("market %.10s has the status %s, the question %q, the slug %s and %d outcomes; want %s, %q, %s and 2",
				id, m.Status, m.Question, m.Slug, len(m.Outcomes), statuses[w.Status], w.Question, w.Slug)
		}
		ended := w.Winner >= 0 || w.Status == "CANCELLED"
		if won := w.Winner >= 0; ended != (m.Resolution != nil && !m.Resolution.ResolvedAt.IsZero()) || won && m.Outcomes[w.Winner].Winner != nil && !*m.Outcomes[w.Winner].Winner {
			t.Errorf("market %.10s has the resolution %+v, want outcome %d as the winner (negative: no winner)", id, m.Resolution, w.Winner)
		}
	}
	if len(seen) < 4 {
		t.Errorf("the markets have the statuses %v, want at least 4 different statuses", seen)
	}
	s.wantNoDrift()
}

func TestPolymarketDriverSearches(t *testing.T) {
	s, ctx := openSimulated(t), context.Background()
	found := map[string]bool{}
	q := queries.Search{Limit: 50, Sort: queries.SortVolume}
	for range 100 {
		page, err := s.Search(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Markets {
			if found[m.MarketID] {
				t.Errorf("market %s is on two pages", m.MarketID)
			}
			found[m.MarketID] = true
		}
		if q.Page = page.Next; q.Page == "" {
			break
		}
	}
	want := simulator.OldMarkets
	for _, m := range s.engine.Markets() {
		if m.Binary {
			want++
		} else {
			want += len(m.TokenIDs)
		}
	}
	if len(found) != want {
		t.Errorf("the pages have %d markets, want %d", len(found), want)
	}
	page, err := s.Search(ctx, queries.Search{Text: "will", Limit: 20})
	if err != nil || len(page.Markets) == 0 || page.Next == "" {
		t.Errorf("a search for a text got %+v and the error %v, want markets and a next page", page, err)
	}
	s.wantNoDrift()
}

func TestPolymarketDriverReadsAccounts(t *testing.T) {
	s, ctx := openSimulated(t), context.Background()
	const address = "0x3333333333333333333333333333333333333333"
	positions, err := s.Positions(ctx, address)
	want := s.engine.Positions(address)
	if err != nil || len(positions) != len(want) {
		t.Fatalf("got %d positions and the error %v, want %d", len(positions), err, len(want))
	}
	for i, p := range positions {
		if w := want[i]; p.TokenID != s.sim.ID(w.TokenID) || p.Size.String() != w.Size.String() || p.AvgPrice.String() != w.AvgPrice.String() {
			t.Errorf("position %d is %+v, want %+v", i, p, w)
		}
	}
	balance, err := s.Balance(ctx, address)
	if b, _ := s.engine.Balance(address); err != nil || balance.PositionsValue.String() != b.PortfolioValue.String() || balance.CashBalance != nil {
		t.Errorf("got the balance %+v and the error %v, want the value %v without cash", balance, err, b.PortfolioValue)
	}
	trades, wantTrades := 0, 0
	for _, r := range s.engine.Records(address) {
		if r.Kind == "TRADE" {
			wantTrades++
		}
	}
	for q := (queries.Trades{Limit: 100}); ; {
		page, err := s.Trades(ctx, address, q)
		if err != nil {
			t.Fatal(err)
		}
		trades += len(page.Trades)
		if q.Page = page.Next; q.Page == "" {
			break
		}
	}
	if trades != wantTrades {
		t.Errorf("the pages have %d trades, want %d", trades, wantTrades)
	}
	history, err := s.History(ctx, address, queries.History{Limit: 100, Kinds: []market.HistoryKind{market.HistoryDeposit, market.HistoryReward}})
	if err != nil || len(history.Records) == 0 {
		t.Errorf("got the history %+v and the error %v, want deposits or rewards", history, err)
	}
	s.wantNoDrift()
}

func TestPolymarketDriverReadsHistories(t *testing.T) {
	s := openSimulated(t)
	ids := s.sim.TokenIDs()[:20]
	today := market.DateOf(s.clock.Now())
	var wanted []queries.PriceHistory
	for _, id := range ids {
		wanted = append(wanted, queries.PriceHistory{TokenID: id, From: today - 6, To: today})
	}
	rows, err := s.PriceHistories(context.Background(), wanted)
	for id, h := range results(t, ids, rows, err) {
		if h == nil || len(h.Points) < 100 {
			t.Errorf("token %.8s: got the history %+v, want at least 100 points", id, h)
		}
	}
	if c := s.calls(); c["POST /batch-prices-history"] != 1 || len(c) != 1 {
		t.Errorf("got the calls %v, want one for price histories", c)
	}
	s.wantNoDrift()
}

// bestPrices are the best bid and the best ask of a book. A field is empty if its side has no orders.
type bestPrices struct{ bid, ask string }

func topOf(b demo.Book) (top bestPrices) {
	if len(b.Bids) > 0 {
		top.bid = b.Bids[0].Price.String()
	}
	if len(b.Asks) > 0 {
		top.ask = b.Asks[0].Price.String()
	}
	return top
}

func publishedTop(b *market.Book) (top bestPrices) {
	if bid := b.BestBid(); bid != nil {
		top.bid = bid.String()
	}
	if ask := b.BestAsk(); ask != nil {
		top.ask = ask.String()
	}
	return top
}
