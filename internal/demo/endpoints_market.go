package demo

import (
	"slices"
	"strconv"
)

// Bounds of the market data endpoints.
const (
	maxTokens    = 100 // maximum number of tokenIds in a request for prices or spreads
	maxDetails   = 50  // maximum number of ids or tokenIds in a request for market-details
	defaultDepth = 20
	maxDepth     = 200
	historyDays  = 7 // default number of days in a history
	maxDays      = 366
)

// answerTokens serves an endpoint that takes tokenId or tokenIds. It omits unknown tokenIds. list is the name of the list in the
// answer. add appends the object of one token.
func (v *Venue) answerTokens(c *call, b []byte, list string, add func([]byte, *token) []byte) []byte {
	if c.exactlyOne("tokenId", "tokenIds") == "tokenId" {
		t := v.listing.tokenByID[c.get("tokenId")]
		if t == nil {
			return c.fail(errToken)
		}
		v.mu.RLock()
		defer v.mu.RUnlock()
		return add(b, t)
	}
	var tokens []*token
	for _, id := range c.list("tokenIds", maxTokens) {
		if t := v.listing.tokenByID[id]; t != nil {
			tokens = append(tokens, t)
		}
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	b = append(append(append(b, `{"`...), list...), `":`...)
	return append(appendList(b, tokens, add), '}')
}

func (v *Venue) answerPrices(c *call, b []byte) []byte {
	return v.answerTokens(c, b, "prices", func(b []byte, t *token) []byte {
		b = appendText(append(b, `{"tokenId":`...), t.id)
		b = addPrice(b, "price", t.price())
		b = addTime(b, "timestamp", t.priceAt)
		return append(b, '}')
	})
}

func (v *Venue) answerSpreads(c *call, b []byte) []byte {
	return v.answerTokens(c, b, "spreads", func(b []byte, t *token) []byte {
		b = appendText(append(b, `{"tokenId":`...), t.id)
		b = addPriceOrNull(b, "bestBid", t.bestBid)
		b = addPriceOrNull(b, "bestAsk", t.bestAsk)
		b = addPriceOrNull(b, "spread", t.spread)
		b = addTime(b, "timestamp", t.bookAt)
		return append(b, '}')
	})
}

func addPriceOrNull(b []byte, name string, price func() (Price, bool)) []byte {
	p, ok := price()
	if !ok {
		return append(addName(b, name), "null"...)
	}
	return addPrice(b, name, p)
}

func (v *Venue) answerOrderbook(c *call, b []byte) []byte {
	c.exactlyOne("tokenId")
	depth := c.number("depth", 1, maxDepth, defaultDepth)
	t := v.listing.tokenByID[c.get("tokenId")]
	if t == nil {
		return c.fail(errToken)
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	b = appendText(append(b, `{"tokenId":`...), t.id)
	b = appendLevels(addName(b, "bids"), t.eachBid, depth)
	b = appendLevels(addName(b, "asks"), t.eachAsk, depth)
	b = addPriceOrNull(b, "spread", t.spread)
	b = addTime(b, "timestamp", t.bookAt)
	b = strconv.AppendUint(addName(b, "seq"), t.bookSeq, 10)
	b = addText(b, "epoch", v.epoch)
	return append(b, '}')
}

func appendLevels(b []byte, each func(func(Level) bool), depth int) []byte {
	var levels []Level
	each(func(l Level) bool {
		levels = append(levels, l)
		return len(levels) < depth
	})
	return appendList(b, levels, func(b []byte, l Level) []byte {
		b = appendFixed(append(b, `{"price":`...), int64(l.Price), 4)
		return append(addSize(b, "size", l.Size), '}')
	})
}

func (v *Venue) answerHistory(c *call, b []byte) []byte {
	c.exactlyOne("tokenId")
	now := v.now()
	first, hasFirst := c.date("startDate")
	last, hasLast := c.date("endDate")
	if !hasLast {
		last = now.floor(day)
	}
	if !hasFirst {
		first = last - (historyDays-1)*day
	}
	t := v.listing.tokenByID[c.get("tokenId")]
	switch days := (last-first)/day + 1; {
	case days < 1:
		return c.refuse("startDate lies after endDate")
	case days > maxDays:
		return c.refuse("at most " + strconv.Itoa(maxDays) + " days can be requested")
	case t == nil:
		return c.fail(errToken)
	}
	v.mu.RLock()
	points := t.market.history(t.outcome, first, last+day, now)
	v.mu.RUnlock()
	return append(appendList(append(b, `{"history":`...), points, func(b []byte, p point) []byte {
		b = appendTime(append(b, `{"timestamp":`...), p.at)
		b = addPrice(b, "price", p.price)
		return append(addSize(b, "volume", p.volume), '}')
	}), '}')
}

// answerDetails serves one market by an identifier, or several by a list of identifiers. For a list it omits unknown and repeated
// markets.
func (v *Venue) answerDetails(c *call, b []byte) []byte {
	parameter := c.exactlyOne("id", "marketId", "tokenId", "slug", "ids", "tokenIds")
	if parameter != "ids" && parameter != "tokenIds" {
		m := v.marketBy(parameter, c.get(parameter))
		if m == nil {
			return c.fail(notFound("unknown market"))
		}
		v.mu.RLock()
		defer v.mu.RUnlock()
		return m.append(b, false)
	}
	var markets []*market
	for _, id := range c.list(parameter, maxDetails) {
		if m := v.marketBy(parameter, id); m != nil && !slices.Contains(markets, m) {
			markets = append(markets, m)
		}
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	b = appendList(append(b, `{"markets":`...), markets, func(b []byte, m *market) []byte { return m.append(b, false) })
	return append(b, '}')
}

func (v *Venue) marketBy(parameter, name string) *market {
	switch parameter {
	case "slug":
		return v.listing.bySlug[name]
	case "tokenId", "tokenIds":
		if t := v.listing.tokenByID[name]; t != nil {
			return t.market
		}
		return nil
	}
	return v.listing.marketByID[name]
}

// append appends the market. A summary omits description and resolution.
func (m *market) append(b []byte, summary bool) []byte {
	b = appendText(append(b, `{"marketId":`...), m.id)
	b = addText(b, "slug", m.slug)
	b = addText(b, "question", m.question)
	b = addTextOrNull(b, "groupItemTitle", m.groupTitle)
	if !summary {
		b = addText(b, "description", m.description)
	}
	b = addText(b, "image", m.image)
	b = addText(b, "category", m.category)
	b = addList(b, "tags", m.tags, appendText)
	b = addText(b, "status", m.status)
	b = addBool(b, "acceptingOrders", m.status == statusOpen)
	updated := m.updatedAt
	b = addList(b, "outcomes", m.tokens, func(b []byte, t *token) []byte {
		b = appendText(append(b, `{"tokenId":`...), t.id)
		b = addText(b, "outcome", t.label)
		b = addPrice(b, "price", t.price())
		updated = max(updated, t.priceAt)
		if m.winner < 0 {
			return append(b, `,"winner":null}`...)
		}
		return append(addBool(b, "winner", t.outcome == m.winner), '}')
	})
	b = addTime(b, "startDate", m.startAt)
	b = addTime(b, "endDate", m.endAt)
	b = addMoney(b, "volume", m.volume)
	b = addMoney(b, "volume24h", m.volume24h)
	b = addMoney(b, "liquidity", m.liquidity)
	b = addPrice(b, "tickSize", m.tick)
	b = addSize(b, "minOrderSize", m.minOrder)
	b = addText(b, "eventId", m.event.id)
	b = addText(b, "eventSlug", m.event.slug)
	b = addText(b, "eventTitle", m.event.title)
	if !summary {
		b = m.appendResolution(addName(b, "resolution"))
	}
	b = addTime(b, "createdAt", m.createdAt)
	b = addTime(b, "updatedAt", updated)
	return append(b, '}')
}

func (m *market) appendResolution(b []byte) []byte {
	if m.winner < 0 {
		return append(b, "null"...)
	}
	b = appendText(append(b, `{"outcome":`...), m.tokens[m.winner].label)
	b = addTime(b, "resolvedAt", m.resolvedAt)
	b = addText(b, "source", m.source)
	return append(b, '}')
}
