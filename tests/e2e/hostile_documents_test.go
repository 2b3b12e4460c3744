//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// documentAttacks returns attacks with documents that are invalid, or that are expensive to parse, to validate or to execute. The
// tests of package limits have more documents that exceed the limits.
func documentAttacks() []attack {
	var out []attack
	for _, d := range []struct{ name, document, code, says string }{
		{"aliases", `{` + numbered(300, "a#:__typename ") + `}`, badInputCode, "more than 200 aliases"},
		{"aliases of searches", `{` + numbered(100, "a#:searchMarkets(first:100){nodes{marketId event{markets{edges{node{tokens{price{price}}}}}}}}") + `}`, badInputCode, ""},
		{"searches of searches", `{` + numbered(30, `a#:searchMarkets(query:"#",first:100){nodes{tokens{orderbook{bids{price}}}}}`) + `}`, badInputCode, "cost"},
		{"26 doubling fragments", `{...F0}` + numbered(25, "fragment F# on Query{...G# ...G#} fragment G# on Query{__typename}") + doubling(26), badInputCode, ""},
		{"26 doubling fragments alone", `{...D0} ` + doubling(26), badInputCode, "each fragment is counted wherever it is spread"},
		{"26 doubling fragments that nobody spreads", `{__typename} ` + doubling(26), badInputCode, "each fragment is counted wherever it is spread"},
		{"a circle that nobody enters", `{__typename} fragment A on Query{... on Query{...B}} fragment B on Query{token(tokenId:"1"){...A}}`, badInputCode, "spreads itself"},
		{"1,400 repeated fields", `{` + strings.Repeat("__typename ", 1400) + `}`, badInputCode, "selects 1400 fields"},
		{"repeated fields in repeated fields", `{` + strings.Repeat(`token(tokenId:"1"){`+strings.Repeat("market{slug}", 20)+`}`, 15) + `}`, badInputCode, "select"},
		{"fields 10,000 deep", around(10_000, "{a", "{a}", "}"), badInputCode, "more than 1500 tokens"},
		{"fields 25 deep", `{searchMarkets{nodes` + around(11, "{event{markets{nodes", "{slug}", "}}}") + `}}`, badInputCode, "deep"},
		{"braces without an end", strings.Repeat("{a", 700), unparsed, ""},
		{"60 KB of braces", strings.Repeat("{", 60_000), "", ""},
		{"400 arguments", `{token(` + numbered(400, "a#:1 ") + `){tokenId}}`, invalid, ""},
		{"the same argument 400 times", `{token(` + strings.Repeat(`tokenId:"1" `, 400) + `){tokenId}}`, invalid, ""},
		{"350 variables", `query(` + numbered(350, "$a#:Int ") + `){__typename}`, invalid, ""},
		{"350 fields that are not there", `{` + numbered(350, "tokenPricez# ") + `}`, badInputCode, "root fields"},
		{"90 fields that are not there", `{` + numbered(90, "tokenPricez# ") + `}`, invalid, "tokenPricez0"},
		{"45 unused fragments", `{__typename}` + numbered(45, "fragment F# on Query{__typename}"), invalid, "F0"},
		{"fragments of fragments that conflict", `{...F0}` + numbered(40, "fragment F# on Query{a:searchMarkets(first:#){totalCount}b:token(tokenId:\"#\"){tokenId} ...G#}") + numbered(9, "fragment G# on Query{__typename}"), invalid, ""},
		{"conflicts of all with all", `{` + numbered(30, `a:searchMarkets(first:1#){totalCount}`) + `}`, invalid, ""},
		{"a block of 60 KB", `{nope(a:"""` + strings.Repeat("\n  a", 12_000) + `"""){tokenId}}`, invalid, "nope"},
		{"backslashes in a text", `{nope(a:"` + strings.Repeat(`\u005c`, 10_000) + `"){tokenId}}`, invalid, "nope"},
		{"60 KB of commas", `{` + strings.Repeat(",", 60_000) + `__typename}`, "", ""},
		{"a byte order mark", "\ufeff{__typename}", "", ""},
		{"nothing but nulls", strings.Repeat("\x00", 1000), unparsed, ""},
		{"introspection of introspection", `{__schema{types` + around(6, `{fields{type{ofType`, `{name}`, `}}}`) + `}}`, badInputCode, ""},
		{"introspection of all by all", `{` + numbered(90, `a#:__schema{types{name fields{name args{name type{name ofType{name}}}}}}`) + `}`, badInputCode, ""},
		{"an Int of 1,000 digits", `{searchMarkets(first:` + strings.Repeat("9", 1000) + `){totalCount}}`, "", ""},
		{"a subscription over HTTP", `subscription{streamStatusChanged{state}}`, badInputCode, "WebSocket"},
		{"a mutation", `mutation{nope}`, invalid, ""},
		{"a document of two kinds", `{__typename} type Query{a:Int}`, unparsed, ""},
	} {
		out = append(out, attack{name: "document: " + d.name, run: func(t *testing.T, p *target) {
			got := p.post(t, asJSON(vars{"query": d.document}))
			if d.code == "" && got.status == http.StatusOK {
				return // the service may accept or refuse these documents
			}
			if d.code == "" {
				if !strings.Contains(got.body, badInputCode) && !strings.Contains(got.body, unparsed) && !strings.Contains(got.body, invalid) {
					t.Errorf("%d %.300s", got.status, got.body)
				}
				return
			}
			got.want(t, http.StatusBadRequest, d.code, d.says)
			// The service caches the refusal. The second response must be the same.
			p.post(t, asJSON(vars{"query": d.document})).want(t, http.StatusBadRequest, d.code, d.says)
		}})
	}
	return out
}

// doubling returns a chain of n fragments. Each fragment spreads the next one twice, except the last one.
func doubling(n int) string {
	var b strings.Builder
	for i := range n - 1 {
		fmt.Fprintf(&b, "fragment D%d on Query{...D%d ...D%d} ", i, i+1, i+1)
	}
	fmt.Fprintf(&b, "fragment D%d on Query{__typename}", n-1)
	return b.String()
}
