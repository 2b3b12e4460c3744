package feed

import (
	"fmt"
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
		if n := watchBooks(t, reader, "a", 6); n != 6 || len(r.up.open()) != 12 || r.auto.watches.Len() != 6 {
			t.Errorf("the reader watches %d topics, the topics %q are open, and there are %d auto-watches; want 6, 12 and 6", n, r.up.open(), r.auto.watches.Len())
		}
		reader.Close()
		time.Sleep(time.Minute)
		pollThrice(r, "late")
		r.wantOpen(t, "orderbook late", "prices late")
	})
}

// TestReadersReplaceAutoWatches checks which topics make room for subscriptions: first those without watches, then auto-watches, then
// KeepLive topics. An auto-watch takes no topic from a subscription.
func TestReadersReplaceAutoWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t, func(c *Config) { c.Topics = 100 })
		r.up.maxPublic = 6
		// The upstream accepts 6 topics. All of them are used by a topic without watches, the prices and books of two auto-watched
		// tokens, and a KeepLive topic. The token w1 also has a reader.
		lingering, _ := r.watch(t, tradesOf("gone"))
		lingering.Close()
		pollThrice(r, "w1", "w2")
		reader := r.NewReader("reader")
		defer reader.Close()
		for _, key := range []messages.Topic{bookOf("w1"), priceOf("w1")} {
			watchTopic(t, reader, key, "")
		}
		reader.KeepLive(tradesOf("beside"))

		// If the upstream refuses a watch with a code other than RATE_LIMITED, the feed closes no topic.
		r.up.refuse = market.Errorf(market.CodeBadUserInput, "bad")
		if _, err := reader.Watch(bookOf("bad,id"), nil); market.CodeOf(err) != market.CodeBadUserInput || len(r.up.open()) != 6 {
			t.Fatalf("Watch returned the error %v, and the topics %q are open; want the upstream's error and 6 topics", err, r.up.open())
		}
		r.up.refuse = nil

		want := []struct{ id, stays string }{
			{"n1", "orderbook w1,orderbook w2,prices w1,prices w2,trades beside"},
			{"n2", ""}, // either topic of w2 may be closed first
			{"n3", "orderbook w1,prices w1,trades beside"},
			{"n4", "orderbook w1,prices w1"},
		}
		for _, x := range want {
			watchTopic(t, reader, bookOf(x.id), "")
			open := slices.DeleteFunc(r.up.open(), func(s string) bool { return strings.HasPrefix(s, "orderbook n") })
			if got := strings.Join(open, ","); got != x.stays && x.stays != "" {
				t.Fatalf("after the watch of book %s, the open topics from before are %s, want %s", x.id, got, x.stays)
			}
		}
		watchTopic(t, reader, bookOf("n5"), market.CodeRateLimited)
		pollThrice(r, "late")
		reader.KeepLive(tradesOf("late"))
		r.wantOpen(t, "orderbook n1", "orderbook n2", "orderbook n3", "orderbook n4", "orderbook w1", "prices w1")
	})
}

// TestAutoWatchesAreReplaced checks that at the limit, a new auto-watch replaces the one with the oldest poll, and none with a poll
// of the last ten seconds.
func TestAutoWatchesAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t, func(c *Config) { c.Topics, c.Linger = 8, time.Nanosecond })
		r.up.maxPublic = 4
		pollThrice(r, "a", "b", "c")
		want := func(tokens ...string) {
			t.Helper()
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			var topics []string
			for _, channel := range []string{"orderbook ", "prices "} {
				for _, id := range tokens {
					topics = append(topics, channel+id)
				}
			}
			r.wantOpen(t, topics...)
		}
		want("a", "b")
		time.Sleep(6 * time.Second)
		r.RecordPoll(0, []string{"a"})
		time.Sleep(6 * time.Second)
		pollThrice(r, "d", "e")
		want("a", "d")
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
				r.Feed.RecordPoll(0, messages.ChannelPrices, board)
			}
			for i := range 40 {
				r.Feed.RecordPoll(0, messages.ChannelOrderbook, []string{fmt.Sprint("b", i)})
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

// TestAutoWatchesWaitForRoom checks that an auto-watch that does not fit into the upstream opens at a later poll.
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
		r.RecordPoll(0, []string{"a"}) // less than retryEvery later
		r.wantOpen(t, "orderbook 1", "orderbook 2", "prices a")
		time.Sleep(time.Second)
		r.RecordPoll(0, []string{"a"}) // closes a lingering topic
		if open := r.up.open(); len(open) != 3 || !slices.Contains(open, "orderbook a") || !slices.Contains(open, "prices a") {
			t.Errorf("the topics %q are open, want the price and the book of a among three", open)
		}
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
		for _, key := range r.auto.watches.Keys() {
			own(key.ID)
		}
		if r.auto.watches.Len() == 0 {
			t.Error("there is no auto-watch")
		}
	})
}
