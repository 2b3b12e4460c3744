package demo

import (
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
func (v *Venue) answerTokens(c *call, b []byte, list string, add func([]byte, *token) []byte) ([]byte, *apiError) {
	parameter, err := c.exactlyOne("tokenId", "tokenIds")
	if err != nil {
		return b, err
	}
	if parameter == "tokenId" {
		t := v.listing.tokenByID[c.get("tokenId")]
		if t == nil {
			return b, notFound("unknown token")
		}
		v.mu.RLock()
		defer v.mu.RUnlock()
		return add(b, t), nil
	}
	ids, err := c.list("tokenIds", maxTokens)
	if err != nil {
		return b, err
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	b = append(append(append(b, `{"`...), list...), `":[`...)
	first := true
	for _, id := range ids {
		if t := v.listing.tokenByID[id]; t != nil {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = add(b, t)
		}
	}
	return append(b, "]}"...), nil
}

func (v *Venue) answerPrices(c *call, b []byte) ([]byte, *apiError) {
	return v.answerTokens(c, b, "prices", func(b []byte, t *token) []byte {
		b = appendText(append(b, `{"tokenId":`...), t.id)
		b = addPrice(b, "price", t.price())
		b = addTime(b, "timestamp", t.priceAt)
		return append(b, '}')
	})
}

func (v *Venue) answerSpreads(c *call, b []byte) ([]byte, *apiError) {
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

func (v *Venue) answerOrderbook(c *call, b []byte) ([]byte, *apiError) {
	if _, err := c.exactlyOne("tokenId"); err != nil {
		return b, err
	}
	depth, err := c.number("depth", 1, maxDepth, defaultDepth)
	if err != nil {
		return b, err
	}
	t := v.listing.tokenByID[c.get("tokenId")]
	if t == nil {
		return b, notFound("unknown token")
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
	return append(b, '}'), nil
}

func appendLevels(b []byte, each func(func(Level) bool), depth int) []byte {
	b = append(b, '[')
	n := 0
	each(func(l Level) bool {
		if n > 0 {
			b = append(b, ',')
		}
		n++
		b = appendFixed(append(b, `{"price":`...), int64(l.Price), 4)
		b = append(addSize(b, "size", l.Size), '}')
		return n < depth
	})
	return append(b, ']')
}

func (v *Venue) answerHistory(c *call, b []byte) ([]byte, *apiError) {
	if _, err := c.exactlyOne("tokenId"); err != nil {
		return b, err
	}
	now := v.now()
	first, hasFirst, err := c.date("startDate")
	if err != nil {
		return b, err
	}
	last, hasLast, err := c.date("endDate")
	if err != nil {
		return b, err
	}
	if !hasLast {
		last = now.floor(day)
	}
	if !hasFirst {
		first = last - (historyDays-1)*day
	}
	switch days := (last-first)/day + 1; {
	case days < 1:
		return b, badRequest("startDate lies after endDate")
	case days > maxDays:
		return b, badRequest("at most " + strconv.Itoa(maxDays) + " days can be requested")
	}
	t := v.listing.tokenByID[c.get("tokenId")]
	if t == nil {
		return b, notFound("unknown token")
	}
	v.mu.RLock()
	points := t.market.history(t.outcome, first, last+day, now)
	v.mu.RUnlock()
	b = append(b, `{"history":[`...)
	for i, p := range points {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendTime(append(b, `{"timestamp":`...), p.at)
		b = addPrice(b, "price", p.price)
		b = addSize(b, "volume", p.volume)
		b = append(b, '}')
	}
	return append(b, "]}"...), nil
}

// answerDetails serves one market by an identifier, or several by a list of identifiers. For a list it omits unknown and repeated
// markets.
func (v *Venue) answerDetails(c *call, b []byte) ([]byte, *apiError) {
	parameter, err := c.exactlyOne("id", "marketId", "tokenId", "slug", "ids", "tokenIds")
	if err != nil {
		return b, err
	}
	if parameter != "ids" && parameter != "tokenIds" {
		m := v.marketBy(parameter, c.get(parameter))
		if m == nil {
			return b, notFound("unknown market")
		}
		v.mu.RLock()
		defer v.mu.RUnlock()
		return m.append(b, false), nil
	}
	ids, err := c.list(parameter, maxDetails)
	if err != nil {
		return b, err
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	b = append(b, `{"markets":[`...)
	seen := make(map[*market]bool, len(ids))
	for _, id := range ids {
		m := v.marketBy(parameter, id)
		if m == nil || seen[m] {
			continue
		}
		if len(seen) > 0 {
			b = append(b, ',')
		}
		seen[m] = true
		b = m.append(b, false)
	}
	return append(b, "]}"...), nil
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
	b = append(addName(b, "tags"), '[')
	for i, tag := range m.tags {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, tag)
	}
	b = append(b, ']')
	b = addText(b, "status", m.status)
	b = addBool(b, "acceptingOrders", m.status == statusOpen)
	b = append(addName(b, "outcomes"), '[')
	updated := m.updatedAt
	for i, t := range m.tokens {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(append(b, `{"tokenId":`...), t.id)
		b = addText(b, "outcome", t.label)
		b = addPrice(b, "price", t.price())
		if m.winner < 0 {
			b = append(b, `,"winner":null}`...)
		} else {
			b = append(addBool(b, "winner", i == m.winner), '}')
		}
		updated = max(updated, t.priceAt)
	}
	b = append(b, ']')
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
