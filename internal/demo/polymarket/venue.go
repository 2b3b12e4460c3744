// Package polymarket is a simulator of Polymarket. It serves the markets, books, trades and wallets of a [demo.Venue] in the
// formats of Polymarket's Gamma, CLOB and Data APIs and of its market WebSocket. All data are synthetic.
//
// All three APIs and the WebSocket at [StreamPath] have one address. A binary market of the demo venue is one market here. A market
// with several outcomes is an event of mutually exclusive (negRisk) markets, one for each outcome. Identifiers have Polymarket's
// forms and are derived from those of the demo venue. Some binary markets belong to Polymarket's protocol V2, or have teams as outcomes,
// and there are a few old markets without an order book.
//
// The simulator has the documented limits of each call, and delays calls beyond them. It has the documented or reported oddities of
// Polymarket, and does not simulate orders, signatures, the user channel or the chain.
package polymarket

import (
	"crypto/sha256"
	"encoding/hex"
	"math/big"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/server"
)

// Venue is a simulated Polymarket. It is an [http.Handler] and safe for concurrent use.
type Venue struct {
	demo.Dialect

	limits  server.Limiter
	events  []*event
	markets []*market
	// The maps below never change after New. The keys of byDemoToken and byDemoMarket are the demo venue's identifiers.
	byCondition         map[string]*market
	eventBySlug         map[string]*event
	tokens, byDemoToken map[string]token
	byDemoMarket        map[string][]*market
	tags                map[string]object // by slug

	mu     sync.Mutex // guards the fields below and the changing fields of markets; locked after the engine's lock
	random *rand.Rand
}

type event struct {
	id, slug, title string
	negRisk         bool
	markets         []*market
}

// market is a question with two outcomes. The fields before state never change.
type market struct {
	number                                 int
	id, conditionID, slug, question, group string
	tokenIDs, labels                       [2]string
	version                                string   // of Polymarket's protocol
	oldTokenIDs                            []string // tokens of protocol V1 that a market of V2 may have, too
	old                                    string   // how Gamma says that the market has no order book; empty for all other markets
	event                                  *event
	demoMarket                             string
	demoTokens                             []string // two if the market is binary at the demo venue, or else one
	outcome                                int      // index of the outcome in the market of the demo venue
	oneSided, untraded                     bool     // oneSided: the book has no asks; untraded: no trades before Dialect.Created

	state demo.Market
	price demo.Price // of the first token
	// dayChange is the change of the first token's price in 24 hours, as of the last list in its order.
	dayChange demo.Price
	book      book  // of the first token
	stamp     int64 // time of the book's last change in milliseconds; differs for each change
	movedAt   time.Time
	last      [2]lastTrade
	subs      map[*conn]int // bit i is set if the client is subscribed to token i
}

// lastTrade is the last trade of a token. The zero value means that the token never traded.
type lastTrade struct {
	price demo.Price
	side  demo.Side
}

// token is an outcome of a market. index is 0 for the first outcome and 1 for the second outcome.
type token struct {
	market *market
	index  int
}

// New returns a simulator. Call its Run to let the prices move.
func New(config demo.Config) *Venue {
	v := &Venue{
		random: rand.New(rand.NewPCG(config.Seed, 1)), limits: server.Limiter{Span: 10 * time.Second},
		byCondition: map[string]*market{}, eventBySlug: map[string]*event{},
		tokens: map[string]token{}, byDemoToken: map[string]token{}, byDemoMarket: map[string][]*market{}, tags: map[string]object{},
	}
	v.Open(config, v)
	v.Each(v.addMarket)
	v.addOldMarkets()
	v.API.TooLong = refuse(http.StatusRequestURITooLong, "URI too long")
	v.routes()
	return v
}

// eventOf returns the event of a market of the demo venue, and adds it if it is new. A market that is not binary becomes an event.
func (v *Venue) eventOf(s demo.Market, outcome int) *event {
	e := v.eventBySlug[s.EventSlug]
	switch {
	case !s.Binary && outcome == 0:
		e = nil
	case !s.Binary:
		e = v.events[len(v.events)-1]
	}
	if e == nil {
		e = &event{id: strconv.Itoa(20_000 + len(v.events)), slug: s.EventSlug, title: s.EventTitle, negRisk: !s.Binary}
		if !s.Binary {
			e.title = s.Question
			if v.eventBySlug[e.slug] != nil || s.Slug != s.EventSlug {
				e.slug = s.Slug
			}
		}
		v.events = append(v.events, e)
		v.eventBySlug[e.slug] = e
	}
	for _, tag := range s.Tags {
		if slug := slugOf(tag); v.tags[slug] == nil {
			v.tags[slug] = object{"id": strconv.Itoa(100 + len(v.tags)), "label": tag, "slug": slug, "forceShow": false, "requiresTranslation": false}
		}
	}
	return e
}

// addMarket adds the simulator's market for a binary market, or for one outcome of any other market.
func (v *Venue) addMarket(s demo.Market, outcome int) {
	n, e, demoToken := len(v.markets), v.eventOf(s, outcome), s.TokenIDs[outcome]
	m := &market{
		number: n, id: strconv.Itoa(500_000 + n), conditionID: "0x" + digest("condition", demoToken), version: versionV1,
		slug: s.Slug, question: s.Question, group: s.GroupTitle, labels: [2]string{"Yes", "No"}, event: e, outcome: outcome, state: s,
		demoMarket: s.MarketID, demoTokens: s.TokenIDs[outcome : outcome+1],
		oneSided: n%29 == 7, untraded: n%11 == 3 || n%58 == 7 || s.Status == "UPCOMING", subs: map[*conn]int{},
	}
	if s.Binary && strings.HasSuffix(s.EventTitle, " up or down") {
		m.labels = [2]string{"Up", "Down"} // Polymarket names the outcomes of many markets otherwise than Yes and No
	}
	if !s.Binary {
		m.question, m.group = s.Outcomes[outcome]+": "+s.Question, s.Outcomes[outcome]
		m.slug = s.Slug + "-" + slugOf(m.group) + "-" + strconv.Itoa(outcome)
	}
	m.tokenIDs = [2]string{tokenID(demoToken, 0), tokenID(demoToken, 1)}
	if s.Binary && isV2(n) {
		m.setV2(demoToken)
	}
	if s.Binary {
		m.demoTokens = s.TokenIDs
	}
	for i, id := range m.tokenIDs {
		v.tokens[id] = token{m, i}
	}
	v.IDs.Add(s.MarketID, m.conditionID)
	v.IDs.Add(s.MarketID, m.gammaCondition())
	v.IDs.Add(s.EventID, e.id)
	for i, id := range m.demoTokens {
		v.IDs.Add(id, m.tokenIDs[i])
	}
	v.byDemoToken[demoToken] = token{m, 0}
	if s.Binary {
		v.byDemoToken[s.TokenIDs[1]] = token{m, 1}
	}
	q, _ := v.Engine().Quote(demoToken)
	b, _ := v.Engine().Book(demoToken)
	m.price, m.stamp, m.book = q.Price, b.At.UnixMilli(), m.cut(book{b.Bids, b.Asks})
	if !m.untraded {
		m.last[0] = lastTrade{max(q.Price/s.TickSize*s.TickSize, s.TickSize), demo.Buy}
		m.last[1] = lastTrade{payout - m.last[0].price, demo.Sell}
	}
	v.markets = append(v.markets, m)
	e.markets = append(e.markets, m)
	v.byCondition[m.conditionID] = m
	v.byDemoMarket[s.MarketID] = append(v.byDemoMarket[s.MarketID], m)
}

const payout demo.Price = 10_000

// digest returns 64 hex digits for a text.
func digest(purpose, text string) string {
	sum := sha256.Sum256([]byte(purpose + " " + text))
	return hex.EncodeToString(sum[:])
}

// tokenID returns the 77-digit identifier of the first or second token of a market.
func tokenID(demoToken string, index int) string {
	sum := sha256.Sum256([]byte("token " + strconv.Itoa(index) + " " + demoToken))
	low := new(big.Int).Exp(big.NewInt(10), big.NewInt(76), nil)
	n := new(big.Int).SetBytes(sum[:])
	return n.Mod(n, new(big.Int).Mul(low, big.NewInt(9))).Add(n, low).String()
}

func slugOf(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') }), "-")
}

// Book returns the present book of a token, and whether the token is listed. The book's field At is the timestamp in messages and
// responses.
func (v *Venue) Book(tokenID string) (demo.Book, bool) {
	t, ok := v.tokens[tokenID]
	if !ok {
		return demo.Book{}, false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	b := t.market.book.forToken(t.index)
	return demo.Book{Bids: slices.Clone(b.bids), Asks: slices.Clone(b.asks), At: time.UnixMilli(t.market.stamp)}, true
}

// Labels returns the names of the two outcomes of a token's market.
func (v *Venue) Labels(tokenID string) [2]string { return v.tokens[tokenID].market.labels }

// binary reports whether this market is also a binary market of the demo venue.
func (m *market) binary() bool { return !m.event.negRisk }

func (m *market) hasBooks() bool { return m.state.Status == "OPEN" }

// isClosed reports whether Gamma calls the market closed.
func (m *market) isClosed() bool {
	return !slices.Contains([]string{"UPCOMING", "OPEN", "DISPUTED"}, m.state.Status)
}

// winner returns the index of the winning token, or -1 if there is no winner.
func (m *market) winner() int {
	switch w := m.state.Winner; {
	case w < 0:
		return -1
	case m.binary():
		return w
	case w == m.outcome:
		return 0
	default:
		return 1
	}
}

// displayPrice returns the price of a token: 1 or 0 once there is a winner, 0.5 after a cancellation, or else the market price.
func (m *market) displayPrice(index int) demo.Price {
	p := m.price
	switch w := m.winner(); {
	case w >= 0 && w == index:
		return payout
	case w >= 0:
		return 0
	case m.state.Status == "CANCELLED":
		return payout / 2
	case index == 1:
		return payout - p
	}
	return p
}
