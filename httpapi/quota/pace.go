package quota

import (
	"net/netip"
	"sync"
	"time"
)

// Pace bounds how much each client may spend in a second. A client that has spent more is in debt until the time has passed that
// it takes to earn it. It is safe for concurrent use.
type Pace struct {
	// perSecond is what a client earns, burst the most that it saves.
	perSecond, burst float64

	mu      sync.Mutex
	clients map[netip.Prefix]*purse
	// swept is when those that have saved all were forgotten last.
	swept time.Time
}

// purse is what a client had at a time.
type purse struct {
	saved float64
	at    time.Time
}

// NewPace returns a pace at which every client has saved the burst.
func NewPace(perSecond, burst int) *Pace {
	return &Pace{perSecond: float64(perSecond), burst: float64(burst), clients: make(map[netip.Prefix]*purse), swept: time.Now()}
}

// Spend takes n from a client, whether it has so much or not.
func (p *Pace) Spend(client netip.Prefix, n int) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(now)
	c := p.clients[client]
	if c == nil {
		c = &purse{saved: p.burst, at: now}
		p.clients[client] = c
	}
	c.saved, c.at = p.present(c, now)-float64(n), now
}

// Debt returns how long a client has to wait until it owes nothing.
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

// present returns what a client has now. The lock is held.
func (p *Pace) present(c *purse, now time.Time) float64 {
	return min(c.saved+now.Sub(c.at).Seconds()*p.perSecond, p.burst)
}

// sweep forgets those that have saved all, once in the time that this takes at most. The lock is held.
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
