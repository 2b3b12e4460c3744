package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/ratelimit"
)

// limited opens a cache whose calls a budget admits, and returns both.
func limited(t *testing.T, v Venue, cfg ratelimit.Config, change ...func(*Config)) (*Cache, *ratelimit.Budget) {
	t.Helper()
	b := ratelimit.New(cfg)
	t.Cleanup(b.Close)
	c := DefaultConfig()
	c.Admission = b
	for _, f := range change {
		f(&c)
	}
	cache := New(v, c)
	t.Cleanup(cache.Close)
	return cache, b
}

// by returns the context of a caller who has so much time.
func by(t testing.TB, caller string, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(reqctx.WithCaller(t.Context(), caller), d)
	t.Cleanup(cancel)
	return ctx
}

// spend makes calls until so many are left of the budget.
func spend(t *testing.T, b *ratelimit.Budget, left int) {
	t.Helper()
	for i := 0; b.Status().Left > left; i++ {
		k := b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices, Caller: fmt.Sprint(i)})
		if k.Err() != nil || k.AdmitCall(t.Context()) != nil {
			t.Fatal("not admitted")
		}
		k.Release(true)
	}
}

// told returns the time after which an error says to come back.
func told(t *testing.T, err error) time.Duration {
	t.Helper()
	var e *market.Error
	if !errors.As(err, &e) || e.Code != market.CodeRateLimited || e.RetryAfter <= 0 {
		t.Fatalf("%v; want a refusal with a time", err)
	}
	return e.RetryAfter
}

const window = time.Minute + time.Millisecond

// Of those who wait for a key, the one whose deadline is before its turn is told so at once; the others get it.
func TestWhoIsTooLateLeavesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c, b := limited(t, v, ratelimit.Config{})
		spend(t, b, 0)
		start := time.Now()
		patient := fetch(by(t, "a", 2*time.Minute), c, "k", "l")
		pending(t, patient)
		hasty := fetch(by(t, "b", 10*time.Second), c, "k", "m")
		for _, r := range done(t, hasty) {
			if wait := told(t, r.Err); wait != window {
				t.Errorf("told to come back in %s", wait)
			}
		}
		pending(t, patient)
		if s := b.Status(); s.Waiting[reqctx.PriorityPrices] != 1 {
			t.Errorf("%+v", s)
		}
		time.Sleep(window)
		good(t, done(t, patient), "k", "l")
		if calls := v.calls(); len(calls) != 1 || !slices.Equal(calls[0].keys, []string{"k", "l"}) || time.Since(start) != window {
			t.Errorf("%+v after %s", calls, time.Since(start))
		}
		atRest(t, c.prices.routes[0])
	})
}

// Who waits for a turn that is put off until too late is told when it will be, not that the venue is slow.
func TestDeadlineInTheQueueIsARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &venue{}, newAdmission()
		c := open(t, v, admitBy(a))
		waiting := fetch(by(t, "a", time.Second), c, "k")
		a.state()
		a.mu.Lock()
		a.entered[0].turn = time.Now().Add(20 * time.Second)
		a.mu.Unlock()
		time.Sleep(time.Second)
		if wait := told(t, done(t, waiting)[0].Err); wait != 19*time.Second {
			t.Errorf("told to come back in %s", wait)
		}
		if n, _, _ := a.state(); n != 0 {
			t.Errorf("%d wait for admission of nothing", n)
		}
		atRest(t, c.prices.routes[0])
	})
}

// Who would be admitted in time, but so late that the answer is not to be had any more, is refused at once. How long answers
// take is learnt from those before.
func TestWhoseAnswerWouldBeTooLateIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{latency: 400 * time.Millisecond}
		c, b := limited(t, v, ratelimit.Config{})
		for i := range 20 {
			good(t, readAll(by(t, "z", time.Second), c.Prices(), fmt.Sprint(i)), fmt.Sprint(i))
		}
		spend(t, b, 0)
		turn := time.Until(b.Status().ThrottledUntil)
		refused := func() {
			t.Helper()
			hasty := fetch(by(t, "a", turn+v.latency-time.Millisecond), c, "k")
			if wait := told(t, done(t, hasty)[0].Err); wait != turn {
				t.Errorf("told to come back in %s; the turn is in %s", wait, turn)
			}
		}
		refused()
		patient := fetch(by(t, "b", turn+time.Second), c, "k")
		pending(t, patient)
		refused() // beside one who has the time
		time.Sleep(turn + v.latency)
		good(t, done(t, patient), "k")
		if calls := v.calls(); len(calls) != 21 {
			t.Errorf("%d calls", len(calls))
		}
		atRest(t, c.prices.routes[0])
	})
}

// Who has waited for a turn longer than for the answer is told when this is likely to be there, not that the venue is slow.
func TestDeadlineSoonAfterTheTurnIsARefusal(t *testing.T) {
	for name, at := range map[string]time.Duration{"late turn": 900 * time.Millisecond, "early turn": 400 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, a := &venue{latency: 700 * time.Millisecond}, newAdmission()
				c := open(t, v, admitBy(a))
				hasty := fetch(by(t, "a", time.Second), c, "k")
				patient := fetch(by(t, "b", time.Minute), c, "k")
				time.Sleep(at)
				a.verdict <- nil
				synctest.Wait()
				lane := c.prices.routes[0]
				lane.mu.Lock()
				lane.pace = pace{known: true, mean: v.latency}
				lane.mu.Unlock()
				time.Sleep(time.Second - at)
				switch err := done(t, hasty)[0].Err; {
				case at < time.Second/2:
					if market.CodeOf(err) != market.CodeUpstreamTimeout {
						t.Error(err)
					}
				default:
					if wait := told(t, err); wait != at+v.latency-time.Second {
						t.Errorf("told to come back in %s", wait)
					}
				}
				pending(t, patient)
				time.Sleep(at + v.latency - time.Second)
				good(t, done(t, patient), "k")
			})
		})
	}
}

// A batch that nobody waits for any more gives its place to the next at once, whether it waits or was just admitted.
func TestAbandonedBatchGivesItsPlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c, b := limited(t, v, ratelimit.Config{})
		spend(t, b, 0)
		ctx, cancel := context.WithCancel(by(t, "a", 2*time.Minute))
		gone := fetch(ctx, c, ids("t", 0, 200)...)
		next := b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices, Caller: "b"})
		if s := b.Status(); s.Waiting[reqctx.PriorityPrices] != 6 {
			t.Fatalf("%+v", s)
		}
		cancel()
		done(t, gone)
		if s := b.Status(); s.Waiting[reqctx.PriorityPrices] != 1 {
			t.Errorf("%+v", s)
		}
		next.Release(false)
		time.Sleep(2 * window)

		// Four calls hang, and the fifth has been admitted and waits for one of them to end.
		v.gate = make(chan struct{})
		var hanging []chan prices
		for _, id := range ids("h", 0, 4) {
			hanging = append(hanging, fetch(by(t, "a", time.Minute), c, id))
		}
		ctx, cancel = context.WithCancel(by(t, "a", time.Minute))
		gone = fetch(ctx, c, "x")
		before := b.Status().Left
		cancel()
		done(t, gone)
		if s := b.Status(); before != 90 || s.Left != 91 {
			t.Errorf("%d were left, %d are", before, s.Left)
		}
		for i := range hanging {
			<-v.gate
			synctest.Wait()
			_ = i
		}
		for i, ch := range hanging {
			good(t, done(t, ch), fmt.Sprintf("h%03d", i))
		}
		atRest(t, c.prices.routes[0])
	})
}

// What nobody waits for has the lowest claim, until somebody waits for it.
func TestRefreshGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c, b := limited(t, v, ratelimit.Config{})
		must(t, c.Prices(), "k")
		time.Sleep(2 * time.Second)
		spend(t, b, 23) // less than a quarter
		if r := must(t, c.Prices(), "k"); !r.Stale {
			t.Fatalf("%+v", r)
		}
		synctest.Wait()
		if s := b.Status(); len(v.calls()) != 1 || s.Waiting[reqctx.PriorityRefresh] != 1 {
			t.Fatalf("%d calls, %+v", len(v.calls()), s)
		}
		// Misses are served from what refreshes have left, and take along what waits for a refresh.
		must(t, c.Prices(), "miss")
		if calls := v.calls(); len(calls) != 2 || !slices.Equal(calls[1].keys, []string{"k", "miss"}) && !slices.Equal(calls[1].keys, []string{"miss", "k"}) {
			t.Fatalf("%+v", calls)
		}
		if r := must(t, c.Prices(), "k"); r.Stale {
			t.Error("stale after its refresh")
		}
		if s := b.Status(); s.Waiting != [reqctx.Priorities]int{} {
			t.Errorf("%+v", s)
		}
		// A refresh that has its turn within the minute is made.
		time.Sleep(2 * time.Second)
		must(t, c.Prices(), "k")
		time.Sleep(59 * time.Second)
		if n := len(v.calls()); n != 3 {
			t.Errorf("%d calls", n)
		}
	})
}

// While the budget is short stale data is served for longer, up to a bound of its own, then told when to come back. User
// data never is.
func TestStaleTimeStretches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c, b := limited(t, v, ratelimit.Config{})
		first := must(t, c.Prices(), "k")
		mine := by(t, "a", 10*time.Second)
		account := market.Address("0x1")
		if _, err := readOne(mine, c.Balances(), account); err != nil {
			t.Fatal(err)
		}
		received := time.Now()
		throttle := func(d time.Duration) {
			k := b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices})
			k.Throttled(time.Now().Add(d))
			k.Release(false)
		}
		throttle(4 * time.Minute)
		for time.Since(received) < 3*time.Minute {
			r, err := readOne(by(t, "a", 10*time.Second), c.Prices(), "k")
			if err != nil || r.Handle != first.Handle || r.Stale != (time.Since(received) >= time.Second) {
				t.Fatalf("after %s: %+v, %v", time.Since(received), r, err)
			}
			time.Sleep(500 * time.Millisecond)
		}
		if _, err := readOne(by(t, "a", 10*time.Second), c.Balances(), account); market.CodeOf(err) != market.CodeRateLimited {
			t.Errorf("user data: %v", err)
		}
		throttle(5 * time.Minute)
		time.Sleep(2*time.Minute + time.Second - 1)
		if r := must(t, c.Prices(), "k"); !r.Stale {
			t.Errorf("%+v", r)
		}
		time.Sleep(time.Nanosecond)
		_, err := readOne(by(t, "a", 10*time.Second), c.Prices(), "k")
		if wait := told(t, err); wait != 3*time.Minute-time.Second {
			t.Errorf("told to come back in %s", wait)
		}
		if n := len(v.calls()); n != 2 {
			t.Errorf("%d calls to a venue that wants none", n)
		}
	})
}

// With enough of the budget left, the stale time is that of the kind.
func TestStaleTimeWithEnoughLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c, b := limited(t, v, ratelimit.Config{})
		must(t, c.Prices(), "k")
		v.fail = func(ask) error { return market.Errorf(market.CodeUpstreamUnavailable, "down") }
		time.Sleep(31*time.Second - 1)
		if r := must(t, c.Prices(), "k"); !r.Stale { // the venue fails, and it is within its stale time
			t.Errorf("%+v", r)
		}
		time.Sleep(time.Nanosecond)
		if r, err := readOne(t.Context(), c.Prices(), "k"); market.CodeOf(err) != market.CodeUpstreamUnavailable {
			t.Errorf("%+v, %v", r, err)
		}
		// A caller who alone is refused is served for longer, although there is enough for others.
		spend(t, b, 60)
		greedy := 0
		for b.Status().Left > 24 {
			k := b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices, Caller: "greedy", Deadline: time.Now().Add(1)})
			if k.AdmitCall(t.Context()) != nil {
				break
			}
			greedy++
			k.Release(true)
		}
		calls := len(v.calls())
		if r, err := readOne(by(t, "greedy", time.Second), c.Prices(), "k"); err != nil || !r.Stale {
			t.Errorf("%+v, %v", r, err)
		}
		if greedy != 23 || len(v.calls()) != calls || b.Left() < short {
			t.Errorf("%d calls of the greedy, %d to the venue, %f left", greedy, len(v.calls())-calls, b.Left())
		}
	})
}

// TestScarcityServesNothingThatIsKnownToBeWrong: while the budget is short, neither a market that has changed since it was read nor
// the absence of a token is served past its stale time, as long as the venue can be asked.
func TestScarcityServesNothingThatIsKnownToBeWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, a := &venue{}, newAdmission()
		c := open(t, v, admitBy(a), func(cfg *Config) { cfg.Stretch = 24 * time.Hour })
		go func() {
			for { // every call is admitted
				select {
				case a.verdict <- nil:
				case <-t.Context().Done():
					return
				}
			}
		}()
		v.setUnknown("t", true)
		must(t, c.Markets(), byID("m"))
		must(t, c.Markets(), byID("same"))
		must(t, c.Prices(), "t")
		c.StreamMarket(new(market.Session), "m", nil)
		v.setUnknown("t", false)
		ttl := DefaultConfig().Market.TTL
		time.Sleep(ttl.Fresh + ttl.Stale)
		a.mu.Lock()
		a.spent = 0.99
		a.mu.Unlock()
		if r := must(t, c.Markets(), byID("same")); !r.Stale {
			t.Fatalf("the budget is not short: %+v", r)
		}
		if r := must(t, c.Markets(), byID("m")); r.Stale {
			t.Errorf("a market that has changed: %+v", r)
		}
		if r := must(t, c.Prices(), "t"); r.Value == nil {
			t.Errorf("a token that was unknown: %+v", r)
		}
	})
}

// An entry within its stale time stands in for an answer that failed, whatever made it a miss when it was looked up.
func TestFailureIsExcusedByWhatIsThere(t *testing.T) {
	for _, code := range []market.Code{market.CodeUpstreamUnavailable, market.CodeUpstreamTimeout, market.CodeUpstreamBadResponse, market.CodeRateLimited, market.CodeForbidden} {
		synctest.Test(t, func(t *testing.T) {
			v := &venue{}
			c := open(t, v)
			must(t, c.Prices(), "k")
			time.Sleep(2 * time.Second)
			v.fail = func(ask) error { return market.Errorf(code, "no") }
			r := c.Prices().Fetch(t.Context(), []string{"k", "unknown"})
			if excused := code != market.CodeForbidden; excused != (r[0].Err == nil) || excused != r[0].Value.Stale || market.CodeOf(r[1].Err) != code {
				t.Errorf("%s: %+v", code, r)
			}
		})
	}
}

// Credentials are counted by what they are, whatever the address, and are no part of what is counted by.
func TestUserCallsCountForTheirKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c, b := limited(t, v, ratelimit.Config{Key: 20}) // 19
		ctx := as(t, "alice")
		n := 0
		for i := range 40 {
			limit, cancel := context.WithTimeout(ctx, time.Second)
			_, err := readOne(limit, c.Balances(), market.Address(fmt.Sprint("0x", i)))
			if cancel(); err == nil {
				n++
			} else if wait := told(t, err); wait > window {
				t.Errorf("told to come back in %s", wait)
			}
		}
		if s := b.Status(); n != 19 || s.Left != 94 || s.Scopes != 1 {
			t.Errorf("%d calls, %+v", n, s)
		}
		if _, err := readOne(as(t, "bob"), c.Balances(), "0x1"); err != nil {
			t.Errorf("another's key: %v", err)
		}
		if scope := c.scope.credentials(reqctx.CredentialsFrom(ctx)); scope == c.scope.credentials(reqctx.CredentialsFrom(as(t, "bob"))) || scope == "" || c.scope.credentials(nil) != "" {
			t.Error("scopes")
		}
	})
}

// Each HTTP call of a read that takes several is admitted.
func TestEveryCallIsAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{search: func(q queries.Search) *queries.SearchPage {
			page := &queries.SearchPage{Markets: []*market.Market{{MarketID: "m" + q.Page, EventID: q.EventID}}}
			if len(q.Page) < 4 {
				page.Next = q.Page + "+"
			}
			return page
		}}
		c, b := limited(t, v, ratelimit.Config{Public: 8}) // 7
		if e, err := readOne(by(t, "a", time.Second), c.Events(), market.EventRef{EventID: "e"}); err != nil || len(e.Value.Markets) != 5 {
			t.Fatal(err)
		}
		if s := b.Status(); s.Left != 2 {
			t.Errorf("%+v", s)
		}
		_, err := readOne(by(t, "a", time.Second), c.Events(), market.EventRef{EventID: "f"})
		if wait := told(t, err); wait > window || len(v.calls()) != 7 {
			t.Errorf("told to come back in %s after %d calls", wait, len(v.calls()))
		}
	})
}

// streamer remembers what it was asked to stream.
type streamer struct {
	mu     sync.Mutex
	tokens []string
}

func (s *streamer) AutoWatch(_ string, _ messages.Channel, tokens []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = append(s.tokens, tokens...)
}

func (s *streamer) wanted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.tokens
	s.tokens = nil
	return out
}

// While less than half of the budget is left, what is missing is asked of the stream too, and whoever answers first does.
func TestStreamAnswersMisses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := &venue{}, &streamer{}
		c, b := limited(t, v, ratelimit.Config{})
		c.SetStreamer(s)
		c.learn(&market.Market{MarketID: "m", Outcomes: []market.Outcome{{TokenID: "yes"}, {TokenID: "no"}}})
		if must(t, c.Prices(), "yes"); len(s.wanted()) != 0 {
			t.Error("a watch is spent although the budget is not")
		}
		spend(t, b, 0)
		waiting := fetch(by(t, "a", 2*time.Minute), c, "no", "junk")
		if got := s.wanted(); !slices.Equal(got, []string{"no"}) {
			t.Fatalf("wanted %v", got)
		}
		books := make(chan *market.Book, 3)
		for _, d := range []int{20, 50, 200} {
			go func() {
				r, err := readOne(by(t, "a", 2*time.Minute), c.Books(), queries.Book{TokenID: "yes", Depth: d})
				if err != nil || r.Source != market.SourceStream || r.Stale {
					t.Errorf("%+v, %v", r, err)
				}
				books <- r.Value
			}()
		}
		synctest.Wait()
		if got := s.wanted(); !slices.Equal(got, []string{"yes", "yes", "yes"}) {
			t.Fatalf("wanted %v", got)
		}
		if n := b.Status().Waiting; n[reqctx.PriorityBooks] != 3 || n[reqctx.PriorityPrices] != 1 {
			t.Fatalf("%v wait", n)
		}

		session := &market.Session{}
		now := market.Meta{ReceivedAt: time.Now(), Source: market.SourceStream}
		c.StreamBook(session, &market.Book{TokenID: "yes", Depth: 200}, now)
		for range 3 {
			synctest.Wait()
			if len(books) == 0 {
				t.Fatal("a book is there and nobody gets it")
			}
			<-books
		}
		c.StreamPrice(session, &market.Price{TokenID: "no"}, now)
		pending(t, waiting) // for the other
		if n := b.Status().Waiting; n[reqctx.PriorityBooks] != 0 || n[reqctx.PriorityPrices] != 1 {
			t.Errorf("%v wait", n)
		}
		time.Sleep(window)
		r := done(t, waiting)
		if r[0].Value.Source != market.SourceStream || r[1].Value.Source != market.SourceREST {
			t.Errorf("%+v", r)
		}
		calls := v.calls()
		if len(calls) != 2 || !slices.Equal(calls[1].keys, []string{"junk"}) {
			t.Errorf("%+v", calls)
		}

		// A call under way that nobody waits for any more, since the stream has answered, ends.
		v.gate = make(chan struct{})
		time.Sleep(window)
		late := fetch(by(t, "a", time.Minute), c, "slow")
		c.StreamPrice(session, &market.Price{TokenID: "slow"}, now)
		good(t, done(t, late), "slow")
		if synctest.Wait(); v.calls()[2].ctx.Err() == nil {
			t.Error("the venue is asked on for what is there")
		}
		session.End(time.Now())
		atRest(t, c.prices.routes[0])
		atRest(t, c.books.routes[0])
	})
}

// What the venue is known to have may be streamed, and nothing else; reads that are no client's ask for nothing.
func TestOnlyWhatExistsIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, s := &venue{unknown: map[string]bool{"none": true, "never": true}}, &streamer{}
		c, b := limited(t, v, ratelimit.Config{})
		c.SetStreamer(s)
		must(t, c.Prices(), "priced")
		must(t, c.Prices(), "none")
		must(t, c.Books(), queries.Book{TokenID: "booked", Depth: 20})
		must(t, c.Spreads(), "spread")
		spend(t, b, 47)
		time.Sleep(40 * time.Second) // all of it is past its stale time
		tokens := []string{"priced", "none", "booked", "spread", "never"}
		readAll(reqctx.WithoutPoll(t.Context()), c.Prices(), tokens...)
		if got := s.wanted(); len(got) != 0 {
			t.Errorf("wanted %v", got)
		}
		time.Sleep(15 * time.Second)
		readAll(t.Context(), c.Spreads(), tokens...)
		if got := s.wanted(); !slices.Equal(got, []string{"priced", "booked", "spread"}) {
			t.Errorf("wanted %v", got)
		}
	})
}

// meter is a venue that allows so many calls in any 60 seconds, and refuses what is more.
type meter struct {
	venue
	limit   int
	mu      sync.Mutex
	times   []time.Time
	refused atomic.Int64
}

// newMeter returns a venue that is 30 ms away.
func newMeter(limit int) *meter {
	m := &meter{limit: limit}
	m.latency = 30 * time.Millisecond
	m.fail = func(a ask) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		now := time.Now()
		for len(m.times) > 0 && !m.times[0].Add(time.Minute).After(now) {
			m.times = m.times[1:]
		}
		if len(m.times) >= m.limit {
			m.refused.Add(1)
			until := m.times[0].Add(time.Minute)
			reqctx.ReportThrottled(a.ctx, until)
			return reqctx.RateLimited(until.Sub(now))
		}
		m.times = append(m.times, now)
		return nil
	}
	return m
}

// most returns the greatest number of calls in any 60 seconds.
func (m *meter) most() (most int) {
	calls := m.calls()
	slices.SortFunc(calls, func(a, b ask) int { return a.at.Compare(b.at) })
	first := 0
	for i := range calls {
		for calls[i].at.Sub(calls[first].at) > time.Minute {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// verdicts count what clients got.
type verdicts struct {
	fresh, stale, refused, failed atomic.Int64
	oldest                        atomic.Int64
}

func (o *verdicts) note(m market.Meta, err error) {
	switch {
	case market.CodeOf(err) == market.CodeRateLimited:
		o.refused.Add(1)
	case err != nil:
		o.failed.Add(1)
	case m.Stale:
		o.stale.Add(1)
		for age, was := int64(time.Since(m.ReceivedAt)), o.oldest.Load(); age > was && !o.oldest.CompareAndSwap(was, age); was = o.oldest.Load() {
		}
	default:
		o.fresh.Add(1)
	}
}

func (o *verdicts) String() string {
	return fmt.Sprintf("%d fresh, %d stale (the oldest %s), %d refused, %d failed", o.fresh.Load(), o.stale.Load(), time.Duration(o.oldest.Load()), o.refused.Load(), o.failed.Load())
}

// board is a client's tokenPrices of 50 tokens, page a market page with two books.
func board(ctx context.Context, c *Cache, first int, o *verdicts) {
	keys := make([]string, 50)
	for i := range keys {
		keys[i] = fmt.Sprintf("t%03d", (first+i)%500)
	}
	for _, r := range readAll(ctx, c.Prices(), keys...) {
		o.note(r.Value.Meta, r.Err)
	}
}

func page(ctx context.Context, c *Cache, n int, o *verdicts) {
	if r, err := readOne(ctx, c.Markets(), market.MarketRef{Value: fmt.Sprint("m", n)}); err != nil || r.Value == nil {
		o.note(r.Meta, err) // else it is of no interest: what changes slowly may be an hour old
	}
	for _, b := range readAll(ctx, c.Books(), queries.Book{TokenID: fmt.Sprint("y", n), Depth: 20}, queries.Book{TokenID: fmt.Sprint("n", n), Depth: 20}) {
		o.note(b.Value.Meta, b.Err)
	}
}

// 150 boards and 20 market pages every second for two minutes, at a venue that allows 100 calls in any 60 seconds: it
// never sees more, and never refuses one. Everybody is answered, by stale data where the budget does not reach. When the
// venue then wants no calls at all, stale data bridges five minutes, and after that clients are told when to come back.
func TestManyClientsWithinTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newMeter(100)
		c, b := limited(t, v, ratelimit.Config{})
		run := func(d time.Duration, clients int) *verdicts {
			o, start := &verdicts{}, time.Now()
			var wg sync.WaitGroup
			for i := range clients + 20 {
				r := rand.New(rand.NewPCG(1, uint64(i)))
				wg.Go(func() {
					time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
					for time.Since(start) < d {
						ctx, cancel := context.WithTimeout(reqctx.WithCaller(t.Context(), fmt.Sprint("client", i)), 10*time.Second)
						next := time.Now().Add(time.Second)
						if i < 20 {
							page(ctx, c, i, o)
						} else {
							board(ctx, c, i*37, o)
						}
						cancel()
						time.Sleep(time.Until(next))
					}
				})
			}
			wg.Wait()
			return o
		}
		o := run(2*time.Minute, 150)
		t.Logf("%s; %d calls, at most %d in 60 seconds, %d refused by the venue", o, len(v.calls()), v.most(), v.refused.Load())
		if v.most() > 100 || v.refused.Load() != 0 {
			t.Errorf("%d calls in 60 seconds, %d refused", v.most(), v.refused.Load())
		}
		if o.refused.Load()+o.failed.Load() != 0 || o.stale.Load() == 0 || time.Duration(o.oldest.Load()) > 2*time.Minute {
			t.Errorf("%s", o)
		}
		if n := len(v.calls()); n < 180 {
			t.Errorf("only %d calls were made", n)
		}

		k := b.Reserve(reqctx.CallRequest{Priority: reqctx.PriorityPrices})
		k.Throttled(time.Now().Add(5 * time.Minute))
		o = run(3*time.Minute, 10)
		k.Throttled(time.Now().Add(5 * time.Minute))
		k.Release(false)
		if o.refused.Load()+o.failed.Load()+o.fresh.Load() >= o.stale.Load() || o.refused.Load()+o.failed.Load() != 0 {
			t.Errorf("throttled: %s", o)
		}
		time.Sleep(2 * time.Minute)
		calls := len(v.calls())
		o = run(time.Minute, 10)
		t.Logf("after five minutes: %s", o)
		if o.refused.Load() == 0 || o.failed.Load() != 0 || o.stale.Load()+o.fresh.Load() != 0 || len(v.calls()) != calls {
			t.Errorf("after five minutes: %s, %d calls", o, len(v.calls())-calls)
		}
	})
}

// What somebody waits for does not take a refresh out of its pace by sharing its call. A call that has room takes it along.
func TestNobodyRidesOnARefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c, b := limited(t, v, ratelimit.Config{})
		good(t, readAll(t.Context(), c.Prices(), "k"), "k")
		spend(t, b, 20) // so that refreshes wait
		time.Sleep(1100 * time.Millisecond)
		good(t, done(t, fetch(t.Context(), c, "k")), "k") // stale
		full := ids("a", 0, 40)
		good(t, readAll(by(t, "a", time.Second), c.Prices(), full...), full...)
		if s := b.Status(); s.Waiting[reqctx.PriorityRefresh] != 1 || len(v.calls()) != 2 {
			t.Errorf("%d calls, %+v", len(v.calls()), s)
		}
		roomy := ids("b", 0, 39)
		good(t, readAll(by(t, "a", time.Second), c.Prices(), roomy...), roomy...)
		if s := b.Status(); s.Waiting[reqctx.PriorityRefresh] != 0 || len(v.calls()) != 3 {
			t.Errorf("%d calls, %+v", len(v.calls()), s)
		}
		atRest(t, c.prices.routes[0])
	})
}

// An attacker who asks for 40 random ids as fast as it can, beside 50 honest clients with 40 tokens each: theirs stay as
// they are without it, hot entries are not evicted, and it gets its share of the budget and no watch.
func TestAttackerOfRandomIDs(t *testing.T) {
	run := func(t *testing.T, attackers int) (o *verdicts, c *Cache, v *meter, b *ratelimit.Budget, s *streamer, junk int) {
		v, s = newMeter(100), &streamer{}
		c, b = limited(t, v, ratelimit.Config{}, func(cfg *Config) { cfg.Price.Size, cfg.NotFoundSize = 100, 200 })
		c.SetStreamer(s)
		o = &verdicts{}
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 20 * time.Millisecond)
				for time.Since(start) < 3*time.Minute {
					ctx, cancel := context.WithTimeout(reqctx.WithCaller(t.Context(), fmt.Sprint("honest", i)), 10*time.Second)
					for _, r := range readAll(ctx, c.Prices(), ids("t", 0, 40)...) {
						o.note(r.Value.Meta, r.Err)
					}
					cancel()
					time.Sleep(time.Second)
				}
			})
		}
		for i := range 4 * attackers { // connections of one client
			r := rand.New(rand.NewPCG(9, uint64(i)))
			wg.Go(func() {
				time.Sleep(2 * time.Second)
				for time.Since(start) < 3*time.Minute {
					ctx, cancel := context.WithTimeout(reqctx.WithCaller(t.Context(), "attacker"), 10*time.Second)
					keys := make([]string, 40)
					for i := range keys {
						keys[i] = fmt.Sprintf("junk%x", r.Uint64())
						v.setUnknown(keys[i], true)
					}
					readAll(ctx, c.Prices(), keys...)
					cancel()
					time.Sleep(40 * time.Millisecond) // the way there and back
				}
			})
		}
		wg.Wait()
		for _, call := range v.calls() {
			if len(call.keys[0]) > 8 && len(call.keys[len(call.keys)-1]) > 8 {
				junk++
			}
		}
		return
	}
	synctest.Test(t, func(t *testing.T) {
		alone, _, _, _, _, _ := run(t, 0)
		time.Sleep(2 * window)
		beside, c, v, b, s, junk := run(t, 1)
		t.Logf("alone:  %s", alone)
		t.Logf("beside: %s; %d calls, %d for junk, %+v", beside, len(v.calls()), junk, b.Status())
		for i, o := range []*verdicts{alone, beside} {
			if o.refused.Load()+o.failed.Load() != 0 || time.Duration(o.oldest.Load()) > 5*time.Second {
				t.Errorf("%d: %s", i, o)
			}
		}
		if v.refused.Load() != 0 || v.most() > 100 || junk > 4*24 {
			t.Errorf("%d calls in 60 seconds, %d refused, %d for junk", v.most(), v.refused.Load(), junk)
		}
		for _, token := range s.wanted() {
			if len(token) > 8 {
				t.Fatalf("a watch is spent on %s", token)
			}
		}
		if n := c.prices.entries.len(); n != 40 {
			t.Errorf("%d prices are cached", n)
		}
		if e := c.prices.entries.get("t000"); e == nil || e.read.Handle.Version() != 0 {
			t.Error("a hot entry was evicted")
		}
	})
}
