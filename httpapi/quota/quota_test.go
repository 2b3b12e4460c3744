package quota_test

import (
	"net/netip"
	"strings"
	"sync"
	"testing"

	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
)

func address(a string) quota.Client { return quota.Anonymous(netip.MustParseAddr(a)) }

func numbered(i byte) quota.Client { return quota.Anonymous(netip.AddrFrom4([4]byte{192, 0, 2, i})) }

func TestLimits(t *testing.T) {
	c := quota.New(quota.Limits{Connections: 2, Operations: 3})
	one, other := address("192.0.2.1"), address("192.0.2.2")
	for range 2 {
		if err := c.Connect(one); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Connect(one); market.CodeOf(err) != market.CodeRateLimited {
		t.Errorf("a third connection of one client: error %v, want the code %s", err, market.CodeRateLimited)
	}
	if err := c.Connect(other); err != nil {
		t.Errorf("the first connection of another client was refused: %v", err)
	}
	for range 3 {
		if err := c.Begin(one); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Begin(one); market.CodeOf(err) != market.CodeRateLimited {
		t.Errorf("a fourth operation of one client: error %v, want the code %s", err, market.CodeRateLimited)
	}
	if c.Refused() != 2 {
		t.Errorf("%d calls were refused, want 2", c.Refused())
	}
	c.Disconnect(one)
	c.End(one)
	if c.Connect(one) != nil || c.Begin(one) != nil {
		t.Error("a connection or operation was refused although another one had ended")
	}
}

// TestTotalOperations checks that a client may begin at most three quarters of the free operations.
func TestTotalOperations(t *testing.T) {
	c := quota.New(quota.Limits{Operations: 100, Total: 40})
	begin := func(host byte, want int) {
		t.Helper()
		client := numbered(host)
		n := 0
		for ; n < 1000; n++ {
			if err := c.Begin(client); err != nil {
				if market.CodeOf(err) != market.CodeRateLimited {
					t.Errorf("client %d: %v", host, err)
				}
				break
			}
		}
		if n != want {
			t.Errorf("client %d began %d operations, want %d", host, n, want)
		}
	}
	begin(1, 30)
	begin(2, 7) // three quarters of the 10 free operations
	begin(3, 2)
	begin(1, 0)
	for range 30 {
		c.End(numbered(1))
	}
	begin(4, 23) // three quarters of the 31 free operations
}

func TestExecutions(t *testing.T) {
	c := quota.New(quota.Limits{Executions: 2, Watched: 100}) // for all clients 3 and 134
	one, other := address("192.0.2.1"), address("192.0.2.2")
	for _, step := range []struct {
		client quota.Client
		ids    int
		ok     bool
	}{{one, 101, false}, {one, 60, true}, {one, 41, false}, {one, 40, true}, {one, 0, false}, {other, 35, false}, {other, 34, true}, {other, 0, false}} {
		if err := c.Execute(step.client, step.ids); (err == nil) != step.ok || !step.ok && market.CodeOf(err) != market.CodeRateLimited {
			t.Errorf("Execute with %d ids of %s: error %v, want success: %v", step.ids, step.client, err, step.ok)
		}
	}
	if err := c.Execute(address("192.0.2.3"), 0); market.CodeOf(err) != market.CodeRateLimited {
		t.Errorf("Execute of a third client: error %v, want RATE_LIMITED, because all clients together have 3 executions", err)
	}
	c.Executed(other, 34)
	c.Executed(one, 60)
	if err := c.Execute(one, 61); err == nil {
		t.Error("Execute accepted 61 ids although only 60 ids were free")
	}
	if err := c.Execute(one, 60); err != nil {
		t.Errorf("Execute refused 60 ids although 60 ids were free: %v", err)
	}
}

// TestAccounts checks that accounts behind one address have their own limits, and that each refusal names the flag that raises the
// limit.
func TestAccounts(t *testing.T) {
	c := quota.New(quota.Limits{Connections: 1, Operations: 2}) // one different subscription and six ids
	for _, client := range []quota.Client{address("192.0.2.1"), quota.Account("0x1"), quota.Account("0x2")} {
		noun := "client address"
		if client == quota.Account("0x1") || client == quota.Account("0x2") {
			noun = "account"
		}
		for _, test := range []struct {
			do    func(quota.Client) error
			times int
			want  string
		}{
			{c.Connect, 1, "more than 1 connections of one " + noun + "; the operator can raise --client-connections"},
			{c.Begin, 2, "more than 2 operations at once of one " + noun + "; the operator can raise --client-operations"},
			{func(q quota.Client) error { return c.Execute(q, 7) }, 0, "the subscriptions of one " + noun + " follow more than 6 ids at once; the operator can raise --client-operations"},
		} {
			for range test.times {
				if err := test.do(client); err != nil {
					t.Errorf("%s: %v", client, err)
				}
			}
			if err := test.do(client); market.CodeOf(err) != market.CodeRateLimited || !strings.HasSuffix(err.Error(), test.want) {
				t.Errorf("%s: error %v, want RATE_LIMITED with %q", client, err, test.want)
			}
		}
	}
}

func TestAddressesOfOneClient(t *testing.T) {
	for _, test := range []struct {
		a, b string
		one  bool
	}{
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"2001:db8::1", "2001:db8::ffff:1", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"fe80::1%a", "fe80::2%b", true},
	} {
		c := quota.New(quota.Limits{Connections: 1})
		if err := c.Connect(address(test.a)); err != nil {
			t.Fatal(err)
		}
		if got := c.Connect(address(test.b)) != nil; got != test.one {
			t.Errorf("%s and %s are one client: %v, want %v", test.a, test.b, got, test.one)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	c := quota.New(quota.Limits{Connections: 10, Operations: 10})
	var wg sync.WaitGroup
	for i := range 8 {
		a := numbered(byte(i % 2))
		wg.Go(func() {
			for range 1000 {
				if c.Connect(a) == nil {
					if c.Begin(a) == nil {
						c.End(a)
					}
					c.Disconnect(a)
				}
			}
		})
	}
	wg.Wait()
	for range 10 {
		if err := c.Connect(numbered(0)); err != nil {
			t.Fatalf("after all connections have ended, a connection was refused: %v", err)
		}
	}
}
