// Package quota limits what one client may use at the same time: connections, operations, executions of subscriptions, and memory.
package quota

import (
	"cmp"
	"net/netip"
	"sync"

	"oddsgraph/internal/market"
)

// MinTotal is the smallest default of Limits.Total. 12,000 equal subscriptions use about 35 MiB.
const MinTotal = 12_000

// Limits are the greatest counts for one client. But Total is the greatest count for all clients together. For a field that is
// zero, New uses the default of the field.
type Limits struct {
	// Connections is the number of open WebSockets and event streams. The default is 1,000.
	Connections int
	// Operations is the number of operations on these connections. The default is 9,000.
	Operations int
	// Total is the number of operations of all clients together. Fair decides how many of them a client may use. The default is
	// MinTotal, or four thirds of Operations, whichever is greater.
	Total int
	// Executions is the number of different subscriptions. Equal subscriptions share an execution and count once. The default is
	// half of Operations. All clients together may have four thirds of Executions, which Fair divides.
	Executions int
	// Watched is the number of ids that the client's subscriptions follow. An id counts once for each different subscription. The
	// default is three times Operations. All clients together may have four thirds of Watched, which Fair divides.
	Watched int
}

// Client identifies what the limits count for: an account, or the network of a client without an account. Clients must not be able
// to choose their account.
type Client struct {
	network netip.Prefix
	account market.Address
}

// Account returns the Client that stands for an account of the venue, from any address.
func Account(a market.Address) Client { return Client{account: a} }

// Anonymous returns the Client that stands for all clients without an account in the Network of an address.
func Anonymous(a netip.Addr) Client { return Client{network: Network(a)} }

// String returns a name, such as "account 0x12" or "address 192.0.2.1/32".
func (c Client) String() string {
	if c.account != "" {
		return "account " + string(c.account)
	}
	return "address " + c.network.String()
}

// noun returns what c is, for errors.
func (c Client) noun() string {
	if c.account != "" {
		return "account"
	}
	return "client address"
}

// Clients counts what each Client uses. It is safe for concurrent use.
type Clients struct {
	limits Limits

	mu      sync.Mutex
	holders map[Client]*holder
	// total counts what all clients use.
	total   holder
	refused uint64
}

type holder struct{ connections, operations, executions, watched int }

// New returns a Clients that counts nothing yet.
func New(l Limits) *Clients {
	l.Connections, l.Operations = cmp.Or(l.Connections, 1000), cmp.Or(l.Operations, 9000)
	l.Total = cmp.Or(l.Total, max(MinTotal, ofAll(l.Operations)))
	l.Executions, l.Watched = cmp.Or(l.Executions, max(l.Operations/2, 1)), cmp.Or(l.Watched, 3*l.Operations)
	return &Clients{limits: l, holders: make(map[Client]*holder)}
}

// ofAll returns how many units all clients need so that Fair allows one client n units.
func ofAll(n int) int { return (4*n + 2) / 3 }

// The flags of the program that set Limits.Connections and Limits.Operations. The other limits follow from Operations.
const (
	connectionsFlag = "--client-connections"
	operationsFlag  = "--client-operations"
)

func tooMany(flag, format string, args ...any) error {
	return market.Errorf(market.CodeRateLimited, format+"; the operator can raise "+flag, args...)
}

// Connect counts a connection, or returns a RATE_LIMITED error. Disconnect undoes Connect.
func (c *Clients) Connect(client Client) error {
	return c.take(client, func(h *holder) error {
		if h.connections >= c.limits.Connections {
			return tooMany(connectionsFlag, "more than %d connections of one %s", c.limits.Connections, client.noun())
		}
		h.connections++
		return nil
	})
}

// Disconnect undoes Connect.
func (c *Clients) Disconnect(client Client) {
	c.give(client, func(h *holder) { h.connections-- })
}

// Begin counts an operation, or returns a RATE_LIMITED error. End undoes Begin.
func (c *Clients) Begin(client Client) error {
	return c.take(client, func(h *holder) error {
		if h.operations >= c.limits.Operations {
			return tooMany(operationsFlag, "more than %d operations at once of one %s", c.limits.Operations, client.noun())
		}
		if !Fair(h.operations, 1, c.limits.Total-c.total.operations) {
			return tooMany(operationsFlag, "of the %d operations that all clients may have at once, none is free for this client", c.limits.Total)
		}
		h.operations++
		c.total.operations++
		return nil
	})
}

// End undoes Begin.
func (c *Clients) End(client Client) {
	c.give(client, func(h *holder) { h.operations--; c.total.operations-- })
}

// Execute counts an execution that follows a number of ids, or returns a RATE_LIMITED error. Executed undoes Execute.
func (c *Clients) Execute(client Client, ids int) error {
	return c.take(client, func(h *holder) error {
		l, executions, watched := &c.limits, ofAll(c.limits.Executions), ofAll(c.limits.Watched)
		switch {
		case h.executions >= l.Executions:
			return tooMany(operationsFlag, "more than %d different subscriptions at once of one %s", l.Executions, client.noun())
		case ids > l.Watched-h.watched:
			return tooMany(operationsFlag, "the subscriptions of one %s follow more than %d ids at once", client.noun(), l.Watched)
		case !Fair(h.executions, 1, executions-c.total.executions):
			return tooMany(operationsFlag, "of the %d different subscriptions that all clients may have at once, none is free for this client", executions)
		case !Fair(h.watched, ids, watched-c.total.watched):
			return tooMany(operationsFlag, "of the %d ids that the subscriptions of all clients may follow at once, too few are free for this client", watched)
		}
		h.executions++
		c.total.executions++
		h.watched += ids
		c.total.watched += ids
		return nil
	})
}

// Executed undoes Execute with the same number of ids.
func (c *Clients) Executed(client Client, ids int) {
	c.give(client, func(h *holder) {
		h.executions--
		c.total.executions--
		h.watched -= ids
		c.total.watched -= ids
	})
}

// Refused returns how often a method has returned an error.
func (c *Clients) Refused() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// take calls the function count with the holder of the client. If the function returns an error, take counts a refusal.
func (c *Clients) take(client Client, count func(*holder) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.holders[client]
	if h == nil {
		h = &holder{}
	}
	if err := count(h); err != nil {
		c.refused++
		return err
	}
	c.holders[client] = h
	return nil
}

func (c *Clients) give(client Client, count func(*holder)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.holders[client]
	if count(h); *h == (holder{}) {
		delete(c.holders, client)
	}
}

// Fair reports whether a client may use n more units of a shared resource. held is the number of units that the client already
// uses. free is the number of units that no client uses. A client that uses no units may take any number of unused units. A client
// that already uses some units may have at most three times the units that then remain unused. So a client that takes its units in
// small parts gets at most three quarters of all units, and some units remain for a new client. If several clients always want
// more, all of them end up with the same number of units.
func Fair(held, n, free int) bool { return n <= free && (held == 0 || held+n <= 3*(free-n)) }

// Network returns the network in which clients without an account count as one. That is an IPv4 address, or the /64 network of an
// IPv6 address, because providers assign no smaller network.
func Network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // the zero address has the zero prefix
	return p
}
