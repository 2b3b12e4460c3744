package app

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
)

// askStream subscribes to the market m, and to the price, the book and the trades of a token of m. It listens until timeout has passed.
// Then it prints what each topic has sent.
func (q *inquiry) askStream(ctx context.Context, cfg stream.Config, timeout time.Duration, m *market.Market, tokenID string) {
	handler := newAnswers(m.MarketID, tokenID)
	cfg.Market = func(id string) *market.Market {
		if id == m.MarketID {
			return m
		}
		return nil
	}
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
	<-ctx.Done()
	<-stopped
	for _, t := range handler.topics {
		q.read("stream of "+string(t.Channel), func() (string, error) { return handler.result(t) })
	}
}

// answers is a stream.Handler that records for each topic the first answer, which is a message, a refusal or a confirmation, and the
// number of messages.
type answers struct {
	topics []messages.Topic

	mu sync.Mutex
	// first maps a topic to its answer. The answer is nil for a message or a confirmation, and an error for a refusal.
	first     map[messages.Topic]error
	messages  map[messages.Topic]int
	lossCause error
}

func newAnswers(marketID, tokenID string) *answers {
	h := &answers{topics: []messages.Topic{{Channel: messages.ChannelMarket, ID: marketID}}, first: map[messages.Topic]error{}, messages: map[messages.Topic]int{}}
	for _, c := range []messages.Channel{messages.ChannelPrices, messages.ChannelOrderbook, messages.ChannelTrades} {
		h.topics = append(h.topics, messages.Topic{Channel: c, ID: tokenID})
	}
	return h
}

// answer records the first answer about a topic in h.topics. It ignores other answers.
func (h *answers) answer(t messages.Topic, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, answered := h.first[t]; !answered && slices.Contains(h.topics, t) {
		h.first[t] = err
	}
}

// result describes the answer about a topic. It returns an error if the venue refused the topic or sent no answer.
func (h *answers) result(t messages.Topic) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err, answered := h.first[t]; answered {
		if err != nil {
			return "refused", err
		}
		return fmt.Sprintf("answered, %d messages", h.messages[t]), nil
	}
	return "no answer", market.Errorf(market.CodeUpstreamTimeout, "the venue's stream sent nothing within --venue-timeout").Because(h.lossCause)
}

func (h *answers) Up([]messages.Topic) {}

// Acknowledged implements stream.Handler. For trades and markets the confirmation of the subscription counts as the answer, because the
// venue may send nothing until something happens.
func (h *answers) Acknowledged(topics []messages.Topic) {
	for _, t := range topics {
		if t.Channel == messages.ChannelMarket || t.Channel == messages.ChannelTrades {
			h.answer(t, nil)
		}
	}
}

func (h *answers) Down(_ []messages.Topic, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lossCause = err
}

func (h *answers) Message(m *messages.Message) {
	h.answer(m.Topic, nil)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.messages[m.Topic]++
}

func (h *answers) Heartbeat(string, map[messages.Topic]uint64) {}

func (h *answers) Refused(t messages.Topic, err error) { h.answer(t, err) }
