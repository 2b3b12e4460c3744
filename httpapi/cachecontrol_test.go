package httpapi

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/httpapi/content"
)

// cacheControl returns the Cache-Control header for an anonymous client that sends a valid document.
func cacheControl(t testing.TB, h *documentCache, document string) string {
	t.Helper()
	doc := h.load(document, false)
	if len(doc.errs) > 0 {
		t.Fatalf("%s: %v", document, doc.errs)
	}
	return doc.plans[doc.ast.Operations[0]].policy.header(false)
}

func TestCacheControl(t *testing.T) {
	c := newDocumentCache(testConfig(t))
	for document, want := range map[string]string{
		`{ __typename }`:                                                                     "public, max-age=0",
		`{ __schema { types { name } } }`:                                                    "public, max-age=300",
		`{ __type(name: "Token") { name } }`:                                                 "public, max-age=300",
		`{ token(tokenId: "1") { tokenId } }`:                                                "public, max-age=0",
		`{ token(tokenId: "1") { price { price } } }`:                                        "public, max-age=1",
		`{ token(tokenId: "1") { outcome } }`:                                                "public, max-age=60",
		`{ token(tokenId: "1") { outcome price { price } } }`:                                "public, max-age=1",
		`{ token(tokenId: "1") { orderbook { midpoint } } }`:                                 "public, max-age=1",
		`{ token(tokenId: "1") { fillEstimate(side: BUY, size: "1") { cost } } }`:            "public, max-age=1",
		`{ token(tokenId: "1") { history { points { price } } candles { open } } }`:          "public, max-age=60",
		`{ token(tokenId: "1") { outcome recentPrices { price } } }`:                         noStore,
		`{ tokenPrices(tokenIds: ["1"]) { price } }`:                                         "public, max-age=1",
		`{ spreads(tokenIds: ["1"]) { bestBid } }`:                                           "public, max-age=1",
		`{ market(marketId: "1") { question } }`:                                             "public, max-age=60",
		`{ event(eventId: "1") { markets { nodes { question } } } }`:                         "public, max-age=60",
		`{ searchMarkets { totalCount } }`:                                                   "public, max-age=15",
		`{ searchMarkets { nodes { question } } }`:                                           "public, max-age=15",
		`{ searchMarkets { nodes { tokens { price { price } } } } }`:                         "public, max-age=1",
		`{ viewer { address } }`:                                                             "private, max-age=0",
		`{ user(address: "0x1111111111111111111111111111111111111111") { balance { id } } }`: "private, max-age=0",
		`{ market(marketId: "1") { question } viewer { id } }`:                               "private, max-age=0",
		`{ node(id: "1") { id } }`:                                                           "public, max-age=0",
		`{ node(id: "1") { ... on Market { question } } }`:                                   "public, max-age=60",
		`{ node(id: "1") { ... on Market { question } ... on Position { size } } }`:          "private, max-age=0",
		`{ nodes(ids: ["1"]) { ...F } } fragment F on Order { size }`:                        "private, max-age=0",
		`{ serviceStatus { version } }`:                                                      noStore,
		`{ market(marketId: "1") { question } serviceStatus { version } }`:                   noStore,
		// A selection that @include may exclude also limits max-age.
		`query ($a: Boolean!) { market(marketId: "1") { question tokens @include(if: $a) { price { price } } } }`:                         "public, max-age=1",
		`{ ...F } fragment F on Query { market(marketId: "1") { ...G } } fragment G on Market { question tokens { spread { bestBid } } }`: "public, max-age=1",
	} {
		if got := cacheControl(t, c, document); got != want {
			t.Errorf("%s\n got %s\nwant %s", document, got, want)
		}
	}
	doc := c.load(`query A { viewer { id } } query B { market(marketId: "1") { id } }`, false)
	if got := doc.plans[doc.ast.Operations[1]].policy.header(false); got != "public, max-age=60" {
		t.Errorf("the second of two operations has the header %s, want public, max-age=60", got)
	}
}

// parts are the types that need no hint. Their data is read together with the data of the object that contains them.
var parts = []string{
	"PageInfo", "Balance", "PortfolioSummary", "Valuation", "Trade", "HistoryRecord", "Resolution", "OrderbookLevel", "PricePoint", "StreamStatus", "SharedStatus", "SharedLimit", "SharedStream", "VenueStatus", "ServiceVenue",
	"PositionConnection", "PositionEdge", "OrderConnection", "OrderEdge", "TradeConnection", "TradeEdge", "HistoryConnection", "HistoryEdge",
	"MarketConnection", "MarketEdge", "EventConnection", "EventEdge",
	"QuestionConnection", "QuestionEdge", "QuestionLeg", "QuestionLevel", "QuestionOrderbook", "QuestionQuote", "QuestionsStatus", "NotComparable",
	"Token", // its fields have hints
}

// TestEveryTypeHasAHint checks that every object type is either in hints or in parts, except Query, Subscription and the types of
// events. It also checks that every type and field in hints exists in the schema.
func TestEveryTypeHasAHint(t *testing.T) {
	schema := testConfig(t).Compiler.Schema()
	for name, definition := range schema.Types {
		switch {
		case definition.Kind != ast.Object, definition.BuiltIn, strings.HasPrefix(name, "__"), name == "Query", name == "Subscription", strings.HasSuffix(name, "Update"):
		case hints[name] == (hint{}) == !slices.Contains(parts, name):
			t.Errorf("the type %s must be either in hints or in parts", name)
		}
	}
	for name := range hints {
		typ, field, isField := strings.Cut(name, ".")
		d := schema.Types[typ]
		if d == nil || isField && !strings.HasPrefix(field, "__") && d.Fields.ForName(field) == nil {
			t.Errorf("hints contains %s, but the schema does not", name)
		}
	}
}

// TestConditionalRequests checks which values of If-None-Match match the ETag of a response.
func TestConditionalRequests(t *testing.T) {
	h := New(testConfig(t))
	get := func(header ...string) (tag string, status, bytes int) {
		w := send(t, h, "GET", PathGraphQL+"?query="+url.QueryEscape(`{ __schema { types { name description } } }`), "", header...)
		return w.Header().Get("ETag"), w.Code, w.Body.Len()
	}
	tag, _, _ := get()
	if len(tag) != 24 || tag[0] != '"' {
		t.Fatalf("the ETag is %s, want 24 characters in quotes", tag)
	}
	for _, known := range []string{tag, "W/" + tag, `"x", ` + tag, "*", ` "x" ,W/` + tag + " "} {
		if again, status, n := get("If-None-Match", known); again != tag || status != 304 || n != 0 {
			t.Errorf("If-None-Match: %s: got the ETag %s, the status %d and %d bytes, want %s, 304 and no bytes", known, again, status, n, tag)
		}
	}
	for _, unknown := range []string{`"x"`, "x", strings.Trim(tag, `"`), `"` + tag + `"`} {
		if again, status, n := get("If-None-Match", unknown); again != tag || status != 200 || n == 0 {
			t.Errorf("If-None-Match: %s: got the ETag %s, the status %d and %d bytes, want %s, 200 and a body", unknown, again, status, n, tag)
		}
	}
	if other, _, _ := get("Accept", content.Response); other == tag {
		t.Error("the response in another media type has the same ETag")
	}
	// A compressed response has other bytes than the uncompressed response, so its ETag must be weak.
	coded, _, _ := get("Accept-Encoding", "gzip")
	if coded != "W/"+tag {
		t.Errorf("the ETag of the compressed response is %s, want W/%s", coded, tag)
	}
	if _, status, _ := get("Accept-Encoding", "br", "If-None-Match", coded); status != 304 {
		t.Errorf("If-None-Match with the ETag of a compressed response: got the status %d, want 304", status)
	}
}
