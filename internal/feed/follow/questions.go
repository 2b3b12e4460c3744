package follow

import (
	"context"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
)

// QuestionUpdate is an event with the books, cut to a depth, and the markets of all tokens of a question, in the order of the tokens.
// The value of a book or a market is nil if the venue does not have it.
type QuestionUpdate struct {
	Books   []reads.Result[*market.Book]
	Markets []reads.Result[*market.Market]
}

// ReadBooks reads the books of tokens and returns them in the order of the ids.
type ReadBooks func(ctx context.Context, tokenIDs []string) []reads.Result[*market.Book]

// Question follows the books and markets of tokens, which belong to different venues. Each event has the whole state. every is the
// minimum time between two events. A book that cannot be read, or a token that a venue does not know, is part of the state and no
// problem. The market of each token is read again at the end of its fresh time. A market that is not fresh and could not be read
// again within expiredAfter is stale.
//
// readBooks must read the books as in Book. readMarkets reads the markets of tokens. Neither may return a stale value that could be
// read again.
func Question(ctx context.Context, s Source, tokenIDs []string, depth int, every time.Duration, readBooks ReadBooks, readMarkets ReadMarkets) Stream[QuestionUpdate] {
	return stream(ctx, s, 0, func(out *publisher[QuestionUpdate], reader *feed.Reader) (body, error) {
		q := &question{out: out, every: every, venues: 1 + len(s.More), stale: make(map[string]bool)}
		b := books(depth, readBooks)
		b.absent = nil
		q.states = b.newStates(s, tokenIDs, &publisher[update[*market.Book]]{yield: q.bookChanged}, reader)
		q.states.mixed, q.states.unknown = true, newUnknowns(s.Names, b.keyNoun, len(tokenIDs)+1)                 // no token ends the stream
		m := stateSpec[*market.Market]{read: readMarkets, equal: func(_, _ *market.Market) bool { return false }} // see marketChanged
		q.markets = m.newStates(s, tokenIDs, &publisher[update[*market.Market]]{yield: q.marketChanged}, reader)
		return q, nil
	})
}

// expiredAfter is the time after the fresh time of a market at which it is stale if it could not be read again.
const expiredAfter = time.Second

// question is the body of a subscription to a question. The embedded states follows the books.
type question struct {
	*states[*market.Book]
	markets *states[*market.Market]
	out     *publisher[QuestionUpdate]
	every   time.Duration
	venues  int             // the number of venues
	stale   map[string]bool // whether the market of a token is stale
	// changed is the reason of the next event, or empty. next is the time before which this event must not be sent.
	changed Reason
	next    time.Time
}

// bookChanged is the yield function of the embedded states. The event is made from their items.
func (q *question) bookChanged(e Event[update[*market.Book]], _ error) bool {
	q.change(e.Value.Continues && q.equal(e.Value.Previous, e.Value.Value))
	return true
}

// marketChanged is the yield function of markets. They yield each market that was read.
func (q *question) marketChanged(e Event[update[*market.Market]], _ error) bool {
	u := e.Value
	same := u.Continues && sameTerms(u.Previous, u.Value)
	if !same || q.stale[u.Key] != u.Meta.Stale {
		q.change(same)
	}
	q.stale[u.Key] = u.Meta.Stale
	return true
}

func (q *question) change(onlyFreshness bool) {
	if !onlyFreshness {
		q.changed = Changed
	} else if q.changed == "" {
		q.changed = Freshness
	}
}

// readsTwoKinds implements wideBody: a market that hangs must not delay the polls of the books.
func (q *question) readsTwoKinds() {}

func (q *question) nextRead(now time.Time, poll bool, venue int) (get readFunc, wake time.Time) {
	if venue < q.venues {
		return q.states.nextRead(now, poll, venue)
	}
	for _, it := range q.markets.items {
		it.nextRead = market.Later(it.nextRead, freshUntil(it.meta))
	}
	return q.markets.nextRead(now, true, venue-q.venues)
}

// freshUntil returns the end of the fresh time, or zero if the value is stale or has no such time.
func freshUntil(m reads.Meta) time.Time {
	if m.Stale || m.Handle == nil || m.Handle.FreshUntil() == 0 {
		return time.Time{}
	}
	return time.Unix(0, m.Handle.FreshUntil())
}

// sameTerms reports whether the rules and the state of two markets are equal.
func sameTerms(a, b *market.Market) bool {
	if a == nil || b == nil {
		return a == b
	}
	open := func(m *market.Market) bool { return m.AcceptingOrders == nil || *m.AcceptingOrders }
	return a.Description == b.Description && a.Status == b.Status && open(a) == open(b)
}

// flush sends an event if the state has changed. The first event is sent when each book and market is known or could not be read.
func (q *question) flush(now, next time.Time) (time.Time, error) {
	for _, it := range q.markets.items {
		if until := freshUntil(it.meta); until.IsZero() {
			continue
		} else if expires := until.Add(expiredAfter); now.Before(expires) {
			next = earlierOf(next, expires)
		} else if err := q.markets.markStale(it, reads.CauseExpired); err != nil {
			return next, err
		}
	}
	if q.changed == "" || !q.complete() || !q.markets.complete() {
		return next, nil
	}
	reason := q.changed
	if q.next.IsZero() {
		reason = Initial
	}
	if now.Before(q.next) {
		return earlierOf(next, q.next), nil
	}
	q.changed, q.next = "", now.Add(q.every)
	return next, q.out.send(reason, "", Replace, q.state())
}

func (q *question) state() QuestionUpdate {
	return QuestionUpdate{Books: q.states.results(), Markets: q.markets.results()}
}

func (q *question) isCurrent() bool {
	return q.changed == "" && q.complete() && q.markets.complete() && q.states.isCurrent()
}

func (q *question) resend(reason Reason) error {
	if q.next.IsZero() { // the first event is for all readers
		return nil
	}
	return q.out.send(reason, "", Replace, q.state())
}
