package valuation

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
)

func rat(t testing.TB, d market.Decimal) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(d.String())
	if !ok {
		t.Fatalf("%q is not a number", d.String())
	}
	return r
}

func show(d *market.Decimal) string {
	if d == nil {
		return "-"
	}
	return d.String()
}

func quote(price string, basis market.PriceBasis) reads.Value[*market.Price] {
	return reads.Value[*market.Price]{Value: &market.Price{TokenID: "t", Price: market.MustDecimal(price), Basis: basis}, Meta: reads.Meta{ReceivedAt: time.Unix(50, 0), AsOf: time.Unix(40, 0), Stale: basis == market.BasisLast}}
}

func top(bid, ask string) reads.Value[*market.Spread] {
	s := &market.Spread{TokenID: "t"}
	if bid != "" {
		s.BestBid = new(market.MustDecimal(bid))
	}
	if ask != "" {
		s.BestAsk = new(market.MustDecimal(ask))
	}
	return reads.Value[*market.Spread]{Value: s, Meta: reads.Meta{ReceivedAt: time.Unix(60, 0)}}
}

func resolved(won bool) (reads.Value[*market.Market], *market.Outcome) {
	lost := !won
	m := &market.Market{Status: market.StatusResolved, Outcomes: []market.Outcome{{TokenID: "t", Label: "Yes", Winner: &won}, {TokenID: "u", Label: "No", Winner: &lost}}}
	return reads.Value[*market.Market]{Value: m, Meta: reads.Meta{ReceivedAt: time.Unix(10, 0)}}, &m.Outcomes[0]
}

func TestValuationUsesFirstKnownBasis(t *testing.T) {
	won, yes := resolved(true)
	lost, no := resolved(false)
	open := reads.Value[*market.Market]{Value: &market.Market{Status: market.StatusOpen, Outcomes: []market.Outcome{{TokenID: "t"}}}, Meta: reads.Meta{ReceivedAt: time.Unix(10, 0)}}
	never := false
	void := reads.Value[*market.Market]{Value: &market.Market{Status: market.StatusResolved, Outcomes: []market.Outcome{{TokenID: "t", Label: "Yes", Winner: &never}, {TokenID: "u", Label: "No", Winner: &never}}}}
	stated := new(market.MustDecimal("0.11"))
	for _, tt := range []struct {
		name    string
		current *market.Decimal
		q       Quotes
		basis   market.PriceBasis
		want    string
	}{
		{"no price is known", nil, Quotes{}, "", "-"},
		{"settlement price before all other prices", stated, Quotes{Market: won, Outcome: yes, Price: quote("0.7", market.BasisVenue), Spread: top("0.6", "0.8")}, "", "1 SETTLEMENT"},
		{"settlement price of a lost outcome", stated, Quotes{Market: lost, Outcome: no, Price: quote("0.7", market.BasisVenue)}, "", "0 SETTLEMENT"},
		{"an outcome of a market that nobody won", stated, Quotes{Market: void, Outcome: &void.Value.Outcomes[0], Price: quote("0.5", market.BasisVenue)}, "", "0.5 VENUE"},
		{"no outcome of the market matches", stated, Quotes{Market: won, Price: quote("0.7", market.BasisVenue)}, "", "0.7 VENUE"},
		{"venue's price", stated, Quotes{Market: open, Outcome: &open.Value.Outcomes[0], Price: quote("0.7", market.BasisVenue), Spread: top("0.6", "0.8")}, "", "0.7 VENUE"},
		{"venue's price with the basis LAST", stated, Quotes{Price: quote("0.70", market.BasisLast), Spread: top("0.6", "0.8")}, "", "0.70 LAST"},
		{"no venue's price, but a midpoint", stated, Quotes{Spread: top("0.6", "0.8")}, "", "0.7 MIDPOINT"},
		{"no venue's price, but a best bid", stated, Quotes{Spread: top("0.6", "")}, "", "0.6 BEST_BID"},
		{"only a best ask and the price of the position", stated, Quotes{Spread: top("", "0.8")}, "", "0.11 POSITION"},
		{"only the price of the position", stated, Quotes{}, "", "0.11 POSITION"},

		{"by SETTLEMENT", stated, Quotes{Market: won, Outcome: yes, Price: quote("0.7", market.BasisVenue)}, market.BasisSettlement, "1 SETTLEMENT"},
		{"by SETTLEMENT, market is open", stated, Quotes{Market: open, Outcome: &open.Value.Outcomes[0], Price: quote("0.7", market.BasisVenue)}, market.BasisSettlement, "-"},
		{"by VENUE", stated, Quotes{Market: won, Outcome: yes, Price: quote("0.7", market.BasisVenue)}, market.BasisVenue, "0.7 VENUE"},
		{"by VENUE, but the venue's price has the basis LAST", stated, Quotes{Price: quote("0.7", market.BasisLast)}, market.BasisVenue, "-"},
		{"by LAST", stated, Quotes{Price: quote("0.7", market.BasisLast)}, market.BasisLast, "0.7 LAST"},
		{"by MIDPOINT", stated, Quotes{Price: quote("0.9", market.BasisVenue), Spread: top("0.6", "0.8")}, market.BasisMidpoint, "0.7 MIDPOINT"},
		{"by MIDPOINT, no asks", stated, Quotes{Price: quote("0.9", market.BasisVenue), Spread: top("0.6", "")}, market.BasisMidpoint, "-"},
		{"by MIDPOINT, which the venue sends", stated, Quotes{Price: quote("0.9", market.BasisMidpoint)}, market.BasisMidpoint, "0.9 MIDPOINT"},
		{"by BEST_BID", stated, Quotes{Spread: top("0.6", "0.8")}, market.BasisBestBid, "0.6 BEST_BID"},
		{"by BEST_ASK", stated, Quotes{Spread: top("0.6", "0.8")}, market.BasisBestAsk, "0.8 BEST_ASK"},
		{"by BEST_ASK, no asks", stated, Quotes{Spread: top("0.6", "")}, market.BasisBestAsk, "-"},
		{"by POSITION", stated, Quotes{Price: quote("0.9", market.BasisVenue)}, market.BasisPosition, "0.11 POSITION"},
		{"by POSITION, but the position has no price", nil, Quotes{Price: quote("0.9", market.BasisVenue)}, market.BasisPosition, "-"},
	} {
		p := &market.Position{Size: market.MustDecimal("10"), CurrentPrice: tt.current}
		got := "-"
		if v := Of(p, reads.Meta{ReceivedAt: time.Unix(55, 0)}, &tt.q, tt.basis); v != nil {
			got = fmt.Sprintf("%s %s", v.Price, v.Basis)
			if v.Value.Cmp(v.Price.Mul(p.Size)) != 0 || v.UnrealizedPnl != nil || v.UnrealizedPnlPercent != nil {
				t.Errorf("%s: got %+v, want size × price and no profit", tt.name, v)
			}
		}
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestValuationHasOldestTimes(t *testing.T) {
	held := reads.Meta{ReceivedAt: time.Unix(55, 0), AsOf: time.Unix(54, 0), Source: market.SourceREST}
	p := &market.Position{Size: market.MustDecimal("10"), CurrentPrice: new(market.MustDecimal("0.2"))}
	got := Of(p, held, &Quotes{Price: quote("0.7", market.BasisLast)}, "").Meta
	if want := (reads.Meta{ReceivedAt: time.Unix(50, 0), AsOf: time.Unix(40, 0), Source: market.SourceComputed, Stale: true}); got != want {
		t.Errorf("valuation by the venue's price: got %+v, want %+v", got, want)
	}
	got = Of(p, held, &Quotes{}, "").Meta
	if want := (reads.Meta{ReceivedAt: time.Unix(55, 0), AsOf: time.Unix(54, 0), Source: market.SourceComputed}); got != want {
		t.Errorf("valuation by the price of the position: got %+v, want %+v", got, want)
	}
}

// TestSettlementsAreFinal checks that the sum ignores the staleness and the age of the market of a settled position.
func TestSettlementsAreFinal(t *testing.T) {
	held := reads.Meta{ReceivedAt: time.Unix(55, 0), AsOf: time.Unix(54, 0), Source: market.SourceREST}
	won, yes := resolved(true)
	won.Meta = reads.Meta{ReceivedAt: time.Unix(10, 0), AsOf: time.Unix(1, 0), Stale: true}
	p := market.Position{Size: market.MustDecimal("10")}
	settled := Of(&p, held, &Quotes{Market: won, Outcome: yes}, "")
	price := quote("0.7", market.BasisVenue)
	price.Meta = reads.Meta{ReceivedAt: time.Unix(53, 0), AsOf: time.Unix(52, 0)}
	open := Of(&p, held, &Quotes{Price: price}, "")
	got := Sum([]market.Position{p, p}, []*Valuation{settled, open}, held)
	if want := (reads.Meta{ReceivedAt: time.Unix(53, 0), AsOf: time.Unix(52, 0), Source: market.SourceComputed}); got.Meta != want || got.PositionsValue.String() != "17" {
		t.Errorf("got %s, %+v; want 17, %+v", got.PositionsValue, got.Meta, want)
	}
}

func TestValuationByHand(t *testing.T) {
	for _, tt := range []struct{ size, avg, price, value, pnl, percent string }{
		{"100", "0.40", "0.65", "65", "25", "62.5"},
		{"100", "0.65", "0.40", "40", "-25", "-38.461538"},
		{"3", "0.3", "0.4", "1.2", "0.3", "33.333333"},
		{"10.5", "0", "0.4", "4.2", "4.2", "-"},
		{"0", "0.5", "0.4", "0", "0", "-"},
		{"12345.678901", "0.8100000092466668", "0.81", "9999.99990981", "-0.0001141562770665", "-0.000001"},
	} {
		p := &market.Position{Size: market.MustDecimal(tt.size), AvgPrice: new(market.MustDecimal(tt.avg))}
		v := Of(p, reads.Meta{}, &Quotes{Price: quote(tt.price, market.BasisVenue)}, "")
		if v.Value.String() != tt.value || show(v.UnrealizedPnlPercent) != tt.percent {
			t.Errorf("%+v: got value %s and percent %s", tt, v.Value, show(v.UnrealizedPnlPercent))
		}
		if v.UnrealizedPnl.Cmp(v.Value.Sub(p.Size.Mul(*p.AvgPrice))) != 0 || len(tt.pnl) < 8 && v.UnrealizedPnl.String() != tt.pnl {
			t.Errorf("%+v: got pnl %s", tt, v.UnrealizedPnl)
		}
	}
}

// TestPortfolioAgreesWithBigRat checks that the sums of random portfolios agree with a computation in big.Rat.
func TestPortfolioAgreesWithBigRat(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	decimal := func(missing int) *market.Decimal {
		if r.IntN(100) < missing {
			return nil
		}
		return new(market.NewDecimal(r.Int64N(1e17), -int32(10+r.IntN(8))))
	}
	for range 300 {
		positions := make([]market.Position, r.IntN(40))
		valuations := make([]*Valuation, len(positions))
		value, cost, pnl := new(big.Rat), new(big.Rat), new(big.Rat)
		unpriced, uncosted, costed := 0, 0, 0
		for i := range positions {
			p := &positions[i]
			*p = market.Position{TokenID: "t", Size: market.NewDecimal(r.Int64N(1e12), -int32(r.IntN(7))), AvgPrice: decimal(20), CurrentPrice: decimal(50)}
			var q Quotes
			var price *big.Rat
			if p.CurrentPrice != nil {
				price = rat(t, *p.CurrentPrice)
			}
			if d := decimal(30); d != nil {
				q.Price = reads.Value[*market.Price]{Value: &market.Price{Price: *d, Basis: market.BasisVenue}}
				price = rat(t, *d)
			}
			if r.IntN(4) == 0 {
				won := r.IntN(2) == 0
				q.Market, q.Outcome = resolved(won)
				if price = new(big.Rat); won {
					price.SetInt64(1)
				}
			}
			v := Of(p, reads.Meta{}, &q, "")
			valuations[i] = v
			if (v == nil) != (price == nil) {
				t.Fatalf("position %+v with quotes %+v: got valuation %+v, want a valuation: %v", p, q, v, price != nil)
			}
			if v == nil {
				unpriced++
				continue
			}
			worth := new(big.Rat).Mul(rat(t, p.Size), price)
			if rat(t, v.Value).Cmp(worth) != 0 {
				t.Fatalf("size %s at price %s: got value %s, want %s", p.Size, price, v.Value, worth)
			}
			value.Add(value, worth)
			if p.AvgPrice == nil {
				uncosted++
				continue
			}
			costed++
			paid := new(big.Rat).Mul(rat(t, p.Size), rat(t, *p.AvgPrice))
			gain := new(big.Rat).Sub(worth, paid)
			cost.Add(cost, paid)
			pnl.Add(pnl, gain)
			if rat(t, *v.UnrealizedPnl).Cmp(gain) != 0 || rat(t, *p.CostBasis()).Cmp(paid) != 0 {
				t.Fatalf("got pnl %s and cost %s, want %s and %s", v.UnrealizedPnl, p.CostBasis(), gain, paid)
			}
			if (v.UnrealizedPnlPercent == nil) != (paid.Sign() == 0) {
				t.Fatalf("got percent %v at a cost of %s, want nil only if the cost is 0", v.UnrealizedPnlPercent, paid)
			}
			if paid.Sign() != 0 {
				percent := new(big.Rat).Quo(new(big.Rat).Mul(gain, big.NewRat(100, 1)), paid)
				// UnrealizedPnlPercent is rounded to six decimals.
				if off := percent.Sub(percent, rat(t, *v.UnrealizedPnlPercent)); off.Abs(off).Cmp(big.NewRat(1, 2_000_000)) > 0 {
					t.Fatalf("the percent %s differs from the exact percent by %s", v.UnrealizedPnlPercent, off.FloatString(20))
				}
			}
		}
		got := Sum(positions, valuations, reads.Meta{})
		if rat(t, got.PositionsValue).Cmp(value) != 0 || got.Unpriced != unpriced || got.Uncosted != uncosted {
			t.Fatalf("got %+v, want value %s, %d unpriced, %d uncosted", got, value.FloatString(30), unpriced, uncosted)
		}
		if (got.CostBasis == nil) != (costed == 0) || (got.UnrealizedPnl == nil) != (costed == 0) {
			t.Fatalf("got %+v with %d positions that have a cost, want sums only if there is one", got, costed)
		}
		if costed > 0 && (rat(t, *got.CostBasis).Cmp(cost) != 0 || rat(t, *got.UnrealizedPnl).Cmp(pnl) != 0) {
			t.Fatalf("got cost %s and pnl %s, want %s and %s", got.CostBasis, got.UnrealizedPnl, cost.FloatString(30), pnl.FloatString(30))
		}
	}
}

func TestSumHasOldestTimes(t *testing.T) {
	held := reads.Meta{ReceivedAt: time.Unix(9, 0), Source: market.SourceREST}
	if got := Sum(nil, nil, held).Meta; got != (reads.Meta{ReceivedAt: time.Unix(9, 0), Source: market.SourceComputed}) {
		t.Errorf("sum of an empty portfolio: got %+v, want the times of the list", got)
	}
	positions := make([]market.Position, 3)
	valuations := []*Valuation{{Meta: reads.Meta{ReceivedAt: time.Unix(8, 0), AsOf: time.Unix(3, 0)}}, nil, {Meta: reads.Meta{ReceivedAt: time.Unix(7, 0), AsOf: time.Unix(4, 0), Stale: true}}}
	if got := Sum(positions, valuations, held).Meta; got != (reads.Meta{ReceivedAt: time.Unix(7, 0), AsOf: time.Unix(3, 0), Stale: true, Source: market.SourceComputed}) {
		t.Errorf("got %+v, want the oldest times of the valuations, and stale", got)
	}
}
