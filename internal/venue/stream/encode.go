package stream

import (
	"encoding/json"
	"strconv"

	"oddsgraph/internal/market/messages"
)

var verbs = [...]string{
	verbSubscribe: "subscribe", verbUnsubscribe: "unsubscribe", verbResync: "resync", verbAuth: "auth", verbPing: "ping",
}

// encode returns the frame of a request, with the members in the contract's order.
func encode(r *request) []byte {
	b := []byte(`{"type":"`)
	b = append(b, verbs[r.verb]...)
	b = append(b, `","rid":`...)
	b = appendText(b, r.rid)
	switch r.verb {
	case verbAuth:
		b = append(b, `,"address":`...)
		b = appendText(b, r.topics[0].ID)
		b = append(b, `,"credentials":`...)
		b = append(b, r.creds.Wire()...)
	case verbSubscribe, verbUnsubscribe, verbResync:
		b = append(b, `,"channel":`...)
		b = appendText(b, string(r.topics[0].Channel))
		b = appendIDs(b, r)
	}
	if r.depth > 0 {
		b = append(b, `,"depth":`...)
		b = strconv.AppendInt(b, int64(r.depth), 10)
	}
	return append(b, '}')
}

func appendIDs(b []byte, r *request) []byte {
	member := "tokenId"
	switch r.topics[0].Channel {
	case messages.ChannelUser:
		return appendText(append(b, `,"address":`...), r.topics[0].ID)
	case messages.ChannelMarket:
		member = "marketId"
	}
	b = append(append(b, `,"`...), member...)
	if r.verb == verbResync {
		return appendText(append(b, `":`...), r.topics[0].ID)
	}
	b = append(b, `s":[`...)
	for i, t := range r.topics {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, t.ID)
	}
	return append(b, ']')
}

// appendText appends a JSON string.
func appendText(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // cannot fail for a string
	return append(b, text...)
}

// frameOverhead is an upper bound of the size of a subscription without its ids.
const frameOverhead = 128

// idSize returns an upper bound of the size of an id in JSON, with quotes and comma. An escaped byte takes up to six bytes.
func idSize(t messages.Topic) int {
	n := len(t.ID) + 3
	for i := range len(t.ID) {
		if c := t.ID[i]; c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c >= 0x80 {
			n += 5
		}
	}
	return n
}
