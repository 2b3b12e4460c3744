package market_test

import (
	"reflect"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

// TestQualifyAll checks the ids in a message of a stream; TestFurtherVenue of package cache checks those of all reads.
func TestQualifyAll(t *testing.T) {
	message := func(prefix string) *messages.Message {
		return &messages.Message{
			Topic: messages.Topic{Channel: messages.ChannelUser, ID: prefix + "a", Scope: "s"}, Epoch: "e",
			Price: &market.Price{TokenID: prefix + "p"}, Spread: &market.Spread{TokenID: prefix + "s"}, Book: &market.Book{TokenID: prefix + "b"},
			Trades: []market.Trade{{TradeID: prefix + "t", MarketID: prefix + "m", TokenID: prefix + "n", Outcome: "Yes"}},
			Market: &market.MarketChange{WinningTokenID: prefix + "w"}, Orders: []market.Order{{OrderID: "o", TokenID: prefix + "n"}},
			Positions: []market.Position{{MarketID: prefix + "m", TokenID: prefix + "n"}},
		}
	}
	sent := message("")
	if got := market.QualifyAll("v", sent); !reflect.DeepEqual(got, message("v:")) || !reflect.DeepEqual(sent, message("")) {
		t.Errorf("got %+v, want qualified ids; the client's message is now %+v", got, sent)
	}
	if n := testing.AllocsPerRun(100, func() { market.QualifyAll("", sent) }); n != 0 {
		t.Errorf("a message of the first venue takes %v allocations", n)
	}
	if m, ok := market.CutAll("v", testMarket("v:x", "v:")); !ok || !reflect.DeepEqual(m, testMarket("x", "")) {
		t.Errorf("got %+v, %t, want the venue's own ids", m, ok)
	}
	if own, ok := market.CutAll("v", []string{"v:a", "w:b"}); ok {
		t.Errorf("an id of another venue is %q", own)
	}
}

func testMarket(id, prefix string) *market.Market {
	return &market.Market{MarketID: id, Slug: prefix + "s", EventID: prefix + "e", EventSlug: prefix + "f", Question: "q", Outcomes: []market.Outcome{{TokenID: prefix + "t", Label: "Yes"}}}
}

// TestQualifyAllCopies checks that the values of a driver stay as they are, and that one market in several places gets its name once.
func TestQualifyAllCopies(t *testing.T) {
	m := testMarket("x", "")
	bad := market.Errorf(market.CodeUpstreamBadResponse, "row 1 could not be read")
	found := []upstream.Result[*queries.EventPage]{{Value: &queries.EventPage{LeftOut: market.LeftOut{bad}, Events: []queries.FoundEvent{{
		Event: &market.Event{EventID: "e", Markets: []*market.Market{m}}, Matches: []*market.Market{m},
	}}}}}
	for range 2 {
		page := market.QualifyAll("v", found)[0].Value
		if want := (market.LeftOut{market.AtVenue("v", bad)}); !reflect.DeepEqual(page.LeftOut, want) || found[0].Value.LeftOut[0] != error(bad) {
			t.Errorf("got the errors %v, want %v; the driver's error is now %v", page.LeftOut, want, found[0].Value.LeftOut[0])
		}
		e := page.Events[0]
		if want := testMarket("v:x", "v:"); e.EventID != "v:e" || !reflect.DeepEqual(e.Markets[0], want) || !reflect.DeepEqual(e.Matches[0], want) {
			t.Errorf("got %+v, want a copy of the market in both lists: %+v", e, want)
		}
	}
	if want := testMarket("x", ""); !reflect.DeepEqual(m, want) || found[0].Value.Events[0].EventID != "e" {
		t.Errorf("the driver's market is now %+v", m)
	}
	a, b := market.HistoryRecord{Outcome: "Yes"}, market.HistoryRecord{Outcome: "Yes"}
	if a, b = market.QualifyAll("v", a), market.QualifyAll("w", b); a.ID == "" || a.ID == b.ID {
		t.Errorf("equal records of two venues have the ids %q and %q", a.ID, b.ID)
	}
}
