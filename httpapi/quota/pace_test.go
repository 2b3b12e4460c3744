package quota_test

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/httpapi/quota"
)

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := quota.Network(netip.MustParseAddr("192.0.2.1")), quota.Network(netip.MustParseAddr("192.0.2.2"))
		p := quota.NewPace(1000, 2000)
		want := func(client netip.Prefix, debt time.Duration) {
			t.Helper()
			if got := p.Debt(client); got < debt || got > debt+time.Microsecond {
				t.Errorf("the debt is %v, want %v", got, debt)
			}
		}
		p.Spend(one, 2000)
		want(one, 0)
		p.Spend(one, 3000)
		want(one, 3*time.Second)
		want(other, 0)
		time.Sleep(2 * time.Second)
		want(one, time.Second)
		time.Sleep(time.Hour) // a client saves at most the burst of 2000 units
		p.Spend(one, 3000)
		want(one, time.Second)
		for i := range 1000 { // the sweeps during this loop must not forget a client in debt
			p.Spend(quota.Network(netip.MustParseAddr(fmt.Sprintf("198.51.%d.%d", i/250, i%250))), 1)
		}
		p.Spend(one, 9000)
		time.Sleep(5 * time.Second)
		p.Spend(other, 1)
		want(one, 5*time.Second)
	})
}
