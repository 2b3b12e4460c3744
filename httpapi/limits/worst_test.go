package limits

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
)

// family is a kind of document that is expensive to validate. The size of the document grows with n.
type family struct {
	name string
	text func(n int) string
}

// families returns the known families. We found them by mutation and by reading the validation rules of gqlparser.
func families(l Limits) []family {
	// fragments returns a family.text for documents with distinct fragments, each of which has the given number of fields. If chained
	// is true, each fragment spreads the next fragment. If chained is false, the operation spreads all fragments.
	fragments := func(fields int, chained bool) func(n int) string {
		return func(n int) string {
			f := l.Fragments
			if chained {
				return "{token(tokenId:1){" + repeat(n, numbered("r%d ")) + "...F0}}" + repeat(f, func(i int) string {
					next := ""
					if i < f-1 {
						next = fmt.Sprint("...F", i+1)
					}
					return fmt.Sprintf("fragment F%d on Token{%s%s}", i, repeat(fields, func(j int) string { return fmt.Sprintf("f%dx%d ", i, j) }), next)
				})
			}
			return "{token(tokenId:1){" + repeat(n, numbered("r%d ")) + repeat(f, numbered("...F%d ")) + "}}" + repeat(f, func(i int) string {
				return fmt.Sprintf("fragment F%d on Token{%s}", i, repeat(fields, func(j int) string { return fmt.Sprintf("f%dx%d ", i, j) }))
			})
		}
	}
	// shared returns many operations that spread one fragment. Validation visits the fragment once for each operation.
	shared := func(on, content string) string {
		return repeat(l.Operations, func(i int) string { return fmt.Sprintf("query Q%d{...F}", i) }) + "fragment F on " + on + "{" + content + "}"
	}
	// unknown returns a name that resembles the name of a field. Validation compares an unknown name with the names of all fields.
	unknown := func(i int) string { return fmt.Sprintf("volume%0*d ", l.NameBytes-6, i) }
	objects := func(times, fields int) func(n int) string {
		return func(n int) string {
			return "{token(tokenId:1){" + strings.Repeat("price{"+repeat(fields, numbered("a%d "))+repeat(n, func(i int) string { return fmt.Sprintf("...F%d ", i%l.Fragments) })+"}", times) +
				"}}" + repeat(min(n, l.Fragments), func(i int) string { return fmt.Sprintf("fragment F%d on TokenPrice{f%d:id}", i, i) })
		}
	}
	marketFields := strings.Fields("id marketId slug question groupItemTitle description image category tags status statusRaw acceptingOrders startsAt endsAt volume volume24h liquidity tickSize minOrderSize updatedAt")
	return []family{
		{"distinct fields", func(n int) string { return "{token(tokenId:1){" + repeat(n, numbered("a%d ")) + "}}" }},
		{"repeats under nested inline fragments", func(n int) string {
			d := l.Depth - 3
			return "{token(tokenId:1){market{" + strings.Repeat("...{", d) + repeat(n, func(i int) string { return fmt.Sprintf("k%d ", i/l.Repeats) }) + strings.Repeat("}", d) + "}}}"
		}},
		{"valid repeats under nested inline fragments", func(n int) string {
			d := l.Depth - 3
			return "{token(tokenId:1){market{" + strings.Repeat("...{", d) + repeat(n, func(i int) string { return marketFields[i%len(marketFields)] + " " }) + strings.Repeat("}", d) + "}}}"
		}},
		{"repeated objects", func(n int) string {
			return "{" + strings.Repeat("serviceStatus{"+repeat(n, numbered("x%d "))+"}", l.Repeats) + "}"
		}},
		{"a tree of repeats", func(n int) string {
			return "{market(marketId:1){" + repeat(n, func(i int) string { return fmt.Sprintf("z%d:event{markets%s}", i, repeatedTree(3)) }) + "}}"
		}},
		{"many small fragments", fragments(1, false)},
		{"many fragments", fragments(10, false)},
		{"a chain of small fragments", fragments(1, true)},
		{"a chain of fragments", fragments(10, true)},
		{"objects that spread fragments", objects(l.Repeats, 0)},
		{"objects with fields that spread fragments", objects(l.Repeats, 16)},
		{"few objects with fields that spread fragments", objects(10, 40)},
		{"unknown fields", func(n int) string { return "{market(marketId:1){" + repeat(n, unknown) + "}}" }},
		{"unknown fields in many operations", func(n int) string { return shared("Query", "market(marketId:1){"+repeat(n, unknown)+"}") }},
		{"unknown arguments in many operations", func(n int) string {
			return shared("Query", "searchMarkets("+repeat(n, func(i int) string { return strings.TrimSpace(unknown(i)) + ":1 " })+"){totalCount}")
		}},
		{"a long enum in many operations", func(n int) string {
			return shared("Query", `searchMarkets(sort:"`+strings.Repeat("V", 16*n)+`"){totalCount}`)
		}},
		{"a long value, nested, in many operations", func(n int) string {
			return shared("Query", "nodes(ids:"+strings.Repeat("[", l.Depth)+`"`+strings.Repeat("V", 16*n)+`"`+strings.Repeat("]", l.Depth)+"){id}")
		}},
		{"a long list in many operations", func(n int) string {
			return shared("Query", "searchMarkets(filter:{status:["+strings.Repeat("OPEN ", n)+"]}){totalCount}")
		}},
		{"a long object in many operations", func(n int) string {
			return shared("Query", "searchMarkets(filter:{"+repeat(n, numbered("category%d:1 "))+"}){totalCount}")
		}},
		{"directives in many operations", func(n int) string {
			return shared("Query", "serviceStatus"+strings.Repeat("@skip(if:true)", n)+"{version}")
		}},
		{"unknown directives in many operations", func(n int) string {
			return shared("Query", "serviceStatus"+strings.Repeat("@d", n)+"{version}")
		}},
		{"variables", func(n int) string {
			return "query(" + repeat(n, numbered("$v%d:Int ")) + "){" + repeat(80, func(i int) string { return fmt.Sprintf("a%d:searchMarkets(first:$v%d){totalCount}", i, n-1) }) + "}"
		}},
		{"introspection", func(n int) string {
			return "{" + repeat(n, numbered("a%d:__schema{types{fields{type{ofType{ofType{ofType{ofType{name}}}}}}}}")) + "}"
		}},
	}
}

// largest returns the largest document of the family that the guard accepts, or "" if the guard accepts none.
func (f family) largest(g *Guard) (text string) {
	passes := func(n int) bool {
		_, err := g.Document(f.text(n))
		return err == nil
	}
	low, high := 0, 1
	for high < 1<<13 && passes(high) {
		low, high = high, 2*high
	}
	for high-low > 1 {
		if middle := (low + high) / 2; passes(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	if low == 0 {
		return ""
	}
	return f.text(low)
}

// validation validates a document and returns the processor time and the number of allocations. The time is that of the fastest
// run, because a busy machine can only slow a run down.
func validation(t testing.TB, runs int, text string) (took time.Duration, steps uint64) {
	t.Helper()
	if !timed {
		runs = 1
	}
	for n := range runs {
		doc, err := parser.ParseQuery(&ast.Source{Input: text})
		if err != nil {
			t.Fatal(err)
		}
		_, mallocs := countAllocations(func() {
			start := processorTime()
			validator.ValidateWithRules(schema(), doc, nil)
			if spent := processorTime() - start; n == 0 || spent < took {
				took = spent
			}
		})
		steps = mallocs
	}
	return took, steps
}

// maxSteps is the largest accepted number of allocations for one check of a document, by the guard or by validation. The number of
// allocations is an estimate of the number of steps.
const maxSteps = 2_000_000

// maxRatio is the largest accepted time for validating a document, as a multiple of the time for portfolio.graphql. Validating
// portfolio.graphql takes less than 0.05 ms on a slow machine. The slowest accepted documents take up to 4,000 times as long, the
// refused ones 18,000 times; a busy machine can double a ratio.
const maxRatio = 8500

// portfolioTime returns the time for validating portfolio.graphql.
func portfolioTime(t testing.TB) time.Duration {
	text := typicalDocuments(t)["portfolio.graphql"]
	took, _ := validation(t, 200, text)
	return max(took, 1)
}

// TestWorstDocuments checks that validation of the largest accepted document of each family takes little time and at most maxSteps.
func TestWorstDocuments(t *testing.T) {
	g, unit := newGuard(t), portfolioTime(t)
	for _, f := range families(Default()) {
		text := f.largest(g)
		if text == "" {
			t.Errorf("%s: the guard accepts no document", f.name)
			continue
		}
		took, steps := validation(t, 4, text)
		t.Logf("%-46s %6d bytes %7.1f ms %6d times portfolio.graphql %7d allocations", f.name, len(text), took.Seconds()*1000, took/unit, steps)
		if timed && took/unit > maxRatio || steps > maxSteps {
			t.Errorf("%s: validation takes %d times the time for portfolio.graphql, and %d allocations; want at most %d times and %d allocations:\n%.300s", f.name, took/unit, steps, maxRatio, maxSteps, text)
		}
	}
}

// TestExpensiveDocumentsAreRefused checks that the limits refuse documents whose validation takes too much time or too many steps.
func TestExpensiveDocumentsAreRefused(t *testing.T) {
	g, unit := newGuard(t), portfolioTime(t)
	operations := Default()
	operations.Operations = 140
	shared := families(operations)
	for name, test := range map[string]struct {
		text, rule string
		// slow is true for documents whose validation takes much time but few allocations.
		slow bool
	}{
		"repeats":            {"{" + strings.Repeat("__typename ", 1450) + "}", RuleSelections, false},
		"repeats by merging": {"{token(tokenId:1){" + strings.Repeat("price{id price basis tokenId timestamp}", 400) + "}}", RuleTokens, false},
		"nested fragments":   {"{token(tokenId:1){market{" + strings.Repeat("...{", 150) + strings.Repeat("id question slug category ", 40) + strings.Repeat("}", 153), RuleDepth, false},
		"many operations":    {shared[slices.IndexFunc(shared, func(f family) bool { return f.name == "a long enum in many operations" })].text(3800), RuleOperations, true},
		"doubling fragments": {"{__schema{...F0}}" + repeat(22, func(i int) string {
			return fmt.Sprintf("fragment F%d on __Schema{a{...F%d}b{...F%d}}", i, i+1, i+1)
		}) + "fragment F22 on __Schema{a}", RuleSelections, true},
	} {
		if _, err := g.Document(test.text); Rule(err) != test.rule {
			t.Errorf("%s: error %v, want the rule %s", name, err, test.rule)
		}
		if test.slow && !timed {
			continue
		}
		took, steps := validation(t, 1, test.text)
		t.Logf("%-20s %7.1f ms %6d times portfolio.graphql %7d allocations", name, took.Seconds()*1000, took/unit, steps)
		if test.slow && took/unit <= maxRatio || !test.slow && steps <= maxSteps {
			t.Errorf("%s: validation takes only %d times the time for portfolio.graphql, and %d allocations, so the limit is not needed", name, took/unit, steps)
		}
	}
}
