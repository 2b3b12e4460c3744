package e2e

import (
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"testing"

	"oddsgraph/graph/model"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/market"
)

// marketFields maps a field of a market to the venue's name of the field. The two fields must have the same JSON value.
var marketFields = map[string]string{
	"marketId": "marketId", "slug": "slug", "question": "question", "groupItemTitle": "groupItemTitle", "image": "image",
	"category": "category", "tags": "tags", "status": "status", "statusRaw": "status", "acceptingOrders": "acceptingOrders",
	"startsAt": "startDate", "endsAt": "endDate", "updatedAt": "updatedAt",
	"event.eventId": "eventId", "event.slug": "eventSlug", "event.title": "eventTitle",
}

const marketSelection = ` {
  id marketId slug question groupItemTitle image category tags status statusRaw acceptingOrders startsAt endsAt updatedAt
  volume volume24h liquidity tickSize minOrderSize event { eventId slug title }
  description resolution { winningOutcome resolvedAt source winningToken { tokenId outcome winner } }
  tokens { id tokenId outcome outcomeKind winner market { marketId } }
  freshness { source stale receivedAt asOf }
}`

// wantMarket compares a market with the venue's response about this market.
func wantMarket(t *testing.T, got, venue any) {
	t.Helper()
	for field, name := range marketFields {
		want := at(venue, name)
		if want == "" { // the venue sends "" if a market has no image; the service sends null
			want = nil
		}
		if g := at(got, field); asJSON(g) != asJSON(want) {
			t.Errorf("%s is %s, want %s", field, asJSON(g), asJSON(want))
		}
	}
	for _, field := range []string{"volume", "volume24h", "liquidity", "tickSize", "minOrderSize"} {
		wantNumber(t, field, at(got, field), number(t, at(venue, field)))
	}
	if g, want := at(got, "description"), at(venue, "description"); g != want {
		t.Errorf("description is %v, want %v", g, want)
	}
	outcomes := list(venue, "outcomes")
	tokens := list(got, "tokens")
	if len(tokens) != len(outcomes) {
		t.Fatalf("%d tokens, want %d", len(tokens), len(outcomes))
	}
	winner := "null"
	for i, o := range outcomes {
		kind := map[string]string{"YES": "YES", "NO": "NO"}[text(o, "outcome")]
		if kind == "" {
			kind = "OTHER"
		}
		id := model.EncodeID(model.KindToken, text(o, "tokenId"))
		wantJSON(t, "token", tokens[i], fmt.Sprintf(`{"id":%q,"tokenId":%s,"outcome":%s,"outcomeKind":%q,"winner":%s,"market":{"marketId":%s}}`,
			id, asJSON(at(o, "tokenId")), asJSON(at(o, "outcome")), kind, asJSON(at(o, "winner")), asJSON(at(venue, "marketId"))))
		if at(o, "winner") == true {
			winner = fmt.Sprintf(`{"tokenId":%s,"outcome":%s,"winner":true}`, asJSON(at(o, "tokenId")), asJSON(at(o, "outcome")))
		}
	}
	if r := at(venue, "resolution"); r == nil {
		wantJSON(t, "resolution", at(got, "resolution"), "null")
	} else {
		wantJSON(t, "resolution", at(got, "resolution"), fmt.Sprintf(`{"winningOutcome":%s,"resolvedAt":%s,"source":%s,"winningToken":%s}`,
			asJSON(at(r, "outcome")), asJSON(at(r, "resolvedAt")), asJSON(at(r, "source")), winner))
	}
}

// oneOfEachStatus maps each market status to one token of a market with this status.
func (s *service) oneOfEachStatus() map[string]demo.Token {
	out := map[string]demo.Token{}
	for _, t := range s.venue.Tokens() {
		if _, ok := out[t.Status]; !ok {
			out[t.Status] = t
		}
	}
	return out
}

func TestMarketsSayWhatTheVenueSays(t *testing.T) {
	s := start(t)
	tokens := s.oneOfEachStatus()
	if len(tokens) != 6 {
		t.Fatalf("the venue has markets in %d statuses, want 6", len(tokens))
	}
	for status, token := range tokens {
		t.Run(status, func(t *testing.T) {
			venue := s.raw(t, "/api/exchange/market-details", "id="+token.MarketID, anonymous)
			byID := s.ask(t, "query ($id: String!) { market(marketId: $id) "+marketSelection+" }", vars{"id": token.MarketID}, anonymous)
			wantMarket(t, at(byID, "market"), venue)
			wantJSON(t, "freshness", at(byID, "market.freshness"), fmt.Sprintf(`{"source":"REST","stale":false,"receivedAt":%q,"asOf":%s}`,
				s.clock.Now().Format("2006-01-02T15:04:05.000Z07:00"), asJSON(at(venue, "updatedAt"))))
			bySlug := s.ask(t, "query ($slug: String!) { market(slug: $slug) "+marketSelection+" }", vars{"slug": token.Slug}, anonymous)
			byToken := s.ask(t, "query ($id: String!) { token(tokenId: $id) { market "+marketSelection+" } }", vars{"id": token.TokenID}, anonymous)
			if id, slug, tok := asJSON(at(byID, "market")), asJSON(at(bySlug, "market")), asJSON(at(byToken, "token.market")); id != slug || id != tok {
				t.Errorf("the market differs between the fields:\nby id:    %s\nby slug:  %s\nby token: %s", id, slug, tok)
			}
		})
	}
}

// TestSearchReadsMissingFields checks fields of markets that the venue's search omits. The service must read these fields in one
// additional call. It must make this call only if markets in the search result can have the selected field.
func TestSearchReadsMissingFields(t *testing.T) {
	s := start(t)
	ended := []string{"RESOLVED", "CANCELLED"}
	all := append(slices.Clone(ended), "OPEN", "CLOSED", "DISPUTED", "UPCOMING")
	var data any
	search := func(selection string, status []string) calls {
		s.expireCaches()
		return s.callsDuring(func() {
			data = s.ask(t, "query ($in: [MarketStatus!]) { searchMarkets(first: 35, filter: {status: $in}) { nodes "+selection+" } }", vars{"in": status}, anonymous)
		})
	}
	wantCalls(t, search(marketSelection, all), calls{"market-search": {1, 1}, "market-details": {1, 35}})
	for _, m := range list(data, "searchMarkets.nodes") {
		wantMarket(t, m, s.raw(t, "/api/exchange/market-details", "id="+text(m, "marketId"), anonymous))
	}
	wantCalls(t, search("{ marketId tokens { outcome winner } }", ended), calls{"market-search": {1, 1}})
	wantCalls(t, search("{ description }", []string{"OPEN"}), calls{"market-search": {1, 1}, "market-details": {1, 35}})
	wantCalls(t, search("{ resolution { source } }", ended), calls{"market-search": {1, 1}, "market-details": {1, 35}})
	wantCalls(t, search("{ resolution { source } }", []string{"OPEN", "CLOSED"}), calls{"market-search": {1, 1}})
}

func TestListsKeepTheOrderOfTheirIDs(t *testing.T) {
	s := start(t)
	tokens, markets := s.openTokens(3), s.openMarkets(3)
	data := s.ask(t, `query ($tokens: [String!]!, $markets: [String!]!, $nodes: [ID!]!) {
	  tokens(tokenIds: $tokens) { tokenId } tokenPrices(tokenIds: $tokens) { tokenId } spreads(tokenIds: $tokens) { tokenId }
	  markets(marketIds: $markets) { marketId } nodes(ids: $nodes) { id }
	}`, vars{
		"tokens":  []string{tokens[2], "none", tokens[0], tokens[2]},
		"markets": []string{markets[1], markets[1], "none", markets[0]},
		"nodes": []string{model.EncodeID(model.KindMarket, "none"), model.EncodeID(model.KindEvent, "none"), model.EncodeID(model.KindToken, tokens[1]),
			model.EncodeID(model.KindMarket, markets[0])},
	}, anonymous)
	for path, want := range map[string][]string{
		"tokens": {tokens[2], "none", tokens[0], tokens[2]}, "tokenPrices": {tokens[2], "<nil>", tokens[0], tokens[2]},
		"spreads": {tokens[2], "<nil>", tokens[0], tokens[2]},
	} {
		if got := pluck(data, path, "tokenId"); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
	if got, want := pluck(data, "markets", "marketId"), []string{markets[1], markets[1], "<nil>", markets[0]}; !slices.Equal(got, want) {
		t.Errorf("markets: got %v, want %v", got, want)
	}
	want := []string{"<nil>", "<nil>", model.EncodeID(model.KindToken, tokens[1]), model.EncodeID(model.KindMarket, markets[0])}
	if got := pluck(data, "nodes", "id"); !slices.Equal(got, want) {
		t.Errorf("nodes: got %v, want %v", got, want)
	}
}

func TestWhatIsAbsentIsNull(t *testing.T) {
	s := start(t)
	data := s.ask(t, `{
	  market(marketId: "none") { slug } bySlug: market(slug: "none") { slug }
	  event(eventId: "none") { slug } eventBySlug: event(slug: "none") { slug }
	  token(tokenId: "none") {
	    tokenId outcome outcomeKind winner price { price } spread { spread } orderbook { spread } history { from } candles { open }
	    fillEstimate(side: BUY, size: 1) { cost } market { slug }
	  }
	  searchMarkets(query: "no market has these words") { nodes { slug } edges { cursor } totalCount pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }
	}`, nil, anonymous)
	wantJSON(t, "data", data, `{"market":null,"bySlug":null,"event":null,"eventBySlug":null,
	  "token":{"tokenId":"none","outcome":null,"outcomeKind":null,"winner":null,"price":null,"spread":null,"orderbook":null,"history":null,"candles":null,"fillEstimate":null,"market":null},
	  "searchMarkets":{"nodes":[],"edges":[],"totalCount":0,"pageInfo":{"hasNextPage":false,"hasPreviousPage":false,"startCursor":null,"endCursor":null}}}`)

	// A closed market has a price, but no book.
	closed := s.oneOfEachStatus()["CLOSED"].TokenID
	data = s.ask(t, `query ($id: String!) { token(tokenId: $id) { price { basis } spread { spread } orderbook { spread } fillEstimate(side: SELL, amount: 1) { cost } } spreads(tokenIds: [$id]) { spread } }`, vars{"id": closed}, anonymous)
	wantJSON(t, "a closed market", data, `{"token":{"price":{"basis":"VENUE"},"spread":null,"orderbook":null,"fillEstimate":null},"spreads":[null]}`)

	// The account does not have these positions and orders.
	gone := []string{
		model.EncodeID(model.KindPosition, addressOf50, "none", "YES"), model.EncodeID(model.KindOrder, addressOf50, "none"),
		model.EncodeID(model.KindPosition, addressOf50, s.venue.Positions(addressOf50)[0].MarketID, "Neither"),
	}
	data = s.ask(t, `query ($ids: [ID!]!) { nodes(ids: $ids) { id } }`, vars{"ids": gone}, keyOf50)
	wantJSON(t, "absent positions and orders", data, `{"nodes":[null,null,null]}`)
}

// TestNodesRoundTrip checks that the fields node and nodes return an object by its global id, for each type with global ids.
func TestNodesRoundTrip(t *testing.T) {
	s := start(t)
	held := s.venue.Positions(addressOf50)[7]
	for _, test := range []struct{ typ, query, path string }{
		{"User", `{ user(address: "` + addressOf50 + `") SELECTION }`, "user"},
		{"Position", `{ user(address: "` + addressOf50 + `") { positions(first: 1, marketIds: ["` + held.MarketID + `"]) { nodes SELECTION } } }`, "user.positions.nodes.0"},
		{"Order", `{ user(address: "` + addressOf50 + `") { orders { nodes SELECTION } } }`, "user.orders.nodes.3"},
		{"Market", `{ market(marketId: "` + held.MarketID + `") SELECTION }`, "market"},
		{"Event", `{ event(eventId: "10001") SELECTION }`, "event"},
		{"Event", `{ market(marketId: "` + held.MarketID + `") { event SELECTION } }`, "market.event"},
		{"Token", `{ token(tokenId: "` + held.TokenID + `") SELECTION }`, "token"},
	} {
		fields := `{ __typename id ` + map[string]string{
			"User":     `... on User { address balance { cashBalance } }`,
			"Position": `... on Position { marketId outcome size market { question } token { price { price } } valuation { value } }`,
			"Order":    `... on Order { orderId side price size market { question } token { price { price } } }`,
			"Market":   `... on Market { marketId question description tokens { tokenId price { price } } }`,
			"Event":    `... on Event { eventId title volume markets(first: 2) { nodes { question } } }`,
			"Token":    `... on Token { tokenId outcome price { price } market { question } }`,
		}[test.typ] + ` }`
		want := at(s.ask(t, strings.Replace(test.query, "SELECTION", fields, 1), nil, keyOf50), test.path)
		id := text(want, "id")
		if text(want, "__typename") != test.typ || id == "" {
			t.Errorf("got %s, want an object of type %s with an id", asJSON(want), test.typ)
		}
		data := s.ask(t, `query ($id: ID!, $ids: [ID!]!) { node(id: $id) `+fields+` nodes(ids: $ids) `+fields+` }`, vars{"id": id, "ids": []string{id, id}}, keyOf50)
		for _, path := range []string{"node", "nodes.0", "nodes.1"} {
			wantJSON(t, test.typ+" by "+path, at(data, path), asJSON(want))
		}
		if test.typ == "Position" || test.typ == "Order" {
			_, errors := s.query(t, `query ($id: ID!) { node(id: $id) { id } }`, vars{"id": id}, keyOf3)
			wantErrors(t, errors, "node FORBIDDEN")
			_, errors = s.query(t, `query ($ids: [ID!]!) { nodes(ids: $ids) { id } }`, vars{"ids": []string{id}}, anonymous)
			wantErrors(t, errors, "nodes.0 UNAUTHENTICATED")
		}
	}
}

// TestPositionsAsNodesAreReadTogether checks that a query of positions by id reads all prices in one call, and all markets in one
// call.
func TestPositionsAsNodesAreReadTogether(t *testing.T) {
	s := start(t)
	ids := pluck(s.ask(t, `{ user(address: "`+addressOf50+`") { positions(first: 40) { nodes { id } } } }`, nil, keyOf50), "user.positions.nodes", "id")
	got := s.callsDuring(func() {
		s.ask(t, `query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Position { token { price { price } } market { question } } } }`, vars{"ids": ids}, keyOf50)
	})
	if got["prices"] != [2]int64{1, 40} || got["market-details"][0] != 1 || len(got) != 2 {
		t.Errorf("got the calls %v, want one for 40 prices and one for the markets", got)
	}
}

func TestEvents(t *testing.T) {
	s := start(t)
	for _, id := range []string{"10000", "10001", "10003", "10008"} {
		venue := list(s.raw(t, "/api/exchange/market-search", "limit=100&eventId="+id, anonymous), "markets")
		volume := new(big.Rat)
		startsAt, endsAt := text(venue[0], "startDate"), text(venue[0], "endDate")
		var markets []string
		for _, m := range venue {
			volume = add(volume, number(t, at(m, "volume")))
			startsAt, endsAt = min(startsAt, text(m, "startDate")), max(endsAt, text(m, "endDate"))
			markets = append(markets, text(m, "marketId"))
		}
		const selection = `{ id eventId slug title startsAt endsAt volume markets(first: 500) { totalCount nodes { marketId event { title } } } }`
		slug := text(venue[0], "eventSlug")
		s.expireCaches()
		var data any
		wantCalls(t, s.callsDuring(func() {
			data = s.ask(t, `query ($id: String!) { event(eventId: $id) `+selection+` }`, vars{"id": id}, anonymous)
		}), calls{"market-search": {1, 1}})
		e := at(data, "event")
		if text(e, "eventId") != id || text(e, "slug") != slug || text(e, "title") != text(venue[0], "eventTitle") || text(e, "startsAt") != startsAt || text(e, "endsAt") != endsAt {
			t.Errorf("event %s has other ids, titles or times than the venue's markets: %s", id, asJSON(e))
		}
		wantNumber(t, "volume", at(e, "volume"), volume)
		if got := pluck(e, "markets.nodes", "marketId"); !slices.Equal(got, markets) {
			t.Errorf("markets: got %v, want %v", got, markets)
		}
		// A query by slug and the field event of a market must return the same event. The venue sends the event's ids and title
		// with each market, so the service needs no other call for them.
		bySlug := s.ask(t, `query ($slug: String!) { event(slug: $slug) `+selection+` }`, vars{"slug": slug}, anonymous)
		wantJSON(t, "the event by slug", at(bySlug, "event"), asJSON(e))
		ofMarket := s.ask(t, `query ($id: String!) { market(marketId: $id) { event `+selection+` } }`, vars{"id": markets[0]}, anonymous)
		wantJSON(t, "the event of a market", at(ofMarket, "market.event"), asJSON(e))
		s.expireCaches()
		wantCalls(t, s.callsDuring(func() {
			s.ask(t, `query ($id: String!) { market(marketId: $id) { event { id eventId slug title } } }`, vars{"id": markets[0]}, anonymous)
		}), calls{"market-details": {1, 1}})
	}
}

func TestSearch(t *testing.T) {
	s := start(t)
	for _, test := range []struct {
		name   string
		vars   vars
		venue  url.Values
		filter func(m any) bool
	}{
		{"everything", nil, url.Values{}, nil},
		{"text", vars{"q": "bitcoin"}, url.Values{"q": {"bitcoin"}}, func(m any) bool { return strings.Contains(asJSON(m), "Bitcoin") }},
		{"status", vars{"f": vars{"status": []string{"DISPUTED", "CANCELLED"}}}, url.Values{"status": {"DISPUTED,CANCELLED"}}, func(m any) bool {
			return text(m, "status") == "DISPUTED" || text(m, "status") == "CANCELLED"
		}},
		{"category", vars{"f": vars{"category": "science"}}, url.Values{"category": {"Science"}}, func(m any) bool { return text(m, "category") == "Science" }},
		{"tag", vars{"f": vars{"tag": "up-or-down"}}, url.Values{"tag": {"up-or-down"}}, func(m any) bool { return slices.Contains(list(m, "tags"), any("up-or-down")) }},
		{"time range of the end", vars{"f": vars{"endsAfter": "2026-04-01T00:00:00Z", "endsBefore": "2026-06-01T02:00:00+02:00"}},
			url.Values{"endsAfter": {"2026-04-01T00:00:00Z"}, "endsBefore": {"2026-06-01T00:00:00Z"}}, func(m any) bool {
				return text(m, "endDate") > "2026-04-01" && text(m, "endDate") < "2026-06-01"
			}},
		{"text, status and the smallest liquidity first", vars{"q": "will", "s": "LIQUIDITY", "o": "ASC", "f": vars{"status": []string{"OPEN"}}},
			url.Values{"q": {"will"}, "sort": {"liquidity"}, "order": {"asc"}, "status": {"OPEN"}}, nil},
		{"sort by the volume of 24 hours", vars{"s": "VOLUME_24H"}, url.Values{"sort": {"volume24h"}}, nil},
		{"sort by volume", vars{"s": "VOLUME", "o": "DESC"}, url.Values{"sort": {"volume"}}, nil},
		{"sort by end", vars{"s": "ENDS_AT", "o": "ASC"}, url.Values{"sort": {"endsAt"}, "order": {"asc"}}, nil},
		{"the newest first", vars{"s": "STARTS_AT"}, url.Values{"sort": {"startsAt"}}, nil},
		{"nulls", vars{"f": nil, "s": nil, "o": nil, "n": nil}, url.Values{}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.venue.Set("limit", "20")
			venue := s.raw(t, "/api/exchange/market-search", test.venue.Encode(), anonymous)
			query := `query ($q: String! = "", $f: MarketSearchFilter, $s: MarketSort, $o: SortOrder, $n: Int) { searchMarkets(query: $q, filter: $f, sort: $s, order: $o, first: $n) { totalCount nodes { marketId } } }`
			found := at(s.ask(t, query, test.vars, anonymous), "searchMarkets")
			want := pluck(venue, "markets", "marketId")
			if got := pluck(found, "nodes", "marketId"); !slices.Equal(got, want) || len(want) == 0 {
				t.Errorf("got  %v\nwant %v", got, want)
			}
			if got, want := fmt.Sprint(at(found, "totalCount")), fmt.Sprint(at(venue, "totalCount")); got != want {
				t.Errorf("totalCount is %s, want %s", got, want)
			}
			for _, m := range list(venue, "markets") {
				if test.filter != nil && !test.filter(m) {
					t.Errorf("the filter should exclude %s", asJSON(m))
				}
			}
		})
	}
}

// TestEarliestTimes checks that the zero instant of Go and .NET and the zero of Unix time are filters like any other, in every field
// with a filter by time.
func TestEarliestTimes(t *testing.T) {
	s := start(t)
	query := `query ($t: DateTime!, $a: Address!) {
		before: searchMarkets(filter: {endsBefore: $t}, first: 1) { totalCount nodes { id } } after: searchMarkets(filter: {endsAfter: $t}, first: 1) { nodes { id } }
		eventsBefore: searchEvents(filter: {endsBefore: $t}, first: 1) { nodes { id } } eventsAfter: searchEvents(filter: {endsAfter: $t}, first: 1) { nodes { id } }
		user(address: $a) {
			tradesTo: trades(to: $t, first: 1) { nodes { id } } tradesFrom: trades(from: $t, first: 1) { nodes { id } }
			historyTo: history(to: $t, first: 1) { nodes { id } } historyFrom: history(from: $t, first: 1) { nodes { id } }
		} }`
	for _, instant := range []string{"0001-01-01T00:00:00Z", "0001-01-01T00:00:00.0000000+00:00", "1970-01-01T00:00:00Z"} {
		found := s.ask(t, query, vars{"t": instant, "a": addressOf50}, keyOf50)
		for path, want := range map[string]int{
			"before": 0, "after": 1, "eventsBefore": 0, "eventsAfter": 1, "user.tradesTo": 0, "user.tradesFrom": 1, "user.historyTo": 0, "user.historyFrom": 1,
		} {
			if got := len(list(found, path+".nodes")); got != want {
				t.Errorf("%s: %s has %d rows, want %d", instant, path, got, want)
			}
		}
		if total := at(found, "before.totalCount"); fmt.Sprint(total) != "0" {
			t.Errorf("%s: %v markets end before this instant, want 0", instant, total)
		}
	}
}

// levels returns the prices and the sizes of a side of a book. The book may be a response of the venue or of the service.
func levels(t *testing.T, book any, side string) (prices, sizes []*big.Rat) {
	t.Helper()
	for _, l := range list(book, side) {
		prices, sizes = append(prices, number(t, at(l, "price"))), append(sizes, number(t, at(l, "size")))
	}
	return prices, sizes
}

func TestOrderbooks(t *testing.T) {
	s := start(t)
	for _, id := range s.openTokens(3) {
		for _, depth := range []int{1, 5, 20, 21, 200} {
			s.expireCaches()
			venue := s.raw(t, "/api/exchange/orderbook", fmt.Sprintf("depth=%d&tokenId=%s", depth, id), anonymous)
			top := s.raw(t, "/api/exchange/spreads", "tokenId="+id, anonymous)
			data := s.ask(t, `query ($id: String!, $depth: Int) { token(tokenId: $id) {
			  spread { tokenId bestBid bestAsk spread midpoint token { tokenId } freshness { asOf } }
			  orderbook(depth: $depth) { tokenId bids { price size } asks { price size } spread midpoint sequence hash token { tokenId } freshness { asOf source stale } } } }`,
				vars{"id": id, "depth": depth}, anonymous)
			book := at(data, "token.orderbook")
			for _, side := range []string{"bids", "asks"} {
				prices, sizes := levels(t, venue, side)
				if got := list(book, side); len(got) != len(prices) || len(got) > depth || len(got) == 0 {
					t.Fatalf("depth %d: got %d %s, want %d", depth, len(got), side, len(prices))
				}
				for i := range prices {
					wantNumber(t, side+" price", at(list(book, side)[i], "price"), prices[i])
					wantNumber(t, side+" size", at(list(book, side)[i], "size"), sizes[i])
				}
			}
			bid, ask := number(t, at(venue, "bids.0.price")), number(t, at(venue, "asks.0.price"))
			middle := mul(add(bid, ask), big.NewRat(1, 2))
			for _, shown := range []any{book, at(data, "token.spread")} {
				wantNumber(t, "spread", at(shown, "spread"), number(t, at(venue, "spread")))
				wantNumber(t, "midpoint", at(shown, "midpoint"), middle)
				if text(shown, "tokenId") != id || text(shown, "token.tokenId") != id {
					t.Errorf("got %s, want the token %s", asJSON(shown), id)
				}
			}
			wantNumber(t, "bestBid", at(data, "token.spread.bestBid"), number(t, at(top, "bestBid")))
			wantNumber(t, "bestAsk", at(data, "token.spread.bestAsk"), number(t, at(top, "bestAsk")))
			if want := text(venue, "epoch") + ":" + fmt.Sprint(at(venue, "seq")); text(book, "sequence") != want || at(book, "hash") != nil {
				t.Errorf("got the sequence %v and the hash %v, want %s and null", at(book, "sequence"), at(book, "hash"), want)
			}
			wantJSON(t, "freshness", at(book, "freshness"), `{"asOf":`+asJSON(at(venue, "timestamp"))+`,"source":"REST","stale":false}`)
		}
		// Fields with different depths must share one call for the deepest book.
		s.expireCaches()
		wantCalls(t, s.callsDuring(func() {
			data := s.ask(t, `query ($id: String!) { token(tokenId: $id) { a: orderbook(depth: 3) { bids { price } } b: orderbook(depth: 60) { bids { price } } c: orderbook { bids { price } } fillEstimate(side: BUY, size: 5) { cost } } }`, vars{"id": id}, anonymous)
			if n := len(list(data, "token.a.bids")); n != 3 {
				t.Errorf("the book of depth 3 has %d bids, want 3", n)
			}
		}), calls{"orderbook": {1, 1}})
		wantCalls(t, s.callsDuring(func() {
			s.ask(t, `query ($id: String!) { token(tokenId: $id) { orderbook(depth: 200) { bids { price } } } }`, vars{"id": id}, anonymous)
		}), calls{})
	}
}

// TestFillEstimates checks that the estimates are those of market.FillSize and market.FillAmount for the venue's book.
func TestFillEstimates(t *testing.T) {
	s := start(t)
	id := s.openTokens(1)[0]
	venue, _ := s.venue.Book(id)
	sideOf := func(levels []demo.Level) market.Side {
		var out []market.Level
		for _, l := range levels[:min(200, len(levels))] {
			out = append(out, market.Level{Price: market.MustDecimal(l.Price.String()), Size: market.MustDecimal(l.Size.String())})
		}
		return market.NewSide(out)
	}
	book := &market.Book{Bids: sideOf(venue.Bids), Asks: sideOf(venue.Asks)}
	const fields = ` { averagePrice worstPrice filledSize cost slippage complete freshness { source stale } } `
	for _, side := range []market.OrderSide{market.SideBuy, market.SideSell} {
		for _, n := range []string{"0.5", "700", "1000000000"} {
			data := s.ask(t, `query ($id: String!, $side: OrderSide!, $n: Decimal) { token(tokenId: $id) {
			  size: fillEstimate(side: $side, size: $n)`+fields+`amount: fillEstimate(side: $side, amount: $n)`+fields+`} }`, vars{"id": id, "side": side, "n": n}, anonymous)
			for form, want := range map[string]market.Fill{"size": market.FillSize(book, side, market.MustDecimal(n)), "amount": market.FillAmount(book, side, market.MustDecimal(n))} {
				got, what := at(data, "token."+form), fmt.Sprintf("%s %s of %s: ", side, form, n)
				wantNumber(t, what+"averagePrice", at(got, "averagePrice"), rat(want.AveragePrice.String()))
				wantNumber(t, what+"worstPrice", at(got, "worstPrice"), rat(want.WorstPrice.String()))
				wantNumber(t, what+"filledSize", at(got, "filledSize"), rat(want.FilledSize.String()))
				wantNumber(t, what+"cost", at(got, "cost"), rat(want.Cost.String()))
				wantNumber(t, what+"slippage", at(got, "slippage"), rat(want.Slippage.String()))
				if at(got, "complete") != want.Complete {
					t.Errorf("%scomplete is %v, want %v", what, at(got, "complete"), want.Complete)
				}
				wantJSON(t, what+"freshness", at(got, "freshness"), `{"source":"COMPUTED","stale":false}`)
			}
		}
	}
}
