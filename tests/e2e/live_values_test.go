package e2e

import (
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
)

const subPriceLists = `subscription($ids: [String!]!) { pricesChanged(tokenIds: $ids) {
	reason prices { reason previousPrice price { tokenId price freshness { source stale } } token { tokenId price { price } } } } }`

// TestPricesChanged checks that a subscription to many tokens gets at most about four events a second, and ends with the venue's
// prices.
func TestPricesChanged(t *testing.T) {
	t.Parallel()
	s := startLive(t)
	s.waitForStream(t)
	ids := s.openTokens(20)
	sub := s.dial(t, anonymous).subscribe(t, subPriceLists, vars{"ids": ids})
	shown, events, entries := map[string]string{}, 0, 0
	apply := func(v any) {
		events++
		for _, p := range list(v, "prices") {
			entries++
			id := text(p, "price.tokenId")
			if before, ok := shown[id]; ok != (at(p, "previousPrice") != nil) || ok && text(p, "previousPrice") != before {
				t.Errorf("previousPrice is %v, want %q, in %s", at(p, "previousPrice"), before, asJSON(p))
			}
			shown[id] = text(p, "price.price")
			wantText(t, p, "token.price.price", shown[id])
		}
	}
	isCurrent := func() bool {
		for _, id := range ids {
			if q, _ := s.venue.Quote(id); shown[id] != plain(q.Price) {
				return false
			}
		}
		return true
	}
	apply(sub.reason(t, "INITIAL"))
	for !isCurrent() {
		apply(sub.value(t))
	}
	events, entries = 0, 0
	begin := time.Now()
	for range 5 {
		for _, id := range ids {
			s.move(t, id)
		}
		for !isCurrent() {
			v := sub.value(t)
			wantText(t, v, "reason", "CHANGE")
			apply(v)
		}
	}
	if most := int(time.Since(begin)/(250*time.Millisecond)) + 2; events > most || entries < 5*len(ids) {
		t.Errorf("%d events with %d prices in %v, want at most %d events with at least %d prices", events, entries, time.Since(begin), most, 5*len(ids))
	}
}

// level is a level of an order book, with the price and the size as the service formats them.
type level struct{ price, size string }

// ladder holds the two sides of an order book. The best level of a side comes first.
type ladder struct{ bids, asks []level }

func levelsOf(levels []demo.Level, depth int) []level {
	out := make([]level, 0, depth)
	for _, l := range levels[:min(depth, len(levels))] {
		out = append(out, level{plain(l.Price), plain(l.Size)})
	}
	return out
}

// bookOf returns the venue's book of a token, with at most depth levels on each side.
func (s *service) bookOf(t testing.TB, token string, depth int) ladder {
	t.Helper()
	b, ok := s.venue.Book(token)
	if !ok {
		t.Fatalf("the venue has no book of the token %s", token)
	}
	return ladder{levelsOf(b.Bids, depth), levelsOf(b.Asks, depth)}
}

func ladderOf(v any, path string) ladder {
	side := func(name string) []level {
		out := []level{}
		for _, l := range list(v, path+name) {
			out = append(out, level{text(l, "price"), text(l, "size")})
		}
		return out
	}
	return ladder{side("bids"), side("asks")}
}

func wantBook(t testing.TB, v any, path string, want ladder) {
	t.Helper()
	if got := ladderOf(v, path); !equalLadders(got, want) {
		t.Errorf("book at the path %q:\n got %v\nwant %v", path, got, want)
	}
}

func equalLadders(a, b ladder) bool {
	return slices.Equal(a.bids, b.bids) && slices.Equal(a.asks, b.asks)
}

// replay applies the events of an orderbookChanged subscription as a client does. It checks each event and its sequence numbers.
type replay struct {
	depth int
	// sequence and book are those of the last event. begun is true after the first event.
	sequence string
	book     ladder
	begun    bool
	// hurried is true if the client may be too slow to get all events. A RESYNC event then replaces the missed events.
	hurried bool
	deltas  int
}

func (r *replay) take(t testing.TB, v any) {
	t.Helper()
	reason := text(v, "reason")
	switch {
	case !r.begun:
		if reason != "INITIAL" || at(v, "previousSequence") != nil {
			t.Errorf("the first event is %s, want the reason INITIAL and no previousSequence", asJSON(v))
		}
	case r.hurried && reason == "RESYNC":
	case text(v, "previousSequence") != r.sequence:
		t.Errorf("depth %d: previousSequence is %s, want the last event's sequence %s", r.depth, text(v, "previousSequence"), r.sequence)
	}
	r.begun, r.sequence = true, text(v, "sequence")
	if changes := ladderOf(v, ""); text(v, "kind") == "SNAPSHOT" {
		r.book = changes
	} else {
		r.deltas++
		r.book = ladder{applyLevels(r.book.bids, changes.bids, -1), applyLevels(r.book.asks, changes.asks, 1)}
	}
	if reason == "RESYNC" && text(v, "kind") != "SNAPSHOT" {
		t.Errorf("a RESYNC event is not a SNAPSHOT: %s", asJSON(v))
	}
	if whole := ladderOf(v, "book."); !equalLadders(r.book, whole) {
		t.Errorf("depth %d, sequence %s:\nreplayed book     %v\nbook of the event %v", r.depth, r.sequence, r.book, whole)
	}
	if len(r.book.bids) > r.depth || len(r.book.asks) > r.depth {
		t.Errorf("the replayed book has more than %d levels: %v", r.depth, r.book)
	}
}

// applyLevels returns a side of a book after the given changes. order is 1 to sort the levels by rising price, and -1 to sort them
// by falling price.
func applyLevels(side, changes []level, order int) []level {
	next := slices.Clone(side)
	for _, c := range changes {
		i := slices.IndexFunc(next, func(l level) bool { return l.price == c.price })
		switch {
		case c.size == "0" && i >= 0:
			next = slices.Delete(next, i, i+1)
		case c.size == "0":
		case i >= 0:
			next[i] = c
		default:
			next = append(next, c)
		}
	}
	slices.SortFunc(next, func(a, b level) int { return order * rat(a.price).Cmp(rat(b.price)) })
	return next
}

func rat(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic(s)
	}
	return r
}

const subTape = `subscription($ids: [String!]!) { tradesAdded(tokenIds: $ids) { reason known gap trades { tradeId tokenId timestamp } } }`

// startTraded starts the service with the simulator of a driver, and returns a market that has trades.
func startTraded(t *testing.T, driver string) (*service, quietMarket) {
	t.Helper()
	s := startLive(t, "--venue-driver="+driver, "--demo-driver="+driver, "--demo-control=false", "--demo-markets=60")
	s.waitForStream(t)
	positions := s.Demo.Venue.Positions(addressOf2000)
	for _, m := range s.openBinaryMarkets(60) {
		if slices.ContainsFunc(positions, func(p demo.Position) bool { return p.TokenID == m.engineToken }) &&
			s.Demo.Venue.Trade(addressOf2000, m.engineToken, demo.Buy, 100) == nil {
			return s, m
		}
	}
	t.Fatal("the demo venue has no market to trade")
	return s, quietMarket{}
}

// idsOf returns the ids of the trades in an event.
func idsOf(v any) (ids []string) {
	for _, trade := range list(v, "trades") {
		ids = append(ids, text(trade, "tokenId")+" "+text(trade, "tradeId"))
	}
	return ids
}

// TestTapesFromREST checks subscriptions to the trades of both tokens of a market at venues whose streams begin with no trades. The
// first event is empty and not known. Then one call gives the latest trades of both tokens. After an interruption of the stream,
// the next event has the missed trades, without the mark of a gap.
func TestTapesFromREST(t *testing.T) {
	for _, venue := range capabilities {
		t.Run(venue.Driver, func(t *testing.T) {
			s, m := startTraded(t, venue.Driver)
			var sub *events
			var seen []string
			made := s.simulatorCalls(t, func() {
				sub = s.dial(t, anonymous).subscribe(t, subTape, vars{"ids": m.tokens})
				if v := sub.reason(t, "INITIAL"); at(v, "known") != false || len(list(v, "trades")) > 0 {
					t.Errorf("the first event is %s, want no trades, not known", asJSON(v))
				}
				v := sub.until(t, "the trades of REST", func(v any) bool {
					seen = append(seen, idsOf(v)...)
					return at(v, "known") == true
				})
				if text(v, "reason") != "RESYNC" || at(v, "gap") != false {
					t.Errorf("the trades of REST came as %s, want a RESYNC without a gap", asJSON(v))
				}
			})
			trades := "GET /v2/trades"
			if s.Demo.Kalshi != nil {
				trades = "GET /markets/trades"
			}
			if made[trades] != 1 {
				t.Errorf("got the calls %v, want one for trades", made)
			}
			if len(seen) == 0 || !slices.ContainsFunc(seen, func(id string) bool { return strings.HasPrefix(id, m.tokens[0]+" ") }) {
				t.Errorf("REST gave the trades %q, want trades of %s", seen, m.tokens[0])
			}
			trade := func() {
				t.Helper()
				if err := s.Demo.Venue.Trade(addressOf2000, m.engineToken, demo.Buy, 250); err != nil {
					t.Fatal(err)
				}
			}
			trade()
			sub.change(t)
			s.breakStream(t, func() { trade(); trade() })
			missed := 0
			sub.until(t, "the missed trades", func(v any) bool {
				if at(v, "gap") == true || at(v, "known") != true {
					t.Errorf("got %s, want known trades without a gap", asJSON(v))
				}
				for _, id := range idsOf(v) {
					if strings.HasPrefix(id, m.tokens[0]+" ") && !slices.Contains(seen, id) {
						missed++
					}
				}
				return missed >= 2
			})
			trade()
			if v := sub.change(t); at(v, "gap") != false || at(v, "known") != true {
				t.Errorf("after the interruption: got %s, want known trades without a gap", asJSON(v))
			}
		})
	}
}

// breakStream closes the sockets of the venue's stream and calls f before the service opens new ones.
func (s *service) breakStream(t *testing.T, f func()) {
	t.Helper()
	before := s.Venue.Live.Client.Stats().Reconnects
	s.faults.CloseStreams(0)
	f()
	eventually(t, "the stream is open again", func() bool { return s.Venue.Live.Client.Stats().Reconnects > before })
	s.waitForStream(t)
}

// TestFramesThatNameAMarket checks frames of the stream that name a market but no tokens. If the service has read the market
// before, it must assign the prices to the right tokens.
func TestFramesThatNameAMarket(t *testing.T) {
	t.Parallel()
	var marketID atomic.Value
	venue := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		for {
			_, frame, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			answer := `{"type":"pong"}`
			if strings.Contains(string(frame), `"subscribe"`) {
				answer = fmt.Sprintf(`{"type":"price_update","marketId":%q,"yesPrice":0.123,"noPrice":0.877}`, marketID.Load())
			}
			if conn.Write(r.Context(), websocket.MessageText, []byte(answer)) != nil {
				return
			}
		}
	}))
	t.Cleanup(venue.Close)
	s, stop := startLiveRigged(t, func(w *app.Wiring) { w.Stream.URL = strings.Replace(venue.URL, "http", "ws", 1) })
	defer stop()

	token := s.openTokens(1)[0]
	read := s.ask(t, `query($id: String!) { token(tokenId: $id) { market { marketId tokens { tokenId outcome } } } }`, vars{"id": token}, anonymous)
	marketID.Store(text(read, "token.market.marketId"))
	other := ""
	for _, o := range list(read, "token.market.tokens") {
		if id := text(o, "tokenId"); id != token {
			other = id
		}
	}
	prices := s.dial(t, anonymous).subscribe(t, `subscription($ids: [String!]!) { priceChanged(tokenIds: $ids) { price { tokenId price freshness { source } } } }`, vars{"ids": []string{token, other}})
	want := map[string]string{token: "0.123", other: "0.877"}
	prices.until(t, "the price of both tokens", func(v any) bool {
		if id := text(v, "price.tokenId"); text(v, "price.freshness.source") == "STREAM" && text(v, "price.price") == want[id] {
			delete(want, id)
		}
		return len(want) == 0
	})
}
