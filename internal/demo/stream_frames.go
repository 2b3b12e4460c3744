package demo

import (
	"strconv"
	"strings"

	"oddsgraph/internal/demo/server"
)

// The kinds of frames.
const (
	frameHello          = "hello"
	frameSubscribed     = "subscribed"
	frameUnsubscribed   = "unsubscribed"
	frameAuthenticated  = "authenticated"
	framePong           = "pong"
	frameError          = "error"
	frameHeartbeat      = "heartbeat"
	framePriceUpdate    = "price_update"
	frameBookSnapshot   = "orderbook_snapshot"
	frameBookUpdate     = "orderbook_update"
	frameTradesSnapshot = "trades_snapshot"
	frameTrade          = "trade"
	frameMarketUpdate   = "market_update"
	frameMarketResolved = "market_resolved"
	frameUserSnapshot   = "user_snapshot"
	frameOrderUpdate    = "order_update"
	frameFill           = "fill"
	framePositionUpdate = "position_update"
	frameBalanceUpdate  = "balance_update"
)

// The kinds of changes in a market_update. For changeResolved the venue sends a market_resolved instead. changeCreated means that
// the market opened for the first time.
const (
	changeCreated  = "CREATED"
	changeStatus   = "STATUS"
	changeTickSize = "TICK_SIZE"
	changeMetadata = "METADATA"
	changeResolved = "RESOLVED"
)

func begin(kind string, size int) []byte {
	b := append(make([]byte, 0, size), `{"type":"`...)
	return append(append(b, kind...), '"')
}

func beginToken(kind string, t *token, seq uint64, size int) []byte {
	b := addText(begin(kind, size), "tokenId", t.id)
	b = addText(b, "marketId", t.market.id)
	return addNumber(b, "seq", seq)
}

func addNumber(b []byte, name string, n uint64) []byte {
	return strconv.AppendUint(addName(b, name), n, 10)
}

func finishFrame(kind string, b []byte) server.Frame {
	return server.Frame{Kind: kind, Data: append(b, '}')}
}

func (c *streamConn) greet() {
	limits := &c.v.stream
	b := addText(begin(frameHello, 192), "epoch", c.v.epoch)
	b = addNumber(b, "heartbeatMs", uint64(limits.sockets.Limits.Every.Milliseconds()))
	b = append(b, `,"limits":{"topics":`...)
	b = strconv.AppendInt(b, int64(maxTopics), 10)
	b = addNumber(b, "depth", maxDepth)
	b = addNumber(b, "framesPerSecond", uint64(limits.framesPerSecond))
	b = addNumber(b, "frameBytes", uint64(limits.sockets.Limits.FrameBytes))
	c.Push(finishFrame(frameHello, append(b, '}')))
}

// heartbeat returns a frame with the time and the sequence numbers of up to maxBeatIDs topics of each channel. The next heartbeat
// continues with the following topics.
func (c *streamConn) heartbeat() server.Frame {
	b := addNumber(begin(frameHeartbeat, 128), "ts", uint64(c.v.now()))
	b = append(b, `,"seqs":`...)
	open := byte('{')
	for ch, turns := range c.turns {
		if len(turns) == 0 {
			continue
		}
		b = appendText(append(b, open), channelNames[ch])
		b = append(b, ':')
		inner := byte('{')
		for range min(len(turns), maxBeatIDs) {
			c.lastBeat[ch] = (c.lastBeat[ch] + 1) % len(turns)
			t := turns[c.lastBeat[ch]]
			b = appendText(append(b, inner), t.id)
			b = strconv.AppendUint(append(b, ':'), t.seq(), 10)
			inner = ','
		}
		b = append(b, '}')
		open = ','
	}
	if open == '{' {
		b = append(b, open)
	}
	return finishFrame(frameHeartbeat, append(b, '}'))
}

func answerFrame(kind string, rid string, size int) []byte {
	b := begin(kind, size)
	if rid != "" {
		b = addText(b, "rid", rid)
	}
	return b
}

func ackFrame(kind string, rid string, ch channel, ids []string) server.Frame {
	b := addText(answerFrame(kind, rid, 96+40*len(ids)), "channel", channelNames[ch])
	return finishFrame(kind, addIDs(b, ch, ids))
}

func addIDs(b []byte, ch channel, ids []string) []byte {
	if ch == channelUser {
		return addText(b, "address", ids[0])
	}
	return addList(b, idName(ch)+"s", ids, appendText)
}

func idName(ch channel) string {
	switch ch {
	case channelMarket:
		return "marketId"
	case channelUser:
		return "address"
	default:
		return "tokenId"
	}
}

func errorFrame(rid, code, text string) []byte {
	b := addText(answerFrame(frameError, rid, 128), "code", code)
	return addText(b, "error", text)
}

func priceFrame(t *token) server.Frame {
	b := beginToken(framePriceUpdate, t, t.priceSeq, 256)
	b = addPrice(b, "price", t.price())
	b = addPriceOrNull(b, "bestBid", t.bestBid)
	b = addPriceOrNull(b, "bestAsk", t.bestAsk)
	return finishFrame(framePriceUpdate, addTime(b, "timestamp", t.priceAt))
}

func bookFrame(t *token) server.Frame {
	b := beginToken(frameBookSnapshot, t, t.bookSeq, 2048)
	b = appendLevels(addName(b, "bids"), t.eachBid, maxDepth)
	b = appendLevels(addName(b, "asks"), t.eachAsk, maxDepth)
	return finishFrame(frameBookSnapshot, addTime(b, "timestamp", t.bookAt))
}

// bookUpdateFrame returns a frame with the changes from the old levels of a topic to its present levels.
func bookUpdateFrame(t *token, g *topic) server.Frame {
	b := addNumber(beginToken(frameBookUpdate, t, t.bookSeq, 512), "prevSeq", t.bookSeq-1)
	b = append(addName(b, "changes"), '[')
	start := len(b)
	b = appendDifference(b, Buy, g.oldBids, g.bids, start)
	b = appendDifference(b, Sell, g.oldAsks, g.asks, start)
	return finishFrame(frameBookUpdate, addTime(append(b, ']'), "timestamp", t.bookAt))
}

// appendDifference appends the changes that turn the old levels into the present levels. Both lists begin with the best price. The
// elements of the JSON list of changes begin at b[start].
func appendDifference(b []byte, side Side, old, now []Level, start int) []byte {
	add := func(price Price, size Size) {
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(append(append(b, `{"side":"`...), side...), '"')
		b = addPrice(b, "price", price)
		b = append(addSize(b, "size", size), '}')
	}
	better := func(a, b Price) bool { return a > b == (side == Buy) }
	for len(old) > 0 || len(now) > 0 {
		switch {
		case len(now) == 0 || len(old) > 0 && old[0].Price != now[0].Price && better(old[0].Price, now[0].Price):
			add(old[0].Price, 0)
			old = old[1:]
		case len(old) == 0 || old[0].Price != now[0].Price:
			add(now[0].Price, now[0].Size)
			now = now[1:]
		default:
			if old[0].Size != now[0].Size {
				add(now[0].Price, now[0].Size)
			}
			old, now = old[1:], now[1:]
		}
	}
	return b
}

func tapeFrame(t *token, opened millis) server.Frame {
	trades := t.recentTrades(opened)
	b := beginToken(frameTradesSnapshot, t, t.tape.seq, 192+160*len(trades))
	return finishFrame(frameTradesSnapshot, addList(b, "trades", trades, func(b []byte, trade tapeTrade) []byte {
		return append(trade.append(append(b, '{'), t), '}')
	}))
}

func tradeFrame(t *token, trade tapeTrade) server.Frame {
	b := addNumber(beginToken(frameTrade, t, t.tape.seq, 384), "prevSeq", t.tape.seq-1)
	return finishFrame(frameTrade, trade.append(append(b, ','), t))
}

func (trade *tapeTrade) append(b []byte, t *token) []byte {
	b = appendText(append(b, `"tradeId":`...), trade.id)
	b = addPrice(b, "price", trade.price)
	b = addSize(b, "size", trade.size)
	b = addText(b, "side", string(trade.side))
	b = addText(b, "outcome", t.label)
	return addTime(b, "timestamp", trade.at)
}

func marketFrame(m *market, change string) server.Frame {
	kind := frameMarketUpdate
	if change == changeResolved {
		kind = frameMarketResolved
	}
	b := addNumber(addText(begin(kind, 192), "marketId", m.id), "seq", m.seq)
	if change == changeResolved {
		b = addText(b, "outcome", m.tokens[m.winner].label)
		return finishFrame(kind, addText(b, "winningTokenId", m.tokens[m.winner].id))
	}
	b = addText(b, "change", change)
	return finishFrame(kind, addText(b, "status", m.status))
}

func beginUser(kind string, w *wallet, size int) []byte {
	return addNumber(addText(begin(kind, size), "address", w.address), "seq", w.seq)
}

func userFrame(w *wallet) server.Frame {
	b := beginUser(frameUserSnapshot, w, 512+256*(len(w.orders)+len(w.positions)))
	b = addList(b, "orders", w.orders, func(b []byte, o *order) []byte { return o.appendStreamed(b, w) })
	b = addList(b, "positions", w.positions, func(b []byte, p *position) []byte { return p.append(b) })
	return finishFrame(frameUserSnapshot, w.appendBalance(addName(b, "balance")))
}

// appendStreamed appends the order as the stream sends it: with the tokenId.
func (o *order) appendStreamed(b []byte, w *wallet) []byte {
	b = o.append(b, w)
	return append(addText(b[:len(b)-1], "tokenId", o.token.id), '}')
}

func abbreviate(ids []string) string {
	if len(ids) > 3 {
		return strings.Join(ids[:3], ", ") + " and " + strconv.Itoa(len(ids)-3) + " more"
	}
	return strings.Join(ids, ", ")
}
