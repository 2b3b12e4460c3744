package fanout_test

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"sync"
	"testing"

	"oddsgraph/httpapi/fanout"
)

// till counts, for each client, the charges that are not released yet.
type till struct {
	mu      sync.Mutex
	charged map[string]int
	closed  bool
}

func (c *till) charge(client string) func() (func(), error) {
	return func() (func(), error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.closed {
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

func (c *till) want(t *testing.T, when string, want map[string]int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !maps.Equal(c.charged, want) {
		t.Errorf("%s: charged are %v, want %v", when, c.charged, want)
	}
}

// TestEachClientIsChargedOnce checks that a client is charged once for all its members in a group, until the last of them leaves.
func TestEachClientIsChargedOnce(t *testing.T) {
	h, of := newHub(t, fanout.Limits{}), &till{charged: map[string]int{}}
	join := func(client string) (*reader, error) {
		r := newReader()
		return r, h.Join(context.Background(), key("k"), r.Member, netip.MustParsePrefix(client+"/32"), of.charge(client), h.open)
	}
	const a, b = "192.0.2.1", "192.0.2.2"
	first, _ := join(a)
	s := h.script()
	second, _ := join(a)
	other, _ := join(b)
	of.want(t, "two clients", map[string]int{a: 1, b: 1})
	first.Leave()
	first.Leave()
	of.want(t, "the opener has another member", map[string]int{a: 1, b: 1})
	second.Leave()
	of.want(t, "the opener has left", map[string]int{a: 0, b: 1})

	of.closed = true
	if refused, err := join(a); err == nil || h.Stats().Members != 1 {
		t.Errorf("a client that cannot be charged: %v, %+v", err, h.Stats())
	} else {
		refused.Leave()
	}
	more, err := join(b)
	if err != nil {
		t.Errorf("a client that is charged already: %v", err)
	}
	more.Leave()
	of.closed = false
	gone := newReader()
	gone.Leave()
	_ = h.Join(context.Background(), key("k"), gone.Member, netip.MustParsePrefix(a+"/32"), of.charge(a), h.open)
	of.want(t, "a member that had left", map[string]int{a: 0, b: 1})

	// The last client is charged until the execution has ended. Otherwise a client could leave behind many executions that are
	// ending.
	s.group.Announce(replaced)
	other.Leave()
	receive(t, s.closed)
	h.Close()
	of.want(t, "all have left", map[string]int{a: 0, b: 0})
}

// TestNobodyIsChargedForWhatHasEnded checks that no client is charged for an execution that has ended.
func TestNobodyIsChargedForWhatHasEnded(t *testing.T) {
	h, of := newHub(t, fanout.Limits{}), &till{charged: map[string]int{}}
	var readers []*reader
	for _, client := range []string{"192.0.2.1", "192.0.2.2"} {
		r := newReader()
		_ = h.Join(context.Background(), key("k"), r.Member, netip.MustParsePrefix(client+"/32"), of.charge(client), h.open)
		readers = append(readers, r)
	}
	close(h.script().events)
	h.Close()
	of.want(t, "when it has ended", map[string]int{"192.0.2.1": 0, "192.0.2.2": 0})
	for _, r := range readers {
		r.Leave()
	}
	of.want(t, "when they have left", map[string]int{"192.0.2.1": 0, "192.0.2.2": 0})
}
