package generic

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// seed adds the golden files of the endpoints, the golden error responses and some odd texts to the corpus of a fuzz test.
func seed(f *testing.F, endpoints ...string) {
	f.Helper()
	for _, e := range append(endpoints, "errors") {
		for _, name := range goldenFiles(f, e) {
			f.Add([]byte(goldenFile(f, e+"/"+name)))
		}
	}
	for _, s := range []string{"", "null", "[]", "{}", `{"data":{"data":{"data":{"data":[]}}}}`, `[[[[]]]]`, "{\"data\":\"\xff\"}", `{"prices":{"":{}}}`} {
		f.Add([]byte(s))
	}
}

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

// decodeBody returns the payload that a call reads from a response with status 200 and the given body. If the call fails or the
// body has no payload, ok is false.
func decodeBody(t *testing.T, e upstream.Endpoint, body []byte) (payload wire.Value, ok bool) {
	t.Helper()
	payload, err := newDecodingClient(t, body).Get(t.Context(), upstream.Call{}, &rest.Request{Endpoint: e})
	checkError(t, err)
	return payload, err == nil && !payload.IsNull()
}

// checkError fails the test if an error is not a market.Error, has no message, or has a message of more than 1000 bytes.
func checkError(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var e *market.Error
	if !errors.As(err, &e) || e.Message == "" || len(err.Error()) > 1000 {
		t.Fatalf("the error is no market.Error, or has a bad message: %.2000v", err)
	}
}

// checkResults checks the results of the requested ids. Each result must have either a value or an
// error. If mayBeAbsent is true, it may also have neither. checkResults calls check for each value.
func checkResults[T any](t *testing.T, asked []string, got rest.Values[T], err error, mayBeAbsent bool, check func(id string, v *T)) {
	t.Helper()
	checkError(t, err)
	for id, r := range got {
		if !slices.Contains(asked, id) {
			continue
		}
		if (r.Err == nil) == (r.Value == nil) && (r.Err != nil || !mayBeAbsent) {
			t.Fatalf("the result of %q is %+v, want either a value or an error", id, r)
		}
		if r.Value != nil {
			check(id, r.Value)
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

func FuzzPrices(f *testing.F) {
	seed(f, "prices")
	f.Fuzz(func(t *testing.T, body []byte) {
		payload, ok := decodeBody(t, upstream.EndpointPrices, body)
		if !ok {
			return
		}
		for _, asked := range [][]string{{"101"}, {"101", "102", "103"}} {
			got, err := priceDecoder.decode(payload, asked, func(string) {})
			checkResults(t, asked, got, err, bytes.Contains(body, []byte("null")), func(id string, p *market.Price) {
				checkUnit(t, &p.Price)
				if p.TokenID != id || p.Basis == "" {
					t.Fatalf("the price of %q is %+v", id, p)
				}
			})
		}
	})
}

func FuzzSpreads(f *testing.F) {
	seed(f, "spreads")
	f.Fuzz(func(t *testing.T, body []byte) {
		payload, ok := decodeBody(t, upstream.EndpointSpreads, body)
		if !ok {
			return
		}
		for _, asked := range [][]string{{"101"}, {"101", "102", "103"}} {
			got, err := spreadDecoder.decode(payload, asked, func(string) {})
			checkResults(t, asked, got, err, false, func(id string, s *market.Spread) {
				checkUnit(t, s.BestBid, s.BestAsk, s.Spread)
				if s.TokenID != id || s.BestBid != nil && s.BestAsk != nil && s.Spread == nil {
					t.Fatalf("the spread of %q is %+v", id, s)
				}
			})
		}
	})
}

func FuzzBook(f *testing.F) {
	seed(f, "orderbook")
	f.Fuzz(func(t *testing.T, body []byte) {
		payload, ok := decodeBody(t, upstream.EndpointBook, body)
		if !ok {
			return
		}
		const depth = 3
		b, err := decodeBook(payload, "101", depth, &rest.Drift{})
		if checkError(t, err); err != nil {
			return
		}
		if b.TokenID != "101" || b.Depth != depth || b.Bids.Len() > depth || b.Asks.Len() > depth {
			t.Fatalf("the book %+v has a wrong token or depth", b)
		}
		for side, levels := range map[int][]market.Level{-1: b.Bids.Levels(), 1: b.Asks.Levels()} {
			for i, l := range levels {
				checkUnit(t, &l.Price)
				if l.Size.Sign() <= 0 || i > 0 && side*l.Price.Cmp(levels[i-1].Price) <= 0 {
					t.Fatalf("level %d has no size or is out of order: %+v", i, levels)
				}
			}
		}
		if both := b.Bids.Len() > 0 && b.Asks.Len() > 0; both != (b.Spread != nil) || both && b.BestBid().Cmp(*b.BestAsk()) > 0 {
			t.Fatalf("the book %+v has a wrong spread", b)
		}
	})
}

func FuzzPriceHistory(f *testing.F) {
	seed(f, "price-history")
	f.Fuzz(func(t *testing.T, body []byte) {
		payload, ok := decodeBody(t, upstream.EndpointPriceHistory, body)
		if !ok {
			return
		}
		from, to := date(t, "2025-11-01"), date(t, "2026-11-03")
		h, err := decodePriceHistory(payload, "101", from, to, &rest.Drift{})
		if checkError(t, err); err != nil {
			return
		}
		for i, p := range h.Points {
			checkUnit(t, &p.Price)
			if day := market.DateOf(p.Timestamp); day < from || day > to || i > 0 && !h.Points[i-1].Timestamp.Before(p.Timestamp) {
				t.Fatalf("point %d is on another day or out of order: %+v", i, h.Points)
			}
		}
	})
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

func FuzzMarkets(f *testing.F) {
	seed(f, "market-details")
	f.Fuzz(func(t *testing.T, body []byte) {
		payload, ok := decodeBody(t, upstream.EndpointMarketsByID, body)
		if !ok {
			return
		}
		for _, asked := range [][]string{{"M1"}, {"M1", "M2", "M3"}} {
			got, err := decodeMarketsByID(payload, asked, func(string) {})
			checkResults(t, asked, got, err, false, func(id string, m *market.Market) {
				if checkMarket(t, m); m.MarketID != id {
					t.Fatalf("the market of %q is %+v", id, m)
				}
			})
		}
		for _, asked := range [][]string{{"101"}, {"101", "202"}} {
			got, err := decodeMarketsByToken(payload, asked, func(string) {})
			checkResults(t, asked, got, err, false, func(id string, m *market.Market) {
				if checkMarket(t, m); m.OutcomeByToken(id) == nil {
					t.Fatalf("the market of %q is %+v", id, m)
				}
			})
		}
	})
}

func FuzzSearch(f *testing.F) {
	seed(f, "market-search")
	f.Fuzz(func(t *testing.T, body []byte) {
		payload, ok := decodeBody(t, upstream.EndpointSearch, body)
		if !ok {
			return
		}
		c := newDecodingClient(t, body)
		for _, q := range []queries.Search{
			{Limit: 2},
			{Limit: 2, Status: []market.Status{market.StatusOpen}, Category: "Sports", Sort: queries.SortVolume, Direction: queries.Descending},
		} {
			page, err := c.reading(upstream.Call{}).decodeSearch(payload, q, pageStart{}, &rest.Drift{})
			if checkError(t, err); err != nil {
				continue
			}
			for _, m := range page.Markets {
				if checkMarket(t, m); q.Category != "" && (m.Status != market.StatusOpen || !strings.EqualFold(m.Category, q.Category)) {
					t.Fatalf("the market %+v does not match the filter", m)
				}
			}
			if _, err := parsePageToken(upstream.EndpointSearch, page.Next); err != nil {
				t.Fatalf("the token %q of the next page is not valid: %v", page.Next, err)
			}
		}
	})
}

func FuzzUser(f *testing.F) {
	seed(f, "balance", "positions", "orders", "trades", "history")
	f.Fuzz(func(t *testing.T, body []byte) {
		payload, ok := decodeBody(t, upstream.EndpointPositions, body)
		if !ok {
			return
		}
		b, err := decodeBalance(payload, &rest.Drift{})
		if checkError(t, err); err == nil && b.PortfolioValue == nil && b.CashBalance == nil && b.PositionsValue == nil && b.TotalValue == nil {
			t.Fatalf("the balance has no amount: %+v", b)
		}
		list, ok := rest.RowsOf(payload, "positions", "orders", "trades", "history")
		if !ok {
			return
		}
		drift := &rest.Drift{}
		positions, _ := rest.ReadRows(list.Rows, drift.Add, (*wire.Row).Position)
		for _, p := range positions {
			if market.CheckID(p.MarketID) != nil || p.Outcome == "" {
				t.Fatalf("the position has a bad market or outcome: %+v", p)
			}
		}
		orders, _ := rest.ReadRows(list.Rows, drift.Add, (*wire.Row).Order)
		for _, o := range orders {
			if market.CheckID(o.OrderID) != nil || market.CheckID(o.MarketID) != nil || o.Side == "" || o.Size.Sign() < 0 || o.FilledSize.Sign() < 0 {
				t.Fatalf("the order has a bad field: %+v", o)
			}
		}
		trades, _ := rest.ReadRows(list.Rows, drift.Add, (*wire.Row).UserTrade)
		for _, trade := range trades {
			if trade.Timestamp.IsZero() || trade.MarketID == "" && trade.TokenID == "" || trade.Size.Sign() < 0 {
				t.Fatalf("the trade has a bad field: %+v", trade)
			}
		}
		records, _ := rest.ReadRows(list.Rows, drift.Add, func(r *wire.Row) market.HistoryRecord { return readRecord(r, true) })
		for _, h := range records {
			if h.Timestamp.IsZero() || h.Kind == "" {
				t.Fatalf("the history record has no time or kind: %+v", h)
			}
		}
		c := newDecodingClient(t, body)
		next, err := c.reading(upstream.Call{}).pageInfo(&pagedList{endpoint: upstream.EndpointTrades, paging: settingAccountPaging, id: fieldRecordID}, list, pageStart{}, 100)
		if checkError(t, err); err == nil {
			if _, err := parsePageToken(upstream.EndpointTrades, next.next.token()); err != nil {
				t.Fatalf("the token of the next page is not valid: %v", err)
			}
		}
	})
}
