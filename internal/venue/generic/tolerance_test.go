package generic

import (
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

// TestStatusesInAnyCase checks that the client reads statuses in upper case, lower case and mixed case, for markets and for orders.
func TestStatusesInAnyCase(t *testing.T) {
	for raw, want := range map[string]market.Status{"OPEN": market.StatusOpen, "closed": market.StatusClosed, "Resolved": market.StatusResolved, "cAnCeLlEd": market.StatusCancelled} {
		c := newVenue(t, everywhere(answer(`{"marketId":"M1","outcomes":[],"status":"`+raw+`"}`))).client(t)
		results, err := c.MarketsByID(t.Context(), upstream.Call{}, []string{"M1"})
		if err != nil || results[0].Value == nil || results[0].Value.Status != want || results[0].Value.StatusRaw != raw {
			t.Errorf("the market with the status %s is %+v with the error %v, want the status %s", raw, results, err, want)
		}
	}
	for raw, want := range map[string]market.OrderStatus{"open": market.OrderOpen, "Filled": market.OrderFilled, "CANCELLED": market.OrderCancelled} {
		c := newVenue(t, everywhere(answer(`{"orders":[{"orderId":"O1","marketId":"M1","side":"buy","outcome":"YES","price":0.5,"size":1,"filledSize":0,"status":"`+raw+`"}]}`))).client(t)
		if orders, err := c.Orders(t.Context(), asUser(t), wallet); err != nil || orders[0].Status != want || orders[0].Side != market.SideBuy {
			t.Errorf("the order with the status %s is %+v with the error %v, want the status %s", raw, orders, err, want)
		}
	}
}
