package feed

import (
	"slices"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// accountInterval is the minimum time between two calls of Sink.StreamAccount for one account. Without this minimum, each new price
// of a position would cause a call. If a reader takes the changed account earlier, the feed calls Sink at once.
const accountInterval = 50 * time.Millisecond

// mutableAccount is an account to which changes are applied. Readers get an Account that shares the lists of the mutableAccount. A
// shared list is copied before it is changed.
type mutableAccount struct {
	orders    keyedList[string, market.Order]
	positions keyedList[market.PositionKey, market.Position]
	balance   *market.Balance
	// fills contains the latest fills, oldest first.
	fills []market.Trade
	// positionsLost reports whether applyPosition has made the positions unknown since the last flush.
	positionsLost bool
	current       *Account // the present snapshot; nil after a change
}

func orderKey(o *market.Order) string { return o.OrderID }

// keyedList is a list in the venue's order. keyedList.index maps the key of a row to the index of the row in rows.
type keyedList[K comparable, T any] struct {
	rows  []T
	index map[K]int
	// shared reports whether readers use rows. If so, put copies rows before it changes them.
	shared bool
}

// newMutableAccount returns the account in a snapshot. A nil list in the snapshot is unknown. before is the account that the
// snapshot replaces, or nil. The new account keeps the fills of the replaced account.
func newMutableAccount(m *messages.Message, before *mutableAccount) *mutableAccount {
	positions := slices.Clone(m.Positions)
	market.NumberPositions(positions)
	a := &mutableAccount{
		orders:    newKeyedList(m.Orders, orderKey, isActive),
		positions: newKeyedList(positions, (*market.Position).Key, isHeld),
		balance:   m.Balance,
	}
	if before != nil {
		a.fills = before.fills
	}
	return a
}

// addFills adds the fills of a message and returns the fills that the account did not contain yet.
func (a *mutableAccount) addFills(m *messages.Message) (fresh []market.Trade) {
	a.fills, fresh = appendNew(a.fills, m.Trades, m.Seq != 0)
	return fresh
}

// isActive reports whether an order is still active. An unknown status counts as active.
func isActive(o *market.Order) bool {
	return o.Status == market.OrderOpen || o.Status == market.OrderPartiallyFilled || o.Status == market.OrderUnknown
}

func isHeld(p *market.Position) bool { return !p.Size.IsZero() }

// apply applies a change. An unknown list stays unknown, because a change does not contain the whole list.
func (a *mutableAccount) apply(m *messages.Message) {
	switch m.Kind {
	case messages.KindOrder:
		for i := range m.Orders {
			a.orders.put(orderKey(&m.Orders[i]), m.Orders[i], isActive(&m.Orders[i]))
		}
	case messages.KindPosition:
		for i := range m.Positions {
			a.applyPosition(m.Positions[i])
		}
	case messages.KindBalance:
		a.balance = m.Balance
	default:
		return
	}
	a.current = nil
}

// markUnread counts a change of an account whose list is unknown, and tells Sink that earlier reads of the list are out of date. A
// list is never built from changes alone. Changes that arrive before the snapshot also count, because the snapshot may never come.
// t.mu must be locked.
func (t *topic) markUnread(m *messages.Message) {
	if t.key.Channel != messages.ChannelUser {
		return
	}
	a, u := t.state.mutable, &t.state.Unread
	known := t.phase == following && a != nil
	switch {
	case m.Kind == messages.KindOrder && !(known && a.orders.index != nil):
		u.Orders++
	case m.Kind == messages.KindPosition && !(known && a.positions.index != nil):
		u.Positions++
	case m.Kind == messages.KindBalance && !known:
		u.Balance++
	case m.Kind == messages.KindFill && !known:
		u.Trades++
		t.publish()
		return // only subscriptions read an account's trades without a cache
	default:
		return
	}
	t.feed.cfg.Sink.StreamUnread(t.key, m.Kind)
	t.publish()
}

// applyPosition applies a change of a position. An account may have several positions with the same market and outcome, called
// lots. A message does not say which lot it changes:
//   - If a lot has the size and the average price in the message, the message replaces that lot.
//   - Otherwise, if there is only one lot, the message replaces that lot. If there is none, the message adds a lot.
//   - Otherwise, if there are several lots, all positions are unknown until the next snapshot.
func (a *mutableAccount) applyPosition(p market.Position) {
	lots := 0
	for {
		i, known := a.positions.index[market.PositionKey{MarketID: p.MarketID, Outcome: p.Outcome, Ordinal: lots}]
		if !known {
			break
		}
		if lot := &a.positions.rows[i]; sameLot(lot, &p) {
			p.Ordinal = lots
			a.positions.put(p.Key(), p, isHeld(&p))
			return
		}
		lots++
	}
	if lots > 1 {
		a.positions, a.positionsLost = keyedList[market.PositionKey, market.Position]{}, true
		return
	}
	p.Ordinal = 0
	a.positions.put(p.Key(), p, isHeld(&p))
}

func sameLot(a, b *market.Position) bool {
	return a.Size.Cmp(b.Size) == 0 && (a.AvgPrice == b.AvgPrice || a.AvgPrice != nil && b.AvgPrice != nil && a.AvgPrice.Cmp(*b.AvgPrice) == 0)
}

// snapshot returns the present account. The result is read-only and does not change later.
func (a *mutableAccount) snapshot() *Account {
	if a.current == nil {
		a.current = &Account{Orders: a.orders.share(), Positions: a.positions.share(), Balance: a.balance}
	}
	return a.current
}

// newKeyedList returns a list of the rows for which filter returns true. A later row replaces an earlier row with the same key. If
// rows is nil, the list is unknown.
func newKeyedList[K comparable, T any](rows []T, key func(*T) K, filter func(*T) bool) (l keyedList[K, T]) {
	if rows == nil {
		return l
	}
	l.rows, l.index = make([]T, 0, len(rows)), make(map[K]int, len(rows))
	for i := range rows {
		if !filter(&rows[i]) {
			continue
		}
		k := key(&rows[i])
		if j, known := l.index[k]; known {
			l.rows[j] = rows[i]
			continue
		}
		l.index[k] = len(l.rows)
		l.rows = append(l.rows, rows[i])
	}
	return l
}

// put stores a row under a key. It replaces the row that has the key, or appends the new row. If present is false, put instead
// removes the row that has the key. put does not change an unknown list.
func (l *keyedList[K, T]) put(key K, row T, present bool) {
	i, known := l.index[key]
	if l.index == nil || !known && !present {
		return
	}
	if l.shared {
		l.rows, l.shared = slices.Clone(l.rows), false
	}
	switch {
	case !known:
		l.index[key] = len(l.rows)
		l.rows = append(l.rows, row)
	case present:
		l.rows[i] = row
	default:
		l.rows = slices.Delete(l.rows, i, i+1)
		delete(l.index, key)
		for k, j := range l.index {
			if j > i {
				l.index[k] = j - 1
			}
		}
	}
}

// share returns the rows for readers, or nil if the list is unknown.
func (l *keyedList[K, T]) share() []T {
	l.shared = true
	return slices.Clip(l.rows)
}

// visibleState returns the state for readers. It also passes a changed account to Sink, so that queries return the values that
// readers get. t.mu must be locked.
func (t *topic) visibleState() State {
	if t.state.mutable != nil {
		t.state.Account = t.state.mutable.snapshot()
		t.flush()
	}
	s := t.state
	s.mutable = nil
	return s
}

// flushSoon flushes the account as soon as accountInterval has passed since the last flush. t.mu must be locked.
func (t *topic) flushSoon() {
	t.dirty = true
	wait := t.flushedAt.Add(accountInterval).Sub(t.feed.cfg.Clock.Now())
	if wait <= 0 {
		t.flush()
	} else if t.flushTimer == nil {
		t.flushTimer = time.AfterFunc(min(wait, accountInterval), func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.flushTimer = nil
			t.flush()
		})
	}
}

// flush passes the account to Sink if the account has changed since the last flush. t.mu must be locked.
func (t *topic) flush() {
	if !t.dirty {
		return
	}
	t.dirty, t.flushedAt = false, t.feed.cfg.Clock.Now()
	a := t.state.mutable.snapshot()
	if t.state.mutable.positionsLost {
		t.feed.cfg.Sink.StreamStale(t.key)
		t.state.mutable.positionsLost = false
	}
	t.feed.cfg.Sink.StreamAccount(&t.session.Session, t.key, a.Orders, a.Positions, a.Balance, t.state.Meta)
}

// cancelFlush cancels the pending flush. t.mu must be locked.
func (t *topic) cancelFlush() {
	t.dirty = false
	if t.flushTimer != nil {
		t.flushTimer.Stop()
		t.flushTimer = nil
	}
}
