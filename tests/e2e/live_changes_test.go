package e2e

import (
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"oddsgraph/app"
	"oddsgraph/internal/demo"
)

// streamProxy is a TCP proxy in front of the venue's stream. It forwards bytes from the venue at once. It delays bytes from the
// service, and forwards none of them while a test holds the lock.
type streamProxy struct {
	delay time.Duration
	held  sync.RWMutex
}

// startThroughProxy is like startLive, but the service connects to the stream through a streamProxy.
func startThroughProxy(t *testing.T, delay time.Duration, args ...string) (*service, *streamProxy) {
	t.Helper()
	r := &streamProxy{delay: delay}
	s, _ := startLiveRigged(t, func(w *app.Wiring) {
		u, err := url.Parse(w.Stream.URL)
		if err != nil {
			t.Fatal(err)
		}
		u.Host = r.open(t, u.Host)
		w.Stream.URL = u.String()
	}, args...)
	return s, r
}

// hold makes the proxy keep back what the service sends, until release is called or the test ends.
func (r *streamProxy) hold(t *testing.T) (release func()) {
	r.held.Lock()
	release = sync.OnceFunc(r.held.Unlock)
	t.Cleanup(release)
	return release
}

// open starts the proxy and returns its address. The parameter venue is the address of the venue's stream.
func (r *streamProxy) open(t *testing.T, venue string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", venue)
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
			go r.forward(in, out)
		}
	}()
	return l.Addr().String()
}

// forward copies bytes from in to out. It writes bytes when their delay is over and no test holds the lock.
func (r *streamProxy) forward(in io.Reader, out io.WriteCloser) {
	type part struct {
		b  []byte
		at time.Time
	}
	parts := make(chan part, 1000)
	go func() {
		for p := range parts {
			time.Sleep(time.Until(p.at))
			r.held.RLock()
			_, _ = out.Write(p.b)
			r.held.RUnlock()
		}
		_ = out.Close()
	}()
	defer close(parts)
	for {
		b := make([]byte, 4096)
		n, err := in.Read(b)
		if n > 0 {
			parts <- part{b[:n], time.Now().Add(r.delay)}
		}
		if err != nil {
			return
		}
	}
}

// untilStatus waits until an event of a subscription shows a market with the wanted status.
func untilStatus(t *testing.T, sub *events, want string) {
	t.Helper()
	sub.until(t, "status "+want, func(v any) bool { return text(v, "market.status") == want })
}

// TestAMarketChangesBeforeItIsSubscribed checks that events show a change that came after the REST response, but before the venue
// received the subscription.
func TestAMarketChangesBeforeItIsSubscribed(t *testing.T) {
	t.Parallel()
	s, proxy := startThroughProxy(t, 300*time.Millisecond)
	s.waitForStream(t)
	id := s.openMarkets(30)[25]
	release := proxy.hold(t)
	sub := s.dial(t, anonymous).subscribe(t, subMarkets, vars{"ids": []string{id}})
	sub.reason(t, "INITIAL")
	if err := s.venue.SetStatus(id, "CLOSED"); err != nil {
		t.Fatal(err)
	}
	release()
	untilStatus(t, sub, "CLOSED")

	// Events must also show a change that comes during a reconnect.
	s.venue.Restart(demo.CloseSlow)
	eventually(t, "the stream is open again", func() bool { return s.App.Live.Client.Stats().Reconnects > 0 })
	time.Sleep(150 * time.Millisecond)
	if err := s.venue.SetStatus(id, "OPEN"); err != nil {
		t.Fatal(err)
	}
	untilStatus(t, sub, "OPEN")
}

// TestASubscriptionIsIgnored checks that the service polls a market until the venue confirms the subscription. Events must show
// changes before and after the confirmation.
func TestASubscriptionIsIgnored(t *testing.T) {
	t.Parallel()
	s, proxy := startThroughProxy(t, 0, "--cache-market-fresh=1s", "--cache-market-stale=0s")
	s.waitForStream(t)
	id := s.openMarkets(30)[25]
	release := proxy.hold(t)
	sub := s.dial(t, anonymous).subscribe(t, subMarkets, vars{"ids": []string{id}})
	sub.reason(t, "INITIAL")
	if err := s.venue.SetStatus(id, "CLOSED"); err != nil {
		t.Fatal(err)
	}
	untilStatus(t, sub, "CLOSED")
	eventually(t, "the missing confirmation is counted", func() bool { return s.App.Live.Feed.Stats().Resubscribed > 0 })
	release()
	if err := s.venue.Reword(id, "other words"); err != nil {
		t.Fatal(err)
	}
	sub.until(t, "the new words", func(v any) bool { return text(v, "market.description") == "other words" })
}

// delayCalls makes the venue delay calls to path by ms milliseconds, and removes all other faults.
func (s *service) delayCalls(t *testing.T, path string, ms int) {
	t.Helper()
	s.setFaults(t, demo.Fault{Path: path, Kind: demo.FaultDelay, DelayMs: ms})
}

const marketDetails = "/api/exchange/market-details"

// TestAMarketChangesWhileItIsRead checks that the service reads a market again if the market changed during the read.
func TestAMarketChangesWhileItIsRead(t *testing.T) {
	t.Parallel()
	s := startLive(t)
	s.waitForStream(t)
	ids := s.openMarkets(30)
	k := s.dial(t, anonymous)
	s.delayCalls(t, marketDetails, 1000)
	first := k.subscribe(t, subMarkets, vars{"ids": []string{ids[25]}})
	time.Sleep(500 * time.Millisecond)
	if err := s.venue.SetStatus(ids[25], "CLOSED"); err != nil {
		t.Fatal(err)
	}
	s.setFaults(t)
	untilStatus(t, first, "CLOSED")

	second := k.subscribe(t, subMarkets, vars{"ids": []string{ids[24]}})
	second.reason(t, "INITIAL")
	s.delayCalls(t, marketDetails, 1000)
	for _, words := range []string{"first words", "second words"} {
		if err := s.venue.Reword(ids[24], words); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
	}
	s.setFaults(t)
	second.until(t, "the second words", func(v any) bool { return text(v, "market.description") == "second words" })
}

// TestAMarketCannotBeReadForAChange checks that a market is stale after the stream has announced a change, until the service has
// read the change over REST.
func TestAMarketCannotBeReadForAChange(t *testing.T) {
	t.Parallel()
	s := startLive(t)
	s.waitForStream(t)
	id := s.openMarkets(30)[25]
	sub := s.dial(t, anonymous).subscribe(t, subMarkets, vars{"ids": []string{id}})
	sub.reason(t, "INITIAL")
	s.setFaults(t, demo.Fault{Path: marketDetails, Kind: demo.FaultStatus, Status: 500})
	if err := s.venue.Reword(id, "new words"); err != nil {
		t.Fatal(err)
	}
	v := sub.reason(t, "FRESHNESS")
	if at(v, "market.freshness.stale") != true {
		t.Errorf("a market with an announced change is not stale: %s", asJSON(v))
	}
	s.setFaults(t)
	v = sub.until(t, "the new words", func(v any) bool { return text(v, "market.description") == "new words" })
	wantText(t, v, "change", "METADATA")
	if at(v, "market.freshness.stale") != false {
		t.Errorf("the market is stale after the service has read the change: %s", asJSON(v))
	}
}

// TestATradeWhileTheStreamOpens checks that a subscription shows a trade that is neither in the first REST response nor in the
// stream. The trade comes after the REST call begins and before the account's stream opens.
func TestATradeWhileTheStreamOpens(t *testing.T) {
	t.Parallel()
	s := startLive(t)
	s.waitForStream(t)
	var token string
	for _, x := range s.venue.Positions(addressOf50) {
		if s.venue.Trade(addressOf50, x.TokenID, demo.Sell, 100) == nil {
			token = x.TokenID
			break
		}
	}
	k := s.dial(t, keyOf50)
	s.setFaults(t, demo.Fault{Path: "/api/user/trades", Kind: demo.FaultDelay, DelayMs: 2500}, demo.Fault{Path: demo.StreamPath, Kind: demo.FaultDelay, DelayMs: 1500})
	sub := k.subscribe(t, subUserTrades, vars{"a": addressOf50})
	time.Sleep(time.Second)
	if err := s.venue.Trade(addressOf50, token, demo.Sell, 300); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	s.setFaults(t)
	sub.until(t, "the trade", func(v any) bool {
		for _, x := range list(v, "trades") {
			if text(x, "size") == "3" && text(x, "tokenId") == token {
				return true
			}
		}
		return false
	})
}

// TestAnOutageIsPolled checks that the service polls the venue while the stream is closed. When a query has returned the new price,
// the first event of a new subscriber must have this price.
func TestAnOutageIsPolled(t *testing.T) {
	t.Parallel()
	s := startLive(t)
	s.waitForStream(t)
	token := s.openTokens(3)[2]
	k := s.dial(t, anonymous)
	prices, book := k.subscribe(t, subPrices, vars{"ids": []string{token}}), k.subscribe(t, subBook, vars{"id": token, "depth": 5})
	prices.reason(t, "INITIAL")
	book.reason(t, "INITIAL")
	s.setFaults(t, demo.Fault{Path: demo.StreamPath, Kind: demo.FaultRefused})
	s.venue.Restart(demo.CloseSlow)
	prices.reason(t, "FRESHNESS")
	price := s.move(t, token)
	v := prices.until(t, "the new price", func(v any) bool { return text(v, "price.price") == plain(price) })
	wantText(t, v, "price.freshness.source", "REST")
	want := s.bookOf(t, token, 5)
	v = book.until(t, "the new book", func(v any) bool { return equalLadders(ladderOf(v, "book."), want) })
	wantText(t, v, "book.freshness.source", "REST")

	price = s.move(t, token)
	eventually(t, "a query shows the second new price", func() bool {
		return text(s.ask(t, queryLive, vars{"id": token}, anonymous), "token.price.price") == plain(price)
	})
	wantText(t, s.dial(t, anonymous).subscribe(t, subPrices, vars{"ids": []string{token}}).value(t), "price.price", plain(price))
	other := strings.Replace(subPrices, "previousPrice", "previousPrice x: reason", 1)
	wantText(t, s.dial(t, anonymous).subscribe(t, other, vars{"ids": []string{token}}).value(t), "price.price", plain(price))
}

// TestSubscriptionErrorsAreReported checks that each subscription reports a failed read once, and continues when calls succeed
// again.
func TestSubscriptionErrorsAreReported(t *testing.T) {
	t.Parallel()
	s := startLive(t, "--demo-stream=false")
	id, marketID := s.openTokens(1)[0], s.openMarkets(1)[0]
	s.setFaults(t, demo.Fault{Path: "*", Kind: demo.FaultStatus, Status: 500})
	k := s.dial(t, keyOf3)
	subs := map[string]*events{}
	for query, v := range map[string]vars{
		subPrices: {"ids": []string{id}}, subBook: {"id": id}, subMarkets: {"ids": []string{marketID}}, subPortfolio: {"a": addressOf3},
		subOrders: {"a": addressOf3}, subUserTrades: {"a": addressOf3}, subBalance: {"a": addressOf3},
	} {
		subs[query] = k.subscribe(t, query, v)
	}
	overSSE := s.sse(t, subPrices, vars{"ids": []string{id}}, anonymous)
	for query, sub := range subs {
		ev := sub.next(t)
		if ev.ended || ev.data != nil || len(ev.errors) != 1 || ev.errors[0].Extensions.Code != "UPSTREAM_UNAVAILABLE" {
			t.Fatalf("%s: got %+v, want one error", query, ev)
		}
	}
	if ev := overSSE.next(t); ev.ended || ev.data != nil || len(ev.errors) != 1 {
		t.Fatalf("over SSE: got %+v, want one error", ev)
	}
	// A client that joins the execution of a subscription must get the error, too.
	if ev := s.dial(t, anonymous).subscribe(t, subPrices, vars{"ids": []string{id}}).next(t); ev.ended || len(ev.errors) != 1 {
		t.Errorf("a client that joined the execution got %+v, want one error", ev)
	}
	s.setFaults(t)
	for _, sub := range subs {
		sub.reason(t, "INITIAL")
	}
	overSSE.reason(t, "INITIAL")
}
