package feed

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

func TestTopics(t *testing.T) {
	for _, s := range slices.Concat(bookScripts, priceScripts, tradeScripts, marketScripts, accountScripts, internalScripts) {
		t.Run(s.channel+"/"+s.name, func(t *testing.T) { s.run(t) })
	}
}

func TestBookChanges(t *testing.T) {
	b := parseBook("T", ".50x10 .49x5 | .60x7 .61x8")
	before := showBook(b)
	next := applyChanges(b, deltaMessage("T", "", 0, "b.495x1 b.51x2 b.49x0 b.10x0 s.60x0 s.62x3 s.605x4 s.61x9").Changes)
	const want = ".51x2 .50x10 .495x1 | .605x4 .61x9 .62x3"
	if got := showBook(next); got != want {
		t.Errorf("after the changes, the book is %s, want %s", got, want)
	}
	if showBook(b) != before {
		t.Error("applyChanges has changed the original book")
	}
	if next.Spread == nil || next.Spread.String() != "0.095" {
		t.Errorf("the spread is %v, want 0.095", next.Spread)
	}
	if none := applyChanges(b, deltaMessage("T", "", 0, "b.50x0 b.49x0").Changes); none.Spread != nil || none.Bids.Len() != 0 {
		t.Errorf("a book whose bids were removed has %d bids and the spread %v, want none", none.Bids.Len(), none.Spread)
	}
	// Two books made from the same book must not affect each other, although they share levels.
	one := applyChanges(b, deltaMessage("T", "", 0, "b.40x1").Changes)
	two := applyChanges(b, deltaMessage("T", "", 0, "b.30x1").Changes)
	if got := showBook(one); !strings.Contains(got, "40x1") || strings.Contains(got, "30x1") || strings.Contains(showBook(two), "40x1") {
		t.Errorf("two books made from the same book affect each other: %s and %s", got, showBook(two))
	}
}

func TestStatesNeverChange(t *testing.T) {
	l := newMutableAccount(messageOf("acct", "o1 o2 | p1x5 p2x5 | 100"), nil)
	a := l.snapshot()
	before := showAccount(a)
	for _, change := range [][2]string{{"order", "o1 FILLED"}, {"order", "o2 PARTIALLY_FILLED"}, {"pos", "p1x0"}, {"pos", "p2x7"}, {"pos", "p3x1"}, {"pos", "p4x1"}, {"pos", "p4x0"}, {"bal", "90"}} {
		if l.apply(messageOf(change[0], change[1])); showAccount(a) != before {
			t.Fatalf("the change %s has changed an earlier snapshot to %q", change, showAccount(a))
		}
	}
	if a.Orders[1].Status != market.OrderOpen || a.Positions[1].Size.Cmp(dec("5")) != 0 {
		t.Error("a change has changed an order or a position of an earlier snapshot")
	}
	next := l.snapshot()
	if got := showAccount(next); got != "o2  | p2x7 p3x1  | 90" {
		t.Errorf("after all changes, the account is %q", got)
	}
	// An append to a reader's slice must not change another reader's slice.
	mine := append(next.Positions, positionOf("p9x9"))
	if _ = append(next.Positions, positionOf("p8x8")); mine[len(mine)-1].MarketID != "p9" {
		t.Error("an append to one reader's slice has changed another reader's slice")
	}
	if l.apply(messageOf("pos", "p4x1")); showAccount(next) != "o2  | p2x7 p3x1  | 90" || showAccount(l.snapshot()) != "o2  | p2x7 p3x1 p4x1  | 90" {
		t.Errorf("after a new position, the earlier snapshot is %q and the account is %q", showAccount(next), showAccount(l.snapshot()))
	}
	// Items.add must not change the slice of a message.
	room := append(make([]market.Trade, 0, 9), tradeOf("t1"))
	var items Items
	items.add(Items{Trades: room})
	items.add(Items{Trades: []market.Trade{tradeOf("t2")}})
	if room[:2][1].TradeID != "" || showTrades(items.Trades) != "t1 t2" {
		t.Error("Items.add has changed the trades of a message, or has lost a trade")
	}
}

func TestTapeIsBounded(t *testing.T) {
	var s State
	for i := range 3 * maxTape {
		m := tradesMessage("T", "A", uint64(i+1), messages.KindTrade, fmt.Sprintf("t%d", i))
		apply(&s, m)
	}
	if len(s.Trades) != maxTape || s.Trades[0].TradeID != fmt.Sprintf("t%d", 2*maxTape) {
		t.Errorf("the tape has %d trades and begins with %s, want %d trades from t%d", len(s.Trades), s.Trades[0].TradeID, maxTape, 2*maxTape)
	}
	long := make([]market.Trade, 120)
	for i := range long {
		// The snapshot has more than maxTape trades. Only the last two trades are new.
		long[i] = tradeOf(fmt.Sprintf("t%d", 3*maxTape-118+i))
	}
	if after, items := mergeTape(s.Trades, long, true); showTrades(items.Trades) != "t150 t151" || items.Gap || len(after) != maxTape {
		t.Errorf("after a long snapshot, the new trades are %q (gap: %t) and the tape has %d trades; want t150 t151 without a gap", showTrades(items.Trades), items.Gap, len(after))
	}
	if _, items := mergeTape(nil, long[:maxTape], true); !items.Gap {
		t.Error("a full snapshot after an empty tape: got no gap, want one")
	}
}

func TestTradesWithoutIDs(t *testing.T) {
	at := time.Unix(1, 0)
	a := market.Trade{Timestamp: at, Price: dec("0.5"), Size: dec("1")}
	b := market.Trade{Timestamp: at.UTC(), Price: dec("0.50"), Size: dec("1.0")}
	c := market.Trade{Timestamp: at, Price: dec("0.5"), Size: dec("2")}
	if _, fresh := appendNew([]market.Trade{a}, []market.Trade{b, c, c}, false); len(fresh) != 1 || fresh[0].Size.String() != "2" {
		t.Errorf("a message without a sequence number added %d trades, want only the trade with the size 2", len(fresh))
	}
	if _, fresh := appendNew([]market.Trade{a}, []market.Trade{b, c, c}, true); len(fresh) != 3 || fresh[0].Ordinal != 1 || fresh[1].Ordinal != 0 || fresh[2].Ordinal != 1 {
		t.Errorf("a message with a sequence number added the trades %+v, want 3 trades with the ordinals 1, 0 and 1", fresh)
	}
}

func TestBufferIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		_, w := r.watch(t, bookOf("T"))
		r.upNow(bookOf("T"))
		const n = 3*maxBuffered + 7
		for i := range n {
			r.Message(deltaMessage("T", "A", uint64(i+1), fmt.Sprintf("b.50x%d", i+1)))
		}
		w.topic.mu.Lock()
		waiting := len(w.topic.buffered)
		w.topic.mu.Unlock()
		if waiting > maxBuffered {
			t.Errorf("the topic buffers %d messages, want at most %d", waiting, maxBuffered)
		}
		// A snapshot that does not contain the dropped changes does not make the topic live. A newer snapshot does.
		r.Message(bookMessage("T", "A", 5, ".50x5 | .60x1"))
		if s, _ := w.State(); s.Live {
			t.Error("the book is live although changes after its snapshot were dropped")
		}
		r.Message(bookMessage("T", "A", n-3, ".50x5 | .60x1"))
		if s, _ := w.State(); !s.Live || s.Seq != n || !strings.Contains(showBook(s.Book), fmt.Sprintf("50x%d ", n)) {
			t.Errorf("the book is %s at %d (live: %v), want a live book at %d", showBook(s.Book), s.Seq, s.Live, n)
		}
	})
}
