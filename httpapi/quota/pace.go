package quota

import (
	"net/netip"
	"sync"
	"time"
)

// Pace limits what each client may spend per second, in units that the calling code chooses. A client that has spent more than
// it had is in debt until it has earned the difference. Pace is safe for concurrent use.
type Pace struct {
	// perSecond is the number of units that a client earns per second. burst is the largest number of units that a client can save.
	perSecond, burst float64

	mu      sync.Mutex
	clients map[netip.Prefix]*balance
	// swept is the time of the last sweep.
	swept time.Time
}

// balance says that a client had saved units at the time at. If saved is negative, the client was in debt.
type balance struct {
	saved float64
	at    time.Time
}

// NewPace returns a Pace. A client earns perSecond units per second. It can save at most burst units, and starts with burst units.
func NewPace(perSecond, burst int) *Pace {
	return &Pace{perSecond: float64(perSecond), burst: float64(burst), clients: make(map[netip.Prefix]*balance), swept: time.Now()}
}

// Spend charges a client n units, even if that leaves a debt.
func (p *Pace) Spend(client netip.Prefix, n int) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(now)
	c := p.clients[client]
	if c == nil {
		c = &balance{saved: p.burst, at: now}
		p.clients[client] = c
	}
	c.saved, c.at = p.present(c, now)-float64(n), now
}

// Debt returns the time until a client is out of debt, or 0 if it is not in debt.
func (p *Pace) Debt(client netip.Prefix) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[client]
	if c == nil {
		return 0
	}
	if owed := -p.present(c, time.Now()); owed > 0 {
		return time.Duration(owed/p.perSecond*float64(time.Second)) + 1
	}
	return 0
}

// present returns the units that a client has. now is the present time. The calling function holds the lock.
func (p *Pace) present(c *balance, now time.Time) float64 {
	return min(c.saved+now.Sub(c.at).Seconds()*p.perSecond, p.burst)
}

// sweep removes the clients that have saved burst units. It does so at most once in the time in which a client earns burst units.
// The calling function holds the lock.
func (p *Pace) sweep(now time.Time) {
	if now.Sub(p.swept).Seconds()*p.perSecond < p.burst {
		return
	}
	p.swept = now
	for client, c := range p.clients {
		if p.present(c, now) == p.burst {
			delete(p.clients, client)
		}
	}
}
