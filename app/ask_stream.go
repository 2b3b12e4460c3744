package app

import (
	"context"
	"slices"
	"sync"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
)

// askStream subscribes to the market m, and to the price and the book of the first token of m. It waits until each of these topics has
// an answer, or until timeout has passed. Then it prints the answers.
func (q *inquiry) askStream(ctx context.Context, cfg stream.Config, timeout time.Duration, m *market.Market) {
	handler := newFirstAnswers(m)
	client, err := stream.New(cfg, handler)
	if err != nil {
		q.read("stream", func() (string, error) { return "", err })
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- client.Run(ctx) }()
	for _, t := range handler.topics {
		if err := client.Watch(t, nil); err != nil {
			handler.Refused(t, err)
		}
	}
	select {
	case <-handler.allAnswered:
		cancel()
	case <-ctx.Done():
	}
	<-stopped
	for _, t := range handler.topics {
		q.read("stream of "+string(t.Channel), func() (string, error) { return handler.result(t) })
	}
}

// firstAnswers is a stream.Handler that records the first answer about each topic: a message, a refusal or, for a market topic, a
// confirmation.
type firstAnswers struct {
	topics []messages.Topic
	// allAnswered is closed when every topic has an answer.
	allAnswered chan struct{}

	mu sync.Mutex
	// answers maps a topic to its answer. The answer is nil for a message or a confirmation, and an error for a refusal.
	answers   map[messages.Topic]error
	lossCause error
}

func newFirstAnswers(m *market.Market) *firstAnswers {
	h := &firstAnswers{topics: []messages.Topic{{Channel: messages.ChannelMarket, ID: m.MarketID}}, allAnswered: make(chan struct{}), answers: map[messages.Topic]error{}}
	if i := slices.IndexFunc(m.Outcomes, func(o market.Outcome) bool { return o.TokenID != "" }); i >= 0 {
		id := m.Outcomes[i].TokenID
		h.topics = append(h.topics, messages.Topic{Channel: messages.ChannelPrices, ID: id}, messages.Topic{Channel: messages.ChannelOrderbook, ID: id})
	}
	return h
}

// answer records the first answer about a topic in h.topics. It ignores other answers.
func (h *firstAnswers) answer(t messages.Topic, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, answered := h.answers[t]; answered || !slices.Contains(h.topics, t) {
		return
	}
	if h.answers[t] = err; len(h.answers) == len(h.topics) {
		close(h.allAnswered)
	}
}

// result describes the answer about a topic. It returns an error if the venue refused the topic or sent no answer.
func (h *firstAnswers) result(t messages.Topic) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err, answered := h.answers[t]; answered {
		if err != nil {
			return "refused", err
		}
		return "answered", nil
	}
	return "no answer", market.Errorf(market.CodeUpstreamTimeout, "the venue's stream sent nothing within --venue-timeout").Because(h.lossCause)
}

func (h *firstAnswers) Up([]messages.Topic) {}

// Acknowledged implements stream.Handler. For a market topic the confirmation of the subscription counts as the answer, because the
// venue sends a message only when the market changes.
func (h *firstAnswers) Acknowledged(topics []messages.Topic) {
	for _, t := range topics {
		if t.Channel == messages.ChannelMarket {
			h.answer(t, nil)
		}
	}
}

func (h *firstAnswers) Down(_ []messages.Topic, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lossCause = err
}

func (h *firstAnswers) Message(m *messages.Message) { h.answer(m.Topic, nil) }

func (h *firstAnswers) Heartbeat(string, map[messages.Topic]uint64) {}

func (h *firstAnswers) Refused(t messages.Topic, err error) { h.answer(t, err) }
