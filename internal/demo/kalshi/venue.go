// Package kalshi is a simulator of Kalshi. It serves the markets, books and trades of a [demo.Venue] in the formats of Kalshi's
// public REST API and WebSocket. All data are synthetic.
//
// The API is under [Path], the WebSocket at [StreamPath]. A binary market of the demo venue is one market here. A market with
// several outcomes is an event of mutually exclusive markets, one for each outcome. The simulator verifies the signature of each
// WebSocket handshake, and of each call for several books. The documented token bucket limits the rate of calls. The simulator also
// has the following documented or reported oddities. A call for several books costs tokens for each book, and answers an unknown
// ticker with an empty book. The worst level of a side comes first. Some settled markets are only in the archive. Days are days of
// Eastern time. In the quiet markets nothing ever happens. The simulator has no orders and no accounts.
package kalshi

import (
	"crypto/rsa"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/server"
)

// Path is the path of the REST API.
const Path = "/trade-api/v2"

// Config configures a simulator.
type Config struct {
	// Demo configures the markets and the latency.
	Demo demo.Config
	// Keys has the public keys that verify signatures, by the id of the API key.
	Keys map[string]*rsa.PublicKey
	// TokensPerSecond is the rate limit of REST calls, in tokens of the token bucket; 200 if it is not positive.
	TokensPerSecond int
}

// Venue is a simulated Kalshi. It is an [http.Handler] and safe for concurrent use.
type Venue struct {
	demo.Dialect

	config  Config
	bucket  server.Bucket
	events  []*event
	markets []*market
	// The four maps below never change after New. The keys of byDemoToken and byDemoMarket are the demo venue's identifiers.
	byTicker      map[string]*market
	eventByTicker map[string]*event
	byDemoToken   map[string]demoToken
	byDemoMarket  map[string][]*market

	mu sync.Mutex // guards the changing fields of markets; locked after the engine's lock. event and row are called with it held
}

type event struct {
	ticker, series, title string
	exclusive             bool
	markets               []*market
}

// market is a question with the outcomes YES and NO. The fields before state never change.
type market struct {
	number                  int
	ticker, title, yes, no  string
	event                   *event
	demoToken               string // the demo venue's token whose price is the price of YES
	outcome                 int    // index of demoToken in state.TokenIDs
	binary, archived, quiet bool   // quiet: nobody trades in the market, and its book never changes

	state demo.Market
	bids  [2]map[demo.Price]demo.Size // of YES and NO
	last  demo.Price                  // price of the last trade; 0 if the market never traded
}

// demoToken is a token of the demo venue: an outcome of a market.
type demoToken struct {
	market *market
	no     bool
}

// New returns a simulator. Call its Run to let its prices move.
func New(config Config) *Venue {
	v := &Venue{
		config: config, byTicker: map[string]*market{}, eventByTicker: map[string]*event{},
		byDemoToken: map[string]demoToken{}, byDemoMarket: map[string][]*market{},
	}
	if v.config.TokensPerSecond <= 0 {
		v.config.TokensPerSecond = 200
	}
	v.Open(config.Demo, v)
	v.Each(v.addMarket)
	v.API.Prefix, v.API.TooLong = "GET "+Path, refuse(http.StatusRequestURITooLong, "uri_too_long", "URI too long")
	v.Sockets.Limits.Every = pingEvery
	v.routes()
	return v
}

// eventOf returns the event of a market of the demo venue, and adds it if it is new.
func (v *Venue) eventOf(s demo.Market) *event {
	series := "KX" + tickerPart(s.Category)
	ticker := series + "-" + tickerPart(s.EventSlug)
	if !s.Binary {
		ticker = series + "-" + tickerPart(s.Slug)
	}
	e := v.eventByTicker[ticker]
	if e == nil {
		e = &event{ticker: ticker, series: series, title: s.EventTitle, exclusive: !s.Binary}
		if !s.Binary {
			e.title = s.Question
		}
		v.events = append(v.events, e)
		v.eventByTicker[ticker] = e
	}
	return e
}

// tickerPart returns the letters and digits of a text in upper case, as a part of a ticker.
func tickerPart(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return c - 'a' + 'A'
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			return c
		}
		return -1
	}, text)
}

// addMarket adds the simulator's market for a binary market, or for one outcome of any other market.
func (v *Venue) addMarket(s demo.Market, outcome int) {
	n, e := len(v.markets), v.eventOf(s)
	m := &market{
		number: n, ticker: fmt.Sprintf("%s-T%d", e.ticker, len(e.markets)+1), title: s.Question, yes: s.GroupTitle, no: "Not " + s.GroupTitle,
		event: e, demoToken: s.TokenIDs[outcome], outcome: outcome, binary: s.Binary, state: s, quiet: s.Quiet && s.Status == "OPEN",
		archived: s.Status == "RESOLVED" && n%3 == 0,
	}
	if !s.Binary {
		m.yes, m.no = s.Outcomes[outcome], "Not "+s.Outcomes[outcome]
	}
	v.byDemoToken[m.demoToken] = demoToken{m, false}
	v.IDs.Add(m.demoToken, m.ticker+":yes")
	v.IDs.Add(s.MarketID, m.ticker)
	v.IDs.Add(s.EventID, e.ticker)
	if s.Binary {
		v.IDs.Add(s.TokenIDs[1], m.ticker+":no")
		v.byDemoToken[s.TokenIDs[1]] = demoToken{m, true}
	}
	q, _ := v.Engine().Quote(m.demoToken)
	b, _ := v.Engine().Book(m.demoToken)
	m.bids = bidsOf(b)
	if !m.quiet && s.Status != "UPCOMING" {
		m.last = min(max(q.Price/s.TickSize*s.TickSize, s.TickSize), payout-s.TickSize)
	}
	v.markets, e.markets = append(v.markets, m), append(e.markets, m)
	v.byTicker[m.ticker] = m
	v.byDemoMarket[s.MarketID] = append(v.byDemoMarket[s.MarketID], m)
}

const payout demo.Price = 10_000

// bidsOf returns the bids for YES and for NO. An ask for YES is a bid for NO at the payout minus the price.
func bidsOf(b demo.Book) (bids [2]map[demo.Price]demo.Size) {
	bids[0], bids[1] = make(map[demo.Price]demo.Size, len(b.Bids)), make(map[demo.Price]demo.Size, len(b.Asks))
	for _, l := range b.Bids {
		bids[0][l.Price] = l.Size
	}
	for _, l := range b.Asks {
		bids[1][payout-l.Price] = l.Size
	}
	return bids
}

// Tickers returns the tickers of all open markets.
func (v *Venue) Tickers() (tickers []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, m := range v.markets {
		if m.state.Status == "OPEN" {
			tickers = append(tickers, m.ticker)
		}
	}
	return tickers
}

func dollars(p demo.Price) string { return fmt.Sprintf("%d.%04d", p/payout, p%payout) }

func contractCount(s demo.Size) string {
	sign := ""
	if s < 0 {
		sign, s = "-", -s
	}
	return fmt.Sprintf("%s%d.%02d", sign, s/100, s%100)
}

// uuid returns the market_id, which Kalshi's stream sends in addition to the ticker.
func (m *market) uuid() string {
	return fmt.Sprintf("%08d-0000-4000-8000-%012d", m.number, m.number)
}

var _ demo.Watcher = (*Venue)(nil)
