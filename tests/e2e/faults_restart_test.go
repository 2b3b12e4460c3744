package e2e

import (
	"context"
	"testing"
	"time"

	"oddsgraph/tests/tool"
)

// wantStale checks that the service still has a price and a book of each token, and marks them as stale.
func (c *checkedLoad) wantStale(t testing.TB, tokens []string) {
	t.Helper()
	data, errors := c.query(t, loadQuery, vars{"ids": tokens, "a": addressOf3}, anonymous)
	if got := len(list(data, "tokens")); got != len(tokens) {
		t.Errorf("got %d of %d tokens, with the errors %v", got, len(tokens), errors)
	}
	for i, v := range list(data, "tokens") {
		for _, part := range []string{"price", "orderbook"} {
			if at(v, part+".freshness.stale") != true {
				t.Errorf("token %d: the %s is missing or not marked stale: %s, errors %v", i, part, asJSON(v), errors)
			}
		}
	}
}

// TestTheVenueIsKilledUnderLoad checks that the service sends stale prices and books while the venue is down. After the venue has
// restarted, the first fresh response must come within the service's longest backoff plus 20 seconds. The subscribers must catch
// up with the venue.
func TestTheVenueIsKilledUnderLoad(t *testing.T) {
	tool.CheckTier(t)
	t.Parallel()
	w := newRecordedVenue(t, 1, 8, [2]int{})
	s := startLive(t, w.args()...)
	s.waitForStream(t)
	c := newCheckedLoad(s, w)
	for i := range 4 {
		c.subscribe(t, anonymous, w.tokens[2*i:2*i+2])
		c.poll(40*time.Millisecond, w.tokens[i:i+4])
	}
	tick := time.NewTicker(15 * time.Millisecond)
	defer tick.Stop()
	// A search never uses the stream. Each search has new arguments, so no response comes from the cache.
	words := []string{"a", "e", "i", "o", "u", "will", "the", "by", "in", "win"}
	search := func(i int) bool {
		var out graphResult
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		query := `query ($q: String!, $n: Int!) { searchMarkets(query: $q, first: $n) { totalCount } }`
		if err := c.post(ctx, query, vars{"q": words[i%len(words)], "n": 1 + i/len(words)}, anonymous, &out); err != nil {
			t.Errorf("a search got no response: %v", err)
		}
		for _, e := range out.Errors {
			if e.Extensions.Code != "UPSTREAM_UNAVAILABLE" && e.Extensions.Code != "UPSTREAM_TIMEOUT" {
				t.Errorf("a search failed with %s: %s", e, e.Message)
			}
		}
		return len(out.Errors) == 0
	}
	settle := func(when string) {
		t.Helper()
		eventually(t, "subscribers have caught up "+when, c.caughtUp)
	}
	move := func(n int) {
		for range n {
			w.step()
			<-tick.C
		}
	}
	move(30)
	settle("at first")
	for round := range 2 {
		n := 100 * round
		if !search(n) {
			t.Fatal("a search fails while the venue is up")
		}
		before := c.counts()
		w.close()
		for down := time.Now(); time.Since(down) < 3*time.Second; n++ {
			search(n)
			<-tick.C
		}
		if c.countOf("event FRESHNESS") == before["event FRESHNESS"] {
			t.Error("no subscriber received a FRESHNESS event")
		}
		c.wantStale(t, w.tokens[:4])
		// wait is the longest remaining backoff at this moment.
		wait := firstBackoff
		for _, circuit := range s.App.Client.Circuits() {
			wait = max(wait, time.Until(circuit.Until))
		}
		circuits := s.App.Client.Circuits()
		w.open(t)
		back := time.Now()
		for ; !search(n); n++ {
			if took := time.Since(back); took > wait+20*time.Second { // the margin is for a busy machine
				t.Fatalf("%v after the venue's return, searches still fail; the longest backoff was %v; the circuits were %+v", took, wait, circuits)
			}
			<-tick.C
		}
		t.Logf("the first fresh response came %v after the venue's return; the longest backoff was %v", time.Since(back), wait)
		move(10)
		settle("with the new epoch")
		move(30)
		settle("again")
	}
	c.stopLoad()
	c.wantNothingWrong(t)
	t.Logf("the clients saw %v", c.counts())
}
