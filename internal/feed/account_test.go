package feed

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
)

func userOf(id string) market.Topic {
	return market.Topic{Channel: market.ChannelUser, ID: id, Scope: "s"}
}

func accountMessage(kind market.MessageKind, seq uint64, verb, value string) *market.Message {
	m := messageOf(verb, value)
	m.Topic, m.Kind, m.Epoch, m.Seq, m.ReceivedAt = userOf("0xa"), kind, "A", seq, time.Now()
	return m
}

func (s *sink) timesTold() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told
}

// TestQueriesFindBurstsOfAnAccount streams many changes at once: queries find the last one a moment later, what a reader has
// seen at once, and not every one of them costs a copy of the account.
func TestQueriesFindBurstsOfAnAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		key := userOf("0xa")
		reader, w := r.watch(t, key)
		defer reader.Close()
		r.upNow(key)
		r.Message(accountMessage(market.MessageUserSnapshot, 1, "acct", "| p1x1 p2x1 | 100"))
		queried := func() string { return showAccount(r.sink.of(key).account) }
		if queried() != " | p1x1 p2x1  | 100" {
			t.Fatalf("queries find %q after the snapshot", queried())
		}
		seq := uint64(1)
		burst := func(n int) {
			for range n {
				seq++
				r.Message(accountMessage(market.MessagePosition, seq, "pos", fmt.Sprintf("p2x%d", seq)))
			}
		}
		burst(500)
		time.Sleep(accountEvery + time.Millisecond)
		synctest.Wait()
		if want := fmt.Sprintf(" | p1x1 p2x%d  | 100", seq); queried() != want || r.sink.timesTold() > 3 {
			t.Errorf("queries find %q instead of %q, told %d times", queried(), want, r.sink.timesTold())
		}
		burst(10)
		if s, _ := w.State(); queried() != showAccount(s.Account) || showAccount(s.Account) != fmt.Sprintf(" | p1x1 p2x%d  | 100", seq) {
			t.Errorf("queries find %q and the reader %q", queried(), showAccount(s.Account))
		}
		// What has not been told when a gap comes is not told at all.
		burst(1)
		told := r.sink.timesTold()
		seq++
		burst(1)
		time.Sleep(time.Second)
		if s, _ := w.State(); s.Live || r.sink.timesTold() != told || r.sink.of(key).fresh() {
			t.Errorf("live %t, told %d times more", s.Live, r.sink.timesTold()-told)
		}
	})
}

// TestPositionUpdatesCopyNothing changes one position of many again and again.
func TestPositionUpdatesCopyNothing(t *testing.T) {
	f, w, key := wallet(t, 2000)
	m := &market.Message{Topic: key, Kind: market.MessagePosition, Epoch: "A", Seq: 1, Positions: []market.Position{holdingOf(7, 2)}}
	m.ReceivedAt = time.Now()
	update := func() {
		m.Seq++
		f.Message(m)
	}
	for range 10 {
		update()
	}
	if n := testing.AllocsPerRun(1000, update); n >= 0.5 {
		t.Errorf("an update allocates %v times", n)
	}
	if s, _ := w.State(); len(s.Account.Positions) != 2000 || s.Account.Positions[7].Size.String() != "2" {
		t.Error("the position was not changed")
	}
}

// TestLists takes rows out of the front and the middle, so that others move up.
func TestLists(t *testing.T) {
	l := newLedger(messageOf("acct", "| p1x1 p2x2 p3x3 p4x4 p5x0 | 1"))
	for _, step := range [][2]string{
		{"p2x0", "p1x1 p3x3 p4x4"}, {"p4x40", "p1x1 p3x3 p4x40"}, {"p1x0", "p3x3 p4x40"}, {"p2x9", "p3x3 p4x40 p2x9"},
		{"p3x30", "p3x30 p4x40 p2x9"}, {"p4x0", "p3x30 p2x9"}, {"p2x8", "p3x30 p2x8"}, {"p7x0", "p3x30 p2x8"},
	} {
		l.apply(messageOf("pos", step[0]))
		if got, want := showAccount(l.account()), " | "+step[1]+"  | 1"; got != want {
			t.Errorf("after %s: %q, want %q", step[0], got, want)
		}
	}
	// A venue that lists a position twice means both.
	if got := showAccount(newLedger(messageOf("acct", "| p1x1 p1x2 | 1")).account()); got != " | p1x1 p1x2  | 1" {
		t.Errorf("two rows of a position became %q", got)
	}
}
