package venue

import (
	"reflect"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/stream"
)

// TestQualifiedStream checks the ids in the messages of a further venue, and in the markets that its codec gets.
func TestQualifiedStream(t *testing.T) {
	message := func(prefix string) *messages.Message {
		return &messages.Message{
			Topic: messages.Topic{Channel: messages.ChannelUser, ID: prefix + "a", Scope: "s"}, Epoch: "e",
			Price: &market.Price{TokenID: prefix + "p"}, Spread: &market.Spread{TokenID: prefix + "s"}, Book: &market.Book{TokenID: prefix + "b"},
			Trades: []market.Trade{{TradeID: prefix + "t", MarketID: prefix + "m", TokenID: prefix + "n", Outcome: "Yes"}},
			Market: &market.MarketChange{WinningTokenID: prefix + "w"}, Orders: []market.Order{{OrderID: "o", TokenID: prefix + "n"}},
			Positions: []market.Position{{MarketID: prefix + "m", TokenID: prefix + "n"}},
		}
	}
	var got *messages.Message
	s := NewQualifiedStream("v", nil, handler{message: func(m *messages.Message) { got = m }})
	sent := message("")
	if s.Message(sent); !reflect.DeepEqual(got, message("v:")) || !reflect.DeepEqual(sent, message("")) {
		t.Errorf("got %+v, want qualified ids; the client's message is now %+v", got, sent)
	}
	m := s.Market(func(id string) *market.Market { return testMarket(id, "v:") })("x")
	if want := testMarket("x", ""); !reflect.DeepEqual(m, want) {
		t.Errorf("the codec gets the market %+v, want %+v", m, want)
	}
}

func testMarket(id, prefix string) *market.Market {
	return &market.Market{MarketID: id, Slug: prefix + "s", EventID: prefix + "e", EventSlug: prefix + "f", Question: "q", Outcomes: []market.Outcome{{TokenID: prefix + "t", Label: "Yes"}}}
}

// handler is a stream.Handler for messages. Its other methods panic.
type handler struct {
	stream.Handler
	message func(m *messages.Message)
}

func (h handler) Message(m *messages.Message) { h.message(m) }

// TestQualifiedCopies checks that the values of a driver stay as they are, and that one market in several places gets its name once.
func TestQualifiedCopies(t *testing.T) {
	m := testMarket("x", "")
	found := []upstream.Result[*queries.EventPage]{{Value: &queries.EventPage{Events: []queries.FoundEvent{{
		Event: &market.Event{EventID: "e", Markets: []*market.Market{m}}, Matches: []*market.Market{m},
	}}}}}
	for range 2 {
		e := Qualified("v", found)[0].Value.Events[0]
		if want := testMarket("v:x", "v:"); e.EventID != "v:e" || !reflect.DeepEqual(e.Markets[0], want) || e.Markets[0] != e.Matches[0] {
			t.Errorf("got %+v, want one copy of the market in both lists: %+v", e, want)
		}
	}
	if want := testMarket("x", ""); !reflect.DeepEqual(m, want) || found[0].Value.Events[0].EventID != "e" {
		t.Errorf("the driver's market is now %+v", m)
	}
	a, b := market.HistoryRecord{Outcome: "Yes"}, market.HistoryRecord{Outcome: "Yes"}
	if a, b = Qualified("v", a), Qualified("w", b); a.ID == "" || a.ID == b.ID {
		t.Errorf("equal records of two venues have the ids %q and %q", a.ID, b.ID)
	}
}

// TestOtherVenues checks what the stream of a further venue does with topics of another venue, with accounts, and with credentials.
func TestOtherVenues(t *testing.T) {
	if own, ok := Own("v", []string{"v:a", "w:b"}); ok {
		t.Errorf("an id of another venue is %q", own)
	}
	var watched messages.Topic
	noAccounts := market.Errorf(market.CodeUnsupported, "no accounts")
	s := NewQualifiedStream("v", noAccounts, handler{})
	client, err := stream.New(stream.Config{URL: "ws://venue.test", Protocol: &stream.Protocol{Subject: func(t messages.Topic) string { watched = t; return t.ID }}}, s)
	if err != nil {
		t.Fatal(err)
	}
	s.Connect(client)
	topic := messages.Topic{Channel: messages.ChannelPrices, ID: "v:t"}
	if err := s.Watch(topic, &market.Credentials{}); err != nil || watched.ID != "t" || client.Stats().Topics != 1 {
		t.Errorf("got error %v and the topic %+v, want the id t", err, watched)
	}
	if s.Unwatch(topic); client.Stats().Topics != 0 {
		t.Error("the topic is still watched")
	}
	if err := s.Watch(messages.Topic{Channel: messages.ChannelPrices, ID: "w:t"}, nil); market.CodeOf(err) != market.CodeBadUserInput {
		t.Errorf("got error %v for a topic of another venue, want BAD_USER_INPUT", err)
	}
	if err := s.Watch(messages.Topic{Channel: messages.ChannelUser, ID: "v:0x1"}, nil); err != noAccounts || client.Stats().Topics != 0 {
		t.Errorf("got error %v for an account, want %v", err, noAccounts)
	}
}
