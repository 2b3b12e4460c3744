package e2e

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"oddsgraph/httpapi"
)

// TestCallsOfAnOperationAreLimited checks that the service refuses an operation that needs too many calls, and makes none of these
// calls. Each uncached price history needs one call.
func TestCallsOfAnOperationAreLimited(t *testing.T) {
	s := start(t, "--limit-calls=3")
	made := s.callsDuring(func() {
		data, errs := s.query(t, `query ($ids: [String!]!) { tokens(tokenIds: $ids) { history { freshness { stale } } } }`, vars{"ids": s.openTokens(4)}, anonymous)
		wantErrors(t, errs, "tokens.0.history BAD_USER_INPUT")
		if data != nil || !strings.Contains(errs[0].Message, "needs at least 4 calls to the venue; at most 3 are accepted") {
			t.Errorf("got the data %v and the errors %+v, want no data and an error about 4 calls", data, errs)
		}
	})
	if len(made) != 0 {
		t.Errorf("a refused operation made the calls %v", made)
	}
}

// TestDocumentedCosts checks the points and calls in the table of docs/limits.md, with a cold cache.
func TestDocumentedCosts(t *testing.T) {
	s := start(t)
	rows := regexp.MustCompile(`(?m)^\| .*\(\.\./examples/(.*)\.graphql\).* \| ([0-9,]+) \| ([0-9]+) \|$`).FindAllStringSubmatch(read(t, "docs/limits.md"), -1)
	if len(rows) < 4 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	for _, row := range rows {
		variables := vars{}
		decode(t, read(t, "examples/"+row[1]+".json"), &variables)
		if row[1] == "price-board" {
			variables["tokenIds"] = s.openTokens(200)
		}
		s.expireCaches()
		r := s.request(t, asJSON(vars{"query": read(t, "examples/"+row[1]+".graphql"), "variables": variables}), keyOf50)
		r.Header.Set(httpapi.CostHeader, "1")
		var answer struct {
			Extensions struct {
				Cost struct{ Points, UpstreamCalls int }
			}
		}
		decode(t, s.do(t, r).body, &answer)
		points, calls := numberIn(t, row[2]), numberIn(t, row[3])
		// On a busy machine, positions and orders may arrive at different times. The service then needs one more call for prices or
		// for markets.
		if got := answer.Extensions.Cost; got.Points != points || got.UpstreamCalls != calls && got.UpstreamCalls != calls+1 {
			t.Errorf("%s: docs/limits.md says %d points and %d calls, the service says %+v", row[1], points, calls, got)
		}
	}
}

func numberIn(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
