package codec

import (
	"testing"

	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
)

func BenchmarkDecode(b *testing.B) {
	d, _ := testDecoder(b, messages.Topic{})
	d.env.Observer = &observer{quiet: true}
	for _, name := range []string{"price-update", "orderbook-update", "trade"} {
		frame := golden(b, "frames/"+name)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d.Decode(frame, received)[0].Kind != stream.EventMessage {
					b.Fatalf("the frame %s decodes to no message", name)
				}
			}
		})
	}
}
