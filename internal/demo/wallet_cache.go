package demo

import (
	"container/list"
	"slices"
	"sync"
)

// derivedPositions is the number of positions of a derived wallet, which belongs to no demo account.
const derivedPositions = 50

// Bounds of the walletCache. An evicted wallet is derived again when it is needed. A wallet that has traded can't be derived again,
// so it is never evicted.
const (
	maxDerived = 1024 // cached wallets; wallets that have subscribers or have traded may exceed this bound
	maxGuests  = 256  // wallets that may trade
)

// walletCache caches the most recently used derived wallets, and all derived wallets that have subscribers or have traded.
type walletCache struct {
	making    sync.Mutex // locked from find until add, so that no address gets two wallets
	mu        sync.Mutex
	recent    list.List // of *wallet, the most recently used first
	byAddr    map[string]*list.Element
	keptCount int // number of wallets that may trade
}

// find returns a cached wallet, or nil. If pin is true, it pins the wallet, so that add does not evict the wallet.
func (c *walletCache) find(address string, pin bool) *wallet {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byAddr[address]
	if e == nil {
		return nil
	}
	c.recent.MoveToFront(e)
	w := e.Value.(*wallet)
	if pin {
		w.pins++
	}
	return w
}

// add caches a wallet. If there are more than maxDerived wallets, it evicts the least recently used wallets that are neither pinned
// nor kept.
func (c *walletCache) add(w *wallet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byAddr == nil {
		c.byAddr = make(map[string]*list.Element)
	}
	c.byAddr[w.address] = c.recent.PushFront(w)
	for e := c.recent.Back(); e != nil && c.recent.Len() > maxDerived; {
		previous := e.Prev()
		if old := e.Value.(*wallet); old.pins == 0 && !old.kept && old != w {
			delete(c.byAddr, c.recent.Remove(e).(*wallet).address)
		}
		e = previous
	}
}

func (c *walletCache) unpin(w *wallet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.pins--
}

// keep protects a wallet from eviction if fewer than maxGuests wallets are protected. It reports whether the wallet is now
// protected, and so may trade.
func (c *walletCache) keep(w *wallet) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !w.kept && c.keptCount < maxGuests {
		w.kept = true
		c.keptCount++
	}
	return w.kept
}

func (c *walletCache) each(f func(*wallet)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.recent.Front(); e != nil; e = e.Next() {
		f(e.Value.(*wallet))
	}
}

// walletOf returns the wallet of an address in lower case. The caller must not hold the venue's lock.
func (v *Venue) walletOf(address string) *wallet { return v.walletAt(address, false) }

// walletAt returns the wallet of an address in lower case. If pin is true and the wallet is derived, walletAt pins it.
func (v *Venue) walletAt(address string, pin bool) *wallet {
	if w := v.accounts[address]; w != nil {
		return w
	}
	if w := v.derived.find(address, pin); w != nil {
		return w
	}
	made := v.newWallet(address, derivedPositions, false)

	v.mu.RLock() // so that no market closes meanwhile
	defer v.mu.RUnlock()
	v.derived.making.Lock()
	defer v.derived.making.Unlock()
	if w := v.derived.find(address, pin); w != nil {
		return w // another goroutine has added the wallet
	}
	made.orders = slices.DeleteFunc(made.orders, func(o *order) bool { return o.token.market.halted })
	if pin {
		made.pins = 1
	}
	v.derived.add(made)
	return made
}
