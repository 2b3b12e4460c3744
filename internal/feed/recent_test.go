package feed

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
)

func TestRecentPrices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		if r.Recent("T") != nil {
			t.Error("got recent prices of a token without watches")
		}
		reader, _ := r.watch(t, priceOf("T"))
		defer reader.Close()
		r.upNow(priceOf("T"))
		if r.Recent("T") != nil {
			t.Error("a token without a price has recent prices")
		}
		start := time.Now().Truncate(time.Second).Add(time.Second)
		time.Sleep(time.Until(start))
		seq := uint64(0)
		price := func(p string) {
			seq++
			r.Message(priceMessage("T", "A", seq, p))
		}
		check := func(first int, want ...string) {
			t.Helper()
			got := r.Recent("T")
			if len(got) != len(want) {
				t.Fatalf("Recent returned %d points, want %d", len(got), len(want))
			}
			for i, p := range got {
				if text(p.Price) != want[i] || p.At.Unix() != start.Unix()+int64(first+i) {
					t.Fatalf("point %d is %s at %v, want %s", i, text(p.Price), p.At.Sub(start), want[i])
				}
			}
		}
		price(".50")
		time.Sleep(900 * time.Millisecond)
		price(".51") // this price replaces the earlier price of that second
		check(0, ".51")
		time.Sleep(100 * time.Millisecond)
		price(".52")
		check(0, ".51", ".52")
		kept := r.Recent("T")
		var want []string
		for i := range 3 * maxRecent {
			time.Sleep(time.Second)
			price(fmt.Sprintf(".%03d", i+100))
			if i >= 2*maxRecent {
				want = append(want, text(dec(fmt.Sprintf(".%03d", i+100))))
			}
			if n := len(r.Recent("T")); n > maxRecent {
				t.Fatalf("Recent returned %d points, want at most %d", n, maxRecent)
			}
		}
		check(2+2*maxRecent, want...)
		if text(kept[0].Price) != ".51" || len(kept) != 2 {
			t.Error("a slice that Recent returned earlier has changed")
		}
		r.downNow(priceOf("T"))
		check(2+2*maxRecent, want...)
	})
}

func TestRecentPricesDoNotAllocate(t *testing.T) {
	var points []Point
	at := time.Unix(1, 0)
	p := market.NewDecimal(5, -1)
	add := func() {
		at = at.Add(700 * time.Millisecond)
		points = addPoint(points, at, p)
	}
	for range 2 * maxRecent {
		add()
	}
	if n := testing.AllocsPerRun(1000, add); n != 0 {
		t.Errorf("addPoint takes %v allocations, want 0", n)
	}
}
