package limits

import (
	"strings"
	"testing"
)

// BenchmarkDocument measures the guard's part of the way of a document to validation.
func BenchmarkDocument(b *testing.B) {
	g := guarding(b)
	use := documentsOfUse(b)
	for _, bench := range []struct{ name, text string }{
		{"portfolio", use["portfolio.graphql"]},
		{"introspection", use["introspection-graphql-js-16.graphql"]},
		{"refused before", "{" + strings.Repeat("a ", 900) + "}"},
		{"too large", strings.Repeat(" ", 10<<20)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = g.Document(bench.text)
			}
		})
	}
	b.Run("refused", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			g.refused.Purge()
			_, _ = g.Document("{" + strings.Repeat("a ", 900) + "}")
		}
	})
}

// BenchmarkCost measures what every request costs, BenchmarkCompile what each document costs once.
func BenchmarkCost(b *testing.B) {
	g := guarding(b)
	for _, name := range []string{"portfolio", "price-board", "introspection-graphql-js-16"} {
		doc := accepted(b, g, documentsOfUse(b)[name+".graphql"])
		plan := g.Compile(doc, doc.Operations[0])
		variables := map[string]any{"address": "0x2222222222222222222222222222222222222222", "first": int64(50), "after": nil, "tokenIds": []any{"1", "2"}}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = plan.Cost(variables)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	g := guarding(b)
	doc := accepted(b, g, documentsOfUse(b)["portfolio.graphql"])
	b.ReportAllocs()
	for b.Loop() {
		g.Compile(doc, doc.Operations[0])
	}
}
