package codec

import (
	"encoding/json"
	"strconv"

	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
)

var verbs = [...]string{
	stream.VerbSubscribe: "subscribe", stream.VerbUnsubscribe: "unsubscribe", stream.VerbResync: "resync", stream.VerbAuth: "auth", stream.VerbPing: "ping",
}

// encode returns the frame of a request. The JSON fields have the order of the venue's documentation.
func encode(r *stream.Request) []byte {
	b := []byte(`{"type":"`)
	b = append(b, verbs[r.Verb]...)
	b = append(b, `","rid":`...)
	b = appendText(b, r.Rid)
	switch r.Verb {
	case stream.VerbAuth:
		b = append(b, `,"address":`...)
		b = appendText(b, r.Topics[0].ID)
		b = append(b, `,"credentials":`...)
		b = append(b, r.Credentials.Wire()...)
	case stream.VerbSubscribe, stream.VerbUnsubscribe, stream.VerbResync:
		b = append(b, `,"channel":`...)
		b = appendText(b, string(r.Topics[0].Channel))
		b = appendIDs(b, r)
	}
	if r.Depth > 0 {
		b = append(b, `,"depth":`...)
		b = strconv.AppendInt(b, int64(r.Depth), 10)
	}
	return append(b, '}')
}

func appendIDs(b []byte, r *stream.Request) []byte {
	member := "tokenId"
	switch r.Topics[0].Channel {
	case messages.ChannelUser:
		return appendText(append(b, `,"address":`...), r.Topics[0].ID)
	case messages.ChannelMarket:
		member = "marketId"
	}
	b = append(append(b, `,"`...), member...)
	if r.Verb == stream.VerbResync {
		return appendText(append(b, `":`...), r.Topics[0].ID)
	}
	b = append(b, `s":[`...)
	for i, t := range r.Topics {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, t.ID)
	}
	return append(b, ']')
}

func appendText(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // Marshal cannot fail for a string
	return append(b, text...)
}
