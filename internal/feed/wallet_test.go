package feed

import (
	"fmt"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/tests/tool"
)

// wallet returns a feed, and the watch and the topic of an account with the given number of positions.
func wallet(b testing.TB, positions int) (f *Feed, w *Watch, key messages.Topic) {
	f = New(Config{Sink: tool.Discard{}})
	f.Connect(newUpstream())
	b.Cleanup(f.Close)
	key = messages.Topic{Channel: messages.ChannelUser, ID: "0xabc", Scope: "s"}
	w, err := f.NewReader().Watch(key, nil)
	if err != nil {
		b.Fatal(err)
	}
	m := &messages.Message{Topic: key, Kind: messages.KindUserSnapshot, Epoch: "A", Seq: 1, ReceivedAt: time.Now(), Orders: []market.Order{}}
	for i := range positions {
		m.Positions = append(m.Positions, holdingOf(i, 1))
	}
	f.Up("A", []messages.Topic{key})
	f.Message(m)
	return f, w, key
}

func holdingOf(i, size int) market.Position {
	return market.Position{MarketID: fmt.Sprint("M", i), TokenID: fmt.Sprint("T", i), Outcome: "YES", Size: market.NewDecimal(int64(size), 0)}
}
