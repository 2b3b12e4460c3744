package feed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

func TestPolledTokensAreWatched(t *testing.T) {
	for _, c := range []struct {
		name string
		// polls are the times of the polls in seconds.
		polls []float64
		// opensAt and closesAt are the times in seconds when the auto-watches of the token must open and close; -1 means never. The feed
		// unsubscribes from the topics when Config.Linger has passed after the close.
		opensAt, closesAt float64
	}{
		{"twice", []float64{0, 1}, -1, -1},
		{"three times", []float64{0, 1, 2}, 2, 32},
		{"three times at once", []float64{0, 0, 0}, 0, 30},
		{"three times in exactly ten seconds", []float64{0, 5, 10}, 10, 40},
		{"three times in more than ten seconds", []float64{0, 5, 10.1}, -1, -1},
		{"the window slides", []float64{0, 9, 12, 18}, 18, 48},
		{"five times, each after more than ten seconds", []float64{0, 11, 22, 33, 44}, -1, -1},
		{"again before each expiry", []float64{0, 1, 2, 30, 55, 84}, 2, 114},
		{"twice after the expiry", []float64{0, 1, 2, 60, 61}, 2, 32},
		{"three times after the expiry", []float64{0, 1, 2, 60, 61, 62}, 62, 92},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newTestFeed(t)
				start := time.Now()
				at := func(seconds float64) {
					time.Sleep(time.Until(start.Add(time.Duration(seconds * float64(time.Second)))))
					synctest.Wait()
				}
				watched := func() bool { return len(r.up.open()) > 0 }
				for i, s := range c.polls {
					at(s)
					r.RecordPoll(0, []string{"T"})
					if c.opensAt >= 0 && s == c.opensAt && i+1 < len(c.polls) && c.polls[i+1] > s && !watched() {
						t.Errorf("%v s after the start, the token is not watched", s)
					}
				}
				if c.opensAt < 0 {
					at(c.polls[len(c.polls)-1] + 1)
					if watched() {
						t.Fatal("the token is watched")
					}
					return
				}
				if c.opensAt <= c.polls[len(c.polls)-1] && c.closesAt > c.polls[len(c.polls)-1] {
					r.wantOpen(t, "orderbook T", "prices T")
					at(c.closesAt + 4.9)
					if !watched() {
						t.Error("the auto-watch was closed too early")
					}
					at(c.closesAt + 5.1)
				}
				if watched() {
					t.Error("the token is still watched")
				}
				if n := r.Stats().Topics; n != 0 {
					t.Errorf("%d topics are open, want 0", n)
				}
			})
		})
	}
}

func TestAutoWatchOpensAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t, func(c *Config) { c.Topics = 8 })
		r.AutoWatch([]string{"a", "b"})
		r.AutoWatch([]string{"c"})
		r.AutoWatch([]string{"a"})
		r.wantOpen(t, "orderbook a", "orderbook b", "prices a", "prices b")
		time.Sleep(29 * time.Second)
		r.RecordPoll(0, []string{"b"})
		time.Sleep(7 * time.Second)
		r.wantOpen(t, "orderbook b", "prices b")
	})
}

func pollThrice(r *testFeed, ids ...string) {
	for _, id := range ids {
		r.RecordPoll(0, []string{id, id, id})
	}
}

// pollPrices polls the prices of n tokens three times each.
func (r *testFeed) pollPrices(caller, prefix string, n int) {
	for i := range n {
		r.Feed.RecordPoll(0, caller, messages.ChannelPrices, slices.Repeat([]string{fmt.Sprint(prefix, i)}, 3))
	}
}

func TestAutoWatchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t, func(c *Config) { c.Topics = 12 })
		for i := range 50 {
			pollThrice(r, fmt.Sprint(i))
		}
		if open := r.up.open(); len(open) != 6 {
			t.Errorf("the topics %q are open, want 6 topics", open)
		}
		if n := r.auto.polls.Len(); n > 60 {
			t.Errorf("the feed stores the polls of %d topics, want at most 60", n)
		}
		// Readers may use the other half of Config.Topics. The auto-watches stay open.
		reader := r.NewReader("reader")
		if n := watchBooks(t, reader, "a", 6); n != 6 || len(r.up.open()) != 12 || len(r.auto.watches) != 6 {
			t.Errorf("the reader watches %d topics, the topics %q are open, and there are %d auto-watches; want 6, 12 and 6", n, r.up.open(), len(r.auto.watches))
		}
		reader.Close()
		time.Sleep(time.Minute)
		pollThrice(r, "late")
		r.wantOpen(t, "orderbook late", "prices late")
	})
}

func TestReadersReplaceAutoWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t, func(c *Config) { c.Topics = 100 })
		r.up.maxPublic = 8
		// The upstream accepts 8 topics. All of them are used by a topic without watches, the prices and books of three auto-watched
		// tokens, and a KeepLive topic. The token w1 also has a reader.
		lingering, _ := r.watch(t, tradesOf("gone"))
		lingering.Close()
		for _, id := range []string{"w1", "w2", "w3"} {
			pollThrice(r, id)
			time.Sleep(time.Second)
		}
		reader := r.NewReader("reader")
		defer reader.Close()
		for _, key := range []messages.Topic{bookOf("w1"), priceOf("w1")} {
			watchTopic(t, reader, key, "")
		}
		reader.KeepLive(tradesOf("beside"))
		if open := r.up.open(); len(open) != 8 {
			t.Fatalf("the topics %q are open, want 8 topics", open)
		}
		pollThrice(r, "w2") // of the tokens without a reader, w3 now has the oldest poll

		// If the upstream refuses a watch with a code other than RATE_LIMITED, the feed closes no topic.
		r.up.refuse = market.Errorf(market.CodeBadUserInput, "bad")
		if _, err := reader.Watch(bookOf("bad,id"), nil); market.CodeOf(err) != market.CodeBadUserInput || len(r.up.open()) != 8 {
			t.Fatalf("Watch returned the error %v, and the topics %q are open; want the upstream's error and 8 topics", err, r.up.open())
		}
		r.up.refuse = nil

		want := []struct{ id, stays string }{
			{"n1", "orderbook w1,orderbook w2,orderbook w3,prices w1,prices w2,prices w3,trades beside"},
			{"n2", ""}, // either topic of w3 may be closed first
			{"n3", "orderbook w1,orderbook w2,prices w1,prices w2,trades beside"},
			{"n4", ""},
			{"n5", "orderbook w1,prices w1,trades beside"},
			{"n6", "orderbook w1,prices w1"},
		}
		for _, x := range want {
			watchTopic(t, reader, bookOf(x.id), "")
			open := slices.DeleteFunc(r.up.open(), func(s string) bool { return strings.HasPrefix(s, "orderbook n") })
			if got := strings.Join(open, ","); got != x.stays && x.stays != "" {
				t.Fatalf("after the watch of book %s, the open topics from before are %s, want %s", x.id, got, x.stays)
			}
		}
		watchTopic(t, reader, bookOf("n7"), market.CodeRateLimited)
		if n := r.Stats().Topics; n != 8 || r.auto.watches[bookOf("w1")] == nil {
			t.Errorf("%d topics are open, want 8; the auto-watch of book w1 was closed: %t, want false", n, r.auto.watches[bookOf("w1")] == nil)
		}
		// The feed does not close an auto-watch for another auto-watch.
		pollThrice(r, "late")
		reader.KeepLive(tradesOf("late"))
		if open := r.up.open(); len(open) != 8 || slices.Contains(open, "orderbook late") {
			t.Errorf("the topics %q are open, want 8 topics without the book of late", open)
		}
	})
}

func TestAccountsAreLimitedSeparately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		r.up.maxAccounts = 1
		pollThrice(r, "w")
		two := userOf("0x2")
		first, _ := r.watch(t, userOf("0x1"))
		second := r.NewReader("reader")
		watchTopic(t, second, two, market.CodeRateLimited)
		first.Close()
		watchTopic(t, second, two, "")
		second.Close()
		r.wantOpen(t, "orderbook w", "prices w", "user 0x2")
	})
}

func TestRefusedAutoWatchIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		pollThrice(r, "T")
		r.Refused(bookOf("T"), market.Errorf(market.CodeRateLimited, "later"))
		opened := 0
		for range 90 { // poll the token once a second
			time.Sleep(time.Second)
			r.RecordPoll(0, []string{"T"})
			for _, call := range r.up.take() {
				if strings.HasPrefix(call, "watch ") {
					opened++
				}
			}
		}
		r.wantOpen(t, "orderbook T", "prices T")
		if opened > 4 { // the price once, and the book up to three times because of the refusal
			t.Errorf("the feed opened topics %d times, want at most 4", opened)
		}
	})
}

// TestEqualPollNumbersCountOnce checks that calls with the same poll number count as one poll.
func TestEqualPollNumbersCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		for poll := range uint64(3) {
			for range 3 {
				r.RecordPoll(poll+1, []string{"T"})
			}
			if watched, want := r.Stats().Tokens == 1, poll == 2; watched != want {
				t.Errorf("after %d polls, the token is watched: %v, want %v", poll+1, watched, want)
			}
		}
	})
}

// TestPricesAndBooksAreWatchedSeparately checks that the feed watches only the channel that is polled: the price or the book of a
// token.
func TestPricesAndBooksAreWatchedSeparately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		for range 3 {
			for client := range 300 {
				board := make([]string, 50)
				for i := range board {
					board[i] = fmt.Sprint("p", (client*50+i)%500)
				}
				r.Feed.RecordPoll(0, fmt.Sprint("client", client), messages.ChannelPrices, board)
			}
			for i := range 40 {
				r.Feed.RecordPoll(0, "pages", messages.ChannelOrderbook, []string{fmt.Sprint("b", i)})
			}
			time.Sleep(time.Second)
		}
		counts := make(map[string]int)
		for _, topic := range r.up.open() {
			counts[strings.Fields(topic)[0]]++
		}
		if counts["prices"] != 500 || counts["orderbook"] != 40 || len(counts) != 2 {
			t.Errorf("the numbers of open topics by channel are %v, want 500 prices and 40 books", counts)
		}
	})
}

// TestAutoWatchesAreShared checks that, at the limit, a caller replaces auto-watches of a caller that has more of them. If two
// callers have equally many auto-watches, each caller may replace only auto-watches that were not polled recently.
func TestAutoWatchesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t, func(c *Config) { c.Topics = 200 })
		poll := r.pollPrices
		poll("hog", "h", 300)
		if n := r.auto.count("hog"); n != 100 {
			t.Fatalf("a caller without competitors has %d auto-watches, want 100", n)
		}
		poll("poller", "p", 30)
		poll("hog", "more", 300)
		if got := autoWatchesOf(r.auto); got["poller"] != 30 || got["hog"] != 70 {
			t.Errorf("the auto-watches of two callers are %v, want 30 of poller and 70 of hog", got)
		}
		poll("other", "o", 300)
		if got := autoWatchesOf(r.auto); got["poller"] != 30 || got["hog"] != 35 || got["other"] != 35 {
			t.Errorf("the auto-watches of three callers are %v, want 30 of poller, 35 of hog and 35 of other", got)
		}
		time.Sleep(11 * time.Second)
		poll("poller", "p", 30)
		poll("hog", "late", 300) // replaces auto-watches that were not polled for ten seconds
		if got := autoWatchesOf(r.auto); got["poller"] != 30 || got["hog"]+got["other"] != 70 || r.auto.watches[priceOf("late0")] == nil {
			t.Errorf("after ten seconds without polls of hog and other, the auto-watches are %v, want 30 of poller and late0", got)
		}
		for i := range 30 {
			if w := r.auto.watches[priceOf(fmt.Sprint("p", i))]; w == nil || w.watch == nil {
				t.Errorf("the token p%d of poller is not watched", i)
			}
		}
		if r.auto.closed || len(r.auto.watches) != 100 {
			t.Errorf("there are %d auto-watches, want 100", len(r.auto.watches))
		}
	})
}

// autoWatchesOf counts the auto-watches of each caller.
func autoWatchesOf(d *autoWatcher) map[string]int {
	out := make(map[string]int)
	for _, w := range d.watches {
		out[w.caller.name]++
	}
	return out
}

// TestSearchWouldFailEqualsASearch checks that searchWouldFail returns true only if a new search for a replaceable auto-watch would
// find none.
func TestSearchWouldFailEqualsASearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t, func(c *Config) { c.Topics = 40 })
		random := rand.New(rand.NewPCG(1, 2))
		failures := 0
		for range 20_000 {
			caller := fmt.Sprint("caller ", random.IntN(5))
			r.Feed.RecordPoll(0, caller, messages.ChannelPrices, slices.Repeat([]string{fmt.Sprint(random.IntN(60))}, 1+random.IntN(3)))
			time.Sleep(time.Duration(random.ExpFloat64() * float64(200*time.Millisecond)))
			d, now := r.auto, time.Now()
			d.mu.Lock() // expire may run concurrently
			for i := range 5 {
				own := d.count(fmt.Sprint("caller ", i))
				if !d.searchWouldFail(own, now) {
					continue
				}
				failures++
				if w := d.victim(func(w *autoWatch) bool {
					return w.caller.count > own+1 || w.caller.count >= own && now.Sub(w.lastPoll) > pollWindow
				}); w != nil {
					t.Fatalf("a caller with %d auto-watches found none to replace, but %+v of %q was last polled %v ago", own, w.key, w.caller.name, now.Sub(w.lastPoll))
				}
			}
			d.mu.Unlock()
		}
		if failures < 1000 {
			t.Errorf("searchWouldFail returned true only %d times, want at least 1000, so the test shows nothing", failures)
		}
	})
}

// TestAutoWatchesStay checks that callers that poll too many tokens do not replace each other's auto-watches again and again. A
// caller must not replace an auto-watch of a caller that has fewer auto-watches.
func TestAutoWatchesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t, func(c *Config) { c.Topics = 10 })
		poll := r.pollPrices
		want := func(one, other int) {
			t.Helper()
			if a, b := r.auto.count("one"), r.auto.count("other"); a != one || b != other {
				t.Errorf("the callers one and other have %d and %d auto-watches, want %d and %d", a, b, one, other)
			}
		}
		poll("one", "a", 5)
		poll("other", "b", 5)
		want(3, 2)
		time.Sleep(11 * time.Second)
		for id := range r.auto.byToken[messages.ChannelPrices] {
			if strings.HasPrefix(id, "a") {
				r.Feed.RecordPoll(0, "one", messages.ChannelPrices, []string{id})
			}
		}
		poll("one", "more", 5)
		want(3, 2)
	})
}

// TestAutoWatchesWaitForRoom checks that auto-watches that do not fit into the upstream at first open later.
func TestAutoWatchesWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		r.up.maxPublic = 3
		reader := r.NewReader("reader")
		for _, id := range []string{"1", "2"} {
			watchTopic(t, reader, bookOf(id), "")
		}
		pollThrice(r, "a")
		r.wantOpen(t, "orderbook 1", "orderbook 2", "prices a")
		reader.Close()
		time.Sleep(2 * time.Second) // longer than retryEvery, so the feed closes a lingering topic for the auto-watch
		if open := r.up.open(); !slices.Contains(open, "orderbook a") || !slices.Contains(open, "prices a") {
			t.Errorf("the topics %q are open, want the price and the book of a among them", open)
		}
		time.Sleep(5 * time.Second)
		r.wantOpen(t, "orderbook a", "prices a")
		// For a new auto-watch, the feed closes a topic without watches at once.
		again, _ := r.watch(t, tradesOf("gone"))
		again.Close()
		pollThrice(r, "b")
		r.wantOpen(t, "orderbook a", "prices a", "prices b")
	})
}

// TestPolledIDsAreCopied checks that the feed copies an id, so that a longer string that contains the id does not stay in memory.
func TestPolledIDsAreCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		id := "everything that a client has sent and token"[38:]
		own := func(kept string) {
			t.Helper()
			if kept != id || unsafe.StringData(kept) == unsafe.StringData(id) {
				t.Errorf("the feed stores %q without a copy", kept)
			}
		}
		r.RecordPoll(0, []string{id})
		for _, key := range r.auto.polls.Keys() {
			own(key.ID)
		}
		r.RecordPoll(0, []string{id, id})
		synctest.Wait()
		for key := range r.auto.watches {
			own(key.ID)
		}
		if len(r.auto.watches) == 0 {
			t.Error("there is no auto-watch")
		}
	})
}
