package reads

import (
	"time"

	"oddsgraph/internal/market"
)

// Leg is what was read of one leg of a question: the book and the market of a token. Their values are nil if the venue does not have them.
type Leg struct {
	Book   Result[*market.Book]
	Market Result[*market.Market]
}

// Faults reports whether the reads of the book and of the market have failed, and whether their values are stale.
func (l *Leg) Faults() [4]bool {
	return [...]bool{l.Book.Err != nil, l.Book.Value.Stale, l.Market.Err != nil, l.Market.Value.Stale}
}

// Live reports whether the leg has no faults, the stream shows its changes, and the market is fresh for some time. Another read then
// calls no venue.
func (l *Leg) Live(now time.Time) bool {
	h := l.Market.Value.Handle
	return l.Faults() == [4]bool{} && l.Book.Value.Source == market.SourceStream && h != nil && h.FreshUntil() > now.UnixNano()
}

// Expire marks what is not the newest value of the cache, or no longer fresh, as stale.
func (l *Leg) Expire(now time.Time) {
	expire(&l.Book.Value.Meta, now)
	expire(&l.Market.Value.Meta, now)
}

func expire(m *Meta, now time.Time) {
	if h := m.Handle; h != nil && !m.Stale && (!h.Valid() || h.FreshUntil() != 0 && h.FreshUntil() <= now.UnixNano()) {
		m.MarkStale(CauseExpired)
	}
}

// Equal reports whether two legs have the same market and the same levels of the book.
func (l *Leg) Equal(other *Leg) bool {
	a, b := l.Book.Value.Value, other.Book.Value.Value
	return l.Market.Value.Value == other.Market.Value.Value && (a == b || a != nil && b != nil && a.Bids.Equal(b.Bids) && a.Asks.Equal(b.Asks))
}
