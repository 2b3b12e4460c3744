package exec_test

import (
	"fmt"
	"strings"
	"testing"

	"oddsgraph/internal/market"
)

// selections contains different selections on a book's levels.
var selections = []string{
	`{ price size }`, `{ size price }`, `{ price }`, `{ size }`, `{ price: size size: price }`, `{ a: price b: price }`, `{ __typename price size }`,
	`{ price __typename }`, `{ price: __typename }`, `{ price @include(if: $on) size }`, `{ price @skip(if: $on) size }`, `{ ...L }`,
}

// bookDocument returns a document with both sides of a book, one of them with an alias.
func bookDocument(selection string, depth int) string {
	return fmt.Sprintf(`query ($on: Boolean!, $d: Int) { token(tokenId: "token-1") { price { price @include(if: $on) } orderbook(depth: %d) { bids %s x: asks %[2]s }
		further: orderbook(depth: $d) { hash } ...L2 } } fragment L on OrderbookLevel { size p: price } fragment L2 on Token { o: orderbook(depth: 1) { asks { ...L } } }`, depth, selection)
}

// deepUniverse returns a universe in which the book of token-1 has at least 20 levels on each side.
func deepUniverse() *universe {
	for seed := uint64(0); ; seed++ {
		u := &universe{seed: seed}
		if b := u.book("token-1"); b.Bids.Len() >= 20 && b.Asks.Len() >= 20 {
			return u
		}
	}
}

// TestCachedSidesChangeNoResponse checks that a response equals gqlgen's, even if earlier documents have cached the JSON of the
// same sides of books.
func TestCachedSidesChangeNoResponse(t *testing.T) {
	u := deepUniverse()
	b := newExecutorPair(t, u)
	var operations []*operation
	var documents []string
	for _, depth := range []int{1, 3, 20} {
		for _, selection := range selections {
			document := bookDocument(selection, depth)
			for _, on := range []bool{true, false} {
				if !on && !strings.Contains(selection, "$on") {
					continue
				}
				documents = append(documents, document)
				operations = append(operations, b.mustParse(document, map[string]any{"on": on, "d": 7}))
			}
		}
	}
	want := make([]string, len(operations))
	for i, o := range operations {
		want[i] = string(o.executeWithGqlgen().Data)
	}
	for i := range operations {
		for j := range operations {
			u.books.Clear()
			for n, k := range []int{i, i, j, i, j} {
				got, _, ok := operations[k].executeInOnePass()
				if !ok || string(got) != want[k] {
					t.Fatalf("execution %d, after the document %s: the document\n%s\nwith the variables %v gives\n%s\nwant\n%s", n, documents[i], documents[k], operations[k].variables, got, want[k])
				}
			}
		}
		if fromMemory, _ := operations[i].compare(documents[i]); !fromMemory {
			t.Errorf("the document %s was not answered from memory", documents[i])
		}
	}
}

// TestCachedSidesNeedEqualSelections checks that documents share the cached texts of a book only if their selections and depths are
// equal. To recognize cached texts, the test changes the levels of the book, which the product never does.
func TestCachedSidesNeedEqualSelections(t *testing.T) {
	u := deepUniverse()
	b := newExecutorPair(t, u)
	show := func(document string, variables map[string]any) string {
		t.Helper()
		data, _, ok := b.mustParse(document, variables).executeInOnePass()
		if !ok {
			t.Fatalf("the document %s was not answered from memory", document)
		}
		return string(data)
	}
	const first = `{ token(tokenId: "token-1") { orderbook(depth: 3) { bids { price size } asks { price size } } } }`
	before := show(first, nil)
	show(first, nil)
	book, documents := u.book("token-1"), []string{
		`query ($d: Int!) { t: token(tokenId: "token-1") { o: orderbook(depth: $d) { bids { ...L } asks { ...L } } } } fragment L on OrderbookLevel { price size }`,
		`query ($d: Int!, $no: Boolean! = false) { t: token(tokenId: "token-1") { orderbook(depth: $d) { bids { ... { price } size __typename @include(if: $no) } } } }`,
	}
	want := make([]string, len(documents))
	for i, document := range documents {
		want[i] = show(document, map[string]any{"d": 3})
	}
	bids, asks := book.Bids.Levels(), book.Asks.Levels()
	for i := range bids {
		bids[i].Size, asks[i%len(asks)].Size = market.NewDecimal(987, 0), market.NewDecimal(987, 0)
	}
	if got := show(first, nil); got != before {
		t.Errorf("an equal document gives %s, want the cached text %s", got, before)
	}
	for i, document := range documents {
		if got := show(document, map[string]any{"d": 3}); got != want[i] {
			t.Errorf("an equal selection gives %s, want the cached text %s", got, want[i])
		}
		if got := show(document, map[string]any{"d": 2}); strings.Count(got, "987") < 2 {
			t.Errorf("another depth gives %s, want the changed sizes", got)
		}
	}
	if got := show(strings.ReplaceAll(first, "size", "size __typename"), nil); strings.Count(got, "987") != 6 {
		t.Errorf("another selection gives %s, want the changed sizes", got)
	}
}
