package feed

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market/messages"
)

// TestTimestampOfALiveBook checks that the timestamp of a book is the time of the last message that has a time.
func TestTimestampOfALiveBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		_, w := r.watch(t, bookOf("T"))
		r.upNow(bookOf("T"))
		want := func(at time.Time) {
			t.Helper()
			s, err := w.State()
			if err != nil || s.Book == nil || !s.Book.Timestamp.Equal(at) {
				t.Fatalf("the state %+v does not have a book with the time %v (error %v)", s, at, err)
			}
			if kept := r.sink.entry(bookOf("T")); !kept.book.Timestamp.Equal(at) {
				t.Fatalf("the book in the sink has the time %v, want %v", kept.book.Timestamp, at)
			}
		}
		at := func(m *messages.Message, second int64) *messages.Message {
			if second > 0 {
				m.Time = time.Unix(second, 0)
			}
			return m
		}
		r.Message(at(bookMessage("T", "A", 1, ".50x1 | .60x1"), 10))
		want(time.Unix(10, 0))
		r.Message(at(deltaMessage("T", "A", 2, "b.51x2"), 11))
		want(time.Unix(11, 0))
		r.Message(at(deltaMessage("T", "A", 3, "b.51x3"), 0))
		want(time.Unix(11, 0))
		r.Message(at(bookMessage("T", "A", 4, ".50x1 | .60x1"), 13))
		want(time.Unix(13, 0))
	})
}

// TestLag checks that the feed reports a lag only for a change of a live topic whose message contains the venue's time.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lags []time.Duration
		r := newTestFeed(t, func(c *Config) { c.Lag = func(d time.Duration) { lags = append(lags, d) } })
		_, _ = r.watch(t, bookOf("T"))
		_, _ = r.watch(t, priceOf("T"))
		r.upNow(bookOf("T"), priceOf("T"))
		late := func(m *messages.Message, by time.Duration) {
			m.Time = m.ReceivedAt.Add(-by)
			r.Message(m)
		}
		late(deltaMessage("T", "A", 1, "b.51x2"), time.Second) // no lag before the first snapshot
		late(priceMessage("T", "A", 1, ".5"), 2*time.Second)   // no lag for the first price
		late(bookMessage("T", "A", 1, ".50x1 | .60x1"), 3*time.Second)
		late(bookMessage("T", "A", 2, ".50x1 | .60x1"), 4*time.Second)
		if len(lags) > 0 {
			t.Errorf("the feed reported the lags %v for snapshots and for earlier messages, want none", lags)
		}
		late(deltaMessage("T", "A", 3, "b.51x2"), 5*time.Second)
		late(priceMessage("T", "A", 2, ".6"), -time.Second)
		r.Message(deltaMessage("T", "A", 4, "b.51x3")) // no lag for a message without a time
		if want := []time.Duration{5 * time.Second, -time.Second}; !slices.Equal(lags, want) {
			t.Errorf("the feed reported the lags %v, want %v", lags, want)
		}
		r.downNow(bookOf("T"))
		late(deltaMessage("T", "A", 5, "b.51x2"), time.Second)
		if len(lags) != 2 {
			t.Errorf("the feed reported a lag of a topic that is down: %v", lags)
		}
	})
}
