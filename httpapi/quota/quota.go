// Package quota limits what one client address may use at the same time: connections, operations, executions of subscriptions,
// and memory.
package quota

import (
	"cmp"
	"net/netip"
	"sync"

	"oddsgraph/internal/market"
)

// MinTotal is the smallest default of Limits.Total. 12,000 subscriptions use about 35 MiB.
const MinTotal = 12_000

// Limits are the greatest counts for one client address. But Total is the greatest count for all clients together. For a field that
// is zero, New uses the default of the field.
type Limits struct {
	// Connections is the number of open WebSockets and event streams. The default is 1,000.
	Connections int
	// Operations is the number of operations on these connections. The default is 9,000.
	Operations int
	// Total is the number of operations of all clients together. Fair decides how many of them a client may use. The default is
	// MinTotal, or four thirds of Operations, whichever is greater.
	Total int
	// Executions is the number of different subscriptions. Equal subscriptions share an execution and count once. The default is
	// 500.
	Executions int
	// Watched is the number of ids that the client's subscriptions follow. An id counts once for each different subscription. The
	// default is 20,000.
	Watched int
}

// Clients counts what each client address uses. It is safe for concurrent use.
type Clients struct {
	limits Limits

	mu      sync.Mutex
	holders map[netip.Prefix]*holder
	// operations is the number of operations of all clients.
	operations int
	refused    uint64
}

type holder struct{ connections, operations, executions, watched int }

// New returns a Clients that counts nothing yet.
func New(l Limits) *Clients {
	l.Connections, l.Operations = cmp.Or(l.Connections, 1000), cmp.Or(l.Operations, 9000)
	l.Total = cmp.Or(l.Total, max(MinTotal, (4*l.Operations+2)/3))
	l.Executions, l.Watched = cmp.Or(l.Executions, 500), cmp.Or(l.Watched, 20_000)
	return &Clients{limits: l, holders: make(map[netip.Prefix]*holder)}
}

// Connect counts a connection, or returns a RATE_LIMITED error. Disconnect undoes Connect.
func (c *Clients) Connect(client netip.Addr) error {
	return c.take(client, func(h *holder) error {
		if h.connections >= c.limits.Connections {
			return market.Errorf(market.CodeRateLimited, "more than %d connections of one client address", c.limits.Connections)
		}
		h.connections++
		return nil
	})
}

// Disconnect undoes Connect.
func (c *Clients) Disconnect(client netip.Addr) {
	c.give(client, func(h *holder) { h.connections-- })
}

// Begin counts an operation, or returns a RATE_LIMITED error. End undoes Begin.
func (c *Clients) Begin(client netip.Addr) error {
	return c.take(client, func(h *holder) error {
		if h.operations >= c.limits.Operations {
			return market.Errorf(market.CodeRateLimited, "more than %d operations at once of one client address", c.limits.Operations)
		}
		if !Fair(h.operations, 1, c.limits.Total-c.operations) {
			return market.Errorf(market.CodeRateLimited, "of the %d operations that all clients may have at once, none is free for this client", c.limits.Total)
		}
		h.operations++
		c.operations++
		return nil
	})
}

// End undoes Begin.
func (c *Clients) End(client netip.Addr) {
	c.give(client, func(h *holder) { h.operations--; c.operations-- })
}

// Execute counts an execution that follows a number of ids, or returns a RATE_LIMITED error. Executed undoes Execute.
func (c *Clients) Execute(client netip.Addr, ids int) error {
	return c.take(client, func(h *holder) error {
		if h.executions >= c.limits.Executions {
			return market.Errorf(market.CodeRateLimited, "more than %d different subscriptions at once of one client address", c.limits.Executions)
		}
		if ids > c.limits.Watched-h.watched {
			return market.Errorf(market.CodeRateLimited, "the subscriptions of one client address follow more than %d ids at once", c.limits.Watched)
		}
		h.executions++
		h.watched += ids
		return nil
	})
}

// Executed undoes Execute with the same number of ids.
func (c *Clients) Executed(client netip.Addr, ids int) {
	c.give(client, func(h *holder) { h.executions--; h.watched -= ids })
}

// Refused returns how often a method has returned an error.
func (c *Clients) Refused() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// take calls the function count with the holder of the client. If the function returns an error, take counts a refusal.
func (c *Clients) take(client netip.Addr, count func(*holder) error) error {
	key := Network(client)
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.holders[key]
	if h == nil {
		h = &holder{}
	}
	if err := count(h); err != nil {
		c.refused++
		return err
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

// Fair reports whether a client may use n more units of a shared resource. held is the number of units that the client already
// uses. free is the number of units that no client uses. A client that uses no units may take any number of unused units. A client
// that already uses some units may have at most three times the units that then remain unused. So a client that takes its units in
// small parts gets at most three quarters of all units, and some units remain for a new client. If several clients always want
// more, all of them end up with the same number of units.
func Fair(held, n, free int) bool { return n <= free && (held == 0 || held+n <= 3*(free-n)) }

// Network returns the network that counts as one client. That is an IPv4 address, or the /64 network of an IPv6 address, because
// providers assign no smaller network.
func Network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // the zero address has the zero prefix
	return p
}
