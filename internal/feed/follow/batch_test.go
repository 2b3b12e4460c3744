package follow_test

import (
	"fmt"
	"testing"
	"time"

	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
)

// tick is the minimum time between two events of PriceLists in tests.
const tick = 250 * time.Millisecond

func showPrices(list []follow.Event[follow.PriceUpdate]) string {
	out := ""
	for _, e := range list {
		out += fmt.Sprintf("[%s %s", e.Value.Price.TokenID, e.Value.Price.Price)
		if e.Value.Previous != nil {
			out += " after " + e.Value.Previous.Price.String()
		}
		out += fmt.Sprintf(" %s%s]", e.Reason, mark(e.Value.Meta))
	}
	return out
}

// TestPriceLists checks that each interval has at most one event, with the last price of each changed token.
func TestPriceLists(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Price]{err: errDown}
		f := run(t, follow.PriceLists(s.ctx, s.source(), []string{"A", "B"}, tick, r.list))
		s.connect(pricesOf("A"), pricesOf("B"))
		s.price("A", "0.1")
		f.want(showPrices)
		s.price("B", "0.2")
		f.want(showPrices, "INITIAL [A 0.1 INITIAL STREAM][B 0.2 INITIAL STREAM]")
		s.price("A", "0.11")
		s.price("B", "0.21")
		s.price("A", "0.12")
		f.want(showPrices)
		time.Sleep(tick)
		f.want(showPrices, "CHANGE [A 0.12 after 0.1 CHANGE STREAM][B 0.21 after 0.2 CHANGE STREAM]")
		time.Sleep(time.Second)
		f.want(showPrices)
		s.price("B", "0.22") // the interval has ended, so the stream sends this price at once
		f.want(showPrices, "CHANGE [B 0.22 after 0.21 CHANGE STREAM]")
		// If several topics go down within one interval, one event reports them.
		s.disconnect(pricesOf("A"), pricesOf("B"))
		f.want(showPrices)
		time.Sleep(tick)
		f.want(showPrices, "FRESHNESS [A 0.12 after 0.12 FRESHNESS STREAM stale][B 0.22 after 0.22 FRESHNESS STREAM stale]")
	})
}

// TestPriceListsWaitForSlowTokens checks that the first event waits at most one interval for the prices of all tokens.
func TestPriceListsWaitForSlowTokens(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Price]{value: priceOf("B", "0.3")}
		f := run(t, follow.PriceLists(s.ctx, s.source(), []string{"A", "B"}, tick, r.list))
		s.connect(pricesOf("A"))
		s.price("A", "0.1")
		time.Sleep(tick)
		f.want(showPrices, "INITIAL [A 0.1 INITIAL STREAM]")
		time.Sleep(time.Second)
		f.want(showPrices, "CHANGE [B 0.3 INITIAL REST]")
	})
}

// TestPriceListsJoin checks that a reader that joins gets all prices at once, and that changes for the other readers wait for the
// interval.
func TestPriceListsJoin(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r, g := &restSource[*market.Price]{err: errDown}, newReaders()
		source := s.source()
		source.Group = g
		f := run(t, follow.PriceLists(s.ctx, source, []string{"A", "B"}, tick, r.list))
		s.connect(pricesOf("A"), pricesOf("B"))
		s.price("A", "0.1")
		s.price("B", "0.2")
		f.take()
		f.cohorts()
		s.price("A", "0.11")
		g.join()
		f.want(showPrices, "INITIAL [A 0.11 INITIAL STREAM][B 0.2 INITIAL STREAM]")
		time.Sleep(tick)
		f.want(showPrices, "CHANGE [A 0.11 after 0.1 CHANGE STREAM]")
		if to := f.cohorts(); fmt.Sprint(to) != "[1 0]" {
			t.Errorf("the cohorts of the events are %v, want the cohort 1 of the joining reader and then 0 for all readers", to)
		}
	})
}

// TestPriceListsReportProblems checks that a failed read is reported and does not end the stream. If all tokens are unknown, the
// stream ends.
func TestPriceListsReportProblems(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Price]{err: errDown}
		f := run(t, follow.PriceLists(s.ctx, s.source(), []string{"A"}, tick, r.list))
		time.Sleep(time.Second)
		f.want(showPrices, "!UPSTREAM_UNAVAILABLE")
		r.fail(nil)
		r.set(priceOf("A", "0.4"))
		time.Sleep(10 * time.Second)
		f.want(showPrices, "INITIAL [A 0.4 INITIAL REST]")

		unknown := &restSource[*market.Price]{}
		f = run(t, follow.PriceLists(s.ctx, s.source(), []string{"X", "Y"}, tick, unknown.list))
		time.Sleep(time.Second)
		f.want(showPrices, "!BAD_USER_INPUT")
		if f.err == nil || !f.ended {
			t.Errorf("the stream of unknown tokens has ended: %v, with the error %v; want an end with an error", f.ended, f.err)
		}
	})
}
