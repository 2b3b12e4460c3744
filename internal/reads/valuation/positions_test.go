package valuation

import (
	"errors"
	"slices"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
)

// positionReads is a Reads that returns values from maps. The field fails is the id of a market whose read returns errRead. The
// field read lists all reads.
type positionReads struct {
	markets map[string]*market.Market
	prices  map[string]string
	fails   string
	read    []string
}

var errRead = errors.New("the market cannot be read")

func (r *positionReads) Market(ref market.MarketRef) (reads.Value[*market.Market], error) {
	r.read = append(r.read, "market "+ref.Value)
	if ref.Value == r.fails {
		return reads.Value[*market.Market]{}, errRead
	}
	return reads.Value[*market.Market]{Value: r.markets[ref.Value]}, nil
}

func (r *positionReads) Price(token string) (reads.Value[*market.Price], error) {
	r.read = append(r.read, "price "+token)
	if p, ok := r.prices[token]; ok {
		return reads.Value[*market.Price]{Value: &market.Price{TokenID: token, Price: market.MustDecimal(p), Basis: market.BasisVenue}}, nil
	}
	return reads.Value[*market.Price]{}, nil
}

func (r *positionReads) Spread(token string) (reads.Value[*market.Spread], error) {
	r.read = append(r.read, "spread "+token)
	return reads.Value[*market.Spread]{}, nil
}

func positionsOf(ids ...string) (out []*market.Position) {
	for _, id := range ids {
		out = append(out, &market.Position{MarketID: id, TokenID: "t" + id, Size: market.MustDecimal("10"), AvgPrice: new(market.MustDecimal("0.5"))})
	}
	return out
}

func TestSortPositions(t *testing.T) {
	end := func(day int) *market.Market { return &market.Market{EndsAt: time.Unix(int64(day)*86400, 0)} }
	from := &positionReads{
		markets: map[string]*market.Market{"a": end(3), "b": end(1), "c": {}, "d": end(1), "e": nil},
		prices:  map[string]string{"ta": "0.2", "tb": "0.9", "tc": "0.2", "te": "0.4"},
	}
	for by, want := range map[Sort]string{
		SortVenue: "abcde", SortEndsAt: "bdace", SortValue: "beacd", SortPnl: "beacd", SortPnlPercent: "beacd",
	} {
		positions := positionsOf("a", "b", "c", "d", "e")
		if err := SortPositions(from, positions, reads.Meta{}, by); err != nil {
			t.Fatal(err)
		}
		var got string
		for _, p := range positions {
			got += p.MarketID
		}
		if got != want {
			t.Errorf("sorted by %s: got positions %s, want %s", by, got, want)
		}
	}
}

// TestReadsContinueAfterFailure checks that all other values are still read if the read of one market fails.
func TestReadsContinueAfterFailure(t *testing.T) {
	for name, do := range map[string]func(from Reads, positions []*market.Position) error{
		"sort by end": func(from Reads, p []*market.Position) error {
			return SortPositions(from, p, reads.Meta{}, SortEndsAt)
		},
		"keep redeemable": func(from Reads, p []*market.Position) error {
			_, err := KeepRedeemable(from, p, new(bool))
			return err
		},
		"value all": func(from Reads, p []*market.Position) error {
			_, _, err := All(from, p, reads.Meta{}, "")
			return err
		},
	} {
		from := &positionReads{fails: "a"}
		if err := do(from, positionsOf("a", "b")); !errors.Is(err, errRead) {
			t.Errorf("%s: got error %v, want errRead", name, err)
		}
		if !slices.Contains(from.read, "market b") || name == "value all" && !slices.Contains(from.read, "price ta") {
			t.Errorf("%s: got reads %v, want the other values to be read, too", name, from.read)
		}
	}
}

func TestKeepRedeemable(t *testing.T) {
	won, _ := resolved(true)
	lost, _ := resolved(false)
	from := &positionReads{markets: map[string]*market.Market{"won": won.Value, "lost": lost.Value, "open": {Status: market.StatusOpen}, "unknown": {Status: market.StatusUnknown}}}
	for wanted, want := range map[bool][]string{true: {"won"}, false: {"lost", "open"}} {
		positions := positionsOf("won", "lost", "open", "unknown", "absent")
		for _, p := range positions {
			p.TokenID = "t"
		}
		kept, err := KeepRedeemable(from, positions, &wanted)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range kept {
			got = append(got, p.MarketID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("KeepRedeemable with %v: got positions %v, want %v", wanted, got, want)
		}
	}
}

// TestSpreadOfClosedMarketIsNotRead checks that ReadQuotes does not read the spread of a market that no longer trades.
func TestSpreadOfClosedMarketIsNotRead(t *testing.T) {
	for _, c := range []struct {
		market *market.Market
		want   []string
	}{
		{&market.Market{Status: market.StatusOpen}, []string{"market a", "price ta", "spread ta"}},
		{&market.Market{Status: market.StatusDisputed}, []string{"market a", "price ta", "spread ta"}},
		{&market.Market{Status: market.StatusDisputed, AcceptingOrders: new(false)}, []string{"market a", "price ta"}},
		{&market.Market{Status: market.StatusClosed}, []string{"market a", "price ta"}},
		{&market.Market{Status: market.StatusCancelled}, []string{"market a", "price ta"}},
		{nil, []string{"market a", "price ta", "spread ta"}},
	} {
		from := &positionReads{markets: map[string]*market.Market{"a": c.market}}
		if _, err := ReadQuotes(from, positionsOf("a")[0], ""); err != nil || !slices.Equal(from.read, c.want) {
			t.Errorf("market %+v: got reads %q, error %v; want reads %q", c.market, from.read, err, c.want)
		}
	}
}
