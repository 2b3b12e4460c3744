package demo

import (
	"maps"
	"slices"
	"sync"
)

// derivedPositions is the number of positions of a derived wallet, which belongs to no demo account.
const derivedPositions = 50

// Bounds of derived wallets. When there are maxDerived, the cache drops those that have no subscribers and have not traded. A dropped
// wallet is derived again when it is needed. At most maxGuests trade.
const (
	maxDerived = 1024
	maxGuests  = 256
)

type walletCache struct {
	mu      sync.Mutex
	wallets map[string]*wallet
}

// find returns the wallet of an address. If there is none, it adds made, which may be nil. The caller of find holds the venue's lock if
// made is not nil, so that no wallet gets subscribers meanwhile.
func (c *walletCache) find(address string, made *wallet) *wallet {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.wallets[address]; w != nil || made == nil {
		return w
	}
	if len(c.wallets) >= maxDerived {
		maps.DeleteFunc(c.wallets, func(_ string, w *wallet) bool { return w.topic == nil && !w.traded })
	}
	if c.wallets == nil {
		c.wallets = make(map[string]*wallet)
	}
	c.wallets[address] = made
	return made
}

func (c *walletCache) each(f func(*wallet)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.wallets {
		f(w)
	}
}

// walletOf returns the wallet of an address in lower case. The caller must not hold the venue's lock.
func (v *Venue) walletOf(address string) *wallet {
	if w := v.accounts[address]; w != nil {
		return w
	}
	if w := v.derived.find(address, nil); w != nil {
		return w
	}
	made := v.newWallet(address, derivedPositions, false)
	v.mu.RLock() // so that no market closes meanwhile
	defer v.mu.RUnlock()
	made.orders = slices.DeleteFunc(made.orders, func(o *order) bool { return o.token.market.halted })
	return v.derived.find(address, made)
}
