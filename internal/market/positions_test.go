package market

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// positionReads answers from maps, and fails for one market.
type positionReads struct {
	markets map[string]*Market
	prices  map[string]string
	fails   string
	read    []string
}

var errRead = errors.New("it can't be read")

func (r *positionReads) Market(ref MarketRef) (Read[*Market], error) {
	r.read = append(r.read, "market "+ref.Value)
	if ref.Value == r.fails {
		return Read[*Market]{}, errRead
	}
	return Read[*Market]{Value: r.markets[ref.Value]}, nil
}

func (r *positionReads) Price(token string) (Read[*Price], error) {
	r.read = append(r.read, "price "+token)
	if p, ok := r.prices[token]; ok {
		return Read[*Price]{Value: &Price{TokenID: token, Price: MustDecimal(p), Basis: BasisVenue}}, nil
	}
	return Read[*Price]{}, nil
}

func (r *positionReads) Spread(token string) (Read[*Spread], error) {
	r.read = append(r.read, "spread "+token)
	return Read[*Spread]{}, nil
}

func positionsOf(ids ...string) (out []*Position) {
	for _, id := range ids {
		out = append(out, &Position{MarketID: id, TokenID: "t" + id, Size: MustDecimal("10"), AvgPrice: ptr(MustDecimal("0.5"))})
	}
	return out
}

func TestSortPositions(t *testing.T) {
	end := func(day int) *Market { return &Market{EndsAt: time.Unix(int64(day)*86400, 0)} }
	reads := &positionReads{
		markets: map[string]*Market{"a": end(3), "b": end(1), "c": {}, "d": end(1), "e": nil},
		prices:  map[string]string{"ta": "0.2", "tb": "0.9", "tc": "0.2", "te": "0.4"},
	}
	for by, want := range map[PositionSort]string{
		PositionSortVenue: "abcde", PositionSortEndsAt: "bdace", PositionSortValue: "beacd", PositionSortPnl: "beacd", PositionSortPnlPercent: "beacd",
	} {
		positions := positionsOf("a", "b", "c", "d", "e")
		if err := SortPositions(reads, positions, Meta{}, by); err != nil {
			t.Fatal(err)
		}
		var got string
		for _, p := range positions {
			got += p.MarketID
		}
		if got != want {
			t.Errorf("by %s: %s, want %s", by, got, want)
		}
	}
}

// TestPositionReadsGoOn expects all other reads after one that failed or is pending.
func TestPositionReadsGoOn(t *testing.T) {
	for name, do := range map[string]func(from PositionReads, positions []*Position) error{
		"ends": func(from PositionReads, p []*Position) error {
			return SortPositions(from, p, Meta{}, PositionSortEndsAt)
		},
		"redeemable": func(from PositionReads, p []*Position) error {
			_, err := KeepRedeemable(from, p, new(bool))
			return err
		},
		"value": func(from PositionReads, p []*Position) error {
			_, _, err := ValueAll(from, p, Meta{}, "")
			return err
		},
	} {
		reads := &positionReads{fails: "a"}
		if err := do(reads, positionsOf("a", "b")); !errors.Is(err, errRead) {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Contains(reads.read, "market b") || name == "value" && !slices.Contains(reads.read, "price ta") {
			t.Errorf("%s: read %v", name, reads.read)
		}
	}
}

func TestKeepRedeemable(t *testing.T) {
	won, _ := resolved(true)
	lost, _ := resolved(false)
	reads := &positionReads{markets: map[string]*Market{"won": won.Value, "lost": lost.Value, "open": {Status: StatusOpen}, "unknown": {Status: StatusUnknown}}}
	for wanted, want := range map[bool][]string{true: {"won"}, false: {"lost", "open"}} {
		positions := positionsOf("won", "lost", "open", "unknown", "absent")
		for _, p := range positions {
			p.TokenID = "t"
		}
		kept, err := KeepRedeemable(reads, positions, &wanted)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range kept {
			got = append(got, p.MarketID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("redeemable %v: %v, want %v", wanted, got, want)
		}
	}
}
