package execution

import (
	"math"
	"slices"
	"testing"
)

// failingPairs returns pairs of executions. The first execution of a pair executes the document for a market, a portfolio or
// prices. The second executes the same document with a failing field, or with one invalid id among 50.
func (s *graphService) failingPairs(t testing.TB) map[string][2]*execution {
	t.Helper()
	warm := s.executions(t)
	market, prices, portfolio := warm["market"], warm["prices"], warm["portfolio"]
	ids := slices.Clone(prices.variables["ids"].([]string))
	ids[len(ids)/2] = "no,id"
	const failing = `token(tokenId: "x") { orderbook(depth: 0) { hash } } `
	with := func(x *execution, document, credentials string) *execution {
		return s.execution(t, document, x.variables, credentials)
	}
	insertField := func(document string) string { // the failing field comes first
		i := slices.Index([]byte(document), '{')
		return document[:i+1] + " " + failing + document[i+1:]
	}
	return map[string][2]*execution{
		"market/one failing field":    {market, with(market, insertField(marketQuery), "")},
		"portfolio/one failing field": {portfolio, with(portfolio, insertField(portfolioQuery), holderCredentials)},
		"prices/one failing field":    {prices, with(prices, insertField(pricesQuery), "")},
		"prices/one invalid id of 50": {prices, s.execution(t, pricesQuery, map[string]any{"ids": ids}, "")},
	}
}

// TestAFailureCostsLittle bounds the allocations that an error adds to a query.
func TestAFailureCostsLittle(t *testing.T) {
	for name, x := range newGraphService(t).failingPairs(t) {
		var allocations [2]float64
		for i, x := range x {
			var buf []byte
			allocations[i] = math.Inf(1)
			for range 50 { // the smallest number counts, because the race detector drops objects of a sync.Pool at random
				allocations[i] = min(allocations[i], testing.AllocsPerRun(1, func() {
					var ok bool
					if buf, ok = x.execute(buf[:0]); ok != (i == 0) {
						t.Fatalf("%s, execution %d: success is %v, want %v; the data are %.200s", name, i, ok, i == 0, buf)
					}
				}))
			}
		}
		t.Logf("%s: %v allocations", name, allocations)
		if more := allocations[1] - allocations[0]; more > 12 {
			t.Errorf("%s: got %.0f more allocations with a failure, want at most 12", name, more)
		}
	}
}

// BenchmarkFailing executes the pairs that failingPairs returns. A query with a failure should take at most 1.3 times as long as
// the query without the failure.
func BenchmarkFailing(b *testing.B) {
	for name, x := range newGraphService(b).failingPairs(b) {
		for i, way := range []string{"without", "with"} {
			b.Run(name+"/"+way, func(b *testing.B) {
				b.ReportAllocs()
				var buf []byte
				for b.Loop() {
					buf, _ = x[i].execute(buf[:0])
				}
			})
		}
	}
}
