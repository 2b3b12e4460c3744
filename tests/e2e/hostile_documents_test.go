//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// documentAttacks returns attacks with documents that are invalid, or expensive to parse, validate or execute. The tests of package
// limits have more documents that exceed limits.
func documentAttacks() []attack {
	var out []attack
	for _, d := range []struct{ name, document, code, message string }{
		{"600 aliases", `{` + repeatNumbered(600, "a#:__typename ") + `}`, badInputCode, "more than 1500 tokens"},
		{"490 aliases of a field that costs little", `{` + repeatNumbered(490, "a#:__typename ") + `}`, "", ""},
		{"100 aliases of searches", `{` + repeatNumbered(100, "a#:searchMarkets(first:100){nodes{marketId event{markets{edges{node{tokens{price{price}}}}}}}}") + `}`, badInputCode, ""},
		{"30 expensive searches", `{` + repeatNumbered(30, `a#:searchMarkets(query:"#",first:100){nodes{tokens{orderbook{bids{price}}}}}`) + `}`, badInputCode, "cost"},
		{"26 unused doubling fragments beside used fragments", `{...F0}` + repeatNumbered(25, "fragment F# on Query{...G# ...G#} fragment G# on Query{__typename}") + doublingFragments(26), badInputCode, ""},
		{"26 doubling fragments", `{...D0} ` + doublingFragments(26), badInputCode, "a fragment counts each time it is spread"},
		{"26 unused doubling fragments", `{__typename} ` + doublingFragments(26), badInputCode, "a fragment counts each time it is spread"},
		{"an unused cycle of fragments", `{__typename} fragment A on Query{... on Query{...B}} fragment B on Query{token(tokenId:"1"){...A}}`, badInputCode, "spreads itself"},
		{"1,400 repeated fields", `{` + strings.Repeat("__typename ", 1400) + `}`, badInputCode, "selects 1400 fields"},
		{"repeated fields in repeated fields", `{` + strings.Repeat(`token(tokenId:"1"){`+strings.Repeat("market{slug}", 20)+`}`, 15) + `}`, badInputCode, "select"},
		{"fields 10,000 deep", wrapText(10_000, "{a", "{a}", "}"), badInputCode, "more than 1500 tokens"},
		{"fields 25 deep", `{searchMarkets{nodes` + wrapText(11, "{event{markets{nodes", "{slug}", "}}}") + `}}`, badInputCode, "deep"},
		{"braces without an end", strings.Repeat("{a", 700), parseErrorCode, ""},
		{"60 KB of braces", strings.Repeat("{", 60_000), "", ""},
		{"700 directives", `{__typename` + strings.Repeat("@d", 700) + `}`, validationCode, "@d"},
		{"a list of 1,400 ids", `{nodes(ids:[` + repeatNumbered(1400, `"#"`) + `]){id}}`, "", ""},
		{"400 arguments", `{token(` + repeatNumbered(400, "a#:1 ") + `){tokenId}}`, validationCode, ""},
		{"the same argument 400 times", `{token(` + strings.Repeat(`tokenId:"1" `, 400) + `){tokenId}}`, validationCode, ""},
		{"350 variables", `query(` + repeatNumbered(350, "$a#:Int ") + `){__typename}`, validationCode, ""},
		{"350 unknown fields", `{` + repeatNumbered(350, "tokenPricez# ") + `}`, validationCode, "tokenPricez0"},
		{"90 unknown fields", `{` + repeatNumbered(90, "tokenPricez# ") + `}`, validationCode, "tokenPricez0"},
		{"45 unused fragments", `{__typename}` + repeatNumbered(45, "fragment F# on Query{__typename}"), validationCode, "F0"},
		{"conflicting fields in fragments of fragments", `{...F0}` + repeatNumbered(40, "fragment F# on Query{a:searchMarkets(first:#){totalCount}b:token(tokenId:\"#\"){tokenId} ...G#}") + repeatNumbered(9, "fragment G# on Query{__typename}"), validationCode, ""},
		{"30 fields that all conflict with each other", `{` + repeatNumbered(30, `a:searchMarkets(first:1#){totalCount}`) + `}`, validationCode, ""},
		{"a block string of 60 KB", `{nope(a:"""` + strings.Repeat("\n  a", 12_000) + `"""){tokenId}}`, validationCode, "nope"},
		{"10,000 escapes in a string", `{nope(a:"` + strings.Repeat(`\u005c`, 10_000) + `"){tokenId}}`, validationCode, "nope"},
		{"60 KB of commas", `{` + strings.Repeat(",", 60_000) + `__typename}`, "", ""},
		{"a byte order mark", "\ufeff{__typename}", "", ""},
		{"1,000 NUL bytes", strings.Repeat("\x00", 1000), parseErrorCode, ""},
		{"nested introspection", `{__schema{types` + wrapText(6, `{fields{type{ofType`, `{name}`, `}}}`) + `}}`, badInputCode, ""},
		{"90 introspections of all types", `{` + repeatNumbered(90, `a#:__schema{types{name fields{name args{name type{name ofType{name}}}}}}`) + `}`, badInputCode, ""},
		{"an Int of 1,000 digits", `{searchMarkets(first:` + strings.Repeat("9", 1000) + `){totalCount}}`, "", ""},
		{"a subscription over HTTP", `subscription{streamStatusChanged{state}}`, badInputCode, "WebSocket"},
		{"a mutation", `mutation{nope}`, validationCode, ""},
		{"a document with an operation and a type definition", `{__typename} type Query{a:Int}`, parseErrorCode, ""},
	} {
		out = append(out, attack{name: "document: " + d.name, run: func(t *testing.T, p *target) {
			got := p.post(t, asJSON(vars{"query": d.document}))
			if d.code == "" && got.status == http.StatusOK {
				return // the table expects no code, so the service may also accept the document
			}
			if d.code == "" {
				if !strings.Contains(got.body, badInputCode) && !strings.Contains(got.body, parseErrorCode) && !strings.Contains(got.body, validationCode) {
					t.Errorf("got status %d without a known error code: %.300s", got.status, got.body)
				}
				return
			}
			got.want(t, http.StatusBadRequest, d.code, d.message)
			// The service caches the refusal. The second response must be the same.
			p.post(t, asJSON(vars{"query": d.document})).want(t, http.StatusBadRequest, d.code, d.message)
		}})
	}
	return out
}

// doublingFragments returns a chain of n fragments. Each fragment spreads the next one twice, except the last one.
func doublingFragments(n int) string {
	var b strings.Builder
	for i := range n - 1 {
		fmt.Fprintf(&b, "fragment D%d on Query{...D%d ...D%d} ", i, i+1, i+1)
	}
	fmt.Fprintf(&b, "fragment D%d on Query{__typename}", n-1)
	return b.String()
}
