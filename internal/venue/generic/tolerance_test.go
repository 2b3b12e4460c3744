package generic

import (
	"context"
	"fmt"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
)

// TestListForms checks that the client reads a list in every known form.
func TestListForms(t *testing.T) {
	reads := map[string]struct {
		row, byID string // byID is an object that maps ids to rows; it is "" if the endpoint has no such form
		read      func(ctx context.Context, c *Client) (rows int, err error)
	}{
		"prices": {`{"tokenId":"101","price":0.5}`, `{"101":{"price":0.5}}`, func(ctx context.Context, c *Client) (int, error) {
			return countResults(c.Prices(ctx, []string{"101"}))
		}},
		"spreads": {`{"tokenId":"101","bestBid":0.4,"bestAsk":0.6}`, `{"101":{"bestBid":0.4,"bestAsk":0.6}}`, func(ctx context.Context, c *Client) (int, error) {
			return countResults(c.Spreads(ctx, []string{"101"}))
		}},
		"markets": {`{"marketId":"M1","outcomes":[{"tokenId":"101","outcome":"YES"}]}`, "", func(ctx context.Context, c *Client) (int, error) {
			return countResults(c.MarketsByID(ctx, []string{"M1"}))
		}},
		"history": {`{"timestamp":"2026-11-02T12:00:00Z","price":0.5}`, "", func(ctx context.Context, c *Client) (int, error) {
			h, err := c.PriceHistory(ctx, "101", date(t, "2026-11-01"), date(t, "2026-11-03"))
			if err != nil {
				return 0, err
			}
			return len(h.Points), nil
		}},
		"positions": {`{"marketId":"M1","outcome":"YES","size":1}`, "", func(ctx context.Context, c *Client) (int, error) {
			rows, err := c.Positions(ctx, wallet)
			return len(rows), err
		}},
		"orders": {`{"orderId":"O1","marketId":"M1","side":"BUY","outcome":"YES","price":0.5,"size":1,"filledSize":0,"status":"OPEN"}`, "", func(ctx context.Context, c *Client) (int, error) {
			rows, err := c.Orders(ctx, wallet)
			return len(rows), err
		}},
		"trades": {`{"tradeId":"T1","marketId":"M1","outcome":"YES","side":"BUY","price":0.5,"size":1,"timestamp":"2026-11-02T12:00:00Z"}`, "", func(ctx context.Context, c *Client) (int, error) {
			page, err := c.Trades(ctx, wallet, queries.Trades{})
			if err != nil {
				return 0, err
			}
			return len(page.Trades), nil
		}},
	}
	forms := map[string]string{
		"bare": `[%s]`, "under its name": `{%q:[%s]}`, "under data": `{"data":[%s]}`, "under results": `{"results":[%s]}`,
		"in an envelope": `{"success":true,"data":{%q:[%s]}}`,
	}
	for name, r := range reads {
		for form, pattern := range forms {
			body := fmt.Sprintf(pattern, r.row)
			if form == "under its name" || form == "in an envelope" {
				body = fmt.Sprintf(pattern, name, r.row)
			}
			wantOneRow(t, name+" "+form, body, r.read)
		}
		if r.byID != "" {
			wantOneRow(t, name+" by id", r.byID, r.read)
		}
	}
}

// wantOneRow reads a response. It fails the test if the result is not one row, or if the client reports drift.
func wantOneRow(t *testing.T, what, body string, read func(ctx context.Context, c *Client) (int, error)) {
	t.Helper()
	seen := &recordingObserver{}
	c := newVenue(t, everywhere(answer(body))).client(t, func(cfg *Config) { cfg.Observer = seen })
	if rows, err := read(asUser(t), c); rows != 1 || err != nil || seen.driftText() != "" {
		t.Errorf("%s: %d rows, %v, drift %q, of %s", what, rows, err, seen.driftText(), body)
	}
}

// countResults returns the number of results with a value. If a result has an error, countResults returns the error.
func countResults[T any](results []market.Result[*T], err error) (rows int, _ error) {
	for _, r := range results {
		if r.Value != nil {
			rows++
		}
		if r.Err != nil {
			return rows, r.Err
		}
	}
	return rows, err
}

// TestObjectsInLists checks that the client accepts a list with one object if it expects an object.
func TestObjectsInLists(t *testing.T) {
	wantOneRow(t, "a price", `[{"price":0.5}]`, func(ctx context.Context, c *Client) (int, error) { return countResults(c.Prices(ctx, []string{"101"})) })
	wantOneRow(t, "a spread", `[{"bestBid":0.4,"bestAsk":0.6}]`, func(ctx context.Context, c *Client) (int, error) {
		return countResults(c.Spreads(ctx, []string{"101"}))
	})
	wantOneRow(t, "a market", `[{"marketId":"M1","outcomes":[]}]`, func(ctx context.Context, c *Client) (int, error) {
		return countResults(c.MarketsByID(ctx, []string{"M1"}))
	})
	wantOneRow(t, "a market by slug", `[{"marketId":"M1","slug":"s","outcomes":[]}]`, func(ctx context.Context, c *Client) (int, error) {
		m, err := c.MarketBySlug(ctx, "s")
		return countResults([]market.Result[*market.Market]{{Value: m}}, err)
	})
	wantOneRow(t, "a book", `[{"bids":[],"asks":[]}]`, func(ctx context.Context, c *Client) (int, error) {
		b, err := c.Book(ctx, "101", 5)
		return countResults([]market.Result[*market.Book]{{Value: b}}, err)
	})
	wantOneRow(t, "a balance", `[{"portfolioValue":1,"cashBalance":2}]`, func(ctx context.Context, c *Client) (int, error) {
		b, err := c.Balance(ctx, wallet)
		return countResults([]market.Result[*market.Balance]{{Value: b}}, err)
	})
}

// TestStatusesInAnyCase checks that the client reads statuses in upper case, lower case and mixed case, for markets and for orders.
func TestStatusesInAnyCase(t *testing.T) {
	for raw, want := range map[string]market.Status{"OPEN": market.StatusOpen, "closed": market.StatusClosed, "Resolved": market.StatusResolved, "cAnCeLlEd": market.StatusCancelled} {
		c := newVenue(t, everywhere(answer(`{"marketId":"M1","outcomes":[],"status":"`+raw+`"}`))).client(t)
		results, err := c.MarketsByID(t.Context(), []string{"M1"})
		if err != nil || results[0].Value == nil || results[0].Value.Status != want || results[0].Value.StatusRaw != raw {
			t.Errorf("a market that is %s: %+v, %v", raw, results, err)
		}
	}
	for raw, want := range map[string]market.OrderStatus{"open": market.OrderOpen, "Filled": market.OrderFilled, "CANCELLED": market.OrderCancelled} {
		c := newVenue(t, everywhere(answer(`{"orders":[{"orderId":"O1","marketId":"M1","side":"buy","outcome":"YES","price":0.5,"size":1,"filledSize":0,"status":"`+raw+`"}]}`))).client(t)
		if orders, err := c.Orders(asUser(t), wallet); err != nil || orders[0].Status != want || orders[0].Side != market.SideBuy {
			t.Errorf("an order that is %s: %+v, %v", raw, orders, err)
		}
	}
}
