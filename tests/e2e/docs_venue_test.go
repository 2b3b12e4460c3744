package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTolerancesAreTested checks that each clause of "What it tolerates" in docs/venues/generic.md has a test. The map names a test
// by its directory, its function, and optionally a text that the function must contain.
func TestTolerancesAreTested(t *testing.T) {
	clauses := map[string][]string{
		"as numbers or strings, read from their literals":                              {"internal/venue/wire TestDecimalsAreExact", "internal/venue/generic TestBookForms strings-best-last"},
		"never through a float":                                                        {"internal/venue/wire TestDecimalsAreExact 123456789012345678901234567890.5", "internal/venue/generic TestPriceForms object-without-id"},
		"as RFC 3339, or as seconds or milliseconds since 1970, as numbers or strings": {"internal/venue/wire TestTimes"},
		"bare, under their name, under `data`, under `results`":                        {"internal/venue/generic TestListForms", "internal/venue/generic TestSearchForms results"},
		"prices and spreads as a map by id":                                            {"internal/venue/generic TestPriceForms map-of-objects", "internal/venue/generic TestSpreadForms map-of-objects"},
		"an array of one element in place of an object":                                {"internal/venue/generic TestObjectsInLists"},
		"outcomes of a market as arrays in JSON strings":                               {"internal/venue/generic TestMarketForms json-in-strings"},
		"pages by cursor":              {"internal/venue/generic TestWholeListsFollowCursors"},
		"pages by offset":              {"internal/venue/generic TestWholeListsFollowOffsets", "tests/e2e TestTradesByOffset"},
		"levels in any order":          {"internal/venue/generic TestBookForms strings-best-last"},
		"levels as objects or pairs":   {"internal/venue/generic TestBookForms pairs"},
		"empty sides":                  {"internal/venue/generic TestBookForms empty-side"},
		"more levels than requested":   {"internal/venue/generic TestBookForms more-levels"},
		"no spread":                    {"internal/venue/generic TestBookForms pairs"},
		"A side that is null is empty": {"internal/venue/generic TestBookForms null-sides"},
		"A side that is missing makes the book unreadable":       {"internal/venue/generic TestBookForms missing-side"},
		"A price that is null means that the token has no price": {"internal/venue/generic TestPriceForms null-price"},
		"A row without a price is unreadable":                    {"internal/venue/generic TestPriceForms null-prices"},
		"If a book cannot be read, its spread is null with an error, and so are all sums that need it": {
			"internal/venue/generic TestFailedBooksAreNotMissingSpreads", "tests/e2e TestFailedBooksAreErrors"},
		"as a value":     {"internal/venue/generic TestPriceForms object"},
		"as bid and ask": {"internal/venue/generic TestPriceForms map-of-sides"},
		"From both, the client computes the mean (`MIDPOINT`)":                {"tests/e2e TestPricesOfTwoSides MIDPOINT"},
		"If only one is there, the client uses it (`BEST_BID` or `BEST_ASK`)": {"tests/e2e TestPricesOfTwoSides BEST_BID", "tests/e2e TestPricesOfTwoSides BEST_ASK"},
		"in camelCase or snake_case":                                          {"internal/venue/wire TestNamesInSnakeCase", "internal/venue/generic TestPositionForms snake-case"},
		"unknown members":                                                     {"internal/venue/generic TestPriceForms unknown-fields"},
		"a missing status":                                                    {"internal/venue/generic TestMarketForms no-status"},
		"statuses in any case":                                                {"internal/venue/generic TestOrderForms lower-case-snake", "internal/venue/generic TestStatusesInAnyCase"},
		"that the client does not know: they become `UNKNOWN`":                {"internal/venue/generic TestMarketForms unknown-status", "internal/venue/generic TestOrderForms unknown-values"},
		"have the venue's spelling":                                           {"internal/venue/generic TestOrderForms UNKNOWN(BORROW)"},
		"`statusRaw`, `sideRaw` and `kindRaw`":                                {"tests/e2e TestPositionsWithoutTokens sideRaw", "tests/e2e TestPositionsWithoutTokens statusRaw", "tests/e2e TestTradesByOffset kindRaw"},
		"of the stream that name a market instead of a token":                 {"tests/e2e TestFramesThatNameAMarket"},
		"if the market was read before: with the label of an outcome, or without a label if the market has YES and NO": {"tests/e2e TestFramesThatNameAMarket", "internal/venue/generic/codec TestBadFrames M9"},
		"to prices, trades, markets and accounts without a snapshot":                                                   {"internal/feed/follow TestQuietPrice", "internal/feed/follow TestAccountWithoutSnapshot", "tests/e2e TestQuietMarkets"},
		"Without the latest trades, `TradesUpdate.known` is false":                                                     {"internal/feed/follow TestQuietTradesOfAVenueWithoutAList"},
		"in the status": {"internal/venue/generic TestStatuses", "internal/venue/generic TestDemoFaults faults.Status"},
		"in a body with status 200 (`success: false` or `error`)": {"internal/venue/generic TestErrorForms error-alone", "internal/venue/generic TestErrorForms message"},
		"as HTML":          {"internal/venue/generic TestDemoFaults tool.HTML"},
		"as an empty body": {"internal/venue/generic TestDemoFaults tool.Empty"},
		"that are missing: the client reads the first levels of the order books instead, one call per token": {"internal/venue/generic TestSpreadsWithoutTheEndpoint"},
		"marks them `basis: ORDER_BOOK`": {"internal/venue/generic TestSpreadsFailOverToBooks SpreadOfBook", "tests/e2e TestMinimalVenue ORDER_BOOK"},
		"The client also reads the books if the endpoint does not respond, responds with an error, or responds with unreadable data": {
			"internal/venue/generic TestSpreadsFailOverToBooks timeout", "internal/venue/generic TestSpreadsFailOverToBooks 503", "internal/venue/generic TestSpreadsFailOverToBooks bad elements"},
		"It calls the endpoint again when the backoff ends":                                                       {"internal/venue/generic TestSpreadsFailOverToBooks MaxBackoff"},
		"If the endpoint responds with 429, the error is `RATE_LIMITED` and the client reads no books":            {"internal/venue/generic TestSpreadsWithoutNeedForBooks 429"},
		"If the venue limits the calls for books, the client stops reading books":                                 {"internal/venue/generic TestBooksForSpreadsAreBounded rate limit"},
		"that the venue does not support: the service detects this after the start, and reads the ids one by one": {"internal/venue/generic TestProbe", "internal/venue/generic TestUndecidedLists"},
	}
	_, section, _ := strings.Cut(read(t, "docs/venues/generic.md"), "## What it tolerates\n")
	section, _, _ = strings.Cut(section, "\n## ")
	guide := strings.Join(strings.Fields(section), " ")
	rest := guide
	for clause, tests := range clauses {
		if strings.Count(guide, clause) != 1 {
			t.Errorf("the guide does not contain exactly once: %s", clause)
		}
		rest = strings.Replace(rest, clause, "", 1)
		for _, test := range tests {
			wantTest(t, test)
		}
	}
	rest = regexp.MustCompile(`\*\*[A-Z][a-z ]*\*\*|\b(and|or|with)\b|[-:;,. ]`).ReplaceAllString(rest, "")
	if rest != "" {
		t.Errorf("no clause of the map covers this text of the guide: %s", rest)
	}
}

// wantTest checks that the named test function exists and contains the named text.
func wantTest(t *testing.T, named string) {
	t.Helper()
	dir, rest, _ := strings.Cut(named, " ")
	function, text, _ := strings.Cut(rest, " ")
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, body, ok := strings.Cut(string(b), "\nfunc "+function+"("); ok {
			if body, _, _ = strings.Cut(body, "\n}\n"); !strings.Contains(body, text) {
				t.Errorf("%s in %s does not contain %q", function, dir, text)
			}
			return
		}
	}
	t.Errorf("there is no %s in %s", function, dir)
}
