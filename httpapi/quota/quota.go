// Package quota bounds what one client address may hold at once: connections that stay open, operations on them, and what
// is executed for those.
package quota

import (
	"net/netip"
	"sync"

	"oddsgraph/internal/market"
)

// Limits are the greatest numbers for one client address. The zero value of a field takes its default.
type Limits struct {
	// Connections that stay open: 1,000.
	Connections int
	// Operations on them: 9,000.
	Operations int
	// Total bounds the operations of all clients together, shared out by Fair: 12,000, or four thirds of Operations if that is more.
	Total int
	// Executions of subscriptions that a client has a part in, of which equal ones have one in common: 500.
	Executions int
	// Watched are the ids that those follow, each counted in every execution: 20,000.
	Watched int
}

// Clients counts what client addresses hold. It is safe for concurrent use.
type Clients struct {
	limits Limits

	mu      sync.Mutex
	holders map[netip.Prefix]*holder
	// operations counts those of all clients.
	operations int
	refused    uint64
}

type holder struct{ connections, operations, executions, watched int }

// New returns a count of nothing.
func New(l Limits) *Clients {
	if l.Connections <= 0 {
		l.Connections = 1000
	}
	if l.Operations <= 0 {
		l.Operations = 9000
	}
	if l.Total <= 0 {
		l.Total = max(12_000, l.Operations+l.Operations/3+1)
	}
	if l.Executions <= 0 {
		l.Executions = 500
	}
	if l.Watched <= 0 {
		l.Watched = 20_000
	}
	return &Clients{limits: l, holders: make(map[netip.Prefix]*holder)}
}

// Connect counts a connection, or returns a RATE_LIMITED error; Disconnect takes it back.
func (c *Clients) Connect(client netip.Addr) error {
	return c.take(client, func(h *holder) bool {
		if h.connections >= c.limits.Connections {
			return false
		}
		h.connections++
		return true
	}, "more than %d connections of one client address", c.limits.Connections)
}

// Disconnect takes back Connect.
func (c *Clients) Disconnect(client netip.Addr) {
	c.give(client, func(h *holder) { h.connections-- })
}

// Begin counts an operation, or returns a RATE_LIMITED error; End takes it back.
func (c *Clients) Begin(client netip.Addr) error {
	err := c.take(client, func(h *holder) bool {
		if h.operations >= c.limits.Operations {
			return false
		}
		h.operations++
		return true
	}, "more than %d operations at once of one client address", c.limits.Operations)
	if err != nil {
		return err
	}
	err = c.take(client, func(h *holder) bool {
		if !Fair(h.operations-1, 1, c.limits.Total-c.operations) {
			return false
		}
		c.operations++
		return true
	}, "no room among the %d operations at once of all clients", c.limits.Total)
	if err != nil {
		c.give(client, func(h *holder) { h.operations-- })
	}
	return err
}

// End takes back Begin.
func (c *Clients) End(client netip.Addr) {
	c.give(client, func(h *holder) { h.operations--; c.operations-- })
}

// Execute counts an execution that follows so many ids, or returns a RATE_LIMITED error; Executed takes it back.
func (c *Clients) Execute(client netip.Addr, ids int) error {
	err := c.take(client, func(h *holder) bool {
		if h.executions >= c.limits.Executions {
			return false
		}
		h.executions++
		return true
	}, "more than %d different subscriptions at once of one client address", c.limits.Executions)
	if err != nil {
		return err
	}
	err = c.take(client, func(h *holder) bool {
		if ids > c.limits.Watched-h.watched {
			return false
		}
		h.watched += ids
		return true
	}, "the subscriptions of one client address follow more than %d ids at once", c.limits.Watched)
	if err != nil {
		c.Executed(client, 0)
	}
	return err
}

// Executed takes back Execute of as many ids.
func (c *Clients) Executed(client netip.Addr, ids int) {
	c.give(client, func(h *holder) { h.executions--; h.watched -= ids })
}

// Refused counts what was beyond a limit since the start.
func (c *Clients) Refused() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

func (c *Clients) take(client netip.Addr, count func(*holder) bool, refusal string, limit int) error {
	key := Network(client)
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.holders[key]
	if h == nil {
		h = &holder{}
	}
	if !count(h) {
		c.refused++
		return market.Errorf(market.CodeRateLimited, refusal, limit)
	}
	c.holders[key] = h
	return nil
}

func (c *Clients) give(client netip.Addr, count func(*holder)) {
	key := Network(client)
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.holders[key]
	if count(h); *h == (holder{}) {
		delete(c.holders, key)
	}
}

// Fair reports whether a client that has so much of what is shared may take n more of what is free. A client holds no more
// than three times what it leaves free, so one alone has three quarters, several have equal parts, and there is room for
// another until there are very many.
func Fair(has, n, free int) bool { return n <= free && (has == 0 || has+n <= 3*(free-n)) }

// Network is what counts as one client: an IPv4 address, or the 64 bits of an IPv6 address that a provider hands out at
// least.
func Network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // the zero address has the zero prefix
	return p
}
