package market

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestHeldByBuys(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		orders := make([]Order, r.IntN(20))
		want := new(big.Rat)
		for i := range orders {
			o := &orders[i]
			*o = Order{Side: []OrderSide{SideBuy, SideSell, SideUnknown}[r.IntN(3)], Price: NewDecimal(r.Int64N(1000), -3), Size: NewDecimal(r.Int64N(1e9), -4), FilledSize: NewDecimal(r.Int64N(1e9), -4)}
			left := new(big.Rat).Sub(rat(t, o.Size), rat(t, o.FilledSize))
			if left.Sign() < 0 {
				left.SetInt64(0)
			}
			if rat(t, o.Remaining()).Cmp(left) != 0 {
				t.Fatalf("size %s with filled size %s: got remaining size %s, want %s", o.Size, o.FilledSize, o.Remaining(), left.FloatString(20))
			}
			if o.Side == SideBuy {
				want.Add(want, left.Mul(left, rat(t, o.Price)))
			}
		}
		if got := HeldByBuys(orders); rat(t, got).Cmp(want) != 0 {
			t.Fatalf("HeldByBuys returned %s, want %s", got, want.FloatString(20))
		}
	}
}
