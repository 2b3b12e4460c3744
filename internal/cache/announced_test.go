package cache

import (
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/ratelimit"
	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
)

// TestTickSizeOfStream checks that reads return a streamed tick size until REST has it, also after a change of the status, but for
// at most a minute.
func TestTickSizeOfStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		old, fresh := market.MustDecimal("0.01"), market.MustDecimal("0.001")
		rest := market.Market{MarketID: "m", Status: market.StatusOpen, TickSize: &old}
		v.market = func(string) *market.Market { m := rest; return &m }
		c := open(t, v)
		want := func(when, tick string, status market.Status, stale bool) {
			t.Helper()
			r := mustRead(t, c.Markets(), marketM)
			if r.Value.TickSize.String() != tick || r.Value.Status != status || r.Stale != stale {
				t.Errorf("%s: got tick size %s, status %s, stale %v; want %s, %s, %v", when, r.Value.TickSize, r.Value.Status, r.Stale, tick, status, stale)
			}
		}
		want("before the change", "0.01", market.StatusOpen, false)
		c.StreamMarket("m", &market.MarketChange{Kind: "TICK_SIZE", TickSize: &fresh})
		want("while REST has the old tick size", "0.001", market.StatusOpen, true)
		c.StreamMarket("m", &market.MarketChange{Kind: "METADATA"})
		want("after a change without a value", "0.001", market.StatusOpen, true)
		c.StreamMarket("m", &market.MarketChange{Kind: "STATUS", Status: market.StatusClosed})
		want("after a change of the status", "0.001", market.StatusClosed, true)
		rest.Status, rest.TickSize = market.StatusClosed, &fresh
		time.Sleep(10 * time.Second)
		want("when REST has both", "0.001", market.StatusClosed, false)
		c.StreamMarket("m", &market.MarketChange{Kind: "TICK_SIZE", TickSize: &old})
		want("after the next tick size", "0.01", market.StatusClosed, true)
		time.Sleep(time.Minute)
		want("a minute later", "0.001", market.StatusClosed, false)
	})
}

// TestTimeOfStreamedResolution checks that a market has the streamed time of its resolution even if REST has the winner without
// the time. That is no contradiction, so the market is fresh.
func TestTimeOfStreamedResolution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, yes, no := &testVenue{}, true, false
		rest := market.Market{MarketID: "m", Status: market.StatusOpen, Outcomes: []market.Outcome{{TokenID: "yes", Label: "YES"}, {TokenID: "no", Label: "NO"}}}
		v.market = func(string) *market.Market { m := rest; return &m }
		c := open(t, v)
		mustRead(t, c.Markets(), marketM)
		at := time.Now().Add(-time.Minute)
		c.StreamMarket("m", &market.MarketChange{Kind: "RESOLVED", WinningTokenID: "no", At: at})
		for _, stale := range []bool{true, false} {
			r := mustRead(t, c.Markets(), marketM)
			if w := r.Value.Winner(); r.Stale != stale || w == nil || w.TokenID != "no" || r.Value.Resolution == nil || !r.Value.Resolution.ResolvedAt.Equal(at) {
				t.Errorf("got %+v, resolution %+v, stale %v; want the winner no, resolved at %s, stale %v", r.Value, r.Value.Resolution, r.Stale, at, stale)
			}
			rest.Status, rest.Outcomes = market.StatusResolved, []market.Outcome{{TokenID: "yes", Label: "YES", Winner: &no}, {TokenID: "no", Label: "NO", Winner: &yes}}
			time.Sleep(10 * time.Second)
		}
	})
}

// TestUnreadChangeOfAccount checks that StreamUnread makes the next read fetch the changed list again, and no other list.
func TestUnreadChangeOfAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v)
		ctx := withCredentials(t, "alice")
		topic := messages.Topic{Channel: messages.ChannelUser, ID: string(wallet), Scope: c.Scope(ctx, wallet)}
		read := func() {
			_, _ = readOne(ctx, c.Balances(), wallet)
			_, _ = readOne(ctx, c.Positions(), wallet)
			_, _ = readOne(ctx, c.Orders(), wallet)
		}
		counts := func() [3]int {
			return [3]int{len(v.calls(upstream.EndpointBalance)), len(v.calls(upstream.EndpointPositions)), len(v.calls(upstream.EndpointOrders))}
		}
		read()
		want := counts()
		for i, kind := range []messages.Kind{messages.KindBalance, messages.KindPosition, messages.KindOrder} {
			if read(); counts() != want {
				t.Fatalf("got the calls %v without a change, want %v", counts(), want)
			}
			c.StreamUnread(topic, kind)
			want[i]++
			if read(); counts() != want {
				t.Errorf("after a change of kind %v: got the calls %v, want %v", kind, counts(), want)
			}
		}
		other := topic
		other.Scope = c.Scope(withCredentials(t, "bob"), wallet)
		c.StreamUnread(other, messages.KindBalance)
		c.StreamUnread(messages.Topic{Channel: messages.ChannelUser, ID: string(wallet), Scope: "zz"}, messages.KindBalance)
		c.StreamUnread(topic, messages.KindTrade)
		if read(); counts() != want {
			t.Errorf("after changes of other accounts: got the calls %v, want %v", counts(), want)
		}
	})
}

// TestCachedMarket checks that CachedMarket returns a market of any age and makes no call.
func TestCachedMarket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v)
		if m := c.CachedMarket("m"); m != nil {
			t.Errorf("got %+v before the first read", m)
		}
		want := mustRead(t, c.Markets(), marketM).Value
		time.Sleep(time.Hour)
		if m := c.CachedMarket("m"); m != want || len(v.calls()) != 1 {
			t.Errorf("got %+v and %d calls, want the market of the first call", m, len(v.calls()))
		}
	})
}

// TestLowPriority checks that a call of a request with LowPriority waits like a refresh while less than a quarter of the
// limit is left, and that a caller with another context that needs the same key does not wait.
func TestLowPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c, b := openLimited(t, v, ratelimit.Config{})
		spend(t, b, 23)
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = readOne(request.With(t.Context(), func(r *request.Request) { r.LowPriority = true }), c.Prices(), "k")
		}()
		synctest.Wait()
		if s := b.Status(); len(v.calls()) != 0 || s.Waiting[upstream.PriorityRefresh] != 1 {
			t.Errorf("got %d calls and %+v, want a waiting call of the lowest priority", len(v.calls()), s)
		}
		mustRead(t, c.Prices(), "k")
		<-read
		if n := len(v.calls()); n != 1 {
			t.Errorf("got %d calls, want one for both callers", n)
		}
	})
}
