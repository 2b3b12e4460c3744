//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"oddsgraph/graph/model"
)

// valueAttacks returns attacks with hostile values of arguments and variables.
func valueAttacks() []attack {
	var out []attack
	add := func(name, query string, variables any, status int, code, message string) {
		out = append(out, attack{name: "value: " + name, run: func(t *testing.T, p *target) {
			p.venue.take()
			p.post(t, asJSON(vars{"query": query, "variables": variables})).want(t, status, code, message)
			if asked := p.venue.take(); code != "" && len(asked) > 0 {
				t.Errorf("the attack caused the call %s to the venue", asked[0].URL)
			}
		}})
	}
	const fill = `query($size:Decimal){token(tokenId:"1"){fillEstimate(side:BUY,size:$size){cost}}}`
	for _, size := range []string{"1e99999", "-1e99999", "1e-99999", "1e2147483648", "1e9223372036854775808", "NaN", "-0", "Infinity", "0x1p9999", strings.Repeat("9", 65), "0.0" + strings.Repeat("0", 64), strings.Repeat("9", 60_000), "١", "1_000"} {
		add(fmt.Sprintf("a Decimal %.24s of %d bytes", size, len(size)), fill, vars{"size": size}, http.StatusOK, badInputCode, "")
	}
	out = append(out, attack{name: "value: Decimals as numbers", run: func(t *testing.T, p *target) {
		for _, size := range []string{"1e99999", "-0", "1e-99999", strings.Repeat("9", 65)} {
			p.post(t, asJSON(vars{"query": fill, "variables": vars{"size": json.Number(size)}})).want(t, http.StatusOK, badInputCode, "")
			p.post(t, asJSON(vars{"query": strings.NewReplacer("query($size:Decimal)", "", "$size", size).Replace(fill)})).want(t, http.StatusOK, badInputCode, "")
		}
	}})
	for _, date := range []string{"99999-01-01", "0000-00-00", "2026-13-01", "2026-02-30", "-2026-01-01", "2026-01-01T00:00:00Z", strings.Repeat("9", 1000)} {
		add("a Date "+date[:min(len(date), 24)], `query($d:Date){token(tokenId:"1"){history(from:$d){from}}}`, vars{"d": date}, http.StatusOK, badInputCode, "Date")
	}
	for _, dateTime := range []string{"10000-01-01T00:00:00Z", "2026-01-01T25:00:00Z", "2026-01-01", "9e99", "2026-01-01T00:00:00+99:99"} {
		add("a DateTime "+dateTime, `query($d:DateTime){searchMarkets(filter:{endsAfter:$d}){totalCount}}`, vars{"d": dateTime}, http.StatusOK, badInputCode, "DateTime")
	}
	for _, n := range []int64{1 << 31, -1 << 53} {
		add(fmt.Sprintf("the integer %d", n), `query($n:Int){searchMarkets(first:$n){totalCount}}`, vars{"n": n}, http.StatusBadRequest, "GRAPHQL_VALIDATION_FAILED", "32 bits")
	}
	add("1,001 ids", `query($i:[String!]!){tokens(tokenIds:$i){tokenId}}`, vars{"i": distinctIDs(1001)}, http.StatusBadRequest, badInputCode, "1000")
	add("variables of 200 KB", `query($i:String!){token(tokenId:$i){tokenId}}`, vars{"i": strings.Repeat("a", 200_000)}, http.StatusBadRequest, badInputCode, "131072")
	add("variables that nobody declared", `{__typename}`, vars{"a": strings.Repeat("a", 100_000)}, http.StatusOK, "", "")
	for name, text := range map[string]string{"a regular expression": `(((((a+)+)+)+)+)+$` + strings.Repeat("a", 500), "wildcards": strings.Repeat("%_*?", 200), "SQL": `'; DROP TABLE markets; --`, "spaces": strings.Repeat(" ", 999)} {
		out = append(out, attack{name: "value: a search for " + name, run: func(t *testing.T, p *target) {
			p.venue.take()
			got := p.post(t, asJSON(vars{"query": `query($q:String!){searchMarkets(query:$q){totalCount}}`, "variables": vars{"q": text}}))
			if got.status != http.StatusOK {
				t.Errorf("got status %d, want 200: %s", got.status, got.body)
			}
			for _, r := range p.venue.take() {
				if what := unexpectedPart(r); what != "" || r.URL.Query().Get("q") != text && strings.TrimSpace(text) != "" {
					t.Errorf("the venue received the call %s, which has an unexpected part: %s", r.URL, what)
				}
			}
		}})
	}
	for name, cursor := range map[string]string{
		"that is a space": " ", "with a path": "../../etc/passwd", "with a parameter": "x&limit=100000",
		"that overflows": "/////////////////////w==",
	} {
		out = append(out, attack{name: "value: a cursor " + name, run: func(t *testing.T, p *target) {
			p.venue.take()
			got := p.post(t, asJSON(vars{"query": `query($a:String){searchMarkets(after:$a){totalCount}}`, "variables": vars{"a": cursor}}))
			got.want(t, http.StatusOK, badInputCode, "after is not a cursor of this list")
			if asked := p.venue.take(); len(asked) > 0 {
				t.Errorf("the attack caused the call %s to the venue", asked[0].URL)
			}
		}})
	}
	for _, evil := range []string{
		"1,2", "1/2", "1?credentials=x", "1&limit=9", "1%00", "1\x00", "1\n", "1\r\nX-Evil: 1", "..", "../user/balance", "..%2F..%2Fuser", "%2e%2e%2f", "1#x", "1;x=1", "1+1", "1 1", "a=b", `"`, "'", "{}", "\\",
		"\u2028", "\u202e1", "１", "e\u0301", "😀", "\ufeff1", "\ufffd", "*", strings.Repeat("9", 256), strings.Repeat("9", 257), strings.Repeat("😀", 64), "",
	} {
		out = append(out, attack{name: fmt.Sprintf("id: %.30q of %d bytes", evil, len(evil)), run: func(t *testing.T, p *target) { p.inject(t, evil) }})
	}
	return out
}

// inject sends a hostile id in every argument that accepts an id. If the id reaches the venue, it must be unchanged and not split.
func (p *target) inject(t *testing.T, evil string) {
	const query = `query($v:String!,$n:ID!,$m:ID!,$o:ID!){
		token(tokenId:$v){price{price} spread{spread} orderbook{spread} history{from} market{slug}} tokens(tokenIds:[$v]){price{price}} tokenPrices(tokenIds:[$v]){price} spreads(tokenIds:[$v]){spread}
		a:market(marketId:$v){slug} b:market(slug:$v){slug} markets(marketIds:[$v]){slug} c:event(eventId:$v){slug} d:event(slug:$v){slug}
		searchMarkets(query:$v,filter:{category:$v,tag:$v}){totalCount} e:searchMarkets(after:$v){totalCount}
		node(id:$n){id} f:node(id:$m){id} g:node(id:$o){id} nodes(ids:[$n,$m,$o]){id}
	}`
	p.venue.take()
	body := asJSON(vars{"query": query, "variables": vars{"v": evil, "n": model.EncodeID(model.KindMarket, evil), "m": model.EncodeID(model.KindToken, evil), "o": model.EncodeID(model.KindEvent, evil)}})
	got := p.post(t, body)
	user := p.request(t, asJSON(vars{"query": `query($v:String!,$a:Address!){user(address:$a){trades(marketId:$v){totalCount} t:trades(after:$v){totalCount} orders(marketIds:[$v]){totalCount}} u:user(address:"0x` + strings.Repeat("0", 40) + `"){address}}`,
		"variables": vars{"v": evil, "a": addressOf50}}), keyOf50)
	if got.status != http.StatusOK || p.send(t, user).status != http.StatusOK {
		t.Errorf("the public query got status %d, or the query of the account failed: %.300s", got.status, got.body)
	}
	// The service must refuse a hostile id in place of an address.
	p.post(t, asJSON(vars{"query": `query($a:Address!){user(address:$a){address}}`, "variables": vars{"a": evil}})).want(t, http.StatusOK, badInputCode, "0x and 40 hex digits")
	for _, r := range p.venue.take() {
		if what := unexpectedPart(r); what != "" {
			t.Errorf("the venue received the call %s, which has an unexpected part: %s", r.URL, what)
		}
		q := r.URL.Query()
		for _, name := range []string{"tokenId", "tokenIds", "id", "ids", "slug", "eventId", "eventSlug", "q", "category", "tag", "marketId"} {
			for _, v := range q[name] {
				if v != evil && !(name == "tokenIds" || name == "ids") || strings.ContainsAny(v, ",") && name != "q" && name != "category" && name != "tag" && name != "slug" {
					t.Errorf("the venue received the parameter %s with the value %q, want %q", name, v, evil)
				}
			}
		}
		if strings.ContainsAny(r.URL.RawQuery, "\r\n\x00") || len(r.Header["X-Evil"]) > 0 {
			t.Errorf("the venue received a call with an injected control character or header: %q", r.URL)
		}
	}
}
