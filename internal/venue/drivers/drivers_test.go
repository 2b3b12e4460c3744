package drivers

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
	"oddsgraph/internal/venue/rest"
)

func TestOpen(t *testing.T) {
	for name, ok := range map[string]bool{"": true, Generic: true, "kalshi": true, "polymarket": true, "Generic": false, "unknown": false} {
		d, err := Open(Config{Driver: name, Config: rest.Config{BaseURL: "http://venue.invalid"}})
		if (err == nil) != ok {
			t.Errorf("Open with the driver %q returned the error %v, want success: %t", name, err, ok)
		}
		if err == nil {
			d.Close()
		} else if !strings.Contains(err.Error(), strings.Join(Names(), ", ")) {
			t.Errorf("the error for the driver %q does not name all drivers: %v", name, err)
		}
	}
}

// admissions is a permit and a venue. Every answer of the venue is {}.
type admissions struct{ admitted, sent atomic.Int64 }

func (a *admissions) AdmitCall(context.Context) error { a.admitted.Add(1); return nil }

func (a *admissions) Answered(upstream.Answer) {}

func (a *admissions) RoundTrip(*http.Request) (*http.Response, error) {
	a.sent.Add(1)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

// TestEveryCallIsAdmitted checks that every read of every driver gets the permission of its own permit for each HTTP call.
func TestEveryCallIsAdmitted(t *testing.T) {
	id := map[string]string{Generic: "M1", "kalshi": "M-1", "polymarket": "0xa1"}
	token := map[string]string{Generic: "1", "kalshi": "M-1:yes", "polymarket": "1"}
	const account = market.Address("0x00000000000000000000000000000000000000aa")
	for name := range registry {
		m, o := id[name], token[name]
		for endpoint, read := range map[upstream.Endpoint]func(venue.Driver, upstream.Call){
			upstream.EndpointPrices:  func(d venue.Driver, c upstream.Call) { _, _ = d.Prices(t.Context(), c, []string{o}) },
			upstream.EndpointSpreads: func(d venue.Driver, c upstream.Call) { _, _ = d.Spreads(t.Context(), c, []string{o}) },
			upstream.EndpointBook: func(d venue.Driver, c upstream.Call) {
				_, _ = d.Books(t.Context(), c, []queries.Book{{TokenID: o, Depth: 20}})
			},
			upstream.EndpointPriceHistory: func(d venue.Driver, c upstream.Call) {
				_, _ = d.PriceHistories(t.Context(), c, []queries.PriceHistory{{TokenID: o}})
			},
			upstream.EndpointMarketsByID:    func(d venue.Driver, c upstream.Call) { _, _ = d.MarketsByID(t.Context(), c, []string{m}) },
			upstream.EndpointMarketsByToken: func(d venue.Driver, c upstream.Call) { _, _ = d.MarketsByToken(t.Context(), c, []string{o}) },
			upstream.EndpointMarketBySlug:   func(d venue.Driver, c upstream.Call) { _, _ = d.MarketBySlug(t.Context(), c, "m-1") },
			upstream.EndpointEvent: func(d venue.Driver, c upstream.Call) {
				_, _ = d.Event(t.Context(), c, market.EventRef{EventSlug: "m-1"})
			},
			upstream.EndpointSearch:      func(d venue.Driver, c upstream.Call) { _, _ = d.Search(t.Context(), c, queries.Search{}) },
			upstream.EndpointEventSearch: func(d venue.Driver, c upstream.Call) { _, _ = d.SearchEvents(t.Context(), c, queries.Search{}) },
			upstream.EndpointCategories:  func(d venue.Driver, c upstream.Call) { _, _ = d.Categories(t.Context(), c) },
			upstream.EndpointMarketTrades: func(d venue.Driver, c upstream.Call) {
				_, _ = d.MarketTrades(t.Context(), c, queries.MarketTrades{MarketID: m})
			},
			upstream.EndpointBalance:   func(d venue.Driver, c upstream.Call) { _, _ = d.Balance(t.Context(), c, account) },
			upstream.EndpointPositions: func(d venue.Driver, c upstream.Call) { _, _ = d.Positions(t.Context(), c, account) },
			upstream.EndpointOrders:    func(d venue.Driver, c upstream.Call) { _, _ = d.Orders(t.Context(), c, account) },
			upstream.EndpointTrades:    func(d venue.Driver, c upstream.Call) { _, _ = d.Trades(t.Context(), c, account, queries.Trades{}) },
			upstream.EndpointHistory:   func(d venue.Driver, c upstream.Call) { _, _ = d.History(t.Context(), c, account, queries.History{}) },
		} {
			a := &admissions{}
			d, err := Open(Config{Driver: name, Config: rest.Config{BaseURL: "http://venue.invalid", Transport: a, CredentialsMode: rest.CredentialsNone}})
			if err != nil {
				t.Fatal(err)
			}
			read(d, upstream.Call{Permit: a})
			if sent := a.sent.Load(); a.admitted.Load() != sent || (sent == 0) != (d.Can(endpoint) != nil) {
				t.Errorf("a read of %s with the driver %s made %d calls, and the permit admitted %d", endpoint, name, sent, a.admitted.Load())
			}
		}
	}
}
