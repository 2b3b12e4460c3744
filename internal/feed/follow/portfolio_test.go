package follow_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/reads/valuation"
)

func positionsOf(tokens ...string) *[]market.Position {
	list := []market.Position{}
	for _, token := range tokens {
		list = append(list, market.Position{MarketID: "m" + token, Outcome: "YES", TokenID: token, Size: market.MustDecimal("2")})
	}
	return &list
}

// priced is a source that computes the value of each position from one price.
type priced struct{ restSource[*market.Price] }

func (p *priced) each(ctx context.Context, positions []market.Position, held reads.Meta) ([]valuation.Quotes, []*valuation.Valuation, error) {
	price, err := p.read(ctx)
	quotes, valuations := make([]valuation.Quotes, len(positions)), make([]*valuation.Valuation, len(positions))
	for i := range positions {
		quotes[i].Price = price
		if err == nil {
			valuations[i] = valuation.Of(&positions[i], held, &quotes[i], market.BasisVenue)
		}
	}
	return quotes, valuations, err
}

func newPriced(price string) *priced {
	p := &priced{}
	p.value = priceOf("T", price)
	p.value.Basis = market.BasisVenue
	return p
}

func (s *testVenue) portfolio(r *restSource[*[]market.Position], p *priced) follow.Stream[follow.PortfolioUpdate] {
	return follow.Portfolio(s.ctx, s.source(), follow.PortfolioSource{
		Account: follow.Account[[]market.Position]{Topic: account, Read: r.read}, Value: p.each, Key: func(x *market.Position) string { return x.Key().String() },
	}, 500*time.Millisecond)
}

func showPortfolio(u follow.PortfolioUpdate) string {
	out := fmt.Sprintf("%d-%d %s", len(u.Changed), len(u.Closed), u.Summary.PositionsValue)
	if u.Summary.Meta.Stale {
		out += " stale"
	}
	return out
}

// TestPortfolio checks the events of an account whose topic is live and then goes down.
func TestPortfolio(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r, p := &restSource[*[]market.Position]{value: positionsOf("T", "U")}, newPriced("0.5")
		f := run(t, s.portfolio(r, p))
		s.connect(account)
		s.send(account, messages.KindUserSnapshot, func(m *messages.Message) { m.Positions = *positionsOf("T", "U") })
		f.want(showPortfolio, "INITIAL 2-0 2")
		if r.calls != 0 || !s.up.has(pricesOf("T")) || !s.up.has(pricesOf("U")) {
			t.Errorf("the stream made %d reads, and the topics %v are open; want 0 reads and the prices of T and U", r.calls, s.up.open)
		}
		s.send(account, messages.KindPosition, func(m *messages.Message) {
			m.Positions = *positionsOf("U")
			m.Positions[0].Size = market.MustDecimal("0")
		})
		time.Sleep(time.Second)
		f.want(showPortfolio, "CHANGE 0-1 1")
		time.Sleep(6 * time.Second) // longer than feed.Config.Linger
		if s.up.has(pricesOf("U")) {
			t.Error("the price of a token without a position is still watched")
		}
		p.set(newPriced("0.7").value)
		s.connect(pricesOf("T"))
		s.price("T", "0.7")
		time.Sleep(time.Second)
		f.want(showPortfolio, "CHANGE 1-0 1.4")
		r.fail(errDown)
		s.disconnect(account)
		time.Sleep(time.Second)
		f.want(showPortfolio, "FRESHNESS 1-0 1.4 stale")
		r.edit(func() { r.err, r.value = nil, positionsOf("T", "V") })
		time.Sleep(time.Minute)
		f.want(showPortfolio, "CHANGE 2-0 2.8")
	})
}

// TestPriceReadFails checks that a failed read of a price is reported once, and that no portfolio is sent until the read succeeds.
func TestPriceReadFails(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r, p := &restSource[*[]market.Position]{value: positionsOf("T")}, newPriced("0.5")
		p.err = market.Errorf(market.CodeUpstreamBadResponse, "a price of 1.02")
		f := run(t, s.portfolio(r, p))
		time.Sleep(time.Minute)
		f.want(showPortfolio, "!UPSTREAM_BAD_RESPONSE")
		p.fail(nil)
		time.Sleep(time.Minute)
		f.want(showPortfolio, "INITIAL 1-0 1")
	})
}

// TestNoRoomForOneToken checks that the watches of other tokens stay open if the feed cannot watch one token.
func TestNoRoomForOneToken(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r, p := &restSource[*[]market.Position]{value: positionsOf("T")}, newPriced("0.5")
		s.up.room = 2 // the account and one token
		f := run(t, s.portfolio(r, p))
		time.Sleep(time.Second)
		f.want(showPortfolio, "INITIAL 1-0 1")
		r.set(positionsOf("A", "T")) // the upstream has no room for the token A
		time.Sleep(time.Minute)
		f.want(showPortfolio, "CHANGE 1-0 2")
		if !s.up.has(pricesOf("T")) {
			t.Error("the watch of T was closed because the upstream has no room for A")
		}
	})
}

// TestChangesWhileAPortfolioIsRead checks that a price that arrives during a read causes another read.
func TestChangesWhileAPortfolioIsRead(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r, p := &restSource[*[]market.Position]{value: positionsOf("T")}, newPriced("0.5")
		f := run(t, s.portfolio(r, p))
		s.connect(account)
		s.send(account, messages.KindUserSnapshot, func(m *messages.Message) { m.Positions = *positionsOf("T") })
		f.want(showPortfolio, "INITIAL 1-0 1")
		s.connect(pricesOf("T"))
		p.edit(func() { p.duration = time.Second })
		s.price("T", "0.5")
		time.Sleep(time.Second)
		p.set(newPriced("0.7").value)
		s.price("T", "0.7") // the current read does not include this price
		time.Sleep(4 * time.Second)
		f.want(showPortfolio, "CHANGE 1-0 1.4")
	})
}

// TestPortfolioOfLots checks that a portfolio with two positions of one outcome causes no event while neither position changes.
func TestPortfolioOfLots(t *testing.T) {
	lots := func(first, second string) *[]market.Position {
		list := *positionsOf("T", "T")
		list[0].Size, list[1].Size = market.MustDecimal(first), market.MustDecimal(second)
		return &list
	}
	numbered := func(list *[]market.Position) *[]market.Position {
		market.NumberPositions(*list)
		return list
	}
	t.Run("REST", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *testVenue) {
			r, p := &restSource[*[]market.Position]{value: numbered(lots("5", "7"))}, newPriced("0.5")
			f := run(t, s.portfolio(r, p))
			time.Sleep(time.Minute)
			f.want(showPortfolio, "INITIAL 2-0 6")
			if r.calls < 3 {
				t.Fatalf("the stream made %d reads in a minute, want at least 3", r.calls)
			}
			r.set(numbered(lots("5", "8")))
			time.Sleep(time.Minute)
			f.want(showPortfolio, "CHANGE 1-0 6.5")
			r.set(numbered(lots("5", "0"))) // the second lot has the size 0, but is still in the list
			time.Sleep(time.Minute)
			f.want(showPortfolio, "CHANGE 1-0 2.5")
		})
	})
	t.Run("stream", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *testVenue) {
			r, p := &restSource[*[]market.Position]{}, newPriced("0.5")
			f := run(t, s.portfolio(r, p))
			s.connect(account)
			s.send(account, messages.KindUserSnapshot, func(m *messages.Message) { m.Positions = *lots("5", "7") })
			f.want(showPortfolio, "INITIAL 2-0 6")
			s.connect(pricesOf("T"))
			for range 3 {
				s.price("T", "0.5")
				time.Sleep(time.Second)
			}
			f.want(showPortfolio)
			if p.calls < 3 {
				t.Errorf("the valuations were computed %d times, want at least 3", p.calls)
			}
		})
	})
}

// TestUnchangedPortfolio checks that an unchanged portfolio is sent again when its freshness or its source changes.
func TestUnchangedPortfolio(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r, p := &restSource[*[]market.Position]{value: positionsOf("T")}, newPriced("0.5")
		f := run(t, s.portfolio(r, p))
		time.Sleep(time.Minute)
		f.want(showPortfolio, "INITIAL 1-0 1")
		r.fail(errDown)
		time.Sleep(time.Minute)
		f.want(showPortfolio, "FRESHNESS 1-0 1 stale")
		r.fail(nil)
		time.Sleep(time.Minute)
		f.want(showPortfolio, "FRESHNESS 1-0 1")
		s.connect(account)
		s.send(account, messages.KindUserSnapshot, func(m *messages.Message) { m.Positions = *positionsOf("T") })
		time.Sleep(time.Second)
		f.want(showPortfolio, "RESYNC 1-0 1")
	})
}

// TestReaderJoinsBetweenUpdates checks that a reader that joins while an update is pending gets the state after the update. The
// update waits for the interval or for a read of prices.
func TestReaderJoinsBetweenUpdates(t *testing.T) {
	for name, takes := range map[string]time.Duration{"interval": 0, "read": time.Second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *testVenue) {
				r, p, g := &restSource[*[]market.Position]{value: positionsOf("T")}, newPriced("0.5"), newReaders()
				source := s.source()
				source.Group = g
				f := run(t, follow.Portfolio(s.ctx, source, follow.PortfolioSource{
					Account: follow.Account[[]market.Position]{Topic: account, Read: r.read}, Value: p.each, Key: func(x *market.Position) string { return x.Key().String() },
				}, 500*time.Millisecond))
				s.connect(account)
				s.send(account, messages.KindUserSnapshot, func(m *messages.Message) { m.Positions = *positionsOf("T") })
				f.want(showPortfolio, "INITIAL 1-0 1")
				// In the case "read", this sleep ends the interval, so the update waits only for its read of prices.
				time.Sleep(takes)
				p.slow(takes)
				s.send(account, messages.KindPosition, func(m *messages.Message) {
					m.Positions = *positionsOf("T")
					m.Positions[0].Size = market.MustDecimal("3")
				})
				g.join()
				f.want(showPortfolio)
				time.Sleep(2 * time.Second)
				f.want(showPortfolio, "CHANGE 1-0 1.5", "INITIAL 1-0 1.5")
				g.join()
				f.want(showPortfolio, "INITIAL 1-0 1.5")
			})
		})
	}
}
