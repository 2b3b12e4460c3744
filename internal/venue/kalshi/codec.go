package kalshi

import (
	"crypto/rand"
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
	messages.ChannelOrderbook: "orderbook_delta",
	messages.ChannelPrices:    "ticker",
	messages.ChannelTrades:    "trade",
	messages.ChannelMarket:    "market_lifecycle_v2",
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

func (c *codec) forget(sid uint64) (lost []messages.Topic) {
	delete(c.sids, sid)
	for _, sub := range c.subjectsOf(sid) {
		lost = append(lost, c.subjects[sub].topics()...)
		delete(c.subjects, sub)
	}
	return lost
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
