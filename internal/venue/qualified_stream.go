package venue

import (
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
)

// QualifiedStream stands between the client of a venue's stream and the feed: it is the handler of the client and the upstream of the
// feed. It renames ids with Qualified and Own, and passes no credentials on.
type QualifiedStream struct {
	name       string
	noAccounts error
	to         stream.Handler
	client     *stream.Client
}

// NewQualifiedStream returns a QualifiedStream for a handler. noAccounts is the error of topics of accounts, or nil if the venue serves
// accounts. Call Connect before the client runs.
func NewQualifiedStream(name string, noAccounts error, to stream.Handler) *QualifiedStream {
	return &QualifiedStream{name: name, noAccounts: noAccounts, to: to}
}

// Connect sets the client.
func (s *QualifiedStream) Connect(c *stream.Client) { s.client = c }

// own returns the venue's own form of a topic. A topic of another venue has no id then, so the client refuses it.
func (s *QualifiedStream) own(t messages.Topic) messages.Topic {
	t.ID, _ = market.CutVenue(s.name, t.ID)
	return t
}

// Watch implements feed.Upstream.
func (s *QualifiedStream) Watch(t messages.Topic, _ *market.Credentials) error {
	if t.Channel == messages.ChannelUser && s.noAccounts != nil {
		return s.noAccounts
	}
	return s.client.Watch(s.own(t), nil)
}

// Unwatch implements feed.Upstream.
func (s *QualifiedStream) Unwatch(t messages.Topic) { s.client.Unwatch(s.own(t)) }

// Resync implements feed.Upstream.
func (s *QualifiedStream) Resync(t messages.Topic) { s.client.Resync(s.own(t)) }

// Market returns the function Market of the client's configuration. read reads a market by its qualified id.
func (s *QualifiedStream) Market(read func(id string) *market.Market) func(id string) *market.Market {
	return func(id string) *market.Market {
		m, _ := Own(s.name, read(market.Qualify(s.name, id)))
		return m
	}
}

// Up implements stream.Handler.
func (s *QualifiedStream) Up(topics []messages.Topic) {
	s.to.Up(Qualified(s.name, topics))
}

// Acknowledged implements stream.Handler.
func (s *QualifiedStream) Acknowledged(topics []messages.Topic) {
	s.to.Acknowledged(Qualified(s.name, topics))
}

// Down implements stream.Handler.
func (s *QualifiedStream) Down(topics []messages.Topic, err error) {
	s.to.Down(Qualified(s.name, topics), err)
}

// Refused implements stream.Handler.
func (s *QualifiedStream) Refused(t messages.Topic, err error) {
	s.to.Refused(Qualified(s.name, t), err)
}

// Heartbeat implements stream.Handler.
func (s *QualifiedStream) Heartbeat(epoch string, seqs map[messages.Topic]uint64) {
	all := make(map[messages.Topic]uint64, len(seqs))
	for t, seq := range seqs {
		all[Qualified(s.name, t)] = seq
	}
	s.to.Heartbeat(epoch, all)
}

// Message implements stream.Handler.
func (s *QualifiedStream) Message(m *messages.Message) {
	s.to.Message(Qualified(s.name, m))
}
