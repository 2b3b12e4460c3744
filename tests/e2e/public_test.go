package e2e

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestPublicAccounts checks that every client may read every account if the driver declares accounts public. All clients must share
// the cached data.
func TestPublicAccounts(t *testing.T) {
	s := start(t, "--demo-driver=polymarket", "--venue-driver=polymarket")
	const address = "0x2222222222222222222222222222222222222222"
	query := fmt.Sprintf(`{ user(address: %q) { positions(first: 1) { totalCount } balance { positionsValue } } }`, address)
	first := s.ask(t, query, nil, anonymous)
	if fmt.Sprint(at(first, "user.positions.totalCount")) != "50" || text(first, "user.balance.positionsValue") == "" {
		t.Fatalf("got %s", asJSON(first))
	}
	before := s.Cache.Stats()
	for _, caller := range []string{anonymous, credentials("demo-2"), credentials("anything")} {
		if got := s.ask(t, query, nil, caller); asJSON(got) != asJSON(first) {
			t.Errorf("got %s, want %s", asJSON(got), asJSON(first))
		}
	}
	for i, now := range s.Cache.Stats() {
		if now.Calls != before[i].Calls {
			t.Errorf("%s: %d calls for cached accounts", now.Kind, now.Calls-before[i].Calls)
		}
	}
	subscription := fmt.Sprintf(`subscription { portfolioChanged(address: %q) { reason summary { positionsValue } } }`, address)
	r := s.request(t, asJSON(vars{"query": subscription}), anonymous)
	r.Header.Set("Accept", "text/event-stream")
	if got := s.firstAnswer(t, r); !strings.Contains(got, `"INITIAL"`) || strings.Contains(got, "errors") {
		t.Errorf("got %s", got)
	}
}

// TestUnsupportedOrders checks that queries and subscriptions of orders get UNSUPPORTED, without a call, if the venue has no
// orders.
func TestUnsupportedOrders(t *testing.T) {
	s := start(t, "--demo-driver=polymarket", "--venue-driver=polymarket")
	const address = "0x2222222222222222222222222222222222222222"
	for range 2 {
		data, errs := s.query(t, fmt.Sprintf(`{ user(address: %q) { orders { totalCount } } }`, address), nil, anonymous)
		if len(errs) != 1 || errs[0].Extensions.Code != "UNSUPPORTED" || !strings.Contains(errs[0].Message, "Polymarket") {
			t.Errorf("got %s, %+v", asJSON(data), errs)
		}
	}
	r := s.request(t, asJSON(vars{"query": fmt.Sprintf(`subscription { ordersChanged(address: %q) { reason } }`, address)}), anonymous)
	r.Header.Set("Accept", "text/event-stream")
	if got := s.firstAnswer(t, r); !strings.Contains(got, `"UNSUPPORTED"`) {
		t.Errorf("got %s", got)
	}
	for _, kind := range s.Cache.Stats() {
		if kind.Calls != 0 {
			t.Errorf("%s: %d calls", kind.Kind, kind.Calls)
		}
	}
}

// TestUnsupportedCash checks a venue that serves balances without cash. Cash must get the error UNSUPPORTED, and other fields of
// the balance must have values. For sums that include cash, the service must read neither the balance nor the orders.
func TestUnsupportedCash(t *testing.T) {
	s := start(t, "--demo-driver=polymarket", "--venue-driver=polymarket")
	const user = `user(address: "0x2222222222222222222222222222222222222222")`
	data, errs := s.query(t, `{ `+user+` { portfolio { positionsValue totalValue availableCash } } }`, nil, anonymous)
	if len(errs) != 2 || errs[0].Extensions.Code != "UNSUPPORTED" || !strings.Contains(errs[1].Message, "blockchain") || text(data, "user.portfolio.positionsValue") == "" {
		t.Errorf("got %s, %+v", asJSON(data), errs)
	}
	for _, kind := range s.Cache.Stats() {
		if (kind.Kind == "balance" || kind.Kind == "orders") && kind.Calls != 0 {
			t.Errorf("%s: %d calls", kind.Kind, kind.Calls)
		}
	}
	data, errs = s.query(t, `{ `+user+` { balance { cashBalance positionsValue } } }`, nil, anonymous)
	if len(errs) != 1 || errs[0].Extensions.Code != "UNSUPPORTED" || text(data, "user.balance.positionsValue") == "" {
		t.Errorf("got %s, %+v", asJSON(data), errs)
	}
	r := s.request(t, asJSON(vars{"query": `subscription { balanceChanged(address: "0x2222222222222222222222222222222222222222") { balance { cashBalance positionsValue } } }`}), anonymous)
	r.Header.Set("Accept", "text/event-stream")
	if got := s.firstAnswer(t, r); !strings.Contains(got, `"UNSUPPORTED"`) || !strings.Contains(got, `"positionsValue":"`) {
		t.Errorf("got %s", got)
	}
}

// TestPublicAccountsAreDeclared checks that the command "config check" accepts --venue-credentials=public only if the driver
// declares accounts public.
func TestPublicAccountsAreDeclared(t *testing.T) {
	for driver, want := range map[string]string{"generic": "does not declare accounts public", "polymarket": ""} {
		err := run(t.Context(), []string{"config", "check", "--venue-driver=" + driver, "--venue-credentials=public"}, nil, io.Discard, io.Discard)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", driver, err)
		}
	}
}

// TestStatusOfVenue checks that serviceStatus has the name of the driver and lists the data that the venue does not serve.
func TestStatusOfVenue(t *testing.T) {
	for driver, unsupported := range map[string]string{
		"generic": `["market-trades"]`, "polymarket": `["orders","cash"]`, "kalshi": `["balance","positions","orders","trades","history"]`,
	} {
		s := start(t, "--demo-driver="+driver, "--venue-driver="+driver)
		got := asJSON(s.ask(t, `{ serviceStatus { venue { driver unsupported } } }`, nil, anonymous))
		if want := fmt.Sprintf(`{"serviceStatus":{"venue":{"driver":%q,"unsupported":%s}}}`, driver, unsupported); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
