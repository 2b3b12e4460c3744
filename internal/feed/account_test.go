package feed

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/tests/tool"
)

func userOf(id string) messages.Topic {
	return messages.Topic{Channel: messages.ChannelUser, ID: id, Scope: "s"}
}

func accountMessage(kind messages.Kind, seq uint64, verb, value string) *messages.Message {
	m := messageOf(verb, value)
	m.Topic, m.Kind, m.Epoch, m.Seq, m.ReceivedAt = userOf("0xa"), kind, "A", seq, time.Now()
	return m
}

func (s *sink) flushes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accountCalls
}

// TestQueriesSeeAccountBursts checks that queries return the latest of many changes once accountInterval has passed or a reader has
// read the state of the account. The feed must not call Sink for each change.
func TestQueriesSeeAccountBursts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		key := userOf("0xa")
		reader, w := r.watch(t, key)
		defer reader.Close()
		r.upNow(key)
		r.Message(accountMessage(messages.KindUserSnapshot, 1, "acct", "| p1x1 p2x1 | 100"))
		queried := func() string { return showAccount(r.sink.entry(key).account) }
		if queried() != " | p1x1 p2x1  | 100" {
			t.Fatalf("queries find %q after the snapshot", queried())
		}
		seq := uint64(1)
		burst := func(n int) {
			for range n {
				seq++
				r.Message(accountMessage(messages.KindPosition, seq, "pos", fmt.Sprintf("p2x%d", seq)))
			}
		}
		burst(500)
		time.Sleep(accountInterval + time.Millisecond)
		synctest.Wait()
		if want := fmt.Sprintf(" | p1x1 p2x%d  | 100", seq); queried() != want || r.sink.flushes() > 3 {
			t.Errorf("queries find %q after %d calls of Sink, want %q after at most 3 calls", queried(), r.sink.flushes(), want)
		}
		burst(10)
		if s, _ := w.State(); queried() != showAccount(s.Account) || showAccount(s.Account) != fmt.Sprintf(" | p1x1 p2x%d  | 100", seq) {
			t.Errorf("queries find %q, and the reader finds %q; want the last change in both", queried(), showAccount(s.Account))
		}
		// When the feed detects a gap, it does not pass the waiting changes from before the gap to Sink.
		burst(1)
		flushes := r.sink.flushes()
		seq++
		burst(1)
		time.Sleep(time.Second)
		if s, _ := w.State(); s.Live || r.sink.flushes() != flushes || r.sink.entry(key).fresh() {
			t.Errorf("after a gap: live %t, fresh for queries %t, %d more calls of Sink; want false, false and 0", s.Live, r.sink.entry(key).fresh(), r.sink.flushes()-flushes)
		}
	})
}

// TestPositionUpdatesCopyNothing checks that a change of one of many positions does not allocate.
func TestPositionUpdatesCopyNothing(t *testing.T) {
	f := New(Config{Sink: tool.Discard{}})
	f.Connect(newUpstream())
	defer f.Close()
	w := watchTopic(t, f.NewReader("reader"), userOf("0xa"), "")
	f.Up([]messages.Topic{userOf("0xa")})
	var all strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&all, "p%dx1 ", i)
	}
	f.Message(accountMessage(messages.KindUserSnapshot, 1, "acct", "|"+all.String()+"| 100"))
	m := accountMessage(messages.KindPosition, 1, "pos", "p7x2")
	update := func() {
		m.Seq++
		f.Message(m)
	}
	for range 10 {
		update()
	}
	if n := testing.AllocsPerRun(1000, update); n >= 0.5 {
		t.Errorf("a change of a position takes %v allocations, want 0", n)
	}
	if s, _ := w.State(); len(s.Account.Positions) != 2000 || s.Account.Positions[7].Size.String() != "2" {
		t.Error("the account does not have 2,000 positions with the changed size of position 7")
	}
}

// TestPositionsStayInOrder checks the order of the positions after positions were changed, removed and added.
func TestPositionsStayInOrder(t *testing.T) {
	l := newMutableAccount(messageOf("acct", "| p1x1 p2x2 p3x3 p4x4 p5x0 | 1"), nil)
	for _, step := range [][2]string{
		{"p2x0", "p1x1 p3x3 p4x4"}, {"p4x40", "p1x1 p3x3 p4x40"}, {"p1x0", "p3x3 p4x40"}, {"p2x9", "p3x3 p4x40 p2x9"},
		{"p3x30", "p3x30 p4x40 p2x9"}, {"p4x0", "p3x30 p2x9"}, {"p2x8", "p3x30 p2x8"}, {"p7x0", "p3x30 p2x8"},
	} {
		l.apply(messageOf("pos", step[0]))
		if got, want := showAccount(l.snapshot()), " | "+step[1]+"  | 1"; got != want {
			t.Errorf("after the change %s: the account is %q, want %q", step[0], got, want)
		}
	}
	// If the venue lists a position twice, the account contains two lots.
	if got := showAccount(newMutableAccount(messageOf("acct", "| p1x1 p1x2 | 1"), nil).snapshot()); got != " | p1x1 p1x2  | 1" {
		t.Errorf("a snapshot that lists a position twice made the account %q, want two lots", got)
	}
}

// TestPositionsWithSeveralLots checks that streamed lots have the same keys as lots from REST. A change that matches no lot must
// make the positions unknown.
func TestPositionsWithSeveralLots(t *testing.T) {
	lot := func(size, price, current string) market.Position {
		return market.Position{MarketID: "M", Outcome: "YES", Size: dec(size), AvgPrice: decp(price), CurrentPrice: decp(current)}
	}
	snapshot := &messages.Message{Kind: messages.KindUserSnapshot, Positions: []market.Position{lot("0", "0.1", "0.5"), lot("5", "0.4", "0.5"), lot("7", "0.6", "0.5")}}
	l := newMutableAccount(snapshot, nil)
	rest := slices.Clone(snapshot.Positions[1:])
	market.NumberPositions(rest)
	first := l.snapshot().Positions
	if len(first) != 2 || first[0].Key() != rest[0].Key() || first[1].Key() != rest[1].Key() || first[0].Key() == first[1].Key() {
		t.Fatalf("the streamed lots are %+v, and the lots from REST are %+v; want different lots with equal keys", first, rest)
	}
	l.apply(&messages.Message{Kind: messages.KindPosition, Positions: []market.Position{lot("7.0", "0.60", "0.9")}})
	now := l.snapshot().Positions
	if len(now) != 2 || now[0] != first[0] || now[1].CurrentPrice.String() != "0.9" || now[1].Key() != first[1].Key() {
		t.Errorf("after a new price of the second lot, the lots are %+v", now)
	}
	l.apply(&messages.Message{Kind: messages.KindPosition, Positions: []market.Position{lot("8", "0.6", "0.9")}})
	if now := l.snapshot().Positions; now != nil {
		t.Errorf("after a change that matches no lot, the positions are %+v, want nil", now)
	}
	if l = newMutableAccount(snapshot, l); len(l.snapshot().Positions) != 2 {
		t.Errorf("after the next snapshot, the positions are %+v, want two lots", l.snapshot().Positions)
	}
}

// TestEqualFills checks equal fills that have no ids. The account must keep each of them if their messages have different sequence
// numbers. The fills must have the same keys as in REST. A message without a sequence number must not add a fill that equals an
// earlier fill.
func TestEqualFills(t *testing.T) {
	fill := func(price string) market.Trade {
		return market.Trade{MarketID: "M", Outcome: "YES", Side: market.SideBuy, SideRaw: "BUY", Price: market.MustDecimal(price), Size: market.MustDecimal("10"),
			Timestamp: time.Unix(1_764_000_000, 0), TransactionHash: "0xabc"}
	}
	message := func(seq uint64, price string) *messages.Message {
		return &messages.Message{Kind: messages.KindFill, Seq: seq, Trades: []market.Trade{fill(price)}}
	}
	rest := []market.Trade{fill("0.65"), fill("0.65"), fill("0.66")}
	rest[0].SideRaw = "buy"
	var n market.Numbering
	n.NumberTrades(rest)
	want := map[string]bool{}
	for i := range rest {
		want[rest[i].Key()] = true
	}
	l := newMutableAccount(&messages.Message{Kind: messages.KindUserSnapshot}, nil)
	got := map[string]bool{}
	for i, price := range []string{"0.650", "0.66", "0.65"} {
		if i == 2 {
			l = newMutableAccount(&messages.Message{Kind: messages.KindUserSnapshot}, l) // a resync between two messages
		}
		for _, x := range l.addFills(message(uint64(i+1), price)) {
			got[x.Key()] = true
		}
	}
	if len(want) != 3 || !maps.Equal(got, want) {
		t.Errorf("the streamed fills have the keys %v, want the keys from REST, %v", got, want)
	}
	if again := l.addFills(message(0, "0.65")); len(again) != 0 {
		t.Errorf("a repeated fill without a sequence number was added again: %+v", again)
	}
}

// TestEqualTradesOnTheTape checks that mergeTape keeps equal trades without ids, and does not add them again when the next snapshot
// repeats them.
func TestEqualTradesOnTheTape(t *testing.T) {
	trade := func() market.Trade {
		return market.Trade{TokenID: "T", SideRaw: "BUY", Price: market.MustDecimal("0.5"), Size: market.MustDecimal("10"), Timestamp: time.Unix(1_764_000_000, 0)}
	}
	known, _ := mergeTape(nil, []market.Trade{trade(), trade()}, false)
	if len(known) != 2 || known[0].Key() == known[1].Key() {
		t.Fatalf("the first tape is %+v, want two trades with different keys", known)
	}
	known, fresh := appendNew(known, []market.Trade{trade()}, true)
	if len(known) != 3 || len(fresh) != 1 || fresh[0].Key() == known[0].Key() || fresh[0].Key() == known[1].Key() {
		t.Fatalf("after a third equal trade, the tape is %+v, want three trades with different keys", known)
	}
	known, items := mergeTape(known, []market.Trade{trade(), trade(), trade(), trade()}, true)
	if len(known) != 4 || len(items.Trades) != 1 || items.Gap {
		t.Errorf("after a snapshot with a fourth equal trade, the tape is %+v and the new items are %+v, want one new trade", known, items)
	}
}
