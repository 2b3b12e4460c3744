package relay

import (
	"encoding/json"
	"errors"
	"hash/fnv"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// shardCount is the number of shards. All replicas must use the same number.
const shardCount = 64

// shardOf returns the shard of a topic. All topics with the same ID belong to the same shard.
func shardOf(t messages.Topic) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.ID))
	return int(h.Sum32() % shardCount)
}

// frameKind is the first byte of a frame. The second byte is the shard plus the code of the space character.
type frameKind byte

const (
	// frameHello says that a replica is running. A replica also receives its own hellos, which show that the Bus works.
	frameHello frameKind = 'h'
	// frameWant contains topics that the sender wants. frameResync contains topics whose snapshots the sender needs.
	frameWant   frameKind = 'w'
	frameResync frameKind = 'r'
	// frameBeat lists the topics of a shard for which the owner's subscription is up, each with the number of its last message.
	frameBeat frameKind = 'b'
	// frameMessage contains a message of a topic. frameRefused contains a topic that the venue has rejected, or for which the owner's
	// client has no room.
	frameMessage frameKind = 'm'
	frameRefused frameKind = 'x'
)

// frame is a message between replicas. Its text consists of the kind, the shard and a JSON object.
type frame struct {
	kind  frameKind
	shard int
	// From is the name of the sender. Fence rises with each new lease of the shard. It is 0 in a frameHello, frameWant or
	// frameResync.
	From    string            `json:"f"`
	Fence   uint64            `json:"e,omitempty"`
	Topics  []messages.Topic  `json:"t,omitempty"`
	Beat    []position        `json:"b,omitempty"`
	Message *messages.Message `json:"m,omitempty"`
	Code    market.Code       `json:"c,omitempty"`
	Text    string            `json:"x,omitempty"`
}

// position describes a topic in a beat. Hash is the result of hashOf. N is the last number that the owner has used for the topic;
// see Relay.Up. Acknowledged reports whether the venue has confirmed the subscription.
type position struct {
	Hash         uint64 `json:"h"`
	N            uint64 `json:"n"`
	Acknowledged bool   `json:"a,omitempty"`
}

// hashOf returns the hash that identifies a topic in beats.
func hashOf(t messages.Topic) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(t.Channel))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(t.ID))
	return h.Sum64()
}

// encode returns the text of a frame.
func (f *frame) encode() (string, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.Grow(len(text) + 2)
	b.WriteByte(byte(f.kind))
	b.WriteByte(byte(f.shard) + ' ')
	b.Write(text)
	return b.String(), nil
}

// header returns the kind and the shard of a frame.
func header(text string) (kind frameKind, shard int, err error) {
	if len(text) < 2 || text[1] < ' ' || int(text[1]-' ') >= shardCount {
		return 0, 0, errors.New("relay: a frame without a kind and a shard")
	}
	return frameKind(text[0]), int(text[1] - ' '), nil
}

// topicText returns the text that represents a topic in Bus.Want and Bus.Wanted. topicOf returns the topic of such a text; ok is
// false if the text does not name a public topic.
func topicText(t messages.Topic) string { return string(t.Channel) + "|" + t.ID }

func topicOf(text string) (t messages.Topic, ok bool) {
	channel, id, _ := strings.Cut(text, "|")
	t = messages.Topic{Channel: messages.Channel(channel), ID: id}
	return t, isPublic(t)
}

// isPublic reports whether a topic has a public channel, no scope and a valid id.
func isPublic(t messages.Topic) bool {
	switch t.Channel {
	case messages.ChannelPrices, messages.ChannelOrderbook, messages.ChannelTrades, messages.ChannelMarket:
		return t.Scope == "" && market.CheckID(t.ID) == nil
	}
	return false
}
