package fanout_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
)

// chargeCounter counts, for each client, the charges that are not released yet. If refuses is true, every further charge fails.
type chargeCounter struct {
	mu      sync.Mutex
	charged map[string]int
	refuses bool
}

func (c *chargeCounter) charge(client string) func() (func(), error) {
	return func() (func(), error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.refuses {
			return nil, errors.New("no more")
		}
		c.charged[client]++
		return func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.charged[client]--
		}, nil
	}
}

func (c *chargeCounter) want(t *testing.T, when string, want map[string]int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !maps.Equal(c.charged, want) {
		t.Errorf("%s: the numbers of charges that are not released are %v, want %v", when, c.charged, want)
	}
}

// TestEachClientIsChargedOnce checks that a client is charged once for all its members in a group, until the last of them leaves.
func TestEachClientIsChargedOnce(t *testing.T) {
	h, charges := newHub(t, fanout.Limits{}), &chargeCounter{charged: map[string]int{}}
	join := func(client string) (*reader, error) {
		r := newReader()
		return r, h.Join(context.Background(), key("k"), r.Member, quota.Account(market.Address(client)), charges.charge(client), h.open)
	}
	const a, b = "192.0.2.1", "192.0.2.2"
	first, _ := join(a)
	s := h.script()
	second, _ := join(a)
	other, _ := join(b)
	charges.want(t, "two clients have joined", map[string]int{a: 1, b: 1})
	first.Leave()
	first.Leave()
	charges.want(t, "one of two members of the first client has left", map[string]int{a: 1, b: 1})
	second.Leave()
	charges.want(t, "both members of the first client have left", map[string]int{a: 0, b: 1})

	charges.refuses = true
	if refused, err := join(a); err == nil || h.Stats().Members != 1 {
		t.Errorf("a client joins although its charge fails: error %v, %d members, want 1 member", err, h.Stats().Members)
	} else {
		refused.Leave()
	}
	more, err := join(b)
	if err != nil {
		t.Errorf("a second member of a client that is charged already: Join returns %v", err)
	}
	more.Leave()
	charges.refuses = false
	gone := newReader()
	gone.Leave()
	_ = h.Join(context.Background(), key("k"), gone.Member, quota.Account(market.Address(a)), charges.charge(a), h.open)
	charges.want(t, "a member that had left before has called Join", map[string]int{a: 0, b: 1})

	// The last client is charged until the execution has ended. Otherwise a client could leave behind many executions that are
	// ending.
	other.Leave()
	receive(t, s.closed)
	h.Close()
	charges.want(t, "all members have left", map[string]int{a: 0, b: 0})
}

// TestEndedExecutionIsNotCharged checks that no client is charged for an execution that has ended.
func TestEndedExecutionIsNotCharged(t *testing.T) {
	h, charges := newHub(t, fanout.Limits{}), &chargeCounter{charged: map[string]int{}}
	var readers []*reader
	for _, client := range []string{"192.0.2.1", "192.0.2.2"} {
		r := newReader()
		_ = h.Join(context.Background(), key("k"), r.Member, quota.Account(market.Address(client)), charges.charge(client), h.open)
		readers = append(readers, r)
	}
	close(h.script().events)
	h.Close()
	charges.want(t, "the execution has ended", map[string]int{"192.0.2.1": 0, "192.0.2.2": 0})
	for _, r := range readers {
		r.Leave()
	}
	charges.want(t, "the members have left", map[string]int{"192.0.2.1": 0, "192.0.2.2": 0})
}
