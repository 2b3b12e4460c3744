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
		time.Sleep(time.Hour) // the burst is the most that a client saves
		p.Spend(one, 3000)
		want(one, time.Second)
		for i := range 1000 { // clients with a full balance are forgotten, debtors are not
			p.Spend(quota.Network(netip.MustParseAddr(fmt.Sprintf("198.51.%d.%d", i/250, i%250))), 1)
		}
		p.Spend(one, 9000)
		time.Sleep(5 * time.Second)
		p.Spend(other, 1)
		want(one, 5*time.Second)
	})
}

// TestMemoryIsTaken has two clients hold parts of one memory.
func TestMemoryIsTaken(t *testing.T) {
	one, other := quota.Network(netip.MustParseAddr("192.0.2.1")), quota.Network(netip.MustParseAddr("192.0.2.2"))
	m := quota.NewMemory(1000)
	if !m.Take(one, 700) || m.Take(one, 100) || m.Held() != 700 || m.Refused() != 1 {
		t.Errorf("%d are held, %d refused", m.Held(), m.Refused())
	}
	if !m.Take(other, 200) || m.Take(other, 200) {
		t.Error("the other client has no fair share")
	}
	m.Give(one, 700)
	if m.Give(other, 200); m.Held() != 0 || !m.Take(one, 750) {
		t.Errorf("%d are held", m.Held())
	}
}
