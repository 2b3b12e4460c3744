package cache

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/reads"
)

// TestCauses checks the cause that is reported for a stale price in each situation.
func TestCauses(t *testing.T) {
	down := market.Errorf(market.CodeUpstreamUnavailable, "down")
	limited := market.Errorf(market.CodeRateLimited, "limited")
	for name, test := range map[string]struct {
		fail error
		// age is the age of the price at the read.
		age   time.Duration
		reads int
		want  reads.StaleCause
	}{
		"the first read after the fresh time": {down, 2 * time.Second, 1, reads.CauseExpired},
		"after a failed refresh":              {down, 2 * time.Second, 2, reads.CauseUpstreamDown},
		"after an unreadable answer":          {errors.New("unreadable"), 2 * time.Second, 2, reads.CauseUpstreamDown},
		"after a throttled refresh":           {limited, 2 * time.Second, 2, reads.CauseThrottled},
		"past the stale time":                 {limited, time.Minute, 1, reads.CauseThrottled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &testVenue{}
				c := open(t, v)
				if r := mustRead(t, c.Prices(), "k"); r.Stale {
					t.Fatalf("got %+v, want a fresh price", r)
				}
				v.fail = func(ask) error { return test.fail }
				time.Sleep(test.age)
				var r reads.Value[*market.Price]
				for range test.reads {
					r = mustRead(t, c.Prices(), "k")
					synctest.Wait()
				}
				if !r.Stale || r.Cause != test.want {
					t.Errorf("got stale %v with cause %d, want stale true with cause %d", r.Stale, r.Cause, test.want)
				}
				v.fail = nil
				time.Sleep(reads.RefreshPause)
				_, _ = readOne(t.Context(), c.Prices(), "k")
				synctest.Wait()
				if r := mustRead(t, c.Prices(), "k"); r.Stale {
					t.Errorf("after a refresh: got %+v, want a fresh price", r)
				}
			})
		})
	}
}

// TestCauseOfStreamedValue checks the cause that is reported for a streamed price after StreamStale and after the end of the
// session.
func TestCauseOfStreamedValue(t *testing.T) {
	for name, end := range map[string]func(*Cache, *reads.Session){
		"StreamStale": func(c *Cache, _ *reads.Session) {
			c.StreamStale(messages.Topic{Channel: messages.ChannelPrices, ID: "k"})
		},
		"end of the session": func(_ *Cache, s *reads.Session) { s.End(time.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, session := open(t, &testVenue{}), new(reads.Session)
				c.StreamPrice(session, &market.Price{TokenID: "k"}, reads.Meta{ReceivedAt: time.Now(), Source: market.SourceStream})
				end(c, session)
				out := make([]reads.Result[*market.Price], 1)
				c.Prices().Lookup(context.Background(), []string{"k"}, out, nil)
				if r := out[0].Value; !r.Stale || r.Cause != reads.CauseStreamDown {
					t.Errorf("got stale %v with cause %d, want stale true with cause %d", r.Stale, r.Cause, reads.CauseStreamDown)
				}
			})
		})
	}
}
