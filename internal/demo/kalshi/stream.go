package kalshi

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/server"
)

// StreamPath is the path of the WebSocket.
const StreamPath = "/trade-api/ws/v2"

const pingEvery = 10 * time.Second

// conn is a client of the stream. Venue.mu guards all fields except the socket.
type conn struct {
	*server.Socket

	v       *Venue
	subs    []*subscription
	lastSID int
}

// subscription is one channel of a socket for a set of markets, or for all markets.
type subscription struct {
	sid, seq int
	channel  string
	tickers  map[string]bool
	all      bool
	// If useYesPrice is true, each bid for NO is sent with the corresponding YES price: the payout minus the NO price.
	useYesPrice bool
}

func (v *Venue) serveStream(w http.ResponseWriter, r *http.Request) {
	if !v.signed(r) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write(server.Encode(object{"error": object{"code": "authentication_error"}})) // the client may have left
		return
	}
	if !v.Sockets.Serve(w, r, func(s *server.Socket) server.Client { return &conn{Socket: s, v: v} }) {
		http.Error(w, "unavailable", http.StatusServiceUnavailable)
	}
}

// Beat implements [server.Client].
func (c *conn) Beat() { c.Ping() }

func (c *conn) push(message object) {
	kind, _ := message["type"].(string)
	c.Push(server.Frame{Kind: kind, Data: server.Encode(message)})
}

// sendNumbered sends a message of a subscription with the next sequence number.
func (c *conn) sendNumbered(s *subscription, message object) {
	s.seq++
	message["sid"], message["seq"] = s.sid, s.seq
	c.push(message)
}

// each calls send for each subscription that has this channel and includes the market with the ticker.
func (v *Venue) each(channel, ticker string, send func(*conn, *subscription)) {
	for _, socket := range v.Sockets.All() {
		c := socket.Client.(*conn)
		for _, s := range c.subs {
			if s.channel == channel && (s.all || s.tickers[ticker]) {
				send(c, s)
			}
		}
	}
}

type change struct {
	side  int // 0 is YES, 1 is NO
	price demo.Price
	delta demo.Size
}

// changes returns the changes from one book to the next: reductions first, so that a moving book never crosses.
func changes(old, next [2]map[demo.Price]demo.Size) (out []change) {
	for side := range old {
		for _, p := range slices.Sorted(maps.Keys(old[side])) {
			if d := next[side][p] - old[side][p]; d != 0 {
				out = append(out, change{side, p, d})
			}
		}
	}
	for side := range next {
		for _, p := range slices.Sorted(maps.Keys(next[side])) {
			if _, known := old[side][p]; !known {
				out = append(out, change{side, p, next[side][p]})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b change) int {
		switch {
		case a.delta < 0 && b.delta > 0:
			return -1
		case a.delta > 0 && b.delta < 0:
			return 1
		}
		return 0
	})
	return out
}

var sideNames = [...]string{"yes", "no"}

// Moved implements [demo.Watcher].
func (v *Venue) Moved(demoToken string, _ demo.Price, b demo.Book) {
	v.mu.Lock()
	defer v.mu.Unlock()
	m, now := v.byDemoToken[demoToken].market, v.Clock.Now()
	if m.quiet {
		return
	}
	next := bidsOf(b)
	list := changes(m.bids, next)
	m.bids = next
	for _, ch := range list {
		v.each(channelBook, m.ticker, func(c *conn, s *subscription) {
			price := ch.price
			if s.useYesPrice && ch.side == 1 {
				price = payout - price
			}
			c.sendNumbered(s, object{"type": "orderbook_delta", "msg": object{
				"market_ticker": m.ticker, "market_id": m.uuid(), "price_dollars": dollars(price), "delta_fp": contractCount(ch.delta), "side": sideNames[ch.side],
				"ts": now.UTC().Format(time.RFC3339), "ts_ms": now.UnixMilli(),
			}})
		})
	}
	if len(list) > 0 {
		v.each(channelTicker, m.ticker, func(c *conn, s *subscription) { c.push(v.ticker(m, s)) })
	}
}

// ticker returns a message of the ticker channel. Such messages have no sequence number.
func (v *Venue) ticker(m *market, s *subscription) object {
	now := v.Clock.Now()
	row := v.row(m)
	return object{"type": "ticker", "sid": s.sid, "msg": object{
		"market_id": m.uuid(), "market_ticker": m.ticker, "price_dollars": row["last_price_dollars"],
		"yes_bid_dollars": row["yes_bid_dollars"], "yes_ask_dollars": row["yes_ask_dollars"], "volume_fp": row["volume_fp"], "open_interest_fp": row["open_interest_fp"],
		"dollar_volume": 1, "dollar_open_interest": 1, "yes_bid_size_fp": row["yes_bid_size_fp"], "yes_ask_size_fp": row["yes_ask_size_fp"],
		"last_trade_size_fp": "0.00", "ts": now.Unix(), "ts_ms": now.UnixMilli(), "time": now.UTC().Format(time.RFC3339),
	}}
}

// Traded implements [demo.Watcher].
func (v *Venue) Traded(demoToken string, trade demo.Trade) {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.byDemoToken[demoToken]
	if t.market.quiet {
		return
	}
	p := t.executionOf(trade)
	t.market.last = p.Price
	msg := p.row()
	msg["market_ticker"], msg["ts"], msg["ts_ms"] = t.market.ticker, p.At.Unix(), p.At.UnixMilli()
	v.each(channelTrade, t.market.ticker, func(c *conn, s *subscription) { c.sendNumbered(s, object{"type": "trade", "msg": msg}) })
	v.each(channelTicker, t.market.ticker, func(c *conn, s *subscription) { c.push(v.ticker(t.market, s)) })
}

// lifecycle maps the new status of a market to the event_type of the message.
var lifecycle = map[string]string{"UPCOMING": "created", "OPEN": "activated", "CLOSED": "deactivated", "RESOLVED": "settled", "CANCELLED": "settled"}

// Changed implements [demo.Watcher].
func (v *Venue) Changed(state demo.Market, kind string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, m := range v.byDemoMarket[state.MarketID] {
		m.state = state
		v.each(channelLifecycle, m.ticker, func(c *conn, s *subscription) {
			msg := object{"market_ticker": m.ticker, "event_type": "metadata_updated"}
			switch name := lifecycle[state.Status]; {
			case kind == "TICK_SIZE":
				msg["event_type"] = "price_level_structure_updated"
			case kind == "METADATA" || name == "":
			case state.Status == "RESOLVED":
				result, value := m.result()
				c.sendNumbered(s, object{"type": "market_lifecycle_v2", "msg": object{
					"market_ticker": m.ticker, "event_type": "determined", "result": result, "settlement_value": dollars(value), "determination_ts": v.Clock.Now().Unix(),
				}})
				msg["event_type"], msg["settled_ts"] = name, v.Clock.Now().Unix()
			default:
				msg["event_type"] = name
			}
			c.sendNumbered(s, object{"type": "market_lifecycle_v2", "msg": msg})
		})
	}
}
