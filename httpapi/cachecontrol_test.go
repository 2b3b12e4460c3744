package httpapi

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/graph/model"
	"oddsgraph/loaders"
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
		t.Errorf("the second of two operations: %s", got)
	}
}

// parts are the types that need no hint. Their data is read together with the data of the object that contains them.
var parts = []string{
	"PageInfo", "Freshness", "Balance", "PortfolioSummary", "Valuation", "Trade", "HistoryRecord", "Resolution", "OrderbookLevel", "PricePoint", "StreamStatus", "SharedStatus", "SharedLimit", "SharedStream", "VenueStatus",
	"PositionConnection", "PositionEdge", "OrderConnection", "OrderEdge", "TradeConnection", "TradeEdge", "HistoryConnection", "HistoryEdge",
	"MarketConnection", "MarketEdge", "EventConnection", "EventEdge",
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
			t.Errorf("the type %s has to be in hints, or in parts", name)
		}
	}
	for name := range hints {
		typ, field, isField := strings.Cut(name, ".")
		d := schema.Types[typ]
		if d == nil || isField && !strings.HasPrefix(field, "__") && d.Fields.ForName(field) == nil {
			t.Errorf("the schema has no %s", name)
		}
	}
}

func TestConditionalRequests(t *testing.T) {
	version := strings.Repeat("long ", 1000)
	cfg := broken(t, testConfig(t), func(context.Context) model.ServiceStatus { return model.ServiceStatus{Version: version} })
	cfg.Sources = loaders.Sources{Prices: &nothing{}}
	h := New(cfg)
	get := func(query string, header ...string) (tag, control string, status, bytes int) {
		w := send(t, h, "GET", PathGraphQL+"?query="+url.QueryEscape(query), "", header...)
		return w.Header().Get("ETag"), w.Header().Get("Cache-Control"), w.Code, w.Body.Len()
	}
	const prices = `{ tokenPrices(tokenIds: ["1"]) { price } }`
	many := `{ __schema { types { name description } } }`
	tag, control, status, _ := get(prices)
	if len(tag) != 24 || tag[0] != '"' || control != "public, max-age=1" || status != 200 {
		t.Fatalf("%s %s %d", tag, control, status)
	}
	for _, known := range []string{tag, "W/" + tag, `"x", ` + tag, "*", ` "x" ,W/` + tag + " "} {
		if again, control, status, n := get(prices, "If-None-Match", known); again != tag || control != "public, max-age=1" || status != 304 || n != 0 {
			t.Errorf("If-None-Match: %s: %s %s %d, %d bytes", known, again, control, status, n)
		}
	}
	for _, unknown := range []string{`"x"`, "x", strings.Trim(tag, `"`), `"` + tag + `"`} {
		if _, _, status, n := get(prices, "If-None-Match", unknown); status != 200 || n == 0 {
			t.Errorf("If-None-Match: %s: %d, %d bytes", unknown, status, n)
		}
	}
	if other, _, _, _ := get(prices, "Accept", typeResponse); other == tag {
		t.Error("another media type has the same tag")
	}
	if again, _, _, _ := get(prices); again != tag {
		t.Error("the same response has another tag")
	}
	// A compressed response has other bytes than the uncompressed response, so its ETag must be weak.
	plain, _, _, _ := get(many)
	coded, _, _, _ := get(many, "Accept-Encoding", "gzip")
	if coded != "W/"+plain {
		t.Errorf("%s is %s when it is compressed", plain, coded)
	}
	if _, _, status, _ := get(many, "Accept-Encoding", "br", "If-None-Match", coded); status != 304 {
		t.Errorf("%d", status)
	}
	// Only a private cache may store the response to a request with credentials. No cache may store an error.
	credentials := []string{CredentialsHeader, "eyJhcGlLZXkiOiJrIn0"}
	if _, control, _, _ := get(prices, credentials...); control != "private, max-age=1" {
		t.Errorf("with credentials: %s", control)
	}
	for query, want := range map[string]int{`{ market { id } }`: 200, `{ nope }`: 200, `{`: 200, `{ serviceStatus { version } }`: 200} {
		if tag, control, status, _ := get(query, "If-None-Match", "*"); tag != "" || control != noStore || status != want {
			t.Errorf("%s: %s %s %d", query, tag, control, status)
		}
	}
	w := post(t, h, `{"query":"{ tokenPrices(tokenIds: [\"1\"]) { price } }"}`, "If-None-Match", "*")
	if w.Code != 200 || w.Header().Get("ETag") != "" || w.Header().Get("Cache-Control") != noStore {
		t.Errorf("by POST: %d %v", w.Code, w.Header())
	}
	w = send(t, h, "HEAD", PathGraphQL+"?query="+url.QueryEscape(prices), "")
	if w.Header().Get("ETag") != tag || w.Header().Get("Cache-Control") != "public, max-age=1" {
		t.Errorf("by HEAD: %v", w.Header())
	}
}
