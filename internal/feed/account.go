package feed

import (
	"slices"
	"time"

	"oddsgraph/internal/market"
)

// accountEvery is the least time between two states of an account that nobody reads and the sink is given: venues tell of
// every price in a wallet by a message of its own.
const accountEvery = 50 * time.Millisecond

// ledger is an account as its changes make it. What was shown of it never changes: a list that was is copied before it is
// written to.
type ledger struct {
	orders    list[string, market.Order]
	positions list[holding, market.Position]
	balance   *market.Balance
	shown     *Account // nil after a change
}

// holding is what a position is known by.
type holding struct{ marketID, outcome string }

func orderKey(o *market.Order) string        { return o.OrderID }
func positionKey(p *market.Position) holding { return holding{p.MarketID, p.Outcome} }

// list is a list in the venue's order whose elements are found by a key.
type list[K comparable, T any] struct {
	rows []T
	at   map[K]int
	// shown tells that somebody else has the rows.
	shown bool
}

// newLedger returns the account of a snapshot. Orders and positions that are nil there are not known.
func newLedger(m *market.Message) *ledger {
	return &ledger{
		orders:    newList(m.Orders, orderKey, open),
		positions: newList(m.Positions, positionKey, held),
		balance:   m.Balance,
	}
}

// open reports whether an order still stands.
func open(o *market.Order) bool {
	return o.Status == market.OrderOpen || o.Status == market.OrderPartiallyFilled || o.Status == market.OrderUnknown
}

// held reports whether a position is one.
func held(p *market.Position) bool { return !p.Size.IsZero() }

// apply makes a change. A change of a list that is not known leaves it unknown, since its one element is not all of it.
func (l *ledger) apply(m *market.Message) {
	switch m.Kind {
	case market.MessageOrder:
		for i := range m.Orders {
			l.orders.put(orderKey(&m.Orders[i]), m.Orders[i], open(&m.Orders[i]))
		}
	case market.MessagePosition:
		for i := range m.Positions {
			l.positions.put(positionKey(&m.Positions[i]), m.Positions[i], held(&m.Positions[i]))
		}
	case market.MessageBalance:
		l.balance = m.Balance
	default:
		return
	}
	l.shown = nil
}

// account returns the present account, which stays as it is.
func (l *ledger) account() *Account {
	if l.shown == nil {
		l.shown = &Account{Orders: l.orders.show(), Positions: l.positions.show(), Balance: l.balance}
	}
	return l.shown
}

// newList returns a list of those rows that stay, all of them, of which the first with a key is found by it. It is not
// known where rows is nil.
func newList[K comparable, T any](rows []T, key func(*T) K, stays func(*T) bool) (l list[K, T]) {
	if rows == nil {
		return l
	}
	l.rows, l.at = make([]T, 0, len(rows)), make(map[K]int, len(rows))
	for i := range rows {
		if !stays(&rows[i]) {
			continue
		}
		if _, known := l.at[key(&rows[i])]; !known {
			l.at[key(&rows[i])] = len(l.rows)
		}
		l.rows = append(l.rows, rows[i])
	}
	return l
}

// put puts a row in the place of the one with its key, or at the end, or takes it out where it is not to stay.
func (l *list[K, T]) put(key K, row T, stays bool) {
	i, known := l.at[key]
	if l.at == nil || !known && !stays {
		return
	}
	if l.shown {
		l.rows, l.shown = slices.Clone(l.rows), false
	}
	switch {
	case !known:
		l.at[key] = len(l.rows)
		l.rows = append(l.rows, row)
	case stays:
		l.rows[i] = row
	default:
		l.rows = slices.Delete(l.rows, i, i+1)
		delete(l.at, key)
		for k, j := range l.at {
			if j > i {
				l.at[k] = j - 1
			}
		}
	}
}

// show hands the rows out; nil where they are not known.
func (l *list[K, T]) show() []T {
	l.shown = true
	return slices.Clip(l.rows)
}

// present returns the state as readers see it. What one of them has seen queries find too. The lock is held.
func (t *topic) present() State {
	if t.state.ledger != nil {
		t.state.Account = t.state.ledger.account()
		t.tell()
	}
	s := t.state
	s.ledger = nil
	return s
}

// tellSoon gives the sink the account, unless it was given one just before: then it is given the next one in a while.
func (t *topic) tellSoon() {
	t.untold = true
	wait := t.told.Add(accountEvery).Sub(t.feed.cfg.Clock.Now())
	if wait <= 0 {
		t.tell()
	} else if t.teller == nil {
		t.teller = time.AfterFunc(min(wait, accountEvery), func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.teller = nil
			t.tell()
		})
	}
}

// tell gives the sink the account if it has changed since it was given one. The lock is held.
func (t *topic) tell() {
	if !t.untold {
		return
	}
	t.untold, t.told = false, t.feed.cfg.Clock.Now()
	a := t.state.ledger.account()
	t.feed.cfg.Sink.StreamAccount(&t.session.Session, t.key, a.Orders, a.Positions, a.Balance, t.state.Meta)
}

// untell forgets what the sink was not given yet. The lock is held.
func (t *topic) untell() {
	t.untold = false
	if t.teller != nil {
		t.teller.Stop()
		t.teller = nil
	}
}
