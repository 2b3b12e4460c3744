package feed

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// watchBooks watches n books and returns how many watches succeeded.
func watchBooks(t *testing.T, r *Reader, prefix string, n int) (opened int) {
	t.Helper()
	for i := range n {
		switch _, err := r.Watch(bookOf(fmt.Sprint(prefix, i)), nil); market.CodeOf(err) {
		case "":
			opened++
		case market.CodeRateLimited:
		default:
			t.Fatal(err)
		}
	}
	return opened
}

// countTopics counts the topics of each caller and compares the results with the counters of the feed.
func countTopics(t *testing.T, r *testFeed) map[string]int {
	t.Helper()
	out := make(map[string]int)
	r.mu.Lock()
	defer r.mu.Unlock()
	public := 0
	for key, x := range r.topics {
		if key.Channel != messages.ChannelUser {
			public++
		}
		if x.holder != nil {
			out[x.holder.caller]++
		}
	}
	if !maps.Equal(out, r.shares.counts) || public != r.public {
		t.Errorf("the counters of the feed are %v for callers and %d for public topics, but the topics give %v and %d", r.shares.counts, r.public, out, public)
	}
	return out
}

// TestAttackerCannotTakeTheStream checks that a client that opens ten subscriptions of 200 tokens closes no auto-watches. Other
// clients can still subscribe.
func TestAttackerCannotTakeTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		r.up.maxPublic = 2000
		for i := range 200 {
			pollThrice(r, fmt.Sprint("warm", i))
		}
		warm := len(r.up.open())
		honest := r.NewReader("honest")
		defer honest.Close()
		opened := 0
		for i := range 10 {
			attacker := r.NewReader("attacker")
			defer attacker.Close()
			opened += watchBooks(t, attacker, fmt.Sprintf("a%d-", i), 200)
		}
		if opened != 2000-warm {
			t.Errorf("the attacker opened %d topics beside %d auto-watches, want %d", opened, warm, 2000-warm)
		}
		if n := watchBooks(t, honest, "h", 500); n != 500 {
			t.Errorf("another caller watches %d topics, want 500", n)
		}
		watchTopic(t, honest, tradesOf("T"), "") // this ends a book of the same caller
		third := r.NewReader("third")
		defer third.Close()
		watchTopic(t, third, tradesOf("U"), "")
		if got := countTopics(t, r); got["attacker"] != opened-501 || got["honest"] != 500 || got["third"] != 1 {
			t.Errorf("the topics of the callers are %v, want %d of attacker, 500 of honest and 1 of third", got, opened-501)
		}
		kept := 0
		for key, x := range r.topics {
			if key.ID[0] == 'w' && x.hasWatch(func(w *Watch) bool { return w.reader == nil }) {
				kept++
			}
		}
		if kept != warm {
			t.Errorf("%d of %d auto-watches are left, want all", kept, warm)
		}
	})
}

// TestLoneCallerYields checks that a caller that uses all topics loses topics when other callers need them, but not for queries. The
// caller keeps a quarter of Config.Topics.
func TestLoneCallerYields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t, func(c *Config) { c.Topics = 40 })
		r.up.maxPublic = 40
		readers, batch := make(map[string]*Reader), 0
		watch := func(caller string, n, want int) {
			t.Helper()
			if readers[caller] == nil {
				readers[caller] = r.NewReader(caller)
				t.Cleanup(readers[caller].Close)
			}
			batch++
			if opened := watchBooks(t, readers[caller], fmt.Sprint(batch, "-"), n); opened != want {
				t.Errorf("the caller %s could watch %d of %d more topics, want %d", caller, opened, n, want)
			}
		}
		hold := func(want map[string]int) {
			t.Helper()
			if got := countTopics(t, r); !maps.Equal(got, want) {
				t.Errorf("the topics of the callers are %v, want %v", got, want)
			}
		}
		watch("alone", 41, 40)
		alone := readers["alone"]
		watchTopic(t, alone, tradesOf("T"), "") // this ends a book of the same caller
		watch("second", 12, 10)
		hold(map[string]int{"alone": 30, "second": 10})
		pollThrice(r, "w") // queries take no topic from a subscription
		hold(map[string]int{"alone": 30, "second": 10})
		closeEnded := func() (n int) {
			for _, w := range slices.Clone(alone.Take()) {
				if _, err := w.State(); market.CodeOf(err) == market.CodeRateLimited {
					n++
					w.Close()
				}
			}
			return n
		}
		if n := closeEnded(); n != 11 || len(alone.watches) != 30 {
			t.Errorf("%d watches of the caller alone have ended and %d are left, want 11 and 30", n, len(alone.watches))
		}
		// A caller that already watches a quarter of the topics or more takes no topics from other callers.
		watch("alone", 5, 0)
		watch("second", 5, 0)
		watch("third", 12, 10)
		hold(map[string]int{"alone": 20, "second": 10, "third": 10})
		watch("fourth", 12, 10)
		hold(map[string]int{"alone": 10, "second": 10, "third": 10, "fourth": 10})
		watch("fifth", 1, 0)
		// The feed does not reclaim topics that other callers also watch.
		closeEnded()
		readers["second"].Close()
		r.SkipLinger(func(messages.Topic) bool { return true })
		synctest.Wait()
		watch("alone", 10, 10)
		for w := range alone.watches {
			watchTopic(t, readers["third"], w.Topic(), "")
		}
		watch("fifth", 1, 0)
		hold(map[string]int{"alone": 20, "third": 10, "fourth": 10})
	})
}

func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t, func(c *Config) { c.Topics, c.Linger = 40, time.Second })
		r.up.maxPublic = 40
		alone := r.NewReader("alone")
		if n := watchBooks(t, alone, "a", 20); n != 20 {
			t.Errorf("the first caller watches %d topics, want 20", n)
		}
		second := r.NewReader("second")
		if n := watchBooks(t, second, "b", 10); n != 10 {
			t.Errorf("the second caller watches %d topics, want 10", n)
		}
		// More trades than the share are possible until they are half of all topics.
		var tapes []*Watch
		for i := range 21 {
			w, err := second.Watch(tradesOf(fmt.Sprint("T", i)), nil)
			if (err == nil) != (i < 20) || err != nil && market.CodeOf(err) != market.CodeRateLimited {
				t.Errorf("watching the trades %d: error %v, want RATE_LIMITED only for the last of 21", i, err)
			}
			if err == nil {
				tapes = append(tapes, w)
			}
		}
		if got := countTopics(t, r); got["alone"] != 20 || got["second"] != 20 {
			t.Errorf("the topics of the callers are %v, want 20 of alone and 20 of second, which gives up its books for trades", got)
		}
		for _, w := range tapes {
			w.Close()
		}
		r.SkipLinger(func(key messages.Topic) bool { return key.Channel == messages.ChannelTrades })
		synctest.Wait()
		if n := watchBooks(t, second, "c", 10); n != 10 {
			t.Errorf("the second caller watches %d books after the end of the trades, want 10", n)
		}
		// A topic that another caller already watches does not count for the second caller. When the first caller leaves, the topic
		// counts for the second caller.
		if n := watchBooks(t, second, "a", 20); n != 20 {
			t.Errorf("the second caller watches %d topics of the first caller, want 20", n)
		}
		if got := countTopics(t, r); got["alone"] != 20 || got["second"] != 10 {
			t.Errorf("the topics of the callers are %v, want 20 of alone and 10 of second", got)
		}
		alone.Close()
		if got := countTopics(t, r); got["alone"] != 0 || got["second"] != 30 {
			t.Errorf("after the first caller has left, the topics of the callers are %v, want 30 of second", got)
		}
		// A topic that the feed holds for queries does not count for any caller. If a caller then also watches the topic, the
		// topic counts for that caller.
		var held [10]*Watch
		for i := range held {
			var err error
			if held[i], err = r.hold(bookOf(fmt.Sprint("o", i))); err != nil {
				t.Fatal(err)
			}
		}
		third := r.NewReader("third")
		if n := watchBooks(t, third, "o", 10); n != 10 || countTopics(t, r)["third"] != 10 {
			t.Errorf("the third caller watches %d topics, and the topics of the callers are %v; want 10 of third", n, countTopics(t, r))
		}
		// Ended and lingering topics no longer count.
		r.Refused(bookOf("o0"), market.Errorf(market.CodeRateLimited, "no"))
		if got := countTopics(t, r); got["third"] != 9 {
			t.Errorf("after one topic has ended, the topics of the callers are %v, want 9 of third", got)
		}
		for _, reader := range []*Reader{second, third} {
			reader.Close()
			reader.Close()
		}
		for _, w := range held {
			w.Close()
		}
		if got := countTopics(t, r); len(got) != 0 || len(r.up.open()) == 0 {
			t.Errorf("after all watches were closed, the topics of the callers are %v, and %d topics linger; want none, and some lingering topics", got, len(r.up.open()))
		}
		// KeepLive topics also count for the caller.
		beside := r.NewReader("beside")
		defer beside.Close()
		time.Sleep(2 * time.Second)
		for i := range 40 {
			beside.KeepLive(priceOf(fmt.Sprint(i)))
		}
		if got := countTopics(t, r); got["beside"] != 20 {
			t.Errorf("the topics of the callers are %v, want 20 of beside", got)
		}
		if n := watchBooks(t, beside, "n", 40); n != 20 {
			t.Errorf("in addition to its 20 KeepLive topics, the caller watches %d topics, want 20", n)
		}
	})
}

// TestAccountsDoNotCountAgainstTheShare checks that a caller that watches accounts can still watch all public topics.
func TestAccountsDoNotCountAgainstTheShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t, func(c *Config) { c.Topics = 8 })
		r.up.maxPublic = 8
		reader := r.NewReader("caller")
		defer reader.Close()
		for i := range 5 {
			watchTopic(t, reader, userOf(fmt.Sprint("0x", i)), "")
		}
		if n := watchBooks(t, reader, "a", 9); n != 8 || countTopics(t, r)["caller"] != 8 {
			t.Errorf("in addition to accounts, the caller watches %d topics, and the topics of the callers are %v; want 8", n, countTopics(t, r))
		}
		watchTopic(t, reader, userOf("0xf"), "") // the caller already has the greatest number of public topics
	})
}
