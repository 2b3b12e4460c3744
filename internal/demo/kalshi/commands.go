package kalshi

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// The channels of Kalshi that the simulator has.
const (
	channelBook      = "orderbook_delta"
	channelTicker    = "ticker"
	channelTrade     = "trade"
	channelLifecycle = "market_lifecycle_v2"
)

// maxSkew is the greatest difference between the time of a signature and the time of its arrival.
const maxSkew = 30 * time.Second

// signed reports whether a handshake or a call has a valid signature of a known key. The time of the signature must differ by at
// most maxSkew from the venue's clock.
func (v *Venue) signed(r *http.Request) bool {
	key := v.config.Keys[r.Header.Get("KALSHI-ACCESS-KEY")]
	at := r.Header.Get("KALSHI-ACCESS-TIMESTAMP")
	signature, err := base64.StdEncoding.DecodeString(r.Header.Get("KALSHI-ACCESS-SIGNATURE"))
	ms, timeErr := strconv.ParseInt(at, 10, 64)
	if key == nil || err != nil || timeErr != nil || time.UnixMilli(ms).Sub(v.Clock.Now()).Abs() > maxSkew {
		return false
	}
	digest := sha256.Sum256([]byte(at + r.Method + r.URL.Path))
	return rsa.VerifyPSS(key, crypto.SHA256, digest[:], signature, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
}

type command struct {
	ID     int    `json:"id"`
	Cmd    string `json:"cmd"`
	Params *struct {
		Channels        []string `json:"channels"`
		MarketTicker    string   `json:"market_ticker"`
		MarketTickers   []string `json:"market_tickers"`
		SID             int      `json:"sid"`
		SIDs            []int    `json:"sids"`
		Action          string   `json:"action"`
		UseYesPrice     bool     `json:"use_yes_price"`
		InitialSnapshot bool     `json:"send_initial_snapshot"`
	} `json:"params"`
}

func (in *command) tickers() []string {
	if in.Params.MarketTicker != "" {
		return []string{in.Params.MarketTicker}
	}
	return in.Params.MarketTickers
}

func (c *conn) fail(in *command, code int, text string) {
	c.push(object{"id": in.ID, "type": "error", "msg": object{"code": code, "msg": text}})
}

// Receive implements [server.Client].
func (c *conn) Receive(message []byte, _ bool) {
	var in command
	v := c.v
	v.mu.Lock()
	defer v.mu.Unlock()
	switch err := json.Unmarshal(message, &in); {
	case err != nil:
		c.fail(&in, 1, "Unable to process message")
	case in.Cmd == "list_subscriptions":
		list := []object{}
		for _, s := range c.subs {
			list = append(list, object{"channel": s.channel, "sid": s.sid})
		}
		c.push(object{"id": in.ID, "type": "ok", "msg": list})
	case in.Params == nil:
		c.fail(&in, 2, "Params required")
	case in.Cmd == "subscribe":
		v.subscribe(c, &in)
	case in.Cmd == "unsubscribe":
		v.unsubscribe(c, &in)
	case in.Cmd == "update_subscription":
		v.updateSubscription(c, &in)
	default:
		c.fail(&in, 5, "Unknown command")
	}
}

func (v *Venue) subscribe(c *conn, in *command) {
	if len(in.Params.Channels) == 0 {
		c.fail(in, 3, "Channels required")
		return
	}
	for _, channel := range in.Params.Channels {
		tickers := in.tickers()
		switch {
		case !slices.Contains([]string{channelBook, channelTicker, channelTrade, channelLifecycle}, channel):
			c.fail(in, 8, "Unknown channel name")
			return
		case channel == channelBook && len(tickers) == 0:
			c.fail(in, 14, "Market Ticker required")
			return
		case channel == channelLifecycle:
			tickers = nil
		}
		c.lastSID++
		s := &subscription{sid: c.lastSID, channel: channel, tickers: map[string]bool{}, all: len(tickers) == 0, useYesPrice: in.Params.UseYesPrice}
		for _, t := range tickers {
			s.tickers[t] = true
		}
		c.subs = append(c.subs, s)
		c.push(object{"id": in.ID, "type": "subscribed", "msg": object{"channel": channel, "sid": s.sid}})
		v.sendSnapshots(c, s, tickers, 0, in.Params.InitialSnapshot)
	}
}

// sendSnapshots sends the present state of markets to a subscription. It skips unknown tickers. For the book channel it always
// sends the books. For the ticker channel it sends messages only if initial is true. For other channels it sends nothing.
func (v *Venue) sendSnapshots(c *conn, s *subscription, tickers []string, id int, initial bool) {
	for _, ticker := range tickers {
		m := v.byTicker[ticker]
		switch {
		case m == nil:
		case s.channel == channelTicker && initial:
			c.push(v.ticker(m, s))
		case s.channel == channelBook:
			c.sendNumbered(s, v.snapshot(m, s, id))
		}
	}
}

// snapshot returns a message with the whole book of a market. The message omits a side that has no bids. If the market is not open,
// it omits both sides. It has an id only if the parameter id is not 0.
func (v *Venue) snapshot(m *market, s *subscription, id int) object {
	msg := object{"market_ticker": m.ticker, "market_id": m.uuid()}
	if m.state.Status == "OPEN" {
		for side, name := range sideNames {
			list := levels(m.bids[side], 0)
			if s.useYesPrice && side == 1 {
				for i, p := range slices.Sorted(maps.Keys(m.bids[side])) {
					list[i][0] = dollars(payout - p)
				}
			}
			if len(list) > 0 {
				msg[name+"_dollars_fp"] = list
			}
		}
	}
	out := object{"type": "orderbook_snapshot", "msg": msg}
	if id > 0 {
		out["id"] = id
	}
	return out
}

func (v *Venue) unsubscribe(c *conn, in *command) {
	if len(in.Params.SIDs) == 0 {
		c.fail(in, 4, "Subscription IDs required")
		return
	}
	for _, sid := range in.Params.SIDs {
		i := slices.IndexFunc(c.subs, func(s *subscription) bool { return s.sid == sid })
		if i < 0 {
			c.fail(in, 7, "Unknown subscription ID")
			continue
		}
		c.sendNumbered(c.subs[i], object{"id": in.ID, "type": "unsubscribed"})
		c.subs = slices.Delete(c.subs, i, i+1)
	}
}

func (v *Venue) updateSubscription(c *conn, in *command) {
	sids := in.Params.SIDs
	if in.Params.SID > 0 {
		sids = append(sids, in.Params.SID)
	}
	if len(sids) != 1 {
		c.fail(in, 12, "Exactly one subscription ID is required")
		return
	}
	i := slices.IndexFunc(c.subs, func(s *subscription) bool { return s.sid == sids[0] })
	if i < 0 {
		c.fail(in, 7, "Unknown subscription ID")
		return
	}
	s, tickers := c.subs[i], in.tickers()
	switch in.Params.Action {
	case "get_snapshot":
		if s.channel != channelBook {
			c.fail(in, 13, "Unsupported action")
			return
		}
		v.sendSnapshots(c, s, tickers, in.ID, false)
		return
	case "add_markets":
		for _, t := range tickers {
			s.tickers[t] = true
		}
	case "delete_markets":
		for _, t := range tickers {
			delete(s.tickers, t)
		}
		tickers = nil
	case "":
		c.fail(in, 15, "Action required")
		return
	default:
		c.fail(in, 13, "Unsupported action")
		return
	}
	c.sendNumbered(s, object{"id": in.ID, "type": "ok", "msg": object{"market_tickers": slices.Sorted(maps.Keys(s.tickers))}})
	v.sendSnapshots(c, s, tickers, 0, in.Params.InitialSnapshot)
}
