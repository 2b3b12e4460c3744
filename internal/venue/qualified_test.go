package venue

import (
	"context"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/stream"
)

// filled returns a value in which all texts are id, and which has one element in each list.
func filled[T any](id string) (value T) {
	fill(reflect.ValueOf(&value).Elem(), id)
	return value
}

func fill(v reflect.Value, id string) {
	switch {
	case !v.CanSet():
	case v.Kind() == reflect.String:
		v.SetString(id)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), id)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), id)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), id)
		}
	}
}

// texts calls visit for every text in a value, with the name of its field.
func texts(v reflect.Value, name string, visit func(name, text string)) {
	switch v.Kind() {
	case reflect.String:
		visit(name, v.String())
	case reflect.Pointer:
		if !v.IsNil() {
			texts(v.Elem(), name, visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			texts(v.Index(i), name, visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				texts(v.Field(i), v.Type().Name()+"."+f.Name, visit)
			}
		}
	}
}

// isID reports whether a field is an id of the venue. The id of an order is none here, because global ids put it behind the address.
func isID(name string) bool {
	return name != "Order.OrderID" && (strings.HasSuffix(name, "ID") || strings.HasSuffix(name, "Slug"))
}

// driver answers every read with one value of which all texts are "x". It notes the arguments.
type driver struct {
	Reader
	got   []any
	bytes int
}

func give[T any](d *driver, arguments ...any) (T, error) {
	d.got = append(d.got, arguments...)
	return filled[T]("x"), nil
}

type results[T any] = []upstream.Result[*T]

func (d *driver) Can(upstream.Endpoint) error                { return nil }
func (d *driver) MaxKeys(upstream.Endpoint) int              { return 1 }
func (d *driver) Cost(_ upstream.Endpoint, _, bytes int) int { d.bytes = bytes; return 1 }
func (d *driver) Prices(_ context.Context, _ upstream.Call, ids []string) (results[market.Price], error) {
	return give[results[market.Price]](d, ids)
}
func (d *driver) Spreads(_ context.Context, _ upstream.Call, ids []string) (results[market.Spread], error) {
	return give[results[market.Spread]](d, ids)
}
func (d *driver) Books(_ context.Context, _ upstream.Call, q []queries.Book) (results[market.Book], error) {
	return give[results[market.Book]](d, q)
}
func (d *driver) PriceHistories(_ context.Context, _ upstream.Call, q []queries.PriceHistory) (results[market.PriceHistory], error) {
	return give[results[market.PriceHistory]](d, q)
}
func (d *driver) MarketsByID(_ context.Context, _ upstream.Call, ids []string) (results[market.Market], error) {
	return give[results[market.Market]](d, ids)
}
func (d *driver) MarketsByToken(_ context.Context, _ upstream.Call, ids []string) (results[market.Market], error) {
	return give[results[market.Market]](d, ids)
}
func (d *driver) MarketBySlug(_ context.Context, _ upstream.Call, slug string) (*market.Market, error) {
	return give[*market.Market](d, slug)
}
func (d *driver) Event(_ context.Context, _ upstream.Call, ref market.EventRef) (*market.Event, error) {
	return give[*market.Event](d, ref)
}
func (d *driver) Search(_ context.Context, _ upstream.Call, q queries.Search) (*queries.SearchPage, error) {
	return give[*queries.SearchPage](d, q)
}
func (d *driver) SearchEvents(_ context.Context, _ upstream.Call, q queries.Search) (*queries.EventPage, error) {
	return give[*queries.EventPage](d, q)
}
func (d *driver) Categories(context.Context, upstream.Call) (*queries.Categories, error) {
	return give[*queries.Categories](d)
}
func (d *driver) MarketTrades(_ context.Context, _ upstream.Call, q queries.MarketTrades) (*queries.TradePage, error) {
	return give[*queries.TradePage](d, q)
}
func (d *driver) Balance(_ context.Context, _ upstream.Call, a market.Address) (*market.Balance, error) {
	return give[*market.Balance](d, a)
}
func (d *driver) Positions(_ context.Context, _ upstream.Call, a market.Address) ([]market.Position, error) {
	return give[[]market.Position](d, a)
}
func (d *driver) Orders(_ context.Context, _ upstream.Call, a market.Address) ([]market.Order, error) {
	return give[[]market.Order](d, a)
}
func (d *driver) Trades(_ context.Context, _ upstream.Call, a market.Address, q queries.Trades) (*queries.TradePage, error) {
	return give[*queries.TradePage](d, a, q)
}
func (d *driver) History(_ context.Context, _ upstream.Call, a market.Address, q queries.History) (*queries.HistoryPage, error) {
	return give[*queries.HistoryPage](d, a, q)
}

// TestQualifiedVisitsEveryID calls every read of a further venue. The driver must get all ids without the name of the venue, and all
// ids in its answers must get the name, and no other text. Ids are the fields ID, Slug and those that end so.
func TestQualifiedVisitsEveryID(t *testing.T) {
	d := &driver{}
	reader := reflect.ValueOf(Qualified(d, "v", false))
	for i := range reader.Type().NumMethod() {
		method := reader.Type().Method(i)
		var in []reflect.Value
		for j := range method.Type.NumIn() - 1 {
			switch kind := method.Type.In(j + 1); kind {
			case reflect.TypeFor[context.Context]():
				in = append(in, reflect.ValueOf(t.Context()))
			default:
				argument := reflect.New(kind).Elem()
				if kind != reflect.TypeFor[upstream.Call]() {
					fill(argument, "v:x")
				}
				in = append(in, argument)
			}
		}
		d.got = nil
		out := reader.Method(i).Call(in)
		for _, argument := range d.got {
			texts(reflect.ValueOf(argument), "ID", func(name, text string) {
				if want := map[bool]string{true: "x", false: "v:x"}[isID(name)]; text != want {
					t.Errorf("%s: the driver got %s %q, want %q", method.Name, name, text, want)
				}
			})
		}
		texts(out[0], "", func(name, text string) {
			if want := map[bool]string{true: "v:x", false: "x"}[isID(name)]; text != want {
				t.Errorf("%s: got %s %q, want %q", method.Name, name, text, want)
			}
		})
	}
	var got *messages.Message
	s := NewQualifiedStream("v", nil, handler{message: func(m *messages.Message) { got = m }})
	sent := filled[*messages.Message]("x")
	s.Message(sent)
	texts(reflect.ValueOf(got), "", func(name, text string) {
		if want := map[bool]string{true: "v:x", false: "x"}[isID(name)]; text != want {
			t.Errorf("message: got %s %q, want %q", name, text, want)
		}
	})
	if !reflect.DeepEqual(sent, filled[*messages.Message]("x")) {
		t.Errorf("the client's message is now %+v", sent)
	}
	tokens := s.Market(func(id string) *market.Market { return filled[*market.Market](id) })("x")
	if want := filled[*market.Market]("x"); tokens.MarketID != want.MarketID || tokens.Outcomes[0].TokenID != want.Outcomes[0].TokenID {
		t.Errorf("the codec gets the market %+v, want the venue's own ids", tokens)
	}
}

// handler is a stream.Handler for messages. Its other methods panic.
type handler struct {
	stream.Handler
	message func(m *messages.Message)
}

func (h handler) Message(m *messages.Message) { h.message(m) }

// keeper is a driver that keeps one market, and returns it for every key and in every list.
type keeper struct {
	driver
	market market.Market
}

func (k *keeper) MarketsByToken(_ context.Context, _ upstream.Call, ids []string) (results[market.Market], error) {
	return slices.Repeat(results[market.Market]{{Value: &k.market}}, len(ids)), nil
}

func (k *keeper) SearchEvents(context.Context, upstream.Call, queries.Search) (*queries.EventPage, error) {
	all := []*market.Market{&k.market}
	return &queries.EventPage{Events: []queries.FoundEvent{{Event: &market.Event{EventID: "e", Markets: all}, Matches: all}}}, nil
}

// TestQualifiedCopies checks that the values of a driver stay as they are, and that one market in several places gets its name once.
func TestQualifiedCopies(t *testing.T) {
	k := &keeper{market: filled[market.Market]("x")}
	q := Qualified(k, "v", false)
	for range 2 {
		byToken, err := q.MarketsByToken(t.Context(), upstream.Call{}, []string{"v:a", "v:b"})
		if err != nil || byToken[0].Value.MarketID != "v:x" || byToken[1].Value.Outcomes[0].TokenID != "v:x" {
			t.Errorf("got %+v, %v, want ids with one name", byToken, err)
		}
		page, err := q.SearchEvents(t.Context(), upstream.Call{}, queries.Search{})
		if err != nil || page.Events[0].Markets[0].MarketID != "v:x" || page.Events[0].Markets[0] != page.Events[0].Matches[0] {
			t.Errorf("got %+v, %v, want one copy of the market in both lists", page, err)
		}
	}
	if !reflect.DeepEqual(k.market, filled[market.Market]("x")) {
		t.Errorf("the driver's market is now %+v", k.market)
	}
}

// TestCost checks that the names of venues do not count for the length of a URL.
func TestCost(t *testing.T) {
	d := &driver{}
	for _, name := range []string{"v", "a-venue"} {
		bytes, want := 0, 0
		for _, id := range []string{"a", "b:c", "d e"} {
			bytes, want = bytes+len(url.QueryEscape(market.Qualify(name, id))), want+len(url.QueryEscape(id))
		}
		if Qualified(d, name, false).Cost(upstream.EndpointPrices, 3, bytes); d.bytes != want {
			t.Errorf("%q: the driver computes the cost of %d bytes, want %d", name, d.bytes, want)
		}
	}
}

// TestOtherVenues checks what a further venue does with ids of another venue, with accounts, and with credentials.
func TestOtherVenues(t *testing.T) {
	d := &driver{}
	q := Qualified(d, "v", true)
	if _, err := q.Prices(t.Context(), upstream.Call{}, []string{"v:a", "w:b"}); market.CodeOf(err) != market.CodeBadUserInput {
		t.Errorf("got error %v, want BAD_USER_INPUT", err)
	}
	page, err := q.Trades(t.Context(), upstream.Call{}, "v:0x1", queries.Trades{MarketID: "m"})
	if err != nil || len(page.Trades) != 0 || len(d.got) != 0 {
		t.Errorf("got %+v, %v and the calls %v, want an empty page without a call", page, err, d.got)
	}
	if err := q.Can(upstream.EndpointBalance); market.CodeOf(err) != market.CodeUnsupported || q.Can(upstream.EndpointPrices) != nil {
		t.Errorf("got error %v for accounts, want UNSUPPORTED, and no error for prices", err)
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
