package limits

import (
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
)

// BenchmarkDocument is the price of a document on its way to validation, whose own price stands beside it.
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
	b.Run("portfolio, parsing alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = parser.ParseQuery(&ast.Source{Input: use["portfolio.graphql"]})
		}
	})
	b.Run("portfolio, validating alone", func(b *testing.B) {
		doc := accepted(b, g, use["portfolio.graphql"])
		b.ReportAllocs()
		for b.Loop() {
			validator.ValidateWithRules(schema(), doc, nil)
		}
	})
}

// BenchmarkCost is what every request pays, and BenchmarkCompile what each document pays once.
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

func BenchmarkVariables(b *testing.B) {
	g := guarding(b)
	raw := `{"i":` + list(500) + `}`
	b.ReportAllocs()
	for b.Loop() {
		_ = g.Variables(raw)
	}
}

// BenchmarkWorst validates the most expensive documents that pass all limits.
func BenchmarkWorst(b *testing.B) {
	g := guarding(b)
	for _, f := range families(Default()) {
		text := f.largest(g)
		b.Run(f.name, func(b *testing.B) {
			for b.Loop() {
				doc, err := g.Document(text)
				if err != nil {
					b.Fatal(err)
				}
				validator.ValidateWithRules(schema(), doc, nil)
			}
		})
	}
}
