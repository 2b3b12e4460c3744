package wire

import (
	"os"
	"testing"
)

// BenchmarkParse takes a list of markets and a frame of the stream apart.
func BenchmarkParse(b *testing.B) {
	for name, file := range map[string]string{
		"markets": "market-details/contract-list.json",
	} {
		text, err := os.ReadFile("../../testdata/venue/" + file)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
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
