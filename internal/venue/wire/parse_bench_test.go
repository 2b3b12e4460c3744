package wire

import (
	"os"
	"testing"
)

func BenchmarkParse(b *testing.B) {
	for _, name := range []string{"demo/market-search", "demo/positions", "stream/frames/trade"} {
		b.Run(name, func(b *testing.B) {
			text, err := os.ReadFile("../../../tests/testdata/venue/" + name + ".json")
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
