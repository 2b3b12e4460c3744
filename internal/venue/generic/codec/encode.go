package codec

import (
	"encoding/json"
	"fmt"

	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
)

var verbs = [...]string{
	stream.VerbSubscribe: "subscribe", stream.VerbUnsubscribe: "unsubscribe", stream.VerbResync: "resync", stream.VerbAuth: "auth", stream.VerbPing: "ping",
}

// request is a frame with the order of the venue's documentation.
type request struct {
	Type      string           `json:"type"`
	Rid       string           `json:"rid"`
	Channel   messages.Channel `json:"channel,omitempty"`
	Address   string           `json:"address,omitempty"`
	TokenID   string           `json:"tokenId,omitempty"`
	TokenIDs  []string         `json:"tokenIds,omitempty"`
	MarketID  string           `json:"marketId,omitempty"`
	MarketIDs []string         `json:"marketIds,omitempty"`
	Depth     int              `json:"depth,omitempty"`
}

func encode(r *stream.Request) []byte {
	out := request{Type: verbs[r.Verb], Rid: r.Rid, Depth: r.Depth}
	if len(r.Topics) > 0 && r.Verb != stream.VerbAuth {
		out.Channel = r.Topics[0].Channel
	}
	id, ids := &out.TokenID, &out.TokenIDs
	if out.Channel == messages.ChannelMarket {
		id, ids = &out.MarketID, &out.MarketIDs
	}
	switch {
	case r.Verb == stream.VerbAuth, out.Channel == messages.ChannelUser:
		out.Address = r.Topics[0].ID
	case r.Verb == stream.VerbResync:
		*id = r.Topics[0].ID
	default:
		for _, t := range r.Topics {
			*ids = append(*ids, t.ID)
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic(err) // the fields of request can always be encoded
	}
	if r.Credentials != nil {
		b = fmt.Appendf(b[:len(b)-1], `,"credentials":%s}`, r.Credentials.Wire()) // as the client has sent them
	}
	return b
}
