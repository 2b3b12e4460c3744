package kalshi

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
)

// These are the commands, and the actions of the command update_subscription. A command that requests snapshots or removes markets
// has at most maxCommandTickers markets.
const (
	cmdSubscribe      = "subscribe"
	cmdUnsubscribe    = "unsubscribe"
	cmdUpdate         = "update_subscription"
	cmdList           = "list_subscriptions"
	actionAdd         = "add_markets"
	actionDelete      = "delete_markets"
	actionSnapshot    = "get_snapshot"
	maxCommandTickers = 100
)

type frame struct {
	ID     uint64  `json:"id"`
	Cmd    string  `json:"cmd"`
	Params *params `json:"params,omitempty"`
}

type params struct {
	Channels []string `json:"channels,omitempty"`
	SID      uint64   `json:"sid,omitempty"`
	SIDs     []uint64 `json:"sids,omitempty"`
	Tickers  []string `json:"market_tickers,omitempty"`
	Action   string   `json:"action,omitempty"`
	// UnifiedPrices requests prices of YES on both sides of a book. Kalshi will support only this form in the future.
	UnifiedPrices   bool `json:"use_yes_price,omitempty"`
	InitialSnapshot bool `json:"send_initial_snapshot,omitempty"`
}

// Encode returns the commands of a request. It returns no command if the request changes nothing on the socket.
func (c *codec) Encode(r *stream.Request) [][]byte {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.Verb {
	case stream.VerbSubscribe:
		return c.subscribe(r, now)
	case stream.VerbUnsubscribe:
		return c.unsubscribe(r)
	case stream.VerbResync:
		return c.resync(r, now)
	case stream.VerbPing:
		return append(c.removeUnwanted(r.Rid), c.send(cmdList, nil, command{rid: r.Rid})) // the venue responds to every command
	}
	return nil
}

// send returns the frame of a command and remembers the command until the venue has responded. If there are already maxUnanswered
// commands, send forgets the oldest one.
func (c *codec) send(cmd string, p *params, sent command) []byte {
	c.commands++
	if len(c.unanswered) == maxUnanswered {
		delete(c.unanswered, slices.Min(slices.Collect(maps.Keys(c.unanswered))))
	}
	c.unanswered[c.commands] = sent
	b, err := json.Marshal(frame{c.commands, cmd, p})
	if err != nil {
		panic(err) // the fields of frame can always be encoded
	}
	return b
}

// subscribe subscribes the topics of one channel. If the socket does not have the market of a topic yet, subscribe adds the market
// to an open subscription of the channel. If there is no such subscription, subscribe starts a new one. If the socket already has
// the market, subscribe requests the current state of the market again, because the new topic needs this state.
func (c *codec) subscribe(r *stream.Request, now time.Time) (out [][]byte) {
	channel := r.Topics[0].Channel
	var fresh, known []subject
	sent := command{rid: r.Rid}
	for _, t := range r.Topics {
		sub, s, ok := subjectOf(t)
		if !ok {
			continue // the venue cannot know this market, so the topic gets no message
		}
		sent.topics = append(sent.topics, t)
		state := c.subjects[sub]
		if state == nil {
			state = new(subjectState)
			c.subjects[sub] = state
			fresh = append(fresh, sub)
		} else if !slices.Contains(fresh, sub) {
			known = append(known, sub)
		}
		state.wanted[s] = t
	}
	if len(fresh) > 0 {
		sent.subjects = fresh
		out = append(out, c.add(channel, fresh, sent))
	}
	if len(known) > 0 {
		out = append(out, c.restate(channel, known, sent, now)...)
	}
	return out
}

func (c *codec) add(channel messages.Channel, fresh []subject, sent command) []byte {
	sid, open := c.findOpen(channel)
	prices := channel == messages.ChannelPrices
	switch {
	case channel == messages.ChannelMarket && open:
		for _, sub := range fresh {
			c.subjects[sub].sid = sid
		}
		return c.send(cmdList, nil, sent) // the subscription already has all markets; the response to cmdList confirms the topics
	case channel == messages.ChannelMarket:
		return c.send(cmdSubscribe, &params{Channels: []string{channels[channel]}}, sent)
	case open:
		sent.action, sent.sid = actionAdd, sid
		return c.send(cmdUpdate, &params{SID: sid, Tickers: tickersOf(fresh), Action: actionAdd, InitialSnapshot: prices}, sent)
	}
	return c.send(cmdSubscribe, &params{
		Channels: []string{channels[channel]}, Tickers: tickersOf(fresh), UnifiedPrices: channel == messages.ChannelOrderbook, InitialSnapshot: prices,
	}, sent)
}

// restate returns commands that make the topics of subscribed markets get the current state again. For books, Kalshi has a command
// that requests snapshots. For other channels, restate returns a command without an effect at the venue. When the venue responds to
// this command, the codec repeats the last prices and confirms the topics.
func (c *codec) restate(channel messages.Channel, known []subject, sent command, now time.Time) [][]byte {
	if channel == messages.ChannelOrderbook {
		return c.snapshots(known, sent, now)
	}
	sent.subjects = known
	return [][]byte{c.send(cmdList, nil, sent)}
}

// snapshots returns the commands that request the books of markets. It skips books that it requested less than snapshotWithin ago.
// It also skips books whose subscription the venue has not confirmed, because Kalshi sends a snapshot after the confirmation.
func (c *codec) snapshots(subs []subject, sent command, now time.Time) (out [][]byte) {
	bySID := make(map[uint64][]subject)
	for _, sub := range subs {
		state := c.subjects[sub]
		if state.sid != 0 && now.Sub(state.askedAt) >= snapshotWithin {
			state.askedAt = now
			bySID[state.sid] = append(bySID[state.sid], sub)
		}
	}
	for _, sid := range slices.Sorted(maps.Keys(bySID)) {
		for part := range slices.Chunk(bySID[sid], maxCommandTickers) {
			request := sent
			request.action, request.sid, request.subjects = actionSnapshot, sid, part
			out = append(out, c.send(cmdUpdate, &params{SID: sid, Tickers: tickersOf(part), Action: actionSnapshot}, request))
		}
	}
	return out
}

func (c *codec) unsubscribe(r *stream.Request) [][]byte {
	for _, t := range r.Topics {
		sub, s, ok := subjectOf(t)
		if state := c.subjects[sub]; ok && state != nil && state.wanted[s] == t {
			state.wanted[s] = messages.Topic{}
			c.numbers.End(t)
		}
	}
	return c.removeUnwanted(r.Rid)
}

// removeUnwanted removes the markets without wanted topics from their subscriptions. If the venue has not confirmed the
// subscription of a market yet, the market stays. The first call of removeUnwanted after the confirmation removes this market. If a
// subscription has no market left, removeUnwanted ends the subscription, because Kalshi sends the messages of all markets on a
// subscription without markets.
func (c *codec) removeUnwanted(rid string) (out [][]byte) {
	unwanted := make(map[uint64][]subject)
	for sub, state := range c.subjects {
		if c.sids[state.sid] != nil && len(state.topics()) == 0 {
			delete(c.subjects, sub)
			unwanted[state.sid] = append(unwanted[state.sid], sub)
		}
	}
	for _, sid := range slices.Sorted(maps.Keys(c.sids)) {
		tickers := slices.Sorted(slices.Values(tickersOf(unwanted[sid])))
		switch {
		case !c.carries(sid):
			delete(c.sids, sid)
			out = append(out, c.send(cmdUnsubscribe, &params{SIDs: []uint64{sid}}, command{rid: rid, action: cmdUnsubscribe, sid: sid}))
		case c.sids[sid].channel != messages.ChannelMarket:
			for part := range slices.Chunk(tickers, maxCommandTickers) {
				out = append(out, c.send(cmdUpdate, &params{SID: sid, Tickers: part, Action: actionDelete}, command{rid: rid, action: actionDelete, sid: sid}))
			}
		}
	}
	return out
}

// carries reports whether a subscription has a market, or may get a market from a command that the venue has not answered yet.
func (c *codec) carries(sid uint64) bool {
	for _, state := range c.subjects {
		if state.sid == sid {
			return true
		}
	}
	for _, sent := range c.unanswered {
		if sent.sid == sid && sent.action == actionAdd {
			return true
		}
	}
	return false
}

// resync requests the current state of a topic. After a gap, all books of the subscription are lost. So the first call of resync
// after the gap requests all lost books of the subscription, with at most maxCommandTickers books in a command. It skips books that
// were requested less than snapshotWithin ago. If the subscription of the topic has ended, resync subscribes the topic again.
func (c *codec) resync(r *stream.Request, now time.Time) [][]byte {
	sub, _, ok := subjectOf(r.Topics[0])
	state := c.subjects[sub]
	if !ok || state == nil {
		return c.subscribe(r, now)
	}
	wanted := []subject{sub}
	if sub.channel == messages.ChannelOrderbook && state.book == nil {
		for _, other := range c.subjectsOf(state.sid) {
			if other != sub && other.channel == sub.channel && c.subjects[other].book == nil {
				wanted = append(wanted, other)
			}
		}
	}
	return c.restate(sub.channel, wanted, command{rid: r.Rid, topics: r.Topics}, now)
}

func tickersOf(subs []subject) []string {
	out := make([]string, len(subs))
	for i, sub := range subs {
		out[i] = sub.ticker
	}
	return out
}
