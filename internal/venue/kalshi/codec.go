package kalshi

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
)

// channels maps each channel that Kalshi streams to the venue's name of this channel.
var channels = map[messages.Channel]string{
	messages.ChannelOrderbook: "orderbook_delta", messages.ChannelPrices: typeTicker, messages.ChannelTrades: "trade",
	messages.ChannelMarket: "market_lifecycle_v2",
}

// codec translates the topics of one socket into Kalshi's subscriptions. Kalshi streams whole markets. So on each channel, the
// topics of both tokens of a market share one subject. A subscription covers many subjects, and its messages share one sequence of
// numbers. The codec checks these numbers, and numbers the messages of each topic itself. It is safe for concurrent use.
type codec struct {
	// epoch identifies the socket. The message numbers of different sockets cannot be compared.
	epoch    string
	observer stream.Observer
	now      func() time.Time

	mu       sync.Mutex
	commands uint64
	// unanswered contains the commands that the venue has not answered yet, by the id of the command.
	unanswered map[uint64]command
	// sids contains the subscriptions of the socket by the venue's id.
	sids     map[uint64]*subscription
	subjects map[subject]*subjectState
	numbers  stream.Numbering
}

type subscription struct {
	channel messages.Channel
	seq     uint64
	// full reports that the venue accepts no more markets for the subscription.
	full bool
}

// subject is a market on a channel.
type subject struct {
	channel messages.Channel
	ticker  string
}

type subjectState struct {
	// wanted contains the subscribed topics of the subject, by outcome. A topic of the market channel is at index yes.
	wanted [2]messages.Topic
	// sid is the venue's id of the subscription. It is 0 until the venue has sent the id.
	sid uint64
	// book is set only on the channel of order books. It is nil before the first snapshot and after a gap.
	book *bids
	// askedAt is the time at which the codec requested a snapshot. It becomes zero when the snapshot arrives, and after a gap.
	askedAt time.Time
	// last is the last readable frame with prices.
	last *received
}

// If a snapshot does not arrive within snapshotWithin, the codec may request it again.
const snapshotWithin = 1500 * time.Millisecond

// command is a sent command that the venue has not answered yet.
type command struct {
	rid      string
	action   string
	sid      uint64
	subjects []subject
	topics   []messages.Topic
}

const maxUnanswered = 1024

// Stream implements venue.Driver. Without a key there is no stream, because Kalshi refuses unsigned handshakes.
func (d *Driver) Stream() (address string, p *stream.Protocol) {
	if d.key == nil {
		return "", nil
	}
	return StreamURL, &stream.Protocol{
		NewCodec: func(_ messages.Topic, env stream.Env) stream.Codec { return newCodec(env.Observer, time.Now) },
		Subject:  subjectName,
		Header:   func(path string) (http.Header, error) { return d.key.Headers(http.MethodGet, path, d.Now()) },
	}
}

func newCodec(observer stream.Observer, now func() time.Time) *codec {
	return &codec{
		observer: observer, now: now,
		epoch: rand.Text(), unanswered: make(map[uint64]command), sids: make(map[uint64]*subscription),
		subjects: make(map[subject]*subjectState),
	}
}

func subjectOf(t messages.Topic) (sub subject, s side, ok bool) {
	switch t.Channel {
	case messages.ChannelMarket:
		return subject{t.Channel, t.ID}, yes, isTicker(t.ID)
	case messages.ChannelOrderbook, messages.ChannelPrices, messages.ChannelTrades:
		ticker, s, ok := parseToken(t.ID)
		return subject{t.Channel, ticker}, s, ok
	}
	return subject{}, yes, false
}

// subjectName implements stream.Protocol.Subject: topics with the same name share a connection. Both tokens of a market have the
// same name on a channel. On the market channel, all markets have the same name, because a subscription to this channel delivers
// all markets. A topic that Kalshi does not stream has its own name.
func subjectName(t messages.Topic) string {
	sub, _, ok := subjectOf(t)
	switch {
	case !ok:
		return t.ID
	case t.Channel == messages.ChannelMarket:
		return channels[t.Channel]
	}
	return channels[t.Channel] + " " + sub.ticker
}

func (s *subjectState) topics() (out []messages.Topic) {
	for _, t := range s.wanted {
		if t.ID != "" {
			out = append(out, t)
		}
	}
	return out
}

func (c *codec) findOpen(channel messages.Channel) (sid uint64, ok bool) {
	for id, s := range c.sids {
		if s.channel == channel && !s.full && (!ok || id < sid) {
			sid, ok = id, true
		}
	}
	return sid, ok
}

func (c *codec) subjectsOf(sid uint64) (subs []subject) {
	for sub, state := range c.subjects {
		if state.sid == sid {
			subs = append(subs, sub)
		}
	}
	slices.SortFunc(subs, byTicker)
	return subs
}

func byTicker(a, b subject) int { return strings.Compare(a.ticker, b.ticker) }

// lifecycles maps the type of a lifecycle message to a market.MarketChange.Kind, and to the market's new state in the words of the
// REST API, if it has a new one. An unknown type is the kind.
var lifecycles = map[string]struct{ kind, status string }{
	"created": {"CREATED", ""}, "activated": {"STATUS", "active"}, "deactivated": {"STATUS", "inactive"},
	"determined": {"RESOLVED", "determined"}, "settled": {"STATUS", "finalized"},
	"price_level_structure_updated": {"TICK_SIZE", ""}, "close_date_updated": {"METADATA", ""}, "metadata_updated": {"METADATA", ""},
}

// These are the commands, and the actions of the command update_subscription.
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
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.Verb {
	case stream.VerbSubscribe:
		return c.subscribe(r)
	case stream.VerbUnsubscribe:
		return c.unsubscribe(r)
	case stream.VerbResync:
		return c.resync(r)
	case stream.VerbPing:
		return append(c.removeUnwanted(r.Rid), c.send(cmdList, nil, command{rid: r.Rid})) // the venue responds to every command
	}
	return nil
}

// send returns the frame of a command and remembers the command until the venue has responded, up to maxUnanswered commands.
func (c *codec) send(cmd string, p *params, sent command) []byte {
	c.commands++
	delete(c.unanswered, c.commands-maxUnanswered)
	c.unanswered[c.commands] = sent
	b, err := json.Marshal(frame{c.commands, cmd, p})
	if err != nil {
		panic(err) // the fields of frame can always be encoded
	}
	return b
}

// subscribe subscribes the topics of one channel. If the socket already has the market of a topic, subscribe requests the market's
// current state again for the new topic. Otherwise it adds the market to an open subscription of the channel, or to a new one.
func (c *codec) subscribe(r *stream.Request) (out [][]byte) {
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
		out = c.add(fresh, sent)
	}
	if len(known) > 0 {
		out = append(out, c.restate(known, sent)...)
	}
	return out
}

func (c *codec) add(fresh []subject, sent command) [][]byte {
	channel := fresh[0].channel
	sid, open := c.findOpen(channel)
	sent.subjects = fresh
	p := params{Channels: []string{channels[channel]}, UnifiedPrices: channel == messages.ChannelOrderbook, InitialSnapshot: channel == messages.ChannelPrices}
	switch {
	case channel == messages.ChannelMarket && open:
		for _, sub := range fresh {
			c.subjects[sub].sid = sid
		}
		return [][]byte{c.send(cmdList, nil, sent)} // the subscription already has all markets; the response to cmdList confirms the topics
	case open:
		return c.update(sid, actionAdd, fresh, sent)
	case channel != messages.ChannelMarket:
		p.Tickers = tickersOf(fresh)
	}
	return [][]byte{c.send(cmdSubscribe, &p, sent)}
}

// update returns commands that do an action for markets of a subscription, with at most maxCommandTickers markets in each.
func (c *codec) update(sid uint64, action string, subs []subject, sent command) (out [][]byte) {
	for part := range slices.Chunk(subs, maxCommandTickers) {
		sent.action, sent.sid, sent.subjects = action, sid, part
		out = append(out, c.send(cmdUpdate, &params{
			SID: sid, Tickers: tickersOf(part), Action: action, InitialSnapshot: action == actionAdd && part[0].channel == messages.ChannelPrices,
		}, sent))
	}
	return out
}

// restate returns commands that make the topics of subscribed markets get the current state again. For books they request snapshots,
// except of books that were requested less than snapshotWithin ago, and of those whose subscription the venue has not confirmed,
// because Kalshi sends a snapshot after the confirmation. For other channels, the response to cmdList makes the codec repeat the last
// prices and confirm the topics.
func (c *codec) restate(subs []subject, sent command) (out [][]byte) {
	if subs[0].channel != messages.ChannelOrderbook {
		sent.subjects = subs
		return [][]byte{c.send(cmdList, nil, sent)}
	}
	now, bySID := c.now(), make(map[uint64][]subject)
	for _, sub := range subs {
		if state := c.subjects[sub]; state.sid != 0 && now.Sub(state.askedAt) >= snapshotWithin {
			state.askedAt = now
			bySID[state.sid] = append(bySID[state.sid], sub)
		}
	}
	for _, sid := range slices.Sorted(maps.Keys(bySID)) {
		out = append(out, c.update(sid, actionSnapshot, bySID[sid], sent)...)
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

// removeUnwanted removes the markets without wanted topics from their subscriptions, except those that the venue has not confirmed
// yet. If a subscription has no market left, removeUnwanted ends it, because then Kalshi sends the messages of all markets.
func (c *codec) removeUnwanted(rid string) (out [][]byte) {
	unwanted := make(map[uint64][]subject)
	for sub, state := range c.subjects {
		if c.sids[state.sid] != nil && len(state.topics()) == 0 {
			delete(c.subjects, sub)
			unwanted[state.sid] = append(unwanted[state.sid], sub)
		}
	}
	for _, sid := range slices.Sorted(maps.Keys(c.sids)) {
		switch {
		case !c.carries(sid):
			delete(c.sids, sid)
			out = append(out, c.send(cmdUnsubscribe, &params{SIDs: []uint64{sid}}, command{rid: rid, action: cmdUnsubscribe, sid: sid}))
		case c.sids[sid].channel != messages.ChannelMarket:
			slices.SortFunc(unwanted[sid], byTicker)
			out = append(out, c.update(sid, actionDelete, unwanted[sid], command{rid: rid})...)
		}
	}
	return out
}

// carries reports whether a subscription has a market, or may get a market from a command that the venue has not answered yet.
func (c *codec) carries(sid uint64) bool {
	for _, sent := range c.unanswered {
		if sent.sid == sid && sent.action == actionAdd {
			return true
		}
	}
	return len(c.subjectsOf(sid)) > 0
}

// resync requests the current state of a topic. After a gap, all books of the subscription are lost, so the first call of resync
// requests all of them. If the subscription of the topic has ended, resync subscribes the topic again.
func (c *codec) resync(r *stream.Request) [][]byte {
	sub, _, ok := subjectOf(r.Topics[0])
	state := c.subjects[sub]
	if !ok || state == nil {
		return c.subscribe(r)
	}
	wanted := []subject{sub}
	if sub.channel == messages.ChannelOrderbook && state.book == nil {
		for _, other := range c.subjectsOf(state.sid) {
			if other != sub && c.subjects[other].book == nil {
				wanted = append(wanted, other)
			}
		}
	}
	return c.restate(wanted, command{rid: r.Rid, topics: r.Topics})
}

func tickersOf(subs []subject) []string {
	out := make([]string, len(subs))
	for i, sub := range subs {
		out[i] = sub.ticker
	}
	return out
}
