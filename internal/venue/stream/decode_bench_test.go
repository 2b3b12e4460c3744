package stream

import (
	"testing"

	"oddsgraph/internal/market/messages"
)

func BenchmarkDecode(b *testing.B) {
	d, _ := testDecoder(b, messages.Topic{})
	d.client.cfg.Observer = ignore{}
	for _, name := range []string{"price-update", "orderbook-update", "trade"} {
		frame := golden(b, "frames/"+name)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d.decode(frame, received)[0].kind != eventMessage {
					b.Fatal("no message")
				}
			}
		})
	}
}
