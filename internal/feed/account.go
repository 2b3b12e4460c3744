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
	positions list[market.PositionKey, market.Position]
	balance   *market.Balance
	// fills are the last ones, oldest first, by which equal ones are told apart.
	fills []market.Trade
	// lost reports that positions were known and no longer are, until the sink is told.
	lost  bool
	shown *Account // nil after a change
}

func orderKey(o *market.Order) string { return o.OrderID }

// list is a list in the venue's order whose elements are found by a key.
type list[K comparable, T any] struct {
	rows []T
	at   map[K]int
	// shown tells that somebody else has the rows.
	shown bool
}

// newLedger returns the account of a snapshot. Orders and positions that are nil there are not known. before is the ledger
// that it replaces, or nil.
func newLedger(m *market.Message, before *ledger) *ledger {
	positions := slices.Clone(m.Positions)
	market.NumberPositions(positions)
	l := &ledger{
		orders:    newList(m.Orders, orderKey, open),
		positions: newList(positions, (*market.Position).Key, held),
		balance:   m.Balance,
	}
	if before != nil {
		l.fills = before.fills
	}
	return l
}

// filled adds fills and returns those that are new.
func (l *ledger) filled(m *market.Message) (fresh []market.Trade) {
	l.fills, fresh = added(l.fills, m.Trades, m.Seq != 0)
	return fresh
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
			l.hold(m.Positions[i])
		}
	case market.MessageBalance:
		l.balance = m.Balance
	default:
		return
	}
	l.shown = nil
}

// hold takes over what a message says of a position. A message does not name the lot that it is about: where an outcome has
// several, the one with the same size and average price has only another price. If none has, it is not known what is held,
// until the next snapshot says so.
func (l *ledger) hold(p market.Position) {
	lots := 0
	for {
		i, known := l.positions.at[market.PositionKey{MarketID: p.MarketID, Outcome: p.Outcome, Ordinal: lots}]
		if !known {
			break
		}
		if lot := &l.positions.rows[i]; sameLot(lot, &p) {
			p.Ordinal = lots
			l.positions.put(p.Key(), p, held(&p))
			return
		}
		lots++
	}
	if lots > 1 {
		l.positions, l.lost = list[market.PositionKey, market.Position]{}, true
		return
	}
	p.Ordinal = 0
	l.positions.put(p.Key(), p, held(&p))
}

func sameLot(a, b *market.Position) bool {
	return a.Size.Cmp(b.Size) == 0 && (a.AvgPrice == b.AvgPrice || a.AvgPrice != nil && b.AvgPrice != nil && a.AvgPrice.Cmp(*b.AvgPrice) == 0)
}

// account returns the present account, which stays as it is.
func (l *ledger) account() *Account {
	if l.shown == nil {
		l.shown = &Account{Orders: l.orders.show(), Positions: l.positions.show(), Balance: l.balance}
	}
	return l.shown
}

// newList returns a list of those rows that stay. The last row with a key replaces those before. The list is not known where
// rows is nil.
func newList[K comparable, T any](rows []T, key func(*T) K, stays func(*T) bool) (l list[K, T]) {
	if rows == nil {
		return l
	}
	l.rows, l.at = make([]T, 0, len(rows)), make(map[K]int, len(rows))
	for i := range rows {
		if !stays(&rows[i]) {
			continue
		}
		k := key(&rows[i])
		if j, known := l.at[k]; known {
			l.rows[j] = rows[i]
			continue
		}
		l.at[k] = len(l.rows)
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
	if t.state.ledger.lost {
		t.feed.cfg.Sink.StreamStale(t.key)
		t.state.ledger.lost = false
	}
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
