// Package layers has benchmarks for packages without benchmarks of their own. It uses only exported APIs.
package layers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"oddsgraph/httpapi/fanout"
	"oddsgraph/internal/cache"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue"
	"oddsgraph/internal/venue/rest"
)

// listLength is the number of ids in each list that a benchmark requests.
const listLength = 40

// recorded is a transport that returns recorded responses, so that only the client is measured.
type recorded map[string][]byte

func (r recorded) RoundTrip(req *http.Request) (*http.Response, error) {
	body, ok := r[req.URL.Path]
	status := http.StatusOK
	if !ok {
		status = http.StatusNotFound
	}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// holder is the demo account with 50 positions.
const holder = "0x2222222222222222222222222222222222222222"

// record records responses of the demo venue. It returns a client of the recorded responses, a context with credentials, and known
// ids.
func record(b *testing.B) (client venue.Driver, ctx context.Context, tokens, markets []string) {
	b.Helper()
	v := demo.New(demo.Config{Seed: 1})
	seen := map[string]bool{}
	for _, t := range v.Tokens() {
		if t.Status == "OPEN" && !seen[t.MarketID] && len(markets) < listLength {
			seen[t.MarketID] = true
			tokens, markets = append(tokens, t.TokenID), append(markets, t.MarketID)
		}
	}
	const credentials = `{"apiKey":"demo-50","secret":"demo","passphrase":"demo"}`
	r := recorded{}
	for path, query := range map[string]string{
		"/api/exchange/prices":         "tokenIds=" + join(tokens),
		"/api/exchange/market-details": "ids=" + join(markets),
		"/api/exchange/orderbook":      "depth=200&tokenId=" + tokens[0],
		"/api/user/positions":          "address=" + holder + "&credentials=" + credentials,
	} {
		req := httptest.NewRequest(http.MethodGet, path, nil)
		req.URL.RawQuery = query
		w := httptest.NewRecorder()
		v.ServeHTTP(w, req)
		if w.Code != http.StatusOK {
			b.Fatalf("%s: got status %d and the body %s, want status 200", path, w.Code, w.Body)
		}
		r[path] = w.Body.Bytes()
	}
	client, err := venue.Open(venue.Config{Config: rest.Config{BaseURL: "http://venue", Transport: r}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	c, err := market.ParseCredentials([]byte(credentials))
	if err != nil {
		b.Fatal(err)
	}
	return client, reqctx.WithCredentials(b.Context(), c), tokens, markets
}

func join(ids []string) string {
	var buf bytes.Buffer
	for i, id := range ids {
		if i > 0 {
			buf.WriteByte(',')
		}
		buf.WriteString(id)
	}
	return buf.String()
}

// BenchmarkVenue makes calls without a network. Each call encodes a request and decodes a recorded response.
func BenchmarkVenue(b *testing.B) {
	client, ctx, tokens, markets := record(b)
	wantRows := func(n, want int, err error) error {
		if err == nil && n != want {
			err = fmt.Errorf("%d rows, want %d", n, want)
		}
		return err
	}
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"prices=40", func() error {
			out, err := client.Prices(ctx, tokens)
			return wantRows(len(out), listLength, err)
		}},
		{"markets=40", func() error {
			out, err := client.MarketsByID(ctx, markets)
			return wantRows(len(out), listLength, err)
		}},
		{"positions=50", func() error {
			out, err := client.Positions(ctx, holder)
			return wantRows(len(out), 50, err)
		}},
		{"book", func() error {
			_, err := client.Books(ctx, []queries.Book{{TokenID: tokens[0], Depth: 200}})
			return err
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCache reads 40 prices. In "hits", all of them are cached. In "misses", the cache fetches all of them.
func BenchmarkCache(b *testing.B) {
	client, ctx, tokens, _ := record(b)
	for name, fresh := range map[string]time.Duration{"hits": time.Hour, "misses": 0} {
		b.Run(name, func(b *testing.B) {
			cfg := cache.DefaultConfig()
			cfg.Price.TTL = cache.TTL{Fresh: fresh}
			c := cache.New(client, cfg)
			defer c.Close()
			prices := c.Prices()
			prices.Fetch(ctx, tokens)
			out, missing := make([]market.Result[market.Read[*market.Price]], listLength), make([]int, 0, listLength)
			b.ReportAllocs()
			for b.Loop() {
				missing = prices.Lookup(ctx, tokens, out, missing[:0])
				if (len(missing) == 0) != (fresh > 0) {
					b.Fatalf("the look-up misses %d prices, want all in misses and none in hits", len(missing))
				}
				if len(missing) > 0 {
					prices.Fetch(ctx, tokens)
				}
			}
		})
	}
}

// events is a subscription whose events come from the channel next. A group calls Next again after it has queued an event.
// Therefore the second and every later call of Next sends a value to queued.
type events struct {
	ctx    context.Context
	group  *fanout.Group
	next   chan []byte
	queued chan struct{}
	asked  bool
}

func (s *events) Next() ([]byte, bool) {
	if s.asked {
		s.queued <- struct{}{}
	}
	s.asked = true
	select {
	case payload := <-s.next:
		return payload, true
	case <-s.ctx.Done():
		return nil, false
	}
}

func (*events) Last() (errors, event []byte) { return nil, nil }

// BenchmarkFanOut puts one event into the queues of all members of a group, and takes it from each queue.
func BenchmarkFanOut(b *testing.B) {
	for _, members := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			hub := fanout.New(fanout.Limits{})
			opened := make(chan *events, 1)
			all := make([]*fanout.Member, members)
			for i := range all {
				all[i] = fanout.NewMember(func() {})
				free := func() (func(), error) { return func() {}, nil }
				_ = hub.Join(b.Context(), fanout.Key{}, all[i], netip.Prefix{}, free, func(ctx context.Context, g *fanout.Group) fanout.Source {
					s := &events{ctx: ctx, group: g, next: make(chan []byte), queued: make(chan struct{}, 1)}
					opened <- s
					return s
				})
			}
			s := <-opened
			defer hub.Close()
			payload := []byte(`{"data":{"priceChanged":{"price":{"price":"0.5"}}}}`)
			b.ReportAllocs()
			for b.Loop() {
				s.group.Announce(follow.Envelope{Mode: follow.Replace})
				s.next <- payload
				<-s.queued
				for _, m := range all {
					if got, _, _ := m.Take(); got == nil {
						b.Fatal("a member of the group got no event")
					}
				}
			}
			perItem(b, members)
		})
	}
}

// acceptAll is an upstream that accepts all topics.
type acceptAll struct{}

func (acceptAll) Watch(messages.Topic, *market.Credentials) error { return nil }
func (acceptAll) Unwatch(messages.Topic)                          {}
func (acceptAll) Resync(messages.Topic)                           {}
func (acceptAll) Reconnect(messages.Topic)                        {}

// BenchmarkWatched sends one price message for every watched token in each iteration. The feed writes all prices to the cache, and
// all must reach the reader. ns/item should not grow with the number of tokens.
func BenchmarkWatched(b *testing.B) {
	for _, tokens := range []int{1, 10, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("tokens=%d", tokens), func(b *testing.B) {
			client, _, _, _ := record(b)
			cfg := cache.DefaultConfig()
			cfg.Memory *= 2 // the default has room for only 9,600 prices, and an eviction costs more than a replacement
			c := cache.New(client, cfg)
			defer c.Close()
			f := feed.New(feed.Config{Sink: c, Topics: tokens})
			defer f.Close()
			f.Connect(acceptAll{})
			reader := f.NewReader("reader")
			defer reader.Close()
			topics := make([]messages.Topic, tokens)
			prices := make([]*market.Price, tokens)
			for i := range topics {
				id := fmt.Sprintf("713210456792522125946263855327069127503327285719425322896313%d", i)
				topics[i] = messages.Topic{Channel: messages.ChannelPrices, ID: id}
				prices[i] = &market.Price{TokenID: id, Price: market.MustDecimal("0.55"), Basis: market.BasisVenue}
				if _, err := reader.Watch(topics[i], nil); err != nil {
					b.Fatal(err)
				}
			}
			f.Up(topics)
			seq := uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				seq++
				at := time.Now()
				for i, key := range topics {
					f.Message(&messages.Message{Topic: key, Kind: messages.KindPrice, Epoch: "A", Seq: seq, ReceivedAt: at, Price: prices[i]})
				}
				changed := reader.Take()
				if len(changed) != tokens {
					b.Fatalf("%d tokens have changed, want %d", len(changed), tokens)
				}
				for _, w := range changed {
					if s, _, err := w.Take(); err != nil || s.Seq != seq {
						b.Fatal("the reader does not have the state of the last message")
					}
				}
			}
			perItem(b, tokens)
		})
	}
}

// perItem reports the time per item. Each iteration of the loop handles the given number of items.
func perItem(b *testing.B, items int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(items), "ns/item")
}
