package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/demo"
)

const (
	subPrices = `subscription($ids: [String!]!) { priceChanged(tokenIds: $ids) {
		reason previousPrice price { tokenId price basis freshness { source stale } }
		token { tokenId price { price } spread { bestBid bestAsk } market { marketId } } } }`
	subBook = `subscription($id: String!, $depth: Int, $deltas: Boolean) { orderbookChanged(tokenId: $id, depth: $depth, deltas: $deltas) {
		kind reason tokenId sequence previousSequence bids { price size } asks { price size }
		token { tokenId market { marketId } orderbook(depth: 200) { sequence } }
		book { sequence bids { price size } asks { price size } freshness { source stale } } } }`
	subMarkets = `subscription($ids: [String!]!) { marketChanged(marketIds: $ids) {
		reason change market { marketId status description tokens { winner } freshness { stale } } } }`
	subTrades = `subscription($ids: [String!]!) { tradesAdded(tokenIds: $ids) {
		reason gap trades { tradeId tokenId price size side } } }`
	subPortfolio = `subscription($a: Address!) { portfolioChanged(address: $a) {
		reason closedPositionIds
		changed { id tokenId size avgPrice costBasis token { price { price } } market { marketId } valuation { price basis value unrealizedPnl freshness { stale } } freshness { source stale } }
		summary { positionsValue costBasis unrealizedPnl unpricedPositions uncostedPositions freshness { source stale } } } }`
	subOrders = `subscription($a: Address!) { ordersChanged(address: $a) {
		reason closedOrderIds changed { id orderId status size filledSize } } }`
	subUserTrades = `subscription($a: Address!) { userTradesAdded(address: $a) {
		reason gap trades { tradeId tokenId price size side } } }`
	subBalance = `subscription($a: Address!) { balanceChanged(address: $a) {
		reason balance { cashBalance totalValue freshness { source stale } } } }`
	subStatus = `subscription { streamStatusChanged { state since connections watchedTokens reconnects } }`
)

// move changes a token's price to one of two fixed values and returns the new price. The change is at least one tick, whatever the
// tick size is.
func (s *service) move(t testing.TB, token string) demo.Price {
	t.Helper()
	q, _ := s.venue.Quote(token)
	price := demo.Price(6300)
	if q.Price == price {
		price = 3700
	}
	if err := s.venue.SetPrice(token, price); err != nil {
		t.Fatal(err)
	}
	q, _ = s.venue.Quote(token)
	return q.Price
}

func wantText(t testing.TB, v any, path, want string) {
	t.Helper()
	if got := text(v, path); got != want {
		t.Errorf("%s is %q, want %q, in %s", path, got, want, asJSON(v))
	}
}

// plain formats a decimal of the venue as the service formats it.
func plain[T fmt.Stringer](v T) string {
	text := v.String()
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

func TestSubscriptionsOfMarketsAndTokens(t *testing.T) {
	s := startLive(t)
	s.waitForStream(t)
	ids := s.openTokens(3)
	k := s.dial(t, anonymous)

	t.Run("priceChanged", func(t *testing.T) {
		sub := k.subscribe(t, subPrices, vars{"ids": ids[:2]})
		for range 2 {
			v := sub.reason(t, "INITIAL")
			q, _ := s.venue.Quote(text(v, "token.tokenId"))
			wantText(t, v, "price.price", plain(q.Price))
			wantText(t, v, "price.freshness.source", "STREAM")
			if at(v, "previousPrice") != nil {
				t.Errorf("the first event has a previous price: %s", asJSON(v))
			}
		}
		for range 3 {
			before, _ := s.venue.Quote(ids[1])
			s.move(t, ids[1])
			q, _ := s.venue.Quote(ids[1])
			v := sub.reason(t, "CHANGE")
			wantText(t, v, "token.tokenId", ids[1])
			wantText(t, v, "price.price", plain(q.Price))
			wantText(t, v, "previousPrice", plain(before.Price))
			wantText(t, v, "token.price.price", plain(q.Price))
			wantText(t, v, "token.spread.bestBid", plain(q.BestBid))
			wantText(t, v, "token.spread.bestAsk", plain(q.BestAsk))
			if text(v, "token.market.marketId") == "" {
				t.Errorf("the token of the event has no market: %s", asJSON(v))
			}
		}
		sub.stop()
	})

	t.Run("orderbookChanged", func(t *testing.T) {
		sub := k.subscribe(t, subBook, vars{"id": ids[0], "depth": 5})
		v := sub.reason(t, "INITIAL")
		wantText(t, v, "book.freshness.source", "STREAM")
		if at(v, "previousSequence") != nil || text(v, "kind") != "SNAPSHOT" {
			t.Errorf("the first event is %s, want a SNAPSHOT without previousSequence", asJSON(v))
		}
		s.move(t, ids[0])
		last := text(v, "sequence")
		v = sub.reason(t, "CHANGE")
		wantText(t, v, "kind", "SNAPSHOT")
		wantText(t, v, "previousSequence", last)
		wantText(t, v, "token.tokenId", ids[0])
		wantText(t, v, "token.orderbook.sequence", text(v, "sequence"))
		wantBook(t, v, "", s.bookOf(t, ids[0], 5))
		wantBook(t, v, "book.", s.bookOf(t, ids[0], 5))
		sub.stop()
	})

	t.Run("marketChanged", func(t *testing.T) {
		var markets []string
		for _, token := range s.venue.Tokens() {
			if token.Status == "OPEN" && !slices.Contains(markets, token.MarketID) && !slices.Contains(ids, token.TokenID) {
				markets = append(markets, token.MarketID)
			}
		}
		id := markets[20]
		sub := k.subscribe(t, subMarkets, vars{"ids": []string{id, markets[21]}})
		for range 2 {
			if v := sub.reason(t, "INITIAL"); at(v, "change") != nil || text(v, "market.status") != "OPEN" {
				t.Errorf("the first event is %s, want an OPEN market without a change", asJSON(v))
			}
		}
		if err := s.venue.Reword(id, "in other words"); err != nil {
			t.Fatal(err)
		}
		v := sub.reason(t, "CHANGE")
		wantText(t, v, "change", "METADATA")
		wantText(t, v, "market.description", "in other words")
		if err := s.venue.SetStatus(id, "CLOSED"); err != nil {
			t.Fatal(err)
		}
		v = sub.reason(t, "CHANGE")
		wantText(t, v, "change", "STATUS")
		wantText(t, v, "market.status", "CLOSED")
		var winner string
		for _, token := range s.venue.Tokens() {
			if token.MarketID == id {
				winner = token.TokenID
			}
		}
		if err := s.venue.Resolve(id, winner); err != nil {
			t.Fatal(err)
		}
		v = sub.reason(t, "CHANGE")
		wantText(t, v, "change", "RESOLVED")
		wantText(t, v, "market.status", "RESOLVED")
		if !slices.Contains(pluck(v, "market.tokens", "winner"), "true") {
			t.Errorf("no token is the winner in %s", asJSON(v))
		}
		sub.stop()
	})

	t.Run("tradesAdded", func(t *testing.T) {
		sub := k.subscribe(t, subTrades, vars{"ids": ids[:1]})
		v := sub.reason(t, "INITIAL")
		if n := len(list(v, "trades")); n > 50 {
			t.Errorf("the first event has %d trades, want at most 50", n)
		}
		for range 3 {
			if err := s.venue.Trade(addressOf2000, ids[0], demo.Buy, 100); err != nil {
				t.Fatal(err)
			}
			v = sub.reason(t, "CHANGE")
			if n := len(list(v, "trades")); n != 1 || at(v, "gap") != false {
				t.Errorf("got %s, want one trade and no gap", asJSON(v))
			}
			wantText(t, v, "trades.0.tokenId", ids[0])
			wantText(t, v, "trades.0.size", "1")
		}
		sub.stop()
	})

	t.Run("streamStatusChanged", func(t *testing.T) {
		sub := k.subscribe(t, subStatus, nil)
		v := sub.value(t)
		wantText(t, v, "state", "LIVE")
		other := k.subscribe(t, subPrices, vars{"ids": ids[2:]})
		other.reason(t, "INITIAL")
		before := at(v, "watchedTokens")
		sub.until(t, "a different count of watched tokens", func(v any) bool { return at(v, "watchedTokens") != before })
		sub.stop()
		other.stop()
	})
}

func TestSubscriptionsOfAnAccount(t *testing.T) {
	s := startLive(t)
	s.waitForStream(t)
	k := s.dial(t, keyOf50)
	a := vars{"a": addressOf50}
	portfolio, orders := k.subscribe(t, subPortfolio, a), k.subscribe(t, subOrders, a)
	trades, balance := k.subscribe(t, subUserTrades, a), k.subscribe(t, subBalance, a)
	p, o := portfolio.reason(t, "INITIAL"), orders.reason(t, "INITIAL")
	trades.reason(t, "INITIAL")
	b := balance.reason(t, "INITIAL")
	if n := len(list(p, "changed")); n != 50 {
		t.Errorf("the first event has %d positions, want 50", n)
	}
	venueBalance, _ := s.venue.Balance(addressOf50)
	wantText(t, b, "balance.cashBalance", plain(venueBalance.CashBalance))
	wantText(t, b, "balance.freshness.source", "STREAM")

	// A trade changes the position, the cash and the list of trades.
	token := s.sell(t, 100)
	v := trades.reason(t, "CHANGE")
	wantText(t, v, "trades.0.tokenId", token)
	wantText(t, v, "trades.0.size", "1")
	wantText(t, v, "trades.0.side", "SELL")
	venueBalance, _ = s.venue.Balance(addressOf50)
	wantText(t, balance.reason(t, "CHANGE"), "balance.cashBalance", plain(venueBalance.CashBalance))
	v = portfolio.reason(t, "CHANGE")
	wantText(t, v, "changed.0.tokenId", token)
	for _, x := range s.venue.Positions(addressOf50) {
		if x.TokenID == token {
			wantText(t, v, "changed.0.size", plain(x.Size))
		}
	}

	// A new price changes the valuation, and all fields of the event must use this price.
	price := s.move(t, token)
	v = portfolio.until(t, "the new price", func(v any) bool {
		return text(v, "changed.0.tokenId") == token && text(v, "changed.0.valuation.price") == plain(price)
	})
	wantText(t, v, "changed.0.token.price.price", plain(price))
	wantText(t, v, "changed.0.valuation.basis", "VENUE")

	// Selling all of a position closes it.
	for _, x := range s.venue.Positions(addressOf50) {
		if x.TokenID == token {
			if err := s.venue.Trade(addressOf50, token, demo.Sell, x.Size); err != nil {
				t.Fatal(err)
			}
		}
	}
	portfolio.until(t, "an event with the closed position", func(v any) bool { return len(list(v, "closedPositionIds")) == 1 })

	// Closing a market ends its orders.
	open := pluck(o, "changed", "id")
	if len(open) == 0 {
		t.Fatal("the account has no orders")
	}
	markets := map[string]bool{}
	for _, x := range list(s.ask(t, `query($a: Address!) { user(address: $a) { orders { nodes { id marketId } } } }`, a, keyOf50), "user.orders.nodes") {
		if slices.Contains(open, text(x, "id")) {
			markets[text(x, "marketId")] = true
		}
	}
	for id := range markets {
		if err := s.venue.SetStatus(id, "CLOSED"); err != nil {
			t.Fatal(err)
		}
	}
	gone := []string{}
	for len(gone) < len(open) {
		for _, id := range list(orders.reason(t, "CHANGE"), "closedOrderIds") {
			gone = append(gone, id.(string))
		}
	}
	slices.Sort(gone)
	slices.Sort(open)
	if !slices.Equal(gone, open) {
		t.Errorf("closed orders:\n got %v\nwant %v", gone, open)
	}
}

func TestRefusedSubscriptions(t *testing.T) {
	s := startLive(t)
	s.waitForStream(t)
	nobody, of3, wrong := s.dial(t, anonymous), s.dial(t, keyOf3), s.dial(t, credentials("no such key"))
	for _, query := range []string{subPortfolio, subOrders, subUserTrades, subBalance} {
		nobody.subscribe(t, query, vars{"a": addressOf3}).wantEnd(t, "UNAUTHENTICATED")
		wrong.subscribe(t, query, vars{"a": addressOf3}).wantEnd(t, "UNAUTHENTICATED")
		of3.subscribe(t, query, vars{"a": addressOf50}).wantEnd(t, "FORBIDDEN")
	}
	many := make([]string, 501)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	id := s.openTokens(1)[0]
	for _, c := range []struct {
		query     string
		variables vars
	}{
		{subPrices, vars{"ids": []string{}}}, {subPrices, vars{"ids": many}}, {subPrices, vars{"ids": []string{""}}},
		{subMarkets, vars{"ids": []string{}}}, {subMarkets, vars{"ids": many}},
		{subTrades, vars{"ids": []string{}}}, {subTrades, vars{"ids": many}},
		{subBook, vars{"id": id, "depth": 0}}, {subBook, vars{"id": id, "depth": 201}}, {subBook, vars{"id": ""}},
		{`subscription($id: String!) { priceChanged(tokenIds: [$id], maxPerSecond: 0) { reason } }`, vars{"id": id}},
		{`subscription($id: String!) { priceChanged(tokenIds: [$id], maxPerSecond: 101) { reason } }`, vars{"id": id}},
		{`subscription($id: String!) { pricesChanged(tokenIds: [$id], maxPerSecond: 21) { reason } }`, vars{"id": id}},
		{`subscription($id: String!) { orderbookChanged(tokenId: $id, maxPerSecond: 0) { reason } }`, vars{"id": id}},
		{`subscription($id: String!) { orderbookChanged(tokenId: $id, maxPerSecond: 101) { reason } }`, vars{"id": id}},
	} {
		of3.subscribe(t, c.query, c.variables).wantEnd(t, "BAD_USER_INPUT")
	}
	for _, n := range []int{0, 21} {
		of3.subscribe(t, `subscription($a: Address!, $n: Int) { portfolioChanged(address: $a, maxPerSecond: $n) { reason } }`,
			vars{"a": addressOf3, "n": n}).wantEnd(t, "BAD_USER_INPUT")
	}
}

func TestUnknownIDsOfASubscription(t *testing.T) {
	t.Parallel()
	s := startLive(t)
	s.waitForStream(t)
	id, marketID := s.openTokens(1)[0], s.openMarkets(1)[0]
	k := s.dial(t, anonymous)
	for _, c := range []struct {
		query, known string
		change       func() error
	}{
		{subPrices, id, func() error { s.move(t, id); return nil }},
		{subMarkets, marketID, func() error { return s.venue.Reword(marketID, "anew") }},
		{subTrades, id, func() error { return s.venue.Trade(addressOf2000, id, demo.Buy, 100) }},
	} {
		sub := k.subscribe(t, c.query, vars{"ids": []string{"no-such-1", c.known, "no-such-2"}})
		reported, initial := 0, 0
		take := func() any {
			ev := sub.next(t)
			if ev.ended {
				t.Fatalf("%s ended", c.query)
			}
			for _, e := range ev.errors {
				if e.Extensions.Code != "BAD_USER_INPUT" && e.Extensions.Code != "NOT_FOUND" || !strings.Contains(e.Message, "no-such-") {
					t.Errorf("%s: got the error %+v, want one about an unknown id", c.query, e)
				}
				reported++
			}
			return ev.data
		}
		for initial == 0 {
			if take() != nil {
				initial++
			}
		}
		change := func() {
			t.Helper()
			if err := c.change(); err != nil {
				t.Fatal(err)
			}
			for take() == nil {
			}
		}
		eventually(t, "both unknown ids are reported", func() bool { change(); return reported == 2 })
		change()
		change()
		if reported != 2 {
			t.Errorf("%s: %d unknown ids were reported in the end, want 2", c.query, reported)
		}
		sub.stop()
		k.subscribe(t, c.query, vars{"ids": []string{"no-such-3"}}).wantEnd(t, "BAD_USER_INPUT")
	}
	k.subscribe(t, subBook, vars{"id": "no-such-4"}).wantEnd(t, "BAD_USER_INPUT")
}

// TestThePaceOfASubscription checks that a subscription gets at most maxPerSecond events a second when changes come faster. The
// last event must have the newest state.
func TestThePaceOfASubscription(t *testing.T) {
	s := startLive(t)
	s.waitForStream(t)
	id := s.openTokens(1)[0]
	k := s.dial(t, anonymous)
	prices := k.subscribe(t, `subscription($id: String!) { priceChanged(tokenIds: [$id], maxPerSecond: 2) { reason previousPrice price { price } } }`, vars{"id": id})
	books := k.subscribe(t, `subscription($id: String!) { orderbookChanged(tokenId: $id, maxPerSecond: 2, deltas: true) {
		reason kind sequence previousSequence bids { price size } asks { price size } book { bids { price size } asks { price size } } } }`, vars{"id": id})
	begin := time.Now()
	last := text(prices.reason(t, "INITIAL"), "price.price")
	client := &replay{depth: 20}
	client.take(t, books.value(t))
	var price demo.Price
	for range 200 {
		price = s.move(t, id)
		time.Sleep(5 * time.Millisecond)
	}
	events := 0
	prices.until(t, "the newest price", func(v any) bool {
		events++
		wantText(t, v, "previousPrice", last)
		last = text(v, "price.price")
		return last == plain(price) && time.Since(begin) > time.Second
	})
	if most := int(time.Since(begin)/(500*time.Millisecond)) + 1; events > most {
		t.Errorf("got %d events of the price in %v, want at most %d", events, time.Since(begin), most)
	}
	for want := s.bookOf(t, id, 20); !equalLadders(client.book, want); {
		client.take(t, books.value(t))
	}
	if most := int(time.Since(begin)/(500*time.Millisecond)) + 1; client.deltas > most {
		t.Errorf("got %d events of the book in %v, want at most %d", client.deltas, time.Since(begin), most)
	}
}

// TestEventsImplementUpdate checks that the events of all subscriptions except streamStatusChanged implement the interface Update.
func TestEventsImplementUpdate(t *testing.T) {
	t.Parallel()
	s := startLive(t)
	token := s.openTokens(1)[0]
	m := text(s.ask(t, `query($t: String!) { token(tokenId: $t) { market { marketId } } }`, vars{"t": token}, anonymous), "token.market.marketId")
	k := s.dial(t, keyOf2000)
	for field, typ := range map[string]string{
		fmt.Sprintf("priceChanged(tokenIds: [%q])", token):          "PriceUpdate",
		fmt.Sprintf("pricesChanged(tokenIds: [%q])", token):         "PricesUpdate",
		fmt.Sprintf("orderbookChanged(tokenId: %q)", token):         "OrderbookUpdate",
		fmt.Sprintf("marketChanged(marketIds: [%q])", m):            "MarketUpdate",
		fmt.Sprintf("tradesAdded(tokenIds: [%q])", token):           "TradesUpdate",
		fmt.Sprintf("portfolioChanged(address: %q)", addressOf2000): "PortfolioUpdate",
		fmt.Sprintf("ordersChanged(address: %q)", addressOf2000):    "OrdersUpdate",
		fmt.Sprintf("userTradesAdded(address: %q)", addressOf2000):  "TradesUpdate",
		fmt.Sprintf("balanceChanged(address: %q)", addressOf2000):   "BalanceUpdate",
	} {
		event := k.subscribe(t, "subscription { "+field+" { ... on Update { __typename why: reason } } }", nil).value(t)
		wantText(t, event, "__typename", typ)
		wantText(t, event, "why", "INITIAL")
	}
}
