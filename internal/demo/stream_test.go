package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// patience is the maximum time for which a test waits for an event.
const patience = 20 * time.Second

// testVenue is a venue with an HTTP server.
type testVenue struct {
	*Venue
	url    string
	client *http.Client
}

// open starts a venue, which runs until the test ends. Unless change sets another limit, a client may send 100,000 frames per
// second.
func open(t testing.TB, config Config, change ...func(*streams)) *testVenue {
	t.Helper()
	if config.Markets == 0 {
		config.Markets = 120
	}
	if config.Clock == nil {
		config.Clock = newClock()
	}
	v := New(config)
	v.stream.framesPerSecond = 100_000
	for _, f := range change {
		f(&v.stream)
	}
	server := httptest.NewServer(v)
	t.Cleanup(func() {
		v.Close()
		server.Close()
	})
	return &testVenue{v, server.URL, server.Client()}
}

// listener is a client of the stream.
type listener struct {
	t     testing.TB
	ws    *websocket.Conn
	rid   int
	epoch string
	hello object
}

// dial opens a stream and reads the hello.
func (s *testVenue) dial(t testing.TB) *listener {
	t.Helper()
	l := s.connect(t)
	l.greeted(l.take("hello"))
	return l
}

// connect opens a stream.
func (s *testVenue) connect(t testing.TB) *listener {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ws, response, err := websocket.Dial(ctx, s.url+StreamPath, &websocket.DialOptions{HTTPClient: s.client})
	if err != nil {
		t.Fatalf("cannot open a stream: %v, response %v", err, response)
	}
	ws.SetReadLimit(-1)
	t.Cleanup(func() { _ = ws.CloseNow() })
	return &listener{t: t, ws: ws}
}

func (l *listener) greeted(hello object) { l.hello, l.epoch = hello, hello["epoch"].(string) }

// send sends a request of the type kind. members is the JSON of its other members. send returns the rid of the request.
func (l *listener) send(kind, members string) string {
	l.t.Helper()
	l.rid++
	rid := strconv.Itoa(l.rid)
	if members != "" {
		members = "," + members
	}
	l.raw(`{"type":"` + kind + `","rid":"` + rid + `"` + members + `}`)
	return rid
}

func (l *listener) raw(text string) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := l.ws.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		l.t.Fatal(err)
	}
}

// bytes returns the next frame, or the error that ended the stream.
func (l *listener) bytes() ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, data, err := l.ws.Read(ctx)
	return data, err
}

// next reads and decodes the next frame. It fails the test if the stream has ended.
func (l *listener) next() object {
	l.t.Helper()
	data, err := l.bytes()
	if err != nil {
		l.t.Fatal(err)
	}
	return decode[object](l.t, string(data))
}

// take returns the next frame, which must have the given type. It skips heartbeats before that frame.
func (l *listener) take(kind string) object {
	l.t.Helper()
	f := l.next()
	for f["type"] == "heartbeat" && kind != "heartbeat" {
		f = l.next()
	}
	if f["type"] != kind {
		l.t.Fatalf("got %v, want a %s", f, kind)
	}
	return f
}

// settle reads all frames that the venue has already sent, and returns them without the heartbeats.
func (l *listener) settle() []object {
	l.t.Helper()
	rid := l.send("ping", "")
	var frames []object
	for {
		f := l.next()
		if f["type"] == "pong" && f["rid"] == rid {
			return frames
		}
		if f["type"] != "heartbeat" {
			frames = append(frames, f)
		}
	}
}

// closed reads to the end of the stream and returns the close code, or -1 if the stream ended without a close frame. If frames
// still arrive after the time in patience, closed returns 0.
func (l *listener) closed() int {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if _, err := l.bytes(); err != nil {
			return int(websocket.CloseStatus(err))
		}
	}
	return 0
}

// subscribe subscribes to tokens and reads the acknowledgement. On the channel market, ids contains market ids.
func (l *listener) subscribe(channel string, ids ...string) {
	l.t.Helper()
	list, _ := json.Marshal(ids)
	name := "tokenIds"
	if channel == "market" {
		name = "marketIds"
	}
	rid := l.send("subscribe", `"channel":"`+channel+`","`+name+`":`+string(list))
	ack := l.take("subscribed")
	if ack["rid"] != rid || ack["channel"] != channel || fmt.Sprint(ack[name]) != fmt.Sprint(ids) {
		l.t.Fatalf("subscribe to %v: got acknowledgement %v", ids, ack)
	}
}

// authorize sends credentials for an address and reads the acknowledgement.
func (l *listener) authorize(address, key string) {
	l.t.Helper()
	rid := l.send("auth", `"address":"`+address+`","credentials":{"apiKey":"`+key+`","secret":"demo","passphrase":"demo"}`)
	if f := l.take("authenticated"); f["rid"] != rid || f["address"] != strings.ToLower(address) {
		l.t.Fatalf("got acknowledgement %v, want rid %s and address %s", f, rid, address)
	}
}

// subscribeUser subscribes to a wallet and returns the snapshot of the wallet.
func (l *listener) subscribeUser(address, key string) object {
	l.t.Helper()
	l.authorize(address, key)
	rid := l.send("subscribe", `"channel":"user","address":"`+address+`"`)
	if f := l.take("subscribed"); f["rid"] != rid || f["channel"] != "user" || f["address"] != strings.ToLower(address) {
		l.t.Fatalf("got acknowledgement %v, want rid %s and address %s", f, rid, address)
	}
	return l.take("user_snapshot")
}

// number returns a member of a frame that is an integer.
func number(t testing.TB, f object, name string) uint64 {
	t.Helper()
	n, ok := f[name].(json.Number)
	if !ok {
		t.Fatalf("%s of %v is not a number", name, f)
	}
	u, err := strconv.ParseUint(n.String(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// bookCopy is a client's copy of a book. bids and asks map prices to sizes, in the notation of the frames.
type bookCopy struct {
	seq        uint64
	bids, asks map[string]string
	at         string
}

// take applies a snapshot or an update. It returns false if the sequence number shows a gap.
func (b *bookCopy) take(t testing.TB, f object) (ok bool) {
	t.Helper()
	switch f["type"] {
	case "orderbook_snapshot":
		b.bids, b.asks = map[string]string{}, map[string]string{}
		for side, levels := range map[string]map[string]string{"bids": b.bids, "asks": b.asks} {
			for _, l := range f[side].([]any) {
				level := l.(object)
				levels[level["price"].(json.Number).String()] = level["size"].(json.Number).String()
			}
		}
		b.seq = number(t, f, "seq")
	case "orderbook_update":
		if number(t, f, "prevSeq") != b.seq || number(t, f, "seq") != b.seq+1 {
			return false
		}
		b.seq++
		for _, c := range f["changes"].([]any) {
			change := c.(object)
			side := b.bids
			if change["side"] == "SELL" {
				side = b.asks
			}
			price, size := change["price"].(json.Number).String(), change["size"].(json.Number).String()
			if size != "0" {
				side[price] = size
			} else if _, ok := side[price]; ok {
				delete(side, price)
			} else {
				t.Fatalf("%v removes a missing level", f)
			}
		}
	default:
		t.Fatalf("%v is not a frame of a book", f)
	}
	b.at = f["timestamp"].(string)
	return true
}

// check compares the copy with the book from REST.
func (b *bookCopy) check(t testing.TB, s *testVenue, tokenID, epoch string) {
	t.Helper()
	w := send(s, "/api/exchange/orderbook?depth=200&tokenId="+tokenID)
	var rest struct {
		bookAnswer
		Timestamp string
	}
	if err := json.Unmarshal(w.Body.Bytes(), &rest); err != nil {
		t.Fatal(err)
	}
	side := func(levels []levelAnswer) map[string]string {
		m := map[string]string{}
		for _, l := range levels {
			m[l.Price.String()] = l.Size.String()
		}
		return m
	}
	if rest.Seq != b.seq || rest.Epoch != epoch || rest.Timestamp != b.at {
		t.Fatalf("token %s: REST has seq %d in epoch %s at %s, the stream has seq %d in epoch %s at %s", tokenID, rest.Seq, rest.Epoch, rest.Timestamp, b.seq, epoch, b.at)
	}
	if !maps.Equal(side(rest.Bids), b.bids) || !maps.Equal(side(rest.Asks), b.asks) {
		t.Fatalf("token %s, seq %d: the book over REST is\n%v\n%v\nand on the stream\n%v\n%v", tokenID, b.seq, side(rest.Bids), side(rest.Asks), b.bids, b.asks)
	}
}

// TestStreamedBooks checks that streamed books equal the books from REST after many changes.
func TestStreamedBooks(t *testing.T) {
	c := newClock()
	s := open(t, Config{Clock: c, Seed: 3})
	deep := slices.MaxFunc(s.listing.tradable, func(a, b *token) int { return cmp.Compare(a.reach, b.reach) }) // its book reaches furthest
	binary := first(t, s.Venue, func(tok *token) bool { return isOpen(tok) && tok.market.binary() && tok.reach < 15 && tok != deep }).market
	categorical := first(t, s.Venue, func(tok *token) bool { return isOpen(tok) && !tok.market.binary() })
	tokens := []*token{deep, binary.tokens[0], binary.tokens[1], categorical}
	l, books := s.dial(t), map[string]*bookCopy{}
	l.subscribe("orderbook", idsOf(tokens)...)
	for _, tok := range tokens {
		books[tok.id] = &bookCopy{}
	}
	updates := 0
	take := func() {
		t.Helper()
		for _, f := range l.settle() {
			b := books[f["tokenId"].(string)]
			if !b.take(t, f) {
				t.Fatalf("after seq %d: got a gap before frame %v", b.seq, f)
			}
			updates++
		}
		for id, b := range books {
			b.check(t, s, id, l.epoch)
		}
	}
	take()
	r := rng(1)
	for step := range 200 {
		c.Advance(150 * time.Millisecond)
		s.Step()
		for _, tok := range tokens {
			switch {
			case tok.market.status == statusOpen && r.oneIn(3):
				price := Price(r.between(1, tok.ticks-1)) * tok.tick
				if r.oneIn(2) {
					price = min(max(tok.lastPrice()+Price(r.between(-3, 3))*tok.tick, tok.tick), payout-tok.tick)
				}
				if err := s.SetPrice(tok.id, price); err != nil {
					t.Fatal(err)
				}
			case r.oneIn(100):
				status := statusOpen
				if tok.market.status == statusOpen {
					status = statusClosed
				}
				if err := s.SetStatus(tok.market.id, status); err != nil {
					t.Fatal(err)
				}
			}
		}
		if step%10 == 0 {
			take()
		}
	}
	take()
	if updates < 200 {
		t.Errorf("got only %d updates, want at least 200", updates)
	}
}

// streamedAccount is a client's copy of a wallet, as decoded JSON. The keys of orders are order ids. The keys of positions are
// token ids.
type streamedAccount struct {
	seq               uint64
	orders, positions map[string]object
	balance           object
	fills             []object
	ended             []object
}

func newStreamedAccount(t testing.TB, snapshot object) *streamedAccount {
	a := &streamedAccount{seq: number(t, snapshot, "seq"), orders: map[string]object{}, positions: map[string]object{}, balance: snapshot["balance"].(object)}
	for _, o := range snapshot["orders"].([]any) {
		a.orders[o.(object)["orderId"].(string)] = o.(object)
	}
	for _, p := range snapshot["positions"].([]any) {
		a.positions[p.(object)["tokenId"].(string)] = p.(object)
	}
	return a
}

func (a *streamedAccount) take(t testing.TB, f object) {
	t.Helper()
	if number(t, f, "prevSeq") != a.seq || number(t, f, "seq") != a.seq+1 {
		t.Fatalf("after seq %d: got a gap before frame %v", a.seq, f)
	}
	a.seq++
	switch f["type"] {
	case "order_update":
		o := f["order"].(object)
		id := o["orderId"].(string)
		switch o["status"] {
		case "OPEN", "PARTIALLY_FILLED":
			a.orders[id] = o
		case "FILLED", "CANCELLED":
			delete(a.orders, id)
			a.ended = append(a.ended, o)
		default:
			t.Fatalf("got an order with an unknown status: %v", f)
		}
	case "fill":
		a.fills = append(a.fills, f["trade"].(object))
	case "position_update":
		p := f["position"].(object)
		if p["size"] == json.Number("0") {
			delete(a.positions, p["tokenId"].(string))
		} else {
			a.positions[p["tokenId"].(string)] = p
		}
	case "balance_update":
		a.balance = f["balance"].(object)
	default:
		t.Fatalf("%v is not a frame of an account", f)
	}
}

// check compares the copy with the responses from REST. Numbers must have the same digits.
func (a *streamedAccount) check(t testing.TB, s *testVenue, address string) {
	t.Helper()
	user := "?address=" + address + credentials("demo")
	if rest := get[object](t, s, "/api/user/balance"+user); fmt.Sprint(rest) != fmt.Sprint(a.balance) {
		t.Fatalf("the balance over REST is %v, but %v on the stream", rest, a.balance)
	}
	positions := get[struct{ Positions []object }](t, s, "/api/user/positions"+user).Positions
	if len(positions) != len(a.positions) {
		t.Fatalf("got %d positions over REST and %d on the stream", len(positions), len(a.positions))
	}
	for _, p := range positions {
		if streamed := a.positions[p["tokenId"].(string)]; fmt.Sprint(p) != fmt.Sprint(streamed) {
			t.Fatalf("the position over REST is %v, but %v on the stream", p, streamed)
		}
	}
	orders := get[struct{ Orders []object }](t, s, "/api/user/orders"+user).Orders
	if len(orders) != len(a.orders) {
		t.Fatalf("got %d orders over REST and %d on the stream", len(orders), len(a.orders))
	}
	for _, o := range orders {
		streamed := maps.Clone(a.orders[o["orderId"].(string)])
		delete(streamed, "tokenId")
		if fmt.Sprint(o) != fmt.Sprint(streamed) {
			t.Fatalf("the order over REST is %v, but %v on the stream", o, streamed)
		}
	}
	if len(a.fills) > 0 {
		trades := get[struct{ Trades []object }](t, s, "/api/user/trades"+user+"&limit="+strconv.Itoa(min(len(a.fills), maxTrades))).Trades
		for i, trade := range trades {
			if streamed := a.fills[len(a.fills)-1-i]; fmt.Sprint(trade) != fmt.Sprint(streamed) {
				t.Fatalf("the trade over REST is %v, but %v on the stream", trade, streamed)
			}
		}
	}
}

// TestStreamedAccounts checks that the balance, positions, orders and trades of an account on the stream equal those from REST.
func TestStreamedAccounts(t *testing.T) {
	c := newClock()
	s := open(t, Config{Markets: 400, Clock: c, Seed: 11, MarketEvery: 2 * time.Second})
	type copyOf struct {
		l       *listener
		address string
		account *streamedAccount
	}
	var copies []copyOf
	for _, address := range []string{small, medium, large, strings.ToLower(other)} {
		l := s.dial(t)
		copies = append(copies, copyOf{l, address, newStreamedAccount(t, l.subscribeUser(address, "demo"))})
	}
	take := func(all bool) {
		t.Helper()
		for _, cp := range copies {
			for _, f := range cp.l.settle() {
				cp.account.take(t, f)
			}
			if all {
				cp.account.check(t, s, cp.address)
			}
		}
	}
	take(true)
	for step := range 150 {
		c.Advance(150 * time.Millisecond)
		s.Step()
		take(step%25 == 0)
	}
	for _, cp := range copies {
		a := cp.account
		if len(a.fills) == 0 || len(a.ended) == 0 && cp.address != strings.ToLower(other) {
			t.Errorf("%s: got %d fills and %d ended orders, want some of both", cp.address, len(a.fills), len(a.ended))
		}
	}
	// The account closes a position and opens it again.
	for _, cp := range copies[1:2] {
		p := slices.DeleteFunc(s.Positions(cp.address), func(p Position) bool { return !isOpen(s.listing.tokenByID[p.TokenID]) })[0]
		if err := s.Trade(cp.address, p.TokenID, Sell, p.Size); err != nil {
			t.Fatal(err)
		}
		take(true)
		if err := s.Trade(cp.address, p.TokenID, Buy, 5*share); err != nil {
			t.Fatal(err)
		}
		take(true)
	}
}
