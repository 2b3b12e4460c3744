package polymarket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/stream"
	"oddsgraph/internal/venue/wire"
	"oddsgraph/tests/tool"
)

// quiet is an observer that ignores everything.
type quiet struct{}

func (quiet) Frame(string)     {}
func (quiet) Drift(string)     {}
func (quiet) Reconnect(string) {}

// socket is a codec with subscriptions to some topics. The market M has the assets A and B.
type socket struct {
	t *testing.T
	*codec
	now time.Time
	mu  sync.Mutex
	// books contains the books that REST returns.
	books map[string]*market.Book
	// markets contains the markets that the cache knows.
	markets map[string]*market.Market
	// reads contains the ids of each REST call.
	reads []string
	// takes is the duration of each REST call.
	takes time.Duration
}

func topic(channel messages.Channel, id string) messages.Topic {
	return messages.Topic{Channel: channel, ID: id}
}

var (
	bookA  = topic(messages.ChannelOrderbook, "A")
	priceA = topic(messages.ChannelPrices, "A")
	tapeA  = topic(messages.ChannelTrades, "A")
)

func marketWith(id string, tokens ...string) *market.Market {
	m := &market.Market{MarketID: id}
	for _, token := range tokens {
		m.Outcomes = append(m.Outcomes, market.Outcome{Label: "Team " + token, TokenID: token})
	}
	return m
}

func newSocket(t *testing.T, topics ...messages.Topic) *socket {
	s := &socket{t: t, now: time.UnixMilli(50_000), books: map[string]*market.Book{}, markets: map[string]*market.Market{"M": marketWith("M", "A", "B")}}
	s.codec = newCodec(stream.Env{Observer: quiet{}, Market: func(id string) *market.Market { return s.markets[id] }}, s.read)
	s.epoch = "E"
	for _, x := range topics {
		s.request(stream.VerbSubscribe, x)
	}
	return s
}

func (s *socket) read(ctx context.Context, ids []string) (out []upstream.Result[*market.Book], err error) {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = append(s.reads, strings.Join(ids, " "))
	for _, id := range ids {
		out = append(out, upstream.Result[*market.Book]{Value: s.books[id]})
	}
	return out, nil
}

func (s *socket) request(verb stream.Verb, topics ...messages.Topic) string {
	return string(slices.Concat(s.Encode(&stream.Request{Verb: verb, Topics: topics})...))
}

// show returns messages and lost books as text, one on each line. A message has its topic, sequence number and contents. show
// leaves out all other events.
func show(events []stream.Event) string {
	var out []string
	levels := func(side string, list []market.Level) (text string) {
		for _, l := range list {
			text += fmt.Sprintf(" %s%s×%s", side, l.Price.String(), l.Size.String())
		}
		return text
	}
	for _, e := range events {
		if e.Kind == stream.EventBad {
			out = append(out, "bad "+string(e.Topic.Channel)+" "+e.Topic.ID)
		}
		if e.Kind != stream.EventMessage {
			continue
		}
		m := e.Message
		text := fmt.Sprintf("%s %s %d", m.Topic.Channel, m.Topic.ID, m.Seq)
		switch m.Kind {
		case messages.KindBookSnapshot:
			text += " book" + levels("b", m.Book.Bids.Levels()) + levels("a", m.Book.Asks.Levels())
		case messages.KindBookDelta:
			for _, c := range m.Changes {
				text += levels(map[market.OrderSide]string{market.SideBuy: " b", market.SideSell: " a"}[c.Side], []market.Level{c.Level})
			}
		case messages.KindPrice:
			text += " " + m.Price.Price.String() + " " + string(m.Price.Basis)
		case messages.KindTrade:
			text += fmt.Sprintf(" %s %s×%s", m.Trades[0].Side, m.Trades[0].Price.String(), m.Trades[0].Size.String())
		case messages.KindMarket:
			c := m.Market
			text += fmt.Sprintf(" %s %s won by %s %q at %d", c.Kind, c.Status, c.WinningTokenID, c.Outcome, c.At.UnixMilli())
			if c.TickSize != nil {
				text += " tick " + c.TickSize.String()
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n")
}

func (s *socket) frame(text string) string { return show(s.Decode([]byte(text), s.now)) }

// expect fails the test if the lines of got differ from want.
func (s *socket) expect(got string, want ...string) {
	s.t.Helper()
	if got != strings.Join(want, "\n") {
		s.t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// epochMs is a time in Unix milliseconds. In the functions below, ms is the number of milliseconds after epochMs.
const epochMs = 1_790_000_000_000

// bookText returns a book frame of an asset with one bid and one ask.
func bookText(id string, ms int, bid, ask string) string {
	return fmt.Sprintf(`{"event_type":"book","asset_id":%q,"timestamp":"%d","bids":[{"price":%q,"size":"10"}],"asks":[{"price":%q,"size":"10"}]}`, id, epochMs+ms, bid, ask)
}

// changeText returns a price_change frame with one change. The frame reports bid and ask as the best prices.
func changeText(id string, ms int, side, price, size, bid, ask string) string {
	return fmt.Sprintf(`{"event_type":"price_change","market":"M","timestamp":"%d","price_changes":[{"asset_id":%q,"side":%q,"price":%q,"size":%q,"best_bid":%q,"best_ask":%q}]}`,
		epochMs+ms, id, side, price, size, bid, ask)
}

// restBook returns a book as REST returns it, with one bid and one ask.
func restBook(id string, ms int64, bid, ask string) *market.Book {
	level := func(p string) market.Side {
		return market.NewSide([]market.Level{{Price: market.MustDecimal(p), Size: market.MustDecimal("10")}})
	}
	return &market.Book{TokenID: id, Timestamp: time.UnixMilli(epochMs + ms), Bids: level(bid), Asks: level(ask)}
}

func TestStreamRequests(t *testing.T) {
	s := newSocket(t)
	for _, test := range []struct {
		verb  stream.Verb
		topic messages.Topic
		want  string
	}{
		{stream.VerbPing, messages.Topic{}, "PING"},
		{stream.VerbSubscribe, bookA, `{"assets_ids":["A"],"type":"market","initial_dump":true,"custom_feature_enabled":true}`},
		{stream.VerbSubscribe, priceA, ""},
		{stream.VerbSubscribe, topic(messages.ChannelMarket, "M"), ""},
		{stream.VerbSubscribe, topic(messages.ChannelMarket, "unknown"), ""},
		{stream.VerbSubscribe, topic(messages.ChannelTrades, "C"), `{"assets_ids":["C"],"operation":"subscribe","initial_dump":true,"custom_feature_enabled":true}`},
		{stream.VerbResync, bookA, ""},
		{stream.VerbUnsubscribe, bookA, ""},
		{stream.VerbUnsubscribe, priceA, ""},
		{stream.VerbUnsubscribe, topic(messages.ChannelMarket, "M"), `{"assets_ids":["A"],"operation":"unsubscribe"}`},
	} {
		var topics []messages.Topic
		if test.topic.ID != "" {
			topics = append(topics, test.topic)
		}
		if got := s.request(test.verb, topics...); got != test.want {
			t.Errorf("the request with verb %d and topic %v sends %s; want %s", test.verb, test.topic, got, test.want)
		}
	}
}

func TestStreamFrames(t *testing.T) {
	s := newSocket(t, bookA, priceA, tapeA, topic(messages.ChannelMarket, "M"))
	s.expect(s.frame("["+bookText("A", 1, "0.4", "0.6")+","+bookText("C", 1, "0.4", "0.6")+"]"), "orderbook A 1 book b0.4×10 a0.6×10", "prices A 1 0.5 MIDPOINT")
	s.expect(s.frame(`{"event_type":"last_trade_price","asset_id":"A","market":"M","price":"0.6","size":"2","side":"BUY","timestamp":"5"}`), "trades A 1 BUY 0.6×2")
	s.expect(s.frame(`{"event_type":"best_bid_ask","asset_id":"A","best_bid":"0.42","best_ask":"0.6","timestamp":"6"}`), "prices A 2 0.51 MIDPOINT")
	s.expect(s.frame(`{"event_type":"best_bid_ask","asset_id":"A","best_bid":"0","best_ask":"0.6","timestamp":"7"}`))
	for _, text := range []string{"PONG", "{", `{"event_type":"x"}`, "[]"} {
		if events := s.Decode([]byte(text), s.now); len(events) > 1 || (len(events) == 1) != (text == "{") || len(events) == 1 && events[0].Kind != stream.EventGarbage {
			t.Errorf("the frame %s decodes to the events %+v; want no event, or that of garbage", text, events)
		}
	}
	s.expect(s.frame(`{"event_type":"book","asset_id":"A","timestamp":"10","bids":[{"price":"2","size":"1"}],"asks":[]}`), "bad orderbook A")
}

// TestTradeOfStreamAndREST checks that a trade from REST has the same id, price, size and side as the same trade from the stream,
// although REST rounds the time to seconds.
func TestTradeOfStreamAndREST(t *testing.T) {
	v, err := wire.Parse([]byte(`{"side":"SELL","token_id":"A","condition_id":"M","size":78.5,"price":0.620,"timestamp":1900000014,"outcome":"No","transaction_hash":"0xT1"}`))
	if err != nil {
		t.Fatal(err)
	}
	got := wire.NewRow(v, ignore).UserTrade()
	got.TradeID = publicID(&got)
	s := newSocket(t, tapeA)
	events := s.Decode([]byte(`{"event_type":"last_trade_price","asset_id":"A","market":"M","price":"0.62","size":"78.50","side":"SELL","timestamp":"1900000013900","transaction_hash":"0xt1"}`), s.now)
	want := events[0].Message.Trades[0]
	if got.TradeID == "" || got.Key() != want.Key() || got.Price.Cmp(want.Price) != 0 || got.Size.Cmp(want.Size) != 0 || got.Side != want.Side || got.TokenID != want.TokenID {
		t.Errorf("the trade from REST is %+v\nthe trade from the stream is %+v", got, want)
	}
	if got.TransactionHash = ""; publicID(&got) != "" {
		t.Error("a trade without a transaction has an id")
	}
}

// TestBurstIsOneChange checks that the codec publishes a burst as one message, after the last frame of the burst. A burst consists
// of the changes that one order causes.
func TestBurstIsOneChange(t *testing.T) {
	s := newSocket(t, bookA)
	s.frame(bookText("A", 1, "0.311", "0.4"))
	s.expect(s.frame(changeText("A", 2, "BUY", "0.29", "7", "0.311", "0.4")), "orderbook A 2  b0.29×7")
	s.expect(s.frame(changeText("A", 3, "SELL", "0.301", "45", "0.29", "0.301")))
	s.expect(s.frame(changeText("A", 3, "BUY", "0.311", "0", "0.29", "0.301")), "orderbook A 3  a0.301×45  b0.311×0")
}

// TestLaterChangeShowsGap checks a burst whose last frames are lost. The codec must detect the loss when a change with a later time
// arrives.
func TestLaterChangeShowsGap(t *testing.T) {
	s := newSocket(t, bookA)
	s.frame(bookText("A", 1, "0.311", "0.4"))
	s.frame(changeText("A", 3, "SELL", "0.301", "45", "0.29", "0.301"))
	s.expect(s.frame(changeText("A", 4, "BUY", "0.1", "1", "0.29", "0.301")), "bad orderbook A")
	s.expect(s.frame(changeText("A", 5, "BUY", "0.2", "1", "0.29", "0.301")))
	// The book from REST has the time 4, so the codec applies the changes of the times 4 and 5 to this book.
	s.expect(show(s.finishRepair("A", upstream.Result[*market.Book]{Value: restBook("A", 4, "0.29", "0.301")}, s.now)), "orderbook A 3 book b0.29×10 b0.2×1 b0.1×1 a0.301×10")
}

// TestOpenBurstShowsGap checks a burst whose last frames are lost. If no further frame arrives within burstWithin, the codec must
// detect the loss.
func TestOpenBurstShowsGap(t *testing.T) {
	s := newSocket(t, bookA)
	s.frame(bookText("A", 1, "0.311", "0.4"))
	s.frame(changeText("A", 3, "SELL", "0.301", "45", "0.29", "0.301"))
	events, _ := s.tick(s.now.Add(249 * time.Millisecond))
	s.expect(show(events))
	events, _ = s.tick(s.now.Add(250 * time.Millisecond))
	s.expect(show(events), "bad orderbook A")
}

// TestBookReplaces checks that a book frame replaces the published book, and that the codec does not publish an equal book again.
func TestBookReplaces(t *testing.T) {
	s := newSocket(t, bookA)
	s.frame(bookText("A", 1, "0.3", "0.4"))
	s.expect(s.frame(bookText("A", 2, "0.3", "0.4")))
	s.frame(changeText("A", 3, "SELL", "0.301", "45", "0.29", "0.301"))
	s.expect(s.frame(bookText("A", 3, "0.29", "0.301")), "orderbook A 2 book b0.29×10 a0.301×10")
	events, _ := s.tick(s.now.Add(time.Second))
	s.expect(show(events))
}

// TestStreamNumbersGoOn checks that the sequence numbers of a topic continue if the topic is subscribed again on the same socket.
func TestStreamNumbersGoOn(t *testing.T) {
	s := newSocket(t, bookA, priceA)
	s.frame(bookText("A", 1, "0.3", "0.4"))
	s.frame(changeText("A", 2, "BUY", "0.1", "7", "0.3", "0.4"))
	s.request(stream.VerbUnsubscribe, bookA)
	s.request(stream.VerbSubscribe, bookA)
	events, _ := s.tick(s.now)
	s.expect(show(events), "orderbook A 3 book b0.3×10 b0.1×7 a0.4×10")
	if e := events[len(events)-1].Message.Epoch; e != "E" {
		t.Errorf("the epoch is %s, want E", e)
	}
}

// TestFailedRepairs checks that the codec subscribes again after maxRepairs failed repairs.
func TestFailedRepairs(t *testing.T) {
	s := newSocket(t, bookA)
	s.frame(bookText("A", 1, "0.311", "0.4"))
	s.frame(changeText("A", 3, "SELL", "0.301", "45", "0.29", "0.301"))
	s.frame(changeText("A", 4, "BUY", "0.1", "1", "0.29", "0.301"))
	s.expect(show(s.finishRepair("A", upstream.Result[*market.Book]{Err: errFrozen}, s.now)))
	s.expect(s.request(stream.VerbResync, bookA))
	s.expect(show(s.finishRepair("A", upstream.Result[*market.Book]{Value: restBook("A", 2, "0.311", "0.4")}, s.now)), "bad orderbook A")
	s.expect(s.request(stream.VerbResync, bookA),
		`{"assets_ids":["A"],"operation":"unsubscribe"}{"assets_ids":["A"],"operation":"subscribe","initial_dump":true,"custom_feature_enabled":true}`)
	s.expect(s.frame(bookText("A", 5, "0.29", "0.301")), "orderbook A 4 book b0.29×10 a0.301×10")
}

// finishRepair begins a repair of the lost books, and passes the REST result for one asset to the codec.
func (s *socket) finishRepair(id string, r upstream.Result[*market.Book], now time.Time) []stream.Event {
	s.lostAssets()
	return s.codec.finishRepair(id, r, now)
}

// TestLossDuringRepair checks that the codec discards a book from REST if the stream loses another change during the REST call. An
// unreadable frame must not reset the count of failed repairs.
func TestLossDuringRepair(t *testing.T) {
	s := newSocket(t, bookA)
	s.frame(bookText("A", 1, "0.311", "0.4"))
	unreadable := changeText("A", 2, "HOLD", "0.29", "7", "0.311", "0.4")
	s.expect(s.frame(unreadable), "bad orderbook A")
	for i, want := range []string{"", "bad orderbook A"} { // one iteration for each of maxRepairs failed repairs
		if lost := s.lostAssets(); !slices.Equal(lost, []string{"A"}) {
			t.Fatalf("before read %d, the lost books are %q, want A", i, lost)
		}
		s.expect(s.frame(unreadable), "bad orderbook A")
		var events []string
		if want != "" {
			events = []string{want}
		}
		s.expect(show(s.codec.finishRepair("A", upstream.Result[*market.Book]{Value: restBook("A", 1, "0.311", "0.4")}, s.now)), events...)
	}
	// No repair is running now, so the codec must ignore this result of a REST call.
	s.expect(show(s.codec.finishRepair("A", upstream.Result[*market.Book]{Value: restBook("A", 9, "0.311", "0.4")}, s.now)))
	if lost := s.lostAssets(); len(lost) != 0 {
		t.Errorf("after maxRepairs failed repairs, the codec reads the books %q again", lost)
	}
	s.expect(s.request(stream.VerbResync, bookA),
		`{"assets_ids":["A"],"operation":"unsubscribe"}{"assets_ids":["A"],"operation":"subscribe","initial_dump":true,"custom_feature_enabled":true}`)
}

// maintain runs the codec's Maintain method in a synctest bubble until the end of the test. It returns a function that returns the
// published events, and a function that returns the error of Maintain.
func (s *socket) maintain() (events func() string, failure func() error) {
	var mu sync.Mutex
	var all []stream.Event
	var err error
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = s.Maintain(ctx, func(make func(time.Time) []stream.Event) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, make(time.Now())...)
		})
	}()
	s.t.Cleanup(func() { cancel(); <-done })
	return func() string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return show(all)
	}, func() error { synctest.Wait(); return err }
}

// TestOneReadRepairsAllBooks checks that one REST call repairs the lost books of two assets.
func TestOneReadRepairsAllBooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSocket(t, bookA, topic(messages.ChannelOrderbook, "C"))
		for _, id := range []string{"A", "C"} {
			s.frame(bookText(id, 1, "0.311", "0.4"))
			s.frame(changeText(id, 3, "SELL", "0.301", "45", "0.29", "0.301"))
			s.frame(changeText(id, 4, "BUY", "0.1", "1", "0.29", "0.301"))
			s.books[id] = restBook(id, 4, "0.29", "0.301")
		}
		events, _ := s.maintain()
		time.Sleep(time.Second)
		s.expect(events(), "orderbook A 3 book b0.29×10 b0.1×1 a0.301×10", "orderbook C 3 book b0.29×10 b0.1×1 a0.301×10")
		if !slices.Equal(s.reads, []string{"A C"}) {
			t.Errorf("the REST calls have the ids %q, want one call with A and C", s.reads)
		}
	})
}

// TestReadsDelayNoTick checks that a slow REST call for a lost book does not delay the detection of an incomplete burst.
func TestReadsDelayNoTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSocket(t, bookA, topic(messages.ChannelOrderbook, "C"))
		s.frame(bookText("C", 1, "0.311", "0.4"))
		s.frame(bookText("A", 1, "0.311", "0.4"))
		s.frame(changeText("A", 3, "SELL", "0.301", "45", "0.29", "0.301"))
		s.frame(changeText("A", 4, "BUY", "0.1", "1", "0.29", "0.301"))
		s.takes = time.Minute
		events, _ := s.maintain()
		time.Sleep(time.Second)
		s.expect(events())
		s.frame(changeText("C", 3, "SELL", "0.301", "45", "0.29", "0.301"))
		time.Sleep(time.Second)
		s.expect(events(), "bad orderbook C")
	})
}

// TestSilentFreeze checks frozen books: the socket sends no more changes for these books. The codec must repair a few frozen books.
// If too many books are frozen, Maintain must return errFrozen.
func TestSilentFreeze(t *testing.T) {
	for _, test := range []struct {
		frozen, books int
		failed        bool
	}{{1, 6, false}, {3, 6, false}, {4, 6, true}, {5, 50, false}, {6, 50, true}} {
		synctest.Test(t, func(t *testing.T) {
			s := newSocket(t)
			var want []string
			for i := range test.books {
				id := string(rune('A' + i))
				s.request(stream.VerbSubscribe, topic(messages.ChannelOrderbook, id))
				s.frame(bookText(id, 1, "0.3", "0.4"))
				s.books[id] = restBook(id, 1, "0.3", "0.4")
				if i < test.frozen {
					s.books[id] = restBook(id, 9000, "0.35", "0.4")
					want = append(want, "orderbook "+id+" 3 book b0.35×10 a0.4×10")
				}
			}
			events, failure := s.maintain()
			time.Sleep(35 * time.Second)
			var got []string
			for line := range strings.SplitSeq(events(), "\n") {
				if strings.Contains(line, " book ") {
					got = append(got, line)
				}
			}
			slices.Sort(got)
			s.expect(strings.Join(got, "\n"), want...)
			if err := failure(); errors.Is(err, errFrozen) != test.failed {
				t.Errorf("with %d frozen books of %d, Maintain returns %v, want errFrozen: %t", test.frozen, test.books, err, test.failed)
			}
		})
	}
}

// TestMissingFirstBook checks that the codec reads a book over REST if the socket does not send the first book of an asset. If REST
// has no book either, the codec must publish an empty book.
func TestMissingFirstBook(t *testing.T) {
	for want, rest := range map[string]*market.Book{" b0.3×10 a0.4×10": restBook("A", 1, "0.3", "0.4"), "": nil} {
		synctest.Test(t, func(t *testing.T) {
			s := newSocket(t, bookA)
			s.books["A"] = rest
			events, _ := s.maintain()
			time.Sleep(2 * time.Second) // package feed requests a missing snapshot again after this time
			s.expect(events(), "orderbook A 1 book"+want)
		})
	}
}

// TestLostDeepChange checks that the comparison with REST repairs a book if the stream loses a change below the best bid. Other
// changes still arrive.
func TestLostDeepChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSocket(t, bookA)
		s.frame(bookText("A", 1, "0.3", "0.4"))
		s.frame(changeText("A", 3, "BUY", "0.2", "5", "0.3", "0.4"))
		events, failure := s.maintain()
		time.Sleep(tickEvery / 2) // half a tick, so that no comparison runs between a frame and the update of the REST book
		for i := range 35 {
			time.Sleep(time.Second)
			size := fmt.Sprint(1 + i)
			s.frame(changeText("A", 10+i, "BUY", "0.1", size, "0.3", "0.4"))
			b := restBook("A", int64(10+i), "0.3", "0.4") // REST has no bid at 0.2: the stream lost the frame that removed this bid
			b.Bids = b.Bids.Set(market.SideBuy, market.Level{Price: market.MustDecimal("0.1"), Size: market.MustDecimal(size)})
			s.mu.Lock()
			s.books["A"] = b
			s.mu.Unlock()
		}
		if got := events(); !strings.HasPrefix(got, "bad orderbook A\n") || strings.Contains(got, "b0.2") || !strings.Contains(got, " book b0.3×10 b0.1×") {
			t.Errorf("the events are\n%s\nwant a gap and the book without the level at 0.2", got)
		}
		if err := failure(); err != nil {
			t.Errorf("a book with a lost change counts as frozen: %v", err)
		}
	})
}

// TestLateFramesAreNoFreeze checks a book that differs from the book from REST, but becomes equal within catchUp. The codec must
// not repair this book.
func TestLateFramesAreNoFreeze(t *testing.T) {
	s := newSocket(t, bookA)
	s.frame(bookText("A", 1, "0.3", "0.4"))
	s.beginComparison()
	s.compare("A", restBook("A", 9, "0.35", "0.4"), s.now)
	s.frame(changeText("A", 9, "BUY", "0.3", "0", "0.35", "0.4"))
	s.expect(s.frame(changeText("A", 9, "BUY", "0.35", "10", "0.35", "0.4")), "orderbook A 2  b0.3×0  b0.35×10")
	events, frozen := s.tick(s.now.Add(catchUp))
	if s.expect(show(events)); frozen != 0 {
		t.Errorf("%d books count as frozen", frozen)
	}
}

// TestChangesDuringAComparison checks that a change that arrives during the REST call does not count as a difference from the REST
// book.
func TestChangesDuringAComparison(t *testing.T) {
	s := newSocket(t, bookA)
	s.frame(bookText("A", 1, "0.3", "0.4"))
	s.beginComparison()
	s.frame(changeText("A", 9, "BUY", "0.1", "5", "0.3", "0.4"))
	s.compare("A", restBook("A", 5, "0.3", "0.4"), s.now)
	events, _ := s.tick(s.now.Add(catchUp))
	s.expect(show(events))
}

// replay decodes recorded frames and returns the number of published book messages. After each burst, the book must have the best
// prices that the last frame reports.
func replay(t *testing.T, s *socket, id string, frames []json.RawMessage) (bursts int) {
	t.Helper()
	for _, f := range frames {
		for _, e := range s.Decode(f, s.now) {
			if e.Kind == stream.EventBad {
				t.Errorf("the frame %.80s causes a gap", f)
			}
			if e.Kind == stream.EventMessage && e.Message.Topic.Channel == messages.ChannelOrderbook {
				bursts++
				if a := s.assets[id]; a.top == nil || e.Message.Topic.ID == id && e.Message.Kind == messages.KindBookDelta && !a.book.top().equal(reportedTop(t, f, id)) {
					t.Errorf("after the frame %.80s, the best prices of the book are not the reported best prices", f)
				}
			}
		}
	}
	if a := s.assets[id]; len(a.burst) > 0 || a.lost {
		t.Errorf("after the last frame, the burst has %d changes and lost is %t, want 0 and false", len(a.burst), a.lost)
	}
	return bursts
}

// reportedTop returns the best prices that a recorded frame reports for an asset.
func reportedTop(t *testing.T, frame json.RawMessage, id string) (out top) {
	t.Helper()
	var f struct {
		Changes []struct {
			Asset string         `json:"asset_id"`
			Bid   market.Decimal `json:"best_bid"`
			Ask   market.Decimal `json:"best_ask"`
		} `json:"price_changes"`
	}
	if err := json.Unmarshal(frame, &f); err != nil {
		t.Fatal(err)
	}
	for _, c := range f.Changes {
		if c.Asset == id {
			out = top{&c.Bid, &c.Ask}
		}
	}
	return out
}

func recorded(t *testing.T, name string) (frames []json.RawMessage) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(tool.PolymarketSamples(t), "ws", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &frames); err != nil {
		t.Fatal(err)
	}
	return frames
}
