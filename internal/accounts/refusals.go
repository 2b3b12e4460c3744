package accounts

import (
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"oddsgraph/internal/market"
	"oddsgraph/internal/quota"
)

const (
	// refusalLimit is how many refusals an address has in refusalWindow before its credentials are not looked at.
	refusalLimit  = 5
	refusalWindow = time.Minute
	// maxAddresses bounds the addresses that are remembered; those whose last refusal is longest ago are forgotten.
	maxAddresses = 1 << 14
)

// Refusals counts refused credentials by client address, so that nobody tries out credentials at the venue's expense.
// What counts as one is quota.Network. It is safe for concurrent use.
type Refusals struct {
	clock market.Clock

	mu  sync.Mutex
	lru *simplelru.LRU[netip.Prefix, *lastRefusals]
}

// lastRefusals is a ring of the last refusals of an address.
type lastRefusals struct {
	at   [refusalLimit]time.Time
	next int // the oldest
}

// NewRefusals returns a count of nothing.
func NewRefusals(clock market.Clock) *Refusals {
	lru, err := simplelru.NewLRU[netip.Prefix, *lastRefusals](maxAddresses, nil)
	if err != nil {
		panic("accounts: " + err.Error()) // the size is a constant
	}
	return &Refusals{clock: clock, lru: lru}
}

// Refused counts a request whose credentials were refused: its bearer token is unknown, or the venue answered 401 to the
// credentials in its header, in however many fields. What is refused because of Check must not be counted: who waits is
// heard again.
func (r *Refusals) Refused(addr netip.Addr) {
	now, network := r.clock.Now(), quota.Network(addr)
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.lru.Get(network)
	if !known {
		last = &lastRefusals{}
		r.lru.Add(network, last)
	}
	last.at[last.next] = now
	last.next = (last.next + 1) % refusalLimit
}

// Blocked tells whether credentials from an address are refused unseen, and until when.
func (r *Refusals) Blocked(addr netip.Addr) (until time.Time, blocked bool) {
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.lru.Peek(quota.Network(addr))
	if !known || last.at[last.next].IsZero() {
		return time.Time{}, false
	}
	until = last.at[last.next].Add(refusalWindow)
	return until, now.Before(until)
}

// Check returns an error with CodeRateLimited and RetryAfter for an address that is blocked.
func (r *Refusals) Check(addr netip.Addr) error {
	until, blocked := r.Blocked(addr)
	if !blocked {
		return nil
	}
	e := market.Errorf(market.CodeRateLimited, "credentials from this address were refused %d times within a minute; wait, then send valid ones", refusalLimit)
	e.RetryAfter = max(until.Sub(r.clock.Now()), time.Millisecond)
	return e
}
