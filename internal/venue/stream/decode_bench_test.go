package stream

import (
	"testing"

	"oddsgraph/internal/market/messages"
)

func BenchmarkDecode(b *testing.B) {
	d, _ := testDecoder(b, messages.Topic{})
	d.env.Observer = ignore{}
	for _, name := range []string{"price-update", "orderbook-update", "trade"} {
		frame := golden(b, "frames/"+name)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d.Decode(frame, received)[0].Kind != EventMessage {
					b.Fatalf("the frame %s decodes to no message", name)
				}
			}
		})
	}
}
