package demo

import (
	"errors"
	"slices"
)

// Errors of the methods that change markets.
var (
	ErrUnknownMarket = errors.New("demo: unknown market")
	ErrStatus        = errors.New("demo: the market can't change to that status")
	ErrTickSize      = errors.New("demo: the tick size must be 0.001 or the market's first tick size, and differ from the present tick size")
)

// changeMarket runs f for a market while it holds the venue's lock, see change.
func (v *Venue) changeMarket(marketID string, f func(m *market, now millis) error) error {
	m := v.listing.marketByID[marketID]
	if m == nil {
		return ErrUnknownMarket
	}
	return v.change(func(now millis) error { return f(m, now) })
}

// SetStatus opens, closes, disputes or cancels a market. If the new status is not OPEN, the market's books become empty and its
// orders are cancelled. SetStatus can't change a resolved market, and can't set the present status, UPCOMING or RESOLVED (see
// [Venue.Resolve]).
func (v *Venue) SetStatus(marketID, status string) error {
	return v.changeMarket(marketID, func(m *market, now millis) error {
		if !slices.Contains(statuses, status) || status == statusUpcoming || status == statusResolved || status == m.status ||
			m.status == statusResolved {
			return ErrStatus
		}
		v.setStatus(m, status, now)
		return nil
	})
}

// Resolve ends a market: the winning token is worth 1, the others 0. Positions stay.
func (v *Venue) Resolve(marketID, winningTokenID string) error {
	winner := v.listing.tokenByID[winningTokenID]
	return v.changeMarket(marketID, func(m *market, now millis) error {
		switch {
		case winner == nil || winner.market != m:
			return ErrUnknownToken
		case m.status == statusResolved:
			return ErrStatus
		}
		v.resolve(m, winner.outcome, now)
		return nil
	})
}

// Reword changes the description of a market.
func (v *Venue) Reword(marketID, description string) error {
	return v.changeMarket(marketID, func(m *market, now millis) error {
		v.reword(m, description, now)
		return nil
	})
}

// SetTickSize changes the tick size of an open market. Its books get new levels. Orders whose prices do not fit the new tick size
// are cancelled.
func (v *Venue) SetTickSize(marketID string, tick Price) error {
	return v.changeMarket(marketID, func(m *market, now millis) error {
		switch {
		case m.status != statusOpen:
			return ErrNotTrading
		case tick != fineTick && tick != m.born.tick, tick == m.tick:
			return ErrTickSize
		}
		v.setTickSize(m, tick, now)
		return nil
	})
}

// setStatus changes the status to any status except RESOLVED.
func (v *Venue) setStatus(m *market, status string, now millis) {
	change := changeStatus
	if m.status == statusUpcoming && status == statusOpen {
		change = changeCreated
	}
	m.updatedAt = now
	if status == statusOpen {
		if m.status == statusUpcoming {
			m.startAt = min(m.startAt, now)
		}
		m.status, m.closedAt = status, 0
		v.openBooks(m, now)
	} else {
		m.status = status
		if m.closedAt == 0 {
			m.closedAt = now
		}
		v.closeBooks(m, false, now)
	}
	v.marketChanged(m, change)
}

func (v *Venue) resolve(m *market, winner int, now millis) {
	m.status, m.winner, m.resolvedAt, m.updatedAt = statusResolved, winner, now, now
	if m.closedAt == 0 {
		m.closedAt = now
	}
	v.closeBooks(m, true, now)
	v.marketChanged(m, changeResolved)
}

func (v *Venue) reword(m *market, description string, now millis) {
	m.description, m.updatedAt = description, now
	v.marketChanged(m, changeMetadata)
}

const fineTick Price = 10

func (v *Venue) setTickSize(m *market, tick Price, now millis) {
	r := &v.dice.life
	m.tick, m.updatedAt = tick, now
	for _, t := range m.tokens {
		if !t.mirrored {
			reach, depth := m.scale(r)
			t.regrid(tick, reach, depth, r)
			v.moved(t, true, true, now)
		}
	}
	for _, w := range v.accounts { // the prices of derived wallets' orders fit every tick size
		w.cancelOrders(now, func(o *order) bool { return o.token.market == m && o.price%tick != 0 })
	}
	v.marketChanged(m, changeTickSize)
}

func (v *Venue) openBooks(m *market, now millis) {
	r := &v.dice.life
	for _, t := range m.tokens {
		if t.mirrored {
			continue
		}
		if t.sizes == nil {
			v.listing.tradable = append(v.listing.tradable, t)
		}
		reach, depth := m.scale(r)
		t.instrument.open(reach, depth, r)
		v.moved(t, true, true, now)
	}
}

// closeBooks empties the books of a market and cancels the orders on the market. The price of a book gets a new sequence number if
// settled is true or if the book had levels.
func (v *Venue) closeBooks(m *market, settled bool, now millis) {
	for _, t := range m.tokens {
		if t.mirrored {
			continue
		}
		had := t.instrument.empty()
		v.moved(t, had, had || settled, now)
	}
	m.halted = true
	inMarket := func(o *order) bool { return o.token.market == m }
	for _, w := range v.accounts {
		w.cancelOrders(now, inMarket)
	}
	v.derived.each(func(w *wallet) { w.cancelOrders(now, inMarket) })
}

func (w *wallet) cancelOrders(now millis, match func(*order) bool) {
	for k := 0; k < len(w.orders); {
		if !match(w.orders[k]) {
			k++
			continue
		}
		w.endOrder(k, now)
	}
}

// marketChanged assigns a sequence number to a change of a market and streams the change.
func (v *Venue) marketChanged(m *market, change string) {
	m.seq++
	v.publishMarket(m, change)
	if v.config.Watch != nil {
		v.config.Watch.Changed(m.state(), change)
	}
}

// Bounds of the automatic changes of markets. n is the number of tradable instruments.
const (
	haltedParts  = 20 // at most n/haltedParts + 1 markets are closed
	refinedParts = 20 // at most n/refinedParts + 1 markets have a finer tick size
	settledParts = 10 // at most n/settledParts markets have been resolved
)

// changeRandomMarket sometimes opens, closes, resolves or rewords a market, or changes its tick size. It limits the numbers of
// closed markets, of resolved markets and of markets with a finer tick size. It does not change the markets of the smallest demo
// account.
func (v *Venue) changeRandomMarket(now millis) {
	r := &v.dice.life
	if v.config.MarketEvery <= 0 || !r.oneIn(max(int(v.config.MarketEvery/pace), 1)) {
		return
	}
	open := len(v.listing.tradable)
	from := r.intn(12)
	for n := range 12 {
		switch (from + n) % 12 {
		case 0, 1, 2:
			if m := v.anyMarket(statusOpen, r); m != nil && len(v.halted) < open/haltedParts+1 {
				v.setStatus(m, statusClosed, now)
				v.halted = append(v.halted, m)
				return
			}
		case 3, 4, 5:
			if len(v.halted) > 0 {
				if m := takeOne(&v.halted, r); m.status == statusClosed {
					v.setStatus(m, statusOpen, now)
					return
				}
			}
		case 6:
			if len(v.halted) > 0 && v.settledCount < open/settledParts {
				if m := takeOne(&v.halted, r); m.status == statusClosed {
					v.settledCount++
					v.resolve(m, m.randomOutcome(r), now)
					return
				}
			}
		case 7:
			if m := v.anyMarket(statusUpcoming, r); m != nil {
				v.setStatus(m, statusOpen, now)
				return
			}
		case 8:
			if m := v.anyMarket(statusOpen, r); m != nil && m.tick != fineTick && len(v.refined) < open/refinedParts+1 {
				v.setTickSize(m, fineTick, now)
				v.refined = append(v.refined, m)
				return
			}
		case 9:
			if len(v.refined) > 0 {
				if m := takeOne(&v.refined, r); m.status == statusOpen && m.tick != m.born.tick {
					v.setTickSize(m, m.born.tick, now)
					return
				} else if m.status == statusClosed {
					v.refined = append(v.refined, m) // try again after the market has opened
				}
			}
		default:
			if m := v.anyMarket(statusOpen, r); m != nil {
				v.reword(m, m.rules()+" Clarified on "+now.Time().Format("January 2, 2006, 15:04 UTC")+": what is published after the end of trading does not count.", now)
				return
			}
		}
	}
}

// takeOne removes and returns a random market of a list of automatically changed markets. The market may have changed again
// since it was added to the list.
func takeOne(list *[]*market, r *rng) *market {
	k := r.intn(len(*list))
	m := (*list)[k]
	*list = slices.Delete(*list, k, k+1)
	return m
}

// anyMarket returns a random market that has the status and is not spared. It returns nil if 50 random draws find no such market.
func (v *Venue) anyMarket(status string, r *rng) *market {
	for range 50 {
		m := v.listing.markets[r.intn(len(v.listing.markets))]
		if m.status == status && !v.spared(m) {
			return m
		}
	}
	return nil
}

// spared reports whether the smallest demo account has a position in the market. changeRandomMarket does not change such a market.
func (v *Venue) spared(m *market) bool {
	return slices.ContainsFunc(v.accounts[accounts[0].address].positions, func(p *position) bool { return p.token.market == m })
}

// randomOutcome returns a random outcome of a market, with the prices as probabilities.
func (m *market) randomOutcome(r *rng) int {
	sum := 0
	for _, t := range m.tokens {
		sum += int(t.lastPrice())
	}
	n := r.intn(sum)
	for i, t := range m.tokens {
		if n -= int(t.lastPrice()); n < 0 {
			return i
		}
	}
	return 0
}
