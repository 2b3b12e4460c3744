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
	const query = `{ user(address: "` + addressOf50 + `") { positions(first: 1) { totalCount } balance { positionsValue } } }`
	first := s.ask(t, query, nil, anonymous)
	if fmt.Sprint(at(first, "user.positions.totalCount")) != "50" || text(first, "user.balance.positionsValue") == "" {
		t.Fatalf("got %s, want 50 positions and a balance", asJSON(first))
	}
	before := s.Venue.Cache.Stats()
	for _, caller := range []string{anonymous, credentials("demo-2"), credentials("anything")} {
		if got := s.ask(t, query, nil, caller); asJSON(got) != asJSON(first) {
			t.Errorf("the client with the credentials %q got %s, want %s", caller, asJSON(got), asJSON(first))
		}
	}
	for i, kind := range s.Venue.Cache.Stats() {
		if kind.Calls != before[i].Calls {
			t.Errorf("kind %s: the service made %d calls for cached accounts, want none", kind.Kind, kind.Calls-before[i].Calls)
		}
	}
	s.sse(t, subPortfolio, vars{"a": addressOf50}, anonymous).reason(t, "INITIAL")
}

// TestUnsupportedOrders checks a venue that serves no orders. Queries and subscriptions of orders must get the error UNSUPPORTED,
// and the service must make no call.
func TestUnsupportedOrders(t *testing.T) {
	s := start(t, "--demo-driver=polymarket", "--venue-driver=polymarket")
	for range 2 {
		data, errs := s.query(t, `{ user(address: "`+addressOf50+`") { orders { totalCount } } }`, nil, anonymous)
		if len(errs) != 1 || errs[0].Extensions.Code != "UNSUPPORTED" || !strings.Contains(errs[0].Message, "Polymarket") {
			t.Errorf("got %s and the errors %+v, want one UNSUPPORTED that names Polymarket", asJSON(data), errs)
		}
	}
	if ev := s.sse(t, subOrders, vars{"a": addressOf50}, anonymous).next(t); len(ev.errors) != 1 || ev.errors[0].Extensions.Code != "UNSUPPORTED" {
		t.Errorf("got the event %+v, want one error UNSUPPORTED", ev)
	}
	for _, kind := range s.Venue.Cache.Stats() {
		if kind.Calls != 0 {
			t.Errorf("kind %s: the service made %d calls, want none", kind.Kind, kind.Calls)
		}
	}
}

// TestUnsupportedCash checks a venue that serves balances without cash. Cash must get the error UNSUPPORTED, and other fields of
// the balance must have values. For sums that include cash, the service must read neither the balance nor the orders.
func TestUnsupportedCash(t *testing.T) {
	s := start(t, "--demo-driver=polymarket", "--venue-driver=polymarket")
	const user = `user(address: "` + addressOf50 + `")`
	data, errs := s.query(t, `{ `+user+` { portfolio { positionsValue totalValue availableCash } } }`, nil, anonymous)
	if len(errs) != 2 || errs[0].Extensions.Code != "UNSUPPORTED" || !strings.Contains(errs[1].Message, "blockchain") || text(data, "user.portfolio.positionsValue") == "" {
		t.Errorf("got %s and the errors %+v, want positionsValue and two errors UNSUPPORTED", asJSON(data), errs)
	}
	for _, kind := range s.Venue.Cache.Stats() {
		if (kind.Kind == "balance" || kind.Kind == "orders") && kind.Calls != 0 {
			t.Errorf("kind %s: the service made %d calls, want none", kind.Kind, kind.Calls)
		}
	}
	data, errs = s.query(t, `{ `+user+` { balance { cashBalance positionsValue } } }`, nil, anonymous)
	if len(errs) != 1 || errs[0].Extensions.Code != "UNSUPPORTED" || text(data, "user.balance.positionsValue") == "" {
		t.Errorf("got %s and the errors %+v, want positionsValue and one error UNSUPPORTED", asJSON(data), errs)
	}
	const subscription = `subscription($a: Address!) { balanceChanged(address: $a) { balance { cashBalance positionsValue } } }`
	ev := s.sse(t, subscription, vars{"a": addressOf50}, anonymous).next(t)
	if len(ev.errors) != 1 || ev.errors[0].Extensions.Code != "UNSUPPORTED" || text(ev.data, "balanceChanged.balance.positionsValue") == "" {
		t.Errorf("got the event %+v, want positionsValue and one error UNSUPPORTED", ev)
	}
}

// TestPublicAccountsAreDeclared checks that the command "config check" accepts --venue-credentials=public only if the driver
// declares accounts public.
func TestPublicAccountsAreDeclared(t *testing.T) {
	for driver, want := range map[string]string{"generic": "does not declare accounts public", "polymarket": ""} {
		err := run(t.Context(), []string{"config", "check", "--venue-driver=" + driver, "--venue-credentials=public"}, nil, io.Discard, io.Discard)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("driver %s: got the error %v, want %q (empty: no error)", driver, err, want)
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
			t.Errorf("driver %s: got %s, want %s", driver, got, want)
		}
	}
}
