package follow_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/reads"
)

// twoVenues runs a test in a bubble with the first venue and the further venue b.
func twoVenues(t *testing.T, f func(t *testing.T, a, b *testVenue, source follow.Source)) {
	bubble(t, func(t *testing.T, a *testVenue) {
		b := newTestVenue(t, messages.ChannelTrades)
		f(t, a, b, follow.Source{Names: market.Names{"", "b"}, Feeds: []*feed.Feed{a.Feed, b.Feed}, Timeout: timeout})
	})
}

// TestReadsOfVenues checks that a venue whose reads never end delays neither the reads nor the first event of another one.
func TestReadsOfVenues(t *testing.T) {
	twoVenues(t, func(t *testing.T, a, _ *testVenue, source follow.Source) {
		healthy := &restSource[*market.Price]{value: priceOf("T", "0.4")}
		hung := &restSource[*market.Price]{duration: time.Hour}
		read := func(ctx context.Context, ids []string) []reads.Result[*market.Price] {
			of := func(id string) bool { return strings.HasPrefix(id, "b:") }
			if slices.ContainsFunc(ids, of) != of(ids[0]) {
				t.Errorf("one read asks for %q", ids)
			}
			if of(ids[0]) {
				return hung.list(ctx, ids)
			}
			return healthy.list(ctx, ids)
		}
		f := run(t, follow.Prices(a.ctx, source, []string{"T", "b:T"}, 0, read))
		time.Sleep(time.Second)
		f.want(showPrice, "INITIAL 0.4 REST")
		for _, price := range []string{"0.5", "0.6", "0.7"} {
			healthy.set(priceOf("T", price))
			time.Sleep(5 * time.Second)
			f.want(showPrice, "CHANGE "+price+" REST")
		}
		if n := healthy.count(); n != 4 {
			t.Errorf("the healthy venue was read %d times, want 4", n)
		}
		time.Sleep(15 * time.Second)
		f.want(showPrice, "!UPSTREAM_TIMEOUT")
	})
}

// TestProblemsNameTheirVenue follows ids that a further venue does not know, and waits for a further venue that hangs.
func TestProblemsNameTheirVenue(t *testing.T) {
	twoVenues(t, func(t *testing.T, a, _ *testVenue, source follow.Source) {
		none, hung := &restSource[*market.Price]{}, &restSource[*market.Price]{duration: time.Hour}
		unknown := run(t, follow.Prices(a.ctx, source, []string{"b:T", "b:U"}, 0, none.list))
		late := run(t, follow.Prices(a.ctx, source, []string{"b:T"}, 0, func(ctx context.Context, ids []string) []reads.Result[*market.Price] {
			out := hung.list(ctx, ids)
			out[0].Err = market.AtVenue(source.Names.Of(ids[0]), out[0].Err) // as loaders do
			return out
		}))
		time.Sleep(timeout)
		unknown.want(showPrice, "!BAD_USER_INPUT at b")
		late.want(showPrice, "!UPSTREAM_TIMEOUT at b")
		if at, ok := errors.AsType[*market.VenueError](unknown.err); !unknown.ended || !ok || at.Venue != "b" {
			t.Errorf("the stream of unknown ids has ended is %t and the error %v", unknown.ended, unknown.err)
		}
	})
}

// TestVenueWithoutTrades checks that the trades of one venue are followed although another one has no stream, or refuses the topic
// later. With ids of only one venue, the subscription ends.
func TestVenueWithoutTrades(t *testing.T) {
	twoVenues(t, func(t *testing.T, a, b *testVenue, source follow.Source) {
		tape := func(id string) messages.Topic { return messages.Topic{Channel: messages.ChannelTrades, ID: id} }
		send := func(v *testVenue, kind messages.Kind, token, id string) {
			v.send(tape(token), kind, func(m *messages.Message) { m.Trades = []market.Trade{{TradeID: id}} })
		}
		both := run(t, follow.Trades(a.ctx, source, []string{"T", "b:T"}, nil))
		a.connect(tape("T"))
		send(a, messages.KindTradesSnapshot, "T", "a1")
		both.want(showTrades)
		b.connect(tape("b:T"))
		send(b, messages.KindTradesSnapshot, "b:T", "b1")
		both.want(showTrades, "INITIAL a1 b1 ")
		b.Refused(tape("b:T"), market.Errorf(market.CodeUnsupported, "no more"))
		both.want(showTrades, "!UNSUPPORTED at b")
		send(a, messages.KindTrade, "T", "a2")
		both.want(showTrades, "CHANGE a2 ")

		b.up.mu.Lock()
		b.up.room = -1
		b.up.mu.Unlock()
		for _, ids := range [][]string{{"T", "b:T"}, {"b:T", "b:U"}} {
			f := run(t, follow.Trades(a.ctx, source, ids, nil))
			if len(ids[0]) == 1 {
				f.want(showTrades, "!RATE_LIMITED at b", "INITIAL a1 a2 ")
			} else if synctest.Wait(); !f.ended || market.CodeOf(f.err) != market.CodeRateLimited {
				t.Errorf("with ids of one venue, the stream has ended is %t and the error %v, want RATE_LIMITED", f.ended, f.err)
			}
		}
	})
}
