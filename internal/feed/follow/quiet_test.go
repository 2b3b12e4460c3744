package follow_test

import (
	"fmt"
	"testing"
	"time"

	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
)

// TestQuietPrice checks that a price without any message is read over REST and polled, and live from its first message.
func TestQuietPrice(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Price]{value: priceOf("T", "0.4")}
		f := run(t, follow.Prices(s.ctx, s.source(), []string{"T"}, 0, r.list))
		s.connect(pricesOf("T"))
		time.Sleep(time.Second)
		f.want(showPrice, "INITIAL 0.4 REST")
		r.set(priceOf("T", "0.3"))
		time.Sleep(5 * time.Second)
		f.want(showPrice, "CHANGE 0.3 REST")
		reads := r.count()
		time.Sleep(time.Hour)
		if n := r.count() - reads; n != 720 {
			t.Errorf("the price was read %d times in an hour, want every 5 s", n)
		}
		s.price("T", "0.5")
		f.want(showPrice, "RESYNC 0.5 STREAM")
	})
}

func bookOf(id string) messages.Topic {
	return messages.Topic{Channel: messages.ChannelOrderbook, ID: id}
}

func restBook(seq uint64, bid string) *market.Book {
	return &market.Book{TokenID: "T", Epoch: "e", Seq: seq, Depth: 200, Bids: market.NewSide([]market.Level{{Price: market.MustDecimal("0.5"), Size: market.MustDecimal(bid)}})}
}

func showBookUpdate(b follow.BookUpdate) string {
	return fmt.Sprintf("%d x%s%s", b.Book.Seq, b.Book.Bids.Best().Size, mark(b.Meta))
}

// change sends a change of the bid at 0.5.
func (s *testVenue) change(size string) {
	s.send(bookOf("T"), messages.KindBookDelta, func(m *messages.Message) {
		m.Changes = []market.LevelChange{{Side: market.SideBuy, Level: market.Level{Price: market.MustDecimal("0.5"), Size: market.MustDecimal(size)}}}
	})
}

// TestBookWithoutSnapshot checks that a book without a snapshot is polled, and that a book from REST that fits the changes of the
// stream by its number makes the topic live.
func TestBookWithoutSnapshot(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		r := &restSource[*market.Book]{value: restBook(0, "1")}
		f := run(t, follow.Book(s.ctx, s.source(), "T", 20, true, 0, r.read))
		s.connect(bookOf("T"))
		s.seqs[bookOf("T")] = 41
		s.change("42")
		time.Sleep(time.Second)
		f.want(showBookUpdate, "INITIAL 0 x1 REST")
		r.set(restBook(0, "2"))
		time.Sleep(5 * time.Second)
		f.want(showBookUpdate, "CHANGE 0 x2 REST") // without a number, it is not joined
		r.set(restBook(39, "39"))
		time.Sleep(5 * time.Second)
		f.want(showBookUpdate, "CHANGE 39 x39 REST")
		r.set(restBook(41, "41"))
		time.Sleep(5 * time.Second)
		f.want(showBookUpdate, "RESYNC 42 x42 STREAM")
		reads := r.count()
		s.change("43")
		f.want(showBookUpdate, "CHANGE 43 x43 STREAM")
		time.Sleep(time.Hour)
		if f.want(showBookUpdate); r.count() != reads {
			t.Errorf("the live book was read %d times, want 0", r.count()-reads)
		}
	})
}

// TestAccountWithoutSnapshot checks that an account without a snapshot is read over REST, that a change only causes another read of
// the changed list, and that many changes cause few reads.
func TestAccountWithoutSnapshot(t *testing.T) {
	bubble(t, func(t *testing.T, s *testVenue) {
		orders := &restSource[*[]market.Order]{value: &[]market.Order{{OrderID: "o1"}}}
		cash := market.MustDecimal("5")
		balance := &restSource[*market.Balance]{value: &market.Balance{CashBalance: &cash}}
		trades := &restSource[*queries.TradePage]{value: pageOf("t1")}
		showOrders := func(u follow.OrdersUpdate) (out string) {
			for _, o := range u.Changed {
				out += o.OrderID + " "
			}
			return out
		}
		f := run(t, follow.Orders(s.ctx, s.source(), follow.Account[[]market.Order]{Topic: account, Read: orders.read}))
		run(t, follow.Balance(s.ctx, s.source(), follow.Account[market.Balance]{Topic: account, Read: balance.read}))
		own := run(t, s.userTrades(trades))
		s.connect(account)
		time.Sleep(time.Second)
		f.want(showOrders, "INITIAL o1 ")
		own.want(showTrades, "INITIAL t1 ")
		time.Sleep(1100 * time.Millisecond)

		orders.set(&[]market.Order{{OrderID: "o1"}, {OrderID: "o2"}})
		reads := [2]int{balance.count(), trades.count()}
		s.send(account, messages.KindOrder, func(m *messages.Message) { m.Orders = []market.Order{{OrderID: "o9", Status: market.OrderOpen}} })
		f.want(showOrders, "CHANGE o2 ") // from REST: the list is never built from the change
		if got := [2]int{balance.count(), trades.count()}; got != reads {
			t.Errorf("a change of the orders caused %v reads of the balance and the trades, want %v", got, reads)
		}
		trades.set(pageOf("t2", "t1"))
		s.fill("t2")
		own.want(showTrades, "CHANGE t2 ")

		before := orders.count()
		for range 100 {
			s.send(account, messages.KindOrder, func(m *messages.Message) { m.Orders = []market.Order{{OrderID: "o9", Status: market.OrderOpen}} })
			time.Sleep(50 * time.Millisecond)
		}
		if n := orders.count() - before; n < 4 || n > 8 {
			t.Errorf("100 changes in 5 s caused %d reads, want about one a second", n)
		}
		f.want(showOrders)
	})
}
