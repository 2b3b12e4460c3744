package e2e

import "testing"

// TestCurrency checks the currency that the service reports for each driver, with and without --venue-currency.
func TestCurrency(t *testing.T) {
	t.Parallel()
	v := newStub(t, nil)
	for _, c := range []struct {
		want  any
		flags []string
	}{
		{"USD", nil},
		{"EUR", []string{"--venue-currency=EUR"}},
		{"USDC", []string{"--venue-driver=polymarket", "--demo-driver=polymarket"}},
		{"USD", []string{"--venue-driver=kalshi", "--demo-driver=kalshi", "--demo-control=false"}},
		{nil, []string{"--venue-url=" + v.URL}},
		{"MANA", []string{"--venue-url=" + v.URL, "--venue-currency=MANA"}},
		{"USDC", []string{"--venue-driver=polymarket", "--venue-url=" + v.URL}},
	} {
		s := start(t, append(c.flags, "--demo-markets=20")...)
		if got := at(s.ask(t, `{ serviceStatus { currency } }`, nil, anonymous), "serviceStatus.currency"); got != c.want {
			t.Errorf("%q: got %v, want %v", c.flags, got, c.want)
		}
	}
}
