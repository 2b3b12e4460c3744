package exec_test

import (
	"fmt"
	"testing"
)

// TestNullForNonNull checks variables that are null in places that must not be null. Validation permits such variables if they or the
// places have a default value. The value null is then an error of the field (CoerceArgumentValues, and section 3.12 for items of
// lists). gqlgen takes null for the zero value instead.
func TestNullForNonNull(t *testing.T) {
	b := newExecutorPair(t, &universe{})
	for _, test := range []struct {
		document string
		null     string // the variable that is null
		data     string
		err      string
	}{
		{`query ($t: String = "token-1") { token(tokenId: $t) { id } }`, "t", `{"token":null}`, "token [{1 34}] tokenId: cannot be null"},
		{`query ($t: [String!] = ["token-1"]) { tokenPrices(tokenIds: $t) { price } }`, "t", `{"tokenPrices":null}`, "tokenPrices [{1 39}] tokenIds: cannot be null"},
		{`query ($t: String = "token-1") { tokens(tokenIds: ["token-2", $t]) { id } }`, "t", `{"tokens":null}`, "tokens [{1 34}] tokenIds[1]: cannot be null"},
		{`query ($s: MarketStatus = OPEN) { searchMarkets(filter: {status: [OPEN, $s]}) { totalCount } }`, "s", `{"searchMarkets":null}`, "searchMarkets [{1 35}] filter.status[1]: cannot be null"},
		{`query ($q: String) { searchMarkets(query: $q) { totalCount } }`, "q", `{"searchMarkets":null}`, "searchMarkets [{1 22}] query: cannot be null"},
		{`query ($i: CandleInterval) { token(tokenId: "token-1") { candles(interval: $i) { start } } }`, "i", `{"token":{"candles":null}}`, "token.candles [{1 58}] interval: cannot be null"},
		{`query ($n: String = "Query") { __type(name: $n) { name } }`, "n", `{"__type":null}`, "__type [{1 32}] name: cannot be null"},
		{`query ($s: MarketSort) { searchMarkets(sort: $s) { totalCount } }`, "s", `{"searchMarkets":{"totalCount":`, ""}, // sort may be null
		{`subscription ($t: String = "token-1") { orderbookChanged(tokenId: $t) { kind } }`, "t", "", "orderbookChanged [{1 41}] tokenId: cannot be null"},
		{`subscription ($t: [String!] = ["token-1"]) { tradesAdded(tokenIds: $t) { gap } }`, "t", "", "tradesAdded [{1 46}] tokenIds: cannot be null"},
	} {
		o := b.mustParse(test.document, map[string]any{test.null: nil})
		var data []byte
		var errs []string
		if test.data == "" {
			stream, failed := o.executable.Subscribe(b.ctx, o.variables)
			if errs = describeErrors(o.presentAll(failed)); stream != nil {
				t.Errorf("%s: the subscription started", test.document)
			}
		} else {
			found, failed := o.executeInPasses()
			data, errs = found, describeErrors(failed)
		}
		want := []string{test.err + " map[code:BAD_USER_INPUT]"}
		if test.err == "" {
			want = nil
		}
		if got := string(data); got[:min(len(got), len(test.data))] != test.data || fmt.Sprint(errs) != fmt.Sprint(want) {
			t.Errorf("%s: got %s and the errors %q, want %s and %q", test.document, got, errs, test.data, want)
		}
	}
}
