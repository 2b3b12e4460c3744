// Command resident measures the memory of a full cache and a full feed. By default there are 20,000 cached markets, and 10,000
// watched tokens with prices and books of 20 levels per side. It writes one JSON object per step to its standard output.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"oddsgraph/internal/cache"
	"oddsgraph/internal/feed"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/reqctx"
)

// Step has the name of a step and the memory of the process after the step.
type Step struct {
	Step string `json:"step"`
	// Live is the size of the heap after a garbage collection, in bytes. RSS is the resident memory in bytes after the process
	// has returned unused memory to the system.
	Live uint64 `json:"live"`
	RSS  int64  `json:"rss"`
}

// levels is the number of levels on each side of a book.
const levels = 20

func main() {
	markets := flag.Int("markets", 20_000, "cached markets")
	tokens := flag.Int("tokens", 10_000, "watched tokens")
	flag.Parse()
	if err := measure(*markets, *tokens); err != nil {
		fmt.Fprintln(os.Stderr, "resident:", err)
		os.Exit(1)
	}
}

func measure(markets, tokens int) error {
	cfg := cache.DefaultConfig()
	cfg.Memory = 1 << 30 // enough for all entries, so that the cache evicts none
	cfg.Book.Size, cfg.Market.Size = max(cfg.Book.Size, tokens), max(cfg.Market.Size, markets)
	c := cache.New(venue{}, cfg)
	defer c.Close()
	f := feed.New(feed.Config{Sink: c, Topics: 2 * tokens})
	defer f.Close()
	f.Connect(upstream{})
	if err := report("nothing"); err != nil {
		return err
	}
	if err := readMarkets(c, markets); err != nil {
		return err
	}
	if err := report(fmt.Sprintf("%d cached markets", markets)); err != nil {
		return err
	}
	keep, err := watch(f, tokens)
	if err != nil {
		return err
	}
	if err := report(fmt.Sprintf("and %d watched tokens", tokens)); err != nil {
		return err
	}
	for seq := uint64(2); seq < 12; seq++ {
		for i := range tokens {
			f.Message(changeOf(i, seq))
		}
	}
	if err := report("and 10 changes of each book"); err != nil {
		return err
	}
	for _, s := range c.Stats() {
		if want := map[string]int{reqctx.KindMarket.String(): markets, reqctx.KindBook.String(): tokens}[s.Kind]; s.Entries < want {
			return fmt.Errorf("%d %ss are cached, want %d", s.Entries, s.Kind, want)
		}
	}
	runtime.KeepAlive(keep)
	return nil
}

// readMarkets has the cache read n markets. The cache chooses how many markets it reads in one call to the venue.
func readMarkets(c *cache.Cache, n int) error {
	refs := make([]market.MarketRef, 0, 500)
	for i := range n {
		if refs = append(refs, market.MarketRef{Value: fmt.Sprintf("0x%064x", i)}); len(refs) < cap(refs) && i < n-1 {
			continue
		}
		for _, r := range c.Markets().Fetch(context.Background(), refs) {
			if r.Err != nil || r.Value.Value == nil {
				return fmt.Errorf("a market was not read: %w", r.Err)
			}
		}
		refs = refs[:0]
	}
	return nil
}

func tokenOf(i int) string {
	return fmt.Sprintf("7132104567925221259462638553270691275033272857194253228%022d", i)
}

func topic(c messages.Channel, i int) messages.Topic {
	return messages.Topic{Channel: c, ID: tokenOf(i)}
}

// watch watches the price and book of each token, and sends an initial price and book for each token.
func watch(f *feed.Feed, tokens int) (*feed.Reader, error) {
	reader := f.NewReader("reader")
	all := make([]messages.Topic, 0, 2*tokens)
	for i := range tokens {
		for _, c := range []messages.Channel{messages.ChannelPrices, messages.ChannelOrderbook} {
			if _, err := reader.Watch(topic(c, i), nil); err != nil {
				return nil, err
			}
			all = append(all, topic(c, i))
		}
	}
	f.Up(all)
	now := time.Now()
	for i := range tokens {
		price := &market.Price{TokenID: tokenOf(i), Price: market.NewDecimal(5, -1), Basis: market.BasisVenue, Timestamp: now}
		f.Message(&messages.Message{Topic: topic(messages.ChannelPrices, i), Kind: messages.KindPrice, Epoch: "A", Seq: 1, Time: now, ReceivedAt: now, Price: price})
		bids, asks := make([]market.Level, 0, levels), make([]market.Level, 0, levels)
		for l := range int64(levels) {
			bids = append(bids, market.Level{Price: market.NewDecimal(499-l, -3), Size: market.NewDecimal(100+l, 0)})
			asks = append(asks, market.Level{Price: market.NewDecimal(501+l, -3), Size: market.NewDecimal(100+l, 0)})
		}
		book := &market.Book{TokenID: tokenOf(i), Bids: market.NewSide(bids), Asks: market.NewSide(asks), Depth: 200, Epoch: "A", Seq: 1, Rendered: new(market.Rendered)}
		f.Message(&messages.Message{Topic: topic(messages.ChannelOrderbook, i), Kind: messages.KindBookSnapshot, Epoch: "A", Seq: 1, Time: now, ReceivedAt: now, Book: book})
	}
	if n := len(reader.Take()); n != 2*tokens {
		return nil, fmt.Errorf("%d topics have a state, want %d", n, 2*tokens)
	}
	return reader, nil
}

// changeOf returns a message that changes one level on each side of the book of token i.
func changeOf(i int, seq uint64) *messages.Message {
	level := func(side market.OrderSide, price int64) market.LevelChange {
		return market.LevelChange{Side: side, Level: market.Level{Price: market.NewDecimal(price, -3), Size: market.NewDecimal(int64(1000+seq), -1)}}
	}
	at := int64(seq) % levels
	return &messages.Message{
		Topic: topic(messages.ChannelOrderbook, i), Kind: messages.KindBookDelta, Epoch: "A", Seq: seq, PrevSeq: seq - 1, Time: time.Now(), ReceivedAt: time.Now(),
		Changes: []market.LevelChange{level(market.SideBuy, 499-at), level(market.SideSell, 501+at)}, Depth: 200,
	}
}

// report writes the memory of the process after a step.
func report(step string) error {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s := Step{Step: step, Live: m.HeapAlloc}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			if _, err := fmt.Sscan(value, &s.RSS); err != nil {
				return err
			}
			s.RSS <<= 10
		}
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}

// upstream accepts all topics.
type upstream struct{}

func (upstream) Watch(messages.Topic, *market.Credentials) error { return nil }
func (upstream) Unwatch(messages.Topic)                          {}
func (upstream) Resync(messages.Topic)                           {}
func (upstream) Reconnect(messages.Topic)                        {}

// venue returns a market with a description of about 900 bytes for every id. The other methods of [cache.Venue] are never called.
type venue struct{ cache.Venue }

func (venue) Can(reqctx.Endpoint) error          { return nil }
func (venue) MaxKeys(reqctx.Endpoint) int        { return 40 }
func (venue) Cost(reqctx.Endpoint, int, int) int { return 1 }

func (venue) MarketsByID(_ context.Context, ids []string) ([]market.Result[*market.Market], error) {
	out := make([]market.Result[*market.Market], len(ids))
	for i, id := range ids {
		volume := market.NewDecimal(123456, -2)
		m := &market.Market{
			MarketID: id, Slug: "will-it-rain-" + id, Question: "Will it rain on the day " + id + "?", Category: "Weather",
			Description: strings.Repeat("This market resolves to Yes. ", 31), Volume: &volume,
		}
		for k, label := range []string{"Yes", "No"} {
			price := market.NewDecimal(int64(45+10*k), -2)
			m.Outcomes = append(m.Outcomes, market.Outcome{TokenID: fmt.Sprintf("9%s%d", id, k), Label: label, Price: &price})
		}
		out[i].Value = m
	}
	return out, nil
}
