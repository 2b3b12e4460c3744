package follow

import (
	"context"
	"math/rand/v2"
	"slices"
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
		q := &question{out: out, every: every, readMarkets: readMarkets}
		k := books(depth, readBooks)
		k.absent = nil
		q.states = k.newStates(s, tokenIDs, &publisher[update[*market.Book]]{yield: q.bookChanged}, reader)
		q.states.mixed, q.states.unknown = true, newUnknowns(s.Names, k.keyNoun, len(tokenIDs)+1) // no token ends the stream
		for _, it := range q.states.items {
			q.markets = append(q.markets, &legMarket{item: it.item})
		}
		return q, nil
	})
}

const (
	// expiredAfter is the time after the fresh time of a market at which it is stale if it could not be read again.
	expiredAfter = time.Second
	// marketInterval is the minimum time between two reads of a market. It matters only if the fresh time is shorter.
	marketInterval = time.Second
)

// question is the body of a subscription to a question. The embedded states follows the books, and question the markets.
type question struct {
	*states[*market.Book]
	out         *publisher[QuestionUpdate]
	every       time.Duration
	readMarkets ReadMarkets
	markets     []*legMarket
	venues      int // the number of venues
	// changed is the reason of the next event, or empty. next is the time before which this event must not be sent.
	changed Reason
	next    time.Time
}

// legMarket is the market of a token.
type legMarket struct {
	item
	read reads.Result[*market.Market]
	// due is the time of the next read, and expires the time at which the market is stale, or zero.
	due, expires time.Time
	failures     int
}

// bookChanged is the yield function of the embedded states. The event is made from their items.
func (q *question) bookChanged(e Event[update[*market.Book]], _ error) bool {
	q.change(e.Value.Continues && q.equal(e.Value.Previous, e.Value.Value))
	return true
}

func (q *question) change(onlyFreshness bool) {
	if !onlyFreshness {
		q.changed = Changed
	} else if q.changed == "" {
		q.changed = Freshness
	}
}

// reads implements wideBody: a market that hangs must not delay the polls of the books.
func (q *question) reads(venues int) int {
	q.venues = venues
	return 2 * venues
}

func (q *question) nextRead(now time.Time, poll bool, venue int) (get readFunc, wake time.Time) {
	if venue < q.venues {
		return q.states.nextRead(now, poll, venue)
	}
	var due []*legMarket
	for _, m := range q.markets {
		switch {
		case m.venue != venue-q.venues:
		case now.Before(m.due):
			wake = earlierOf(wake, m.due)
		default:
			due = append(due, m)
		}
	}
	if due == nil {
		return nil, wake
	}
	return readItems(due, q.readMarkets, q.apply, func(error) error { return nil }), time.Time{}
}

// apply handles the result of a read of a market.
func (q *question) apply(m *legMarket, r reads.Result[*market.Market]) error {
	now, before, known := time.Now(), m.read, m.sent
	m.read, m.sent, m.expires = r, true, time.Time{}
	if r.Err != nil || r.Value.Stale {
		m.failures++
		m.due = now.Add(readBackoff.Wait(m.failures, rand.Float64()))
	} else {
		m.failures, m.due = 0, now.Add(marketInterval)
		if h := r.Value.Handle; h != nil {
			until := time.Unix(0, h.FreshUntil())
			m.due, m.expires = market.Later(m.due, until), market.Later(m.due, until).Add(expiredAfter)
		}
	}
	switch {
	case !known || (before.Err == nil) != (r.Err == nil) || !sameTerms(before.Value.Value, r.Value.Value):
		q.change(false)
	case before.Value.Stale != r.Value.Stale:
		q.change(true)
	}
	return nil
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
	for _, m := range q.markets {
		if m.expires.IsZero() {
			continue
		}
		if now.Before(m.expires) {
			next = earlierOf(next, m.expires)
			continue
		}
		m.expires = time.Time{}
		m.read.Value.MarkStale(reads.CauseExpired)
		q.change(true)
	}
	if q.changed == "" || !q.complete() {
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

func (q *question) complete() bool {
	return !slices.ContainsFunc(q.markets, func(m *legMarket) bool { return !m.sent }) &&
		!slices.ContainsFunc(q.states.items, func(it *state[*market.Book]) bool {
			return !it.sent && it.problem == nil && !q.unknown.reported[it.key]
		})
}

func (q *question) state() QuestionUpdate {
	u := QuestionUpdate{}
	for i, it := range q.states.items {
		var b reads.Result[*market.Book]
		switch {
		case q.unknown.reported[it.key]:
		case it.sent:
			b.Value.Value, b.Value.Meta = it.value, it.meta
		default:
			b.Err = it.problem
		}
		u.Books, u.Markets = append(u.Books, b), append(u.Markets, q.markets[i].read)
	}
	return u
}

func (q *question) isCurrent() bool { return q.changed == "" && q.complete() && q.states.isCurrent() }

func (q *question) resend(reason Reason) error {
	if q.next.IsZero() { // the first event is for all readers
		return nil
	}
	return q.out.send(reason, "", Replace, q.state())
}
