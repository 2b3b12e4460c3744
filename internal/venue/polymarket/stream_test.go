package polymarket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
	"oddsgraph/tests/replay"
	"oddsgraph/tests/tool"
)

// socket is a codec with subscriptions to some topics. The market M has the assets A and B.
type socket struct {
	t *testing.T
	*codec
	// Session is the clock of the socket and its observer.
	*replay.Session
	mu sync.Mutex
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
	bookA = topic(messages.ChannelOrderbook, "A")
	tapeA = topic(messages.ChannelTrades, "A")
)

func marketWith(id string, tokens ...string) *market.Market {
	m := &market.Market{MarketID: id}
	for _, token := range tokens {
		m.Outcomes = append(m.Outcomes, market.Outcome{Label: "Team " + token, TokenID: token})
	}
	return m
}

func newSocket(t *testing.T, topics ...messages.Topic) *socket {
	return openSocket(t, &replay.Session{Now: time.UnixMilli(50_000)}, topics...)
}

func openSocket(t *testing.T, session *replay.Session, topics ...messages.Topic) *socket {
	s := &socket{t: t, Session: session, books: map[string]*market.Book{}, markets: map[string]*market.Market{"M": marketWith("M", "A", "B")}}
	s.codec = newCodec(stream.Env{Observer: s, Market: func(id string) *market.Market { return s.markets[id] }}, s.read)
	s.epoch, session.Codec = "E", s.codec
	for _, x := range topics {
		s.codec.Encode(&stream.Request{Verb: stream.VerbSubscribe, Topics: []messages.Topic{x}})
	}
	return s
}

// TestSession replays the requests and frames of testdata/session.txt.
func TestSession(t *testing.T) {
	replay.Run(t, "testdata/session", func(session *replay.Session) {
		s := openSocket(t, session)
		session.Kinds, session.Do = true, s.do
	})
}

// do executes a command of testdata/session.txt. The times ms are in milliseconds after epochMs.
//
//	book ID ms BID ASK                              a frame with a book of one bid and one ask
//	change ID ms SIDE PRICE SIZE BID ASK            a frame with one change, and the best prices after it
//	tick                                            a tick of the codec
//	read                                            the start of a read of the lost books
//	repaired ID [ms BID ASK]                        the result of this read, or its failure
//	repair ID [ms BID ASK]                          both
//	compare, and then compared ID ms BID ASK        a comparison with REST
//	know MARKET TOKEN TOKEN, forget MARKET          what the cache knows
func (s *socket) do(words []string) []stream.Event {
	number := func(i int) int {
		n, err := strconv.Atoi(words[i])
		if err != nil {
			s.t.Fatal(words, err)
		}
		return n
	}
	var read upstream.Result[*market.Book]
	if len(words) == 5 && words[0] != "book" {
		read.Value = restBook(words[1], int64(number(2)), words[3], words[4])
	} else if words[0] != "book" {
		read.Err = errFrozen
	}
	switch words[0] {
	case "book":
		return s.codec.Decode([]byte(bookText(words[1], number(2), words[3], words[4])), s.Now)
	case "change":
		return s.codec.Decode([]byte(changeText(words[1], number(2), strings.Trim(words[3], "-"), words[4], words[5], words[6], words[7])), s.Now)
	case "tick":
		events, frozen := s.tick(s.Now)
		if frozen > 0 {
			s.Drift(fmt.Sprint(frozen, " frozen"))
		}
		return events
	case "read":
		s.Drift(fmt.Sprint("reads ", s.lostAssets()))
	case "repaired":
		return s.finishRepair(words[1], read, s.Now)
	case "repair":
		s.lostAssets()
		return s.finishRepair(words[1], read, s.Now)
	case "compare":
		s.beginComparison()
	case "compared":
		s.compare(words[1], read.Value, s.Now)
	case "know":
		s.markets[words[1]] = marketWith(words[1], words[2:]...)
	case "forget":
		delete(s.markets, words[1])
	default:
		s.t.Fatal("unknown command", words)
	}
	return nil
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

// show returns the books and lost books among events as text, one on each line.
func show(events []stream.Event) string {
	var out []string
	for _, e := range events {
		switch {
		case e.Kind == stream.EventBad:
			out = append(out, "bad "+string(e.Topic.Channel)+" "+e.Topic.ID)
		case e.Kind == stream.EventMessage && e.Message.Book != nil:
			text := fmt.Sprintf("%s %s %d book", e.Message.Topic.Channel, e.Message.Topic.ID, e.Message.Seq)
			for side, levels := range [][]market.Level{e.Message.Book.Bids.Levels(), e.Message.Book.Asks.Levels()} {
				for _, l := range levels {
					text += fmt.Sprintf(" %c%s×%s", "ba"[side], l.Price, l.Size)
				}
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, "\n")
}

func (s *socket) frame(text string) { s.codec.Decode([]byte(text), s.Now) }

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
	events := s.codec.Decode([]byte(`{"event_type":"last_trade_price","asset_id":"A","market":"M","price":"0.62","size":"78.50","side":"SELL","timestamp":"1900000013900","transaction_hash":"0xt1"}`), s.Now)
	want := events[0].Message.Trades[0]
	if got.TradeID == "" || got.Key() != want.Key() || got.Price.Cmp(want.Price) != 0 || got.Size.Cmp(want.Size) != 0 || got.Side != want.Side || got.TokenID != want.TokenID {
		t.Errorf("the trade from REST is %+v\nthe trade from the stream is %+v", got, want)
	}
	if got.TransactionHash = ""; publicID(&got) != "" {
		t.Error("a trade without a transaction has an id")
	}
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
				s.codec.Encode(&stream.Request{Verb: stream.VerbSubscribe, Topics: []messages.Topic{topic(messages.ChannelOrderbook, id)}})
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

// play decodes recorded frames and returns the number of published book messages. After each burst, the book must have the best
// prices that the last frame reports.
func play(t *testing.T, s *socket, id string, frames []json.RawMessage) (bursts int) {
	t.Helper()
	for _, f := range frames {
		for _, e := range s.codec.Decode(f, s.Now) {
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

// TestBestPricesOfAFrame checks the values by which Polymarket says that a side of a book is empty.
func TestBestPricesOfAFrame(t *testing.T) {
	for fields, want := range map[string]string{
		`"best_bid":"0.4","best_ask":"0.6"`: "0.4 0.6", `"best_bid":"0","best_ask":"1"`: "- -", `"best_bid":"","best_ask":""`: "- -", `"best_ask":"0"`: "- -", ``: "- -",
		`"best_bid":"1","best_ask":"0.999"`: "1 0.999", `"best_bid":null,"best_ask":0.001`: "- 0.001", `"best_bid":"1.1"`: "best_bid is not from 0 to 1",
		`"best_ask":"x"`: "best_ask is not a number",
	} {
		r := rowOf(t, "{"+fields+"}", nil)
		best := readTop(r)
		got := tool.Text(best.bid) + " " + tool.Text(best.ask)
		if r.Err != nil {
			got = r.Err.Error()
		}
		if got != want {
			t.Errorf("%s: the best prices are %s, want %s", fields, got, want)
		}
	}
}

// TestPartsOfTradeIDs checks that each part of a trade changes its id, and that equal numbers with other digits do not.
func TestPartsOfTradeIDs(t *testing.T) {
	base := market.Trade{TokenID: "A", SideRaw: "BUY", Price: market.MustDecimal("0.5"), Size: market.MustDecimal("2"), TransactionHash: "0xab", Timestamp: time.UnixMilli(epochMs)}
	same := base
	same.Price, same.Size, same.TransactionHash, same.SideRaw = market.MustDecimal("0.50"), market.MustDecimal("2.0"), "0xAB", "buy"
	same.Timestamp, same.MarketID = time.UnixMilli(1), "M"
	if tradeID(base) != tradeID(same) || len(tradeID(base)) != 32 {
		t.Errorf("equal trades have the ids %s and %s", tradeID(base), tradeID(same))
	}
	ids := map[string]bool{tradeID(base): true}
	for i := range 6 {
		other := base
		switch i {
		case 0:
			other.TokenID = "B"
		case 1:
			other.SideRaw = "SELL"
		case 2:
			other.Price = market.MustDecimal("0.51")
		case 3:
			other.Size = market.MustDecimal("3")
		case 4:
			other.TransactionHash = "0xac"
		case 5:
			other.TransactionHash = "" // the time counts
		}
		ids[tradeID(other)] = true
	}
	base.TransactionHash, base.Timestamp = "", time.UnixMilli(epochMs+1)
	if ids[tradeID(base)] = true; len(ids) != 8 {
		t.Errorf("8 different trades have %d ids", len(ids))
	}
}
