package demo

import "testing"

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		got, want string
	}{
		{Price(6500).String(), "0.65"}, {Price(10000).String(), "1"}, {Price(0).String(), "0"}, {Price(5).String(), "0.0005"},
		{Size(1050).String(), "10.5"}, {Size(100000).String(), "1000"}, {Size(1).String(), "0.01"},
		{Money(-1_500_000).String(), "-1.5"}, {Money(-1).String(), "-0.000001"}, {notional(1050, 6543).String(), "6.87015"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	for s, want := range map[string]int64{"0.65": 6500, "1": 10000, "-0.5": -5000, "-12.25": -122500, "0.0001": 1, "1.": 10000} {
		if got, ok := parseFixed(s, 4); !ok || got != want {
			t.Errorf("parseFixed(%q): got %d and %v, want %d and true", s, got, ok, want)
		}
	}
	for _, s := range []string{"", ".", ".5", "0.00001", "1e2", "+1", "NaN", "1.-5", "1234567890123", "0x1"} {
		if got, ok := parseFixed(s, 4); ok {
			t.Errorf("parseFixed(%q): got %d and true, want false", s, got)
		}
	}
	for at, want := range map[millis]millis{0: 0, 7: 5, -1: -5, -5: -5, 10: 10} {
		if got := at.floor(5); got != want {
			t.Errorf("%d.floor(5): got %d, want %d", at, got, want)
		}
	}
}
