package demo

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// The states of a market.
const (
	statusUpcoming  = "UPCOMING"
	statusOpen      = "OPEN"
	statusClosed    = "CLOSED"
	statusDisputed  = "DISPUTED"
	statusResolved  = "RESOLVED"
	statusCancelled = "CANCELLED"
)

var statuses = []string{statusUpcoming, statusOpen, statusClosed, statusDisputed, statusResolved, statusCancelled}

type event struct {
	id, slug, title string
	markets         []*market
}

// market is one question. Only description, status, startAt, closedAt, resolvedAt, updatedAt, winner, tick, halted, seq and topic
// change.
type market struct {
	index                          int
	seed                           uint64
	id, slug, question, groupTitle string
	description, image, category   string
	tags                           []string
	event                          *event
	status                         string
	createdAt                      millis
	startAt, endAt                 millis
	closedAt                       millis // end of trading; 0 until trading has ended
	resolvedAt                     millis
	updatedAt                      millis // time of the last change of a field other than prices
	winner                         int    // index of the winning outcome; -1 without a winner
	source                         string // publisher of the result
	tick                           Price  // present tick size; the price history uses born.tick
	minOrder                       Size
	volume, volume24h, liquidity   Money
	anchors                        []Price // mean price of each instrument: one for a binary market, else one for each token
	tokens                         []*token

	offset int64  // of the prices to those of the first venue, in ten-thousandths
	delay  millis // of the prices

	born   opening
	halted bool   // trading has stopped at least once since the venue opened; the stop cancelled all orders
	seq    uint64 // sequence number of the present state, from 1
	topic  *topic // nil without subscribers
}

func (m *market) rules() string {
	return fmt.Sprintf("%s This market resolves by what %s publishes. Trading ends on %s.",
		m.question, m.source, m.endAt.Time().Format("January 2, 2006, 15:04 UTC"))
}

// opening is the state of a market when the venue opened. It never changes, because the generated history depends on it.
type opening struct {
	status               string
	closedAt, resolvedAt millis
	winner               int
	tick                 Price
}

// quiet reports whether the market never moves and never trades by itself.
func (m *market) quiet() bool { return m.index%12 == 11 }

// binary reports whether the market has the outcomes YES and NO.
func (m *market) binary() bool { return len(m.anchors) == 1 }

// token is one outcome of a market. The embedded view gives its book and price.
type token struct {
	view
	id      string
	label   string
	market  *market
	outcome int

	tape   tape
	topics [tokenChannels]*topic // nil without subscribers
}

// price returns the present price of the token: 1 or 0 once the market is resolved.
func (t *token) price() Price {
	switch m := t.market; {
	case m.status != statusResolved:
		return t.lastPrice()
	case m.winner == t.outcome:
		return payout
	default:
		return 0
	}
}

type universe struct {
	events      []*event
	markets     []*market
	tokens      []*token
	instruments []*instrument
	tradable    []*token // first token of each instrument whose market was open when the venue started, or later

	tokenByID          map[string]*token
	marketByID, bySlug map[string]*market
	eventsBySlug       map[string]*event
}

// shape is the number of binary and of categorical markets of an event. A categorical market has three or more named outcomes.
type shape struct{ binary, categorical int }

// Event i has the shape shapes[i] and the status eventStatuses[i]; after the end of a list, the next event uses its first element.
// The lengths of these lists and the number of categories have no common factor, so every combination can occur. The ten shapes
// together have 40 markets.
var shapes = []shape{
	{0, 1}, {8, 0}, {1, 0}, {6, 0}, {0, 1}, {5, 0}, {7, 0}, {3, 0}, {0, 2}, {6, 0},
}

var eventStatuses = []string{
	statusOpen, statusOpen, statusOpen, statusResolved, statusOpen, statusOpen, statusUpcoming, statusOpen, statusOpen,
	statusClosed, statusOpen, statusOpen, statusResolved, statusOpen, statusOpen, statusOpen, statusOpen, statusResolved,
	statusOpen, statusOpen, statusOpen, statusOpen, statusOpen,
}

// Bounds of the offset, in ten-thousandths, and of the delay of another venue's prices.
const (
	maxOffset = 150
	maxBehind = 30 * second
)

// newUniverse makes a universe. Identifiers depend only on the seed. Dates, and the texts and slugs that contain dates, also depend on
// the present time.
func newUniverse(config Config, now millis) *universe {
	count := config.Markets
	u := &universe{
		tokenByID:  make(map[string]*token, count*5/2),
		marketByID: make(map[string]*market, count), bySlug: make(map[string]*market, count),
		eventsBySlug: make(map[string]*event, count/4),
	}
	for i := 0; len(u.markets) < count; i++ {
		s := shapes[i%len(shapes)]
		left := count - len(u.markets)
		s.binary, s.categorical = min(s.binary, left), min(s.categorical, left)
		u.addEvent(config, i, s, now)
	}
	return u
}

func (u *universe) addEvent(config Config, i int, s shape, now millis) {
	r := rng(hash(config.Seed, uint64(i)))
	status := eventStatuses[i%len(eventStatuses)]
	start, end, closed := dates(status, now, &r)
	c := categories[i%len(categories)]
	plan := c.plan(i/len(categories), s, end, &r)

	e := &event{id: strconv.Itoa(10_000 + i), title: plan.title}
	e.slug = unique(u.eventsBySlug, slugOf(plan.title))
	u.events = append(u.events, e)
	u.eventsBySlug[e.slug] = e

	image := ""
	if !r.oneIn(4) {
		image = "/images/" + e.slug + ".png"
	}
	winning := r.intn(len(plan.markets))
	source := c.sources[r.intn(len(c.sources))]
	for k, mp := range plan.markets {
		m := &market{
			index: len(u.markets), seed: r.next(), event: e,
			id:       "0x" + string(appendHex(nil, r.next())) + string(appendHex(nil, r.next())),
			question: mp.question, groupTitle: mp.item, image: image, category: c.name,
			tags: append([]string{c.tag}, plan.tags...), source: source,
			status: status, createdAt: min(start, now), startAt: start, endAt: end, closedAt: closed, updatedAt: min(start, now), winner: -1, seq: 1,
		}
		if config.Other > 0 {
			other := rng(hash(m.seed, 9, config.Other))
			m.offset, m.delay = int64(other.between(-maxOffset, maxOffset)), millis(other.intn(int(maxBehind)))
		}
		m.slug = unique(u.bySlug, slugOf(mp.question))
		m.description = m.rules()
		if mp.tag != "" {
			m.tags = append(m.tags, mp.tag)
		}
		// Some markets end before their event.
		switch {
		case status == statusOpen && i%23 == 1 && k == 7:
			m.status, m.closedAt = statusCancelled, now-day-millis(r.intn(int(10*day)))
		case status == statusOpen && i%23 == 5 && k == 4:
			m.status, m.closedAt = statusDisputed, now-hour-millis(r.intn(int(5*day)))
		}
		m.setScale(&r)
		labels := mp.outcomes
		if labels == nil {
			labels = []string{"YES", "NO"}
			m.anchors = []Price{plan.chance(k, &r)}
		} else {
			m.anchors = shares(len(labels), &r)
		}
		m.settle(plan.ladder && k <= winning || !plan.ladder && k == winning, len(labels), &r)
		m.born = opening{m.status, m.closedAt, m.resolvedAt, m.winner, m.tick}
		u.addMarket(m, labels, now, &r)
	}
}

// settle sets updatedAt of a market whose trading has ended, and also winner and resolvedAt if the market is resolved. The
// parameter yes is the result of a binary market.
func (m *market) settle(yes bool, outcomes int, r *rng) {
	if m.status != statusResolved {
		if m.closedAt > 0 {
			m.updatedAt = m.closedAt
		}
		return
	}
	m.resolvedAt = m.closedAt + hour + millis(r.intn(int(20*hour)))
	m.updatedAt = m.resolvedAt
	switch {
	case !m.binary():
		m.winner = r.intn(outcomes)
	case yes:
		m.winner = 0
	default:
		m.winner = 1
	}
}

// dates returns a random start and end for an event with the status. closed is the end of trading, or 0 if trading has not ended.
func dates(status string, now millis, r *rng) (start, end, closed millis) {
	today := now.floor(day)
	days := func(low, high int) millis { return millis(r.between(low, high)) * day }
	start = today - days(25, 300) + 12*hour
	switch status {
	case statusUpcoming:
		start = today + days(1, 20) + 12*hour
		end = start + days(30, 200)
	case statusClosed:
		end = today - days(1, 3) + 18*hour
		closed = end
	case statusResolved:
		end = today - days(3, 120) + 18*hour
		start = end - days(40, 300)
		closed = end
	default:
		end = today + days(3, 400) + 20*hour
	}
	return start, end, closed
}

// setScale draws a random magnitude for the market and derives tick size, minimum order, volume and liquidity from the magnitude.
func (m *market) setScale(r *rng) {
	var magnitude int
	switch n := r.intn(10); {
	case n < 2: // a fifth of the markets is deep
		magnitude, m.tick, m.minOrder = r.between(20, 24), 10, 5*share
	case n < 5:
		magnitude, m.tick, m.minOrder = r.between(15, 19), 100, 5*share
	default:
		magnitude, m.tick, m.minOrder = r.between(9, 14), 100, share
	}
	if m.status == statusUpcoming {
		return
	}
	cents := int64(1024+r.intn(1024)) << magnitude / 1024 * 100
	m.volume = Money(cents+int64(r.intn(100))) * dollar / 100
	if m.status == statusOpen {
		m.volume24h = Money(cents*int64(r.between(5, 60))/1000) * dollar / 100
		m.liquidity = Money(cents*int64(r.between(20, 120))/1000) * dollar / 100
	}
}

// scale returns a random reach, in ticks, and a depth, in shares, for the books of the market; see the fields of instrument.
func (m *market) scale(r *rng) (reach, depth int) {
	scale := bits.Len64(uint64(m.volume / dollar))
	switch {
	case m.tick < 100:
		reach = r.between(90, 230)
	case scale > 15:
		reach = r.between(25, 60)
	default:
		reach = r.between(4, 20)
	}
	return reach, 8 << (scale / 2)
}

func (u *universe) addMarket(m *market, labels []string, now millis, r *rng) {
	u.markets = append(u.markets, m)
	m.event.markets = append(m.event.markets, m)
	u.marketByID[m.id], u.bySlug[m.slug] = m, m

	reach, depth := 0, 0
	if m.status == statusOpen {
		reach, depth = m.scale(r)
	}
	changed := now
	if m.closedAt > 0 {
		changed = m.updatedAt
	}
	for i, label := range labels {
		t := &token{
			label: label, market: m, outcome: i, tape: tape{seq: 1},
			id: strconv.FormatUint(1_000_000_000_000_000_000+r.next()%9_000_000_000_000_000_000, 10),
		}
		if m.binary() && i == 1 {
			t.view = view{m.tokens[0].instrument, true}
		} else {
			// Each book has a separate generator, because the number of draws for a book depends on the day. If the books drew from r, the
			// identifiers that r generates afterwards would also depend on the day.
			book := rng(hash(m.seed, uint64(i)))
			t.view = view{newInstrument(m.tick, m.priceAt(i, now), reach, depth, changed, &book), false}
			t.instrument.quiet = m.quiet()
			u.instruments = append(u.instruments, t.instrument)
			if reach > 0 {
				u.tradable = append(u.tradable, t)
			}
		}
		u.tokens = append(u.tokens, t)
		m.tokens = append(m.tokens, t)
		u.tokenByID[t.id] = t
	}
}

// shares returns n random prices of at least 0.01 whose sum is about 1.
func shares(n int, r *rng) []Price {
	weights, sum := make([]int, n), 0
	for i := range weights {
		w := r.between(4, 40)
		weights[i] = w * w
		sum += weights[i]
	}
	prices := make([]Price, n)
	for i, w := range weights {
		prices[i] = max(Price(w)*payout/Price(sum), 100)
	}
	return prices
}

func slugOf(text string) string {
	var b strings.Builder
	gap := false
	for _, c := range []byte(strings.ToLower(text)) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			if gap && b.Len() > 0 {
				b.WriteByte('-')
			}
			b.WriteByte(c)
			gap = false
		} else if c != ',' && c != '\'' { // a comma or an apostrophe does not end a word: 120,000 becomes 120000
			gap = true
		}
	}
	return b.String()
}

func unique[T any](taken map[string]T, slug string) string {
	s := slug
	for n := 2; ; n++ {
		if _, ok := taken[s]; !ok {
			return s
		}
		s = slug + "-" + strconv.Itoa(n)
	}
}
