package generic

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// newDecodingClient returns a client. Each call of the client gets a response with status 200 and the given body.
func newDecodingClient(t testing.TB, body []byte) *Client {
	t.Helper()
	answer := func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body))}, nil
	}
	return newClient(t, "http://venue.invalid", func(cfg *Config) {
		cfg.Transport, cfg.CredentialsMode, cfg.Retries = &scripted{answer: answer}, rest.CredentialsNone, -1
	})
}

// checkError fails the test if an error is not a market.Error, has no message, or has a message of more than 1000 bytes.
func checkError(t *testing.T, err error) {
	t.Helper()
	var e *market.Error
	if err != nil && (!errors.As(err, &e) || e.Message == "" || len(err.Error()) > 1000) {
		t.Fatalf("the error is no market.Error, or has a bad message: %.2000v", err)
	}
}

// checkEach fails the test unless there is a result for each key. It checks the errors, and calls check for each value.
func checkEach[T any](t *testing.T, keys []string, results []upstream.Result[*T], err error, check func(key string, v *T)) {
	t.Helper()
	if checkError(t, err); err == nil && len(results) != len(keys) {
		t.Fatalf("got %d results for %d keys", len(results), len(keys))
	}
	for i, r := range results {
		if checkError(t, r.Err); r.Value != nil {
			check(keys[i], r.Value)
		}
	}
}

func checkUnit(t *testing.T, ds ...*market.Decimal) {
	t.Helper()
	for _, d := range ds {
		if d != nil && !wire.InUnit(*d) {
			t.Fatalf("%s is not from 0 to 1", d)
		}
	}
}

// checkMarket checks the ids, the status and the outcomes of a market.
func checkMarket(t *testing.T, m *market.Market) {
	t.Helper()
	if market.CheckID(m.MarketID) != nil || m.Status == "" || m.EventID != "" && market.CheckID(m.EventID) != nil {
		t.Fatalf("the market %+v has a bad id or status", m)
	}
	seen := map[string]bool{}
	for _, o := range m.Outcomes {
		checkUnit(t, o.Price)
		if market.CheckID(o.TokenID) != nil || o.Label == "" || seen[o.TokenID] {
			t.Fatalf("an outcome is bad or repeated: %+v", m.Outcomes)
		}
		seen[o.TokenID] = true
	}
}

func checkBook(t *testing.T, b *market.Book, depth int) {
	t.Helper()
	for side, levels := range map[int][]market.Level{-1: b.Bids.Levels(), 1: b.Asks.Levels()} {
		for i, l := range levels {
			checkUnit(t, &l.Price)
			if l.Size.Sign() <= 0 || i > 0 && side*l.Price.Cmp(levels[i-1].Price) <= 0 || i == depth {
				t.Fatalf("level %d has no size, is out of order or too many: %+v", i, levels)
			}
		}
	}
	if both := b.Bids.Len() > 0 && b.Asks.Len() > 0; both != (b.Spread != nil) || both && b.BestBid().Cmp(*b.BestAsk()) > 0 {
		t.Fatalf("the book %+v has a wrong spread", b)
	}
}

// FuzzReads makes every read of a venue that answers with any bytes.
func FuzzReads(f *testing.F) {
	for _, e := range []string{"prices", "spreads", "orderbook", "price-history", "market-details", "market-search", "balance", "positions", "orders", "trades", "history", "errors"} {
		for _, name := range goldenFiles(f, e) {
			f.Add([]byte(goldenFile(f, e+"/"+name)))
		}
	}
	for _, s := range []string{"", "null", "[]", "{}", `{"data":{"data":{"data":{"data":[]}}}}`, `[[[[]]]]`, "{\"data\":\"\xff\"}", `{"prices":{"":{}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c := newDecodingClient(t, body)
		readMarkets(t, c)
		readAccount(t, c)
	})
}

// readMarkets makes the reads of public data and checks their values.
func readMarkets(t *testing.T, c *Client) {
	ctx, none := t.Context(), upstream.Call{}
	for _, tokens := range [][]string{{"101"}, {"101", "102", "103"}} {
		prices, err := c.Prices(ctx, none, tokens)
		checkEach(t, tokens, prices, err, func(id string, p *market.Price) {
			if checkUnit(t, &p.Price); p.TokenID != id || p.Basis == "" {
				t.Fatalf("the price of %q is %+v", id, p)
			}
		})
		spreads, err := c.Spreads(ctx, none, tokens)
		checkEach(t, tokens, spreads, err, func(id string, s *market.Spread) {
			if checkUnit(t, s.BestBid, s.BestAsk, s.Spread); s.TokenID != id || s.BestBid != nil && s.BestAsk != nil && s.Spread == nil {
				t.Fatalf("the spread of %q is %+v", id, s)
			}
		})
		found, err := c.MarketsByToken(ctx, none, tokens)
		checkEach(t, tokens, found, err, func(id string, m *market.Market) {
			if checkMarket(t, m); m.OutcomeByToken(id) == nil {
				t.Fatalf("the market of %q is %+v", id, m)
			}
		})
	}
	for _, ids := range [][]string{{"M1"}, {"M1", "M2", "M3"}} {
		found, err := c.MarketsByID(ctx, none, ids)
		checkEach(t, ids, found, err, func(id string, m *market.Market) {
			if checkMarket(t, m); m.MarketID != id {
				t.Fatalf("the market of %q is %+v", id, m)
			}
		})
	}
	b, err := c.Book(ctx, none, "101", 3)
	if checkError(t, err); b != nil {
		checkBook(t, b, 3)
	}
	from, to := date(t, "2025-11-01"), date(t, "2026-11-03")
	h, err := c.PriceHistory(ctx, none, "101", from, to)
	if checkError(t, err); h != nil {
		for i, p := range h.Points {
			checkUnit(t, &p.Price)
			if day := market.DateOf(p.Timestamp); day < from || day > to || i > 0 && !h.Points[i-1].Timestamp.Before(p.Timestamp) {
				t.Fatalf("point %d is on another day or out of order: %+v", i, h.Points)
			}
		}
	}
	for _, q := range []queries.Search{{Limit: 2}, {Limit: 2, Status: []market.Status{market.StatusOpen}, Sort: queries.SortVolume, Direction: queries.Descending}} {
		page, err := c.Search(ctx, none, q)
		if checkError(t, err); err != nil {
			continue
		}
		for _, m := range page.Markets {
			if checkMarket(t, m); len(q.Status) > 0 && m.Status != market.StatusOpen {
				t.Fatalf("the market %+v does not match the filter", m)
			}
		}
		if _, err := c.Search(ctx, none, queries.Search{Page: page.Next}); market.CodeOf(err) == market.CodeBadUserInput {
			t.Fatalf("the token %q of the next page is not valid: %v", page.Next, err)
		}
	}
}

// readAccount makes the reads of an account and checks their values.
func readAccount(t *testing.T, c *Client) {
	ctx, none := t.Context(), upstream.Call{}
	b, err := c.Balance(ctx, none, wallet)
	if checkError(t, err); b != nil && b.PortfolioValue == nil && b.CashBalance == nil && b.PositionsValue == nil && b.TotalValue == nil {
		t.Fatalf("the balance has no amount: %+v", b)
	}
	positions, err := c.Positions(ctx, none, wallet)
	checkError(t, err)
	for _, p := range positions {
		if market.CheckID(p.MarketID) != nil || p.Outcome == "" {
			t.Fatalf("the position has a bad market or outcome: %+v", p)
		}
	}
	orders, err := c.Orders(ctx, none, wallet)
	checkError(t, err)
	for _, o := range orders {
		if market.CheckID(o.OrderID) != nil || market.CheckID(o.MarketID) != nil || o.Side == "" || o.Size.Sign() < 0 || o.FilledSize.Sign() < 0 {
			t.Fatalf("the order has a bad field: %+v", o)
		}
	}
	trades, err := c.Trades(ctx, none, wallet, queries.Trades{})
	if checkError(t, err); err == nil {
		for _, trade := range trades.Trades {
			if trade.Timestamp.IsZero() || trade.MarketID == "" && trade.TokenID == "" || trade.Size.Sign() < 0 {
				t.Fatalf("the trade has a bad field: %+v", trade)
			}
		}
		if _, err := c.Trades(ctx, none, wallet, queries.Trades{Page: trades.Next}); market.CodeOf(err) == market.CodeBadUserInput {
			t.Fatalf("the token %q of the next page is not valid: %v", trades.Next, err)
		}
	}
	records, err := c.History(ctx, none, wallet, queries.History{})
	if checkError(t, err); err == nil {
		for _, h := range records.Records {
			if h.Timestamp.IsZero() || h.Kind == "" {
				t.Fatalf("the history record has no time or kind: %+v", h)
			}
		}
	}
}
