package polymarket

import (
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
)

const (
	// burstWithin bounds the duration of a burst. A burst consists of the changes that one order causes. These changes may arrive
	// in several frames. Each frame reports the best prices after the order, so the book agrees with the reported best prices only
	// after the last change.
	burstWithin = 250 * time.Millisecond
	// maxKept bounds the number of changes that an asset keeps during a burst, during a comparison, and until a lost book is
	// repaired.
	maxKept = 2000
)

type asset struct {
	id     string
	wanted map[messages.Topic]bool
	// owed contains the topics that must still get the current state.
	owed []messages.Topic

	// book is the published book. It is nil before the first book and after a gap.
	book *ladder
	// at is the venue's time of the last change of book.
	at time.Time
	// burst contains the changes of an incomplete burst. book does not include these changes yet.
	burst []change
	// scratch is book with the changes in burst.
	scratch *ladder
	// burstAt is the venue's time of the burst. If the burst is still incomplete at the time burstBy, a change was lost.
	burstAt, burstBy time.Time
	// lost reports that a change of the book was lost.
	lost bool
	// kept contains the changes since the loss, and the changes of the burst that was incomplete at the loss. If a comparison found
	// the loss, kept also contains the changes since the comparison began. The codec applies kept to the book that it reads over REST.
	kept []change
	// failures is the number of failed repairs since the loss. A repair fails if the read over REST fails, or if the book from REST
	// does not agree with kept.
	failures int
	// reading reports that a read of the lost book over REST is running. outdated reports that another change was lost during this
	// read, so the book from the read may lack that change.
	reading, outdated bool
	// dueBy is the deadline for the venue's first book. It is zero until awaitFirst sets it.
	dueBy time.Time
	// changed reports whether the socket has sent the book, or a change of the book, since the last comparison began.
	changed bool
	// comparison is the running comparison with REST. It is nil if no comparison is running.
	comparison *comparison
	// top contains the best prices that were reported last. It is nil before the first report.
	top *top
}

type comparison struct {
	// from is the venue's time of the streamed book at the start of the comparison.
	from time.Time
	// since contains the changes of the streamed book after the start.
	since []change
	// rest is the book from REST. It is nil before REST has responded. If the streamed book has the same levels when REST responds,
	// and no burst is incomplete, the comparison ends at once and rest stays nil.
	rest *market.Book
	// At the deadline, the codec applies the changes in since to the book from REST. The streamed book must then have the same
	// levels.
	deadline time.Time
}

// ladder contains both sides of a book. A ladder is immutable.
type ladder struct{ bids, asks market.Side }

// top contains the best bid and the best ask. The price of an empty side is nil.
type top struct{ bid, ask *market.Decimal }

// change is a new total size at a price. top contains the best prices after the order that caused the change.
type change struct {
	market.LevelChange
	top top
	at  time.Time
}

func equalDecimals(a, b *market.Decimal) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Cmp(*b) == 0
}

func (t top) equal(u top) bool { return equalDecimals(t.bid, u.bid) && equalDecimals(t.ask, u.ask) }

func (l ladder) top() (t top) {
	if best := l.bids.Best(); best != nil {
		t.bid = &best.Price
	}
	if best := l.asks.Best(); best != nil {
		t.ask = &best.Price
	}
	return t
}

func (l ladder) withLevel(c market.LevelChange) *ladder {
	if c.Side == market.SideBuy {
		l.bids = l.bids.Set(c.Side, c.Level)
	} else {
		l.asks = l.asks.Set(c.Side, c.Level)
	}
	return &l
}

func (l ladder) equal(bids, asks market.Side) bool { return l.bids.Equal(bids) && l.asks.Equal(asks) }

// toBook returns the ladder as the book of the token with the given id. A book whose best bid is above its best ask has no spread.
func (l ladder) toBook(id string, at time.Time) *market.Book {
	b := &market.Book{TokenID: id, Bids: l.bids, Asks: l.asks, Timestamp: at, Depth: queries.MaxBookDepth}
	if b.Spread = b.Width(); b.Spread != nil && b.Spread.Sign() < 0 {
		b.Spread = nil
	}
	return b.Cut(queries.MaxBookDepth)
}

func (a *asset) reset() {
	a.book, a.burst, a.scratch, a.kept, a.comparison = nil, nil, nil, nil, nil
	a.lost, a.failures, a.burstBy, a.dueBy = false, 0, time.Time{}, time.Time{}
}

func (a *asset) replace(l *ladder, at time.Time) (differs bool) {
	differs = a.book == nil || !a.book.equal(l.bids, l.asks)
	a.reset()
	a.book, a.at = l, at
	return differs
}

// apply adds a change to the burst. The burst is complete if the book with all changes of the burst has the reported best prices.
// apply then returns these changes. gap is true if a change with a later time arrives before the burst is complete, or the burst
// has too many changes.
func (a *asset) apply(c change, now time.Time) (done []market.LevelChange, gap bool) {
	if len(a.burst) > 0 && c.at.After(a.burstAt) || len(a.burst) >= maxKept {
		return nil, true
	}
	if len(a.burst) == 0 {
		a.scratch, a.burstAt, a.burstBy = a.book, c.at, now.Add(burstWithin)
	}
	a.changed = true
	a.scratch = a.scratch.withLevel(c.LevelChange)
	a.burst = append(a.burst, c)
	if !a.scratch.top().equal(c.top) {
		return nil, false
	}
	for _, c := range a.burst {
		done = append(done, c.LevelChange)
	}
	a.book, a.at = a.scratch, market.Later(c.at, a.at)
	if cmp := a.comparison; cmp != nil {
		if cmp.since = append(cmp.since, a.burst...); len(cmp.since) > maxKept {
			a.comparison = nil // too many changes: the next comparison checks the book
		}
	}
	a.burst, a.scratch, a.burstBy = nil, nil, time.Time{}
	return done, false
}

// lose marks the book as lost. It keeps the changes of the incomplete burst, followed by the given changes. If the book is already
// lost, the kept changes and the number of failures remain.
func (a *asset) lose(changes ...change) {
	a.outdated = a.reading
	if a.lost {
		return
	}
	kept := append(a.burst, changes...)
	a.reset()
	a.lost, a.kept = true, kept
}

// awaitFirst marks the book as lost if the venue has not sent the first book within firstBookWithin.
func (a *asset) awaitFirst(now time.Time) {
	switch {
	case a.book != nil || a.lost:
	case a.dueBy.IsZero():
		a.dueBy = now.Add(firstBookWithin)
	case !now.Before(a.dueBy):
		a.lose()
	}
}

func (a *asset) keep(c change) {
	if len(a.kept) >= maxKept {
		a.kept = a.kept[1:]
	}
	a.kept = append(a.kept, c)
}

// applyLater applies changes to the book b from REST. It skips the changes that are older than b. It returns the new book and the
// time of the last applied change. If it applies no change, the time is that of b. It also applies changes with the same time as b,
// because b may lack some of these changes. Applying a change twice does no harm, because a change contains the new total.
func applyLater(b *market.Book, changes []change) (l *ladder, at time.Time) {
	l, at = &ladder{b.Bids, b.Asks}, b.Timestamp
	for _, c := range changes {
		if !c.at.Before(b.Timestamp) {
			l = l.withLevel(c.LevelChange)
			at = c.at
		}
	}
	return l, at
}

// splice applies the kept changes to the book b from REST, as applyLater does. The last kept change reports best prices. If this
// change is not older than b and the new book has other best prices, ok is false. In this case, a change is missing, or b is too
// old.
func (a *asset) splice(b *market.Book) (l *ladder, at time.Time, ok bool) {
	l, at = applyLater(b, a.kept)
	if n := len(a.kept); n > 0 && !a.kept[n-1].at.Before(at) {
		return l, at, l.top().equal(a.kept[n-1].top)
	}
	return l, at, true
}
