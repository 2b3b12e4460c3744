//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/httpapi"
)

// target is the program with its default limits. Its venue records every request that it receives.
type target struct {
	*program
	venue *witness
	// normal is a valid query, answer its expected response, and before the time that it took before the attacks.
	normal, answer string
	before         time.Duration
	// moves counts the calls of moveBooks.
	moves int
}

// attack is one kind of hostile input.
type attack struct {
	name string
	run  func(t *testing.T, p *target)
}

// TestHostileInputs sends input that would exhaust a program without limits. Each input must get the expected answer and use
// less than a second of the program's processor time. Afterwards a normal query must work as before, and after each group of
// attacks the program must have released its memory, goroutines and files.
func TestHostileInputs(t *testing.T) {
	venue := newWitness(t)
	p := &target{program: runProgram(t, venue.args()...), venue: venue}
	p.begin(t)
	slow := beginSlowly(t, p)
	before := p.figures(t, true)
	names := map[string]bool{}
	for _, attacks := range [][]attack{documentAttacks(), valueAttacks(), bodyAttacks(), headerAttacks(), connectionAttacks(), heldAttacks(), socketAttacks()} {
		for _, a := range attacks {
			if names[a.name] {
				t.Errorf("%s is there twice", a.name)
			}
			names[a.name] = true
			t.Run(a.name, func(t *testing.T) { p.endure(t, a) })
		}
		p.wantRest(t, before)
	}
	slow.wait(t)
	if n := len(names) + len(slow); n < 80 {
		t.Errorf("%d inputs", n)
	}
	if log := p.log.String(); strings.Contains(log, `"level":"ERROR"`) || strings.Contains(log, "panic") {
		t.Errorf("the log has errors")
	}
}

// begin chooses the normal query, and records its answer and its time.
func (p *target) begin(t *testing.T) {
	var token string
	for _, tk := range p.venue.venue.Tokens() {
		if tk.Status == "OPEN" && tk.Outcome == "YES" {
			token = tk.TokenID
			break
		}
	}
	p.normal = `{"query":"{ token(tokenId: \"` + token + `\") { tokenId outcome market { question tokens { tokenId } } } }"}`
	p.answer = p.post(t, p.normal).body
	if !strings.Contains(p.answer, token) || strings.Contains(p.answer, "errors") {
		t.Fatal(p.answer)
	}
	n := 0
	p.before = p.fastest(t, func(time.Duration) bool { n++; return n == 20 })
}

// enduring is how long a normal query may stay slow after an attack.
const enduring = 10 * time.Second

// fastest returns the least time of some normal queries. It stops when enough accepts this time, but gives up only after 20
// queries and the time enduring, because the machine may be busy.
func (p *target) fastest(t *testing.T, enough func(time.Duration) bool) time.Duration {
	t.Helper()
	best := time.Duration(1 << 62)
	for n, begin := 0, time.Now(); n < 20 || time.Since(begin) < enduring; n++ {
		start := time.Now()
		got := p.post(t, p.normal)
		best = min(best, time.Since(start))
		if got.status != http.StatusOK || got.body != p.answer {
			t.Fatalf("a normal query is answered with %d %s", got.status, got.body)
		}
		if enough(best) {
			break
		}
	}
	return best
}

// endure runs an attack and checks what it cost the program.
func (p *target) endure(t *testing.T, a attack) {
	before := p.figures(t, false)
	a.run(t, p)
	after := p.figures(t, false)
	if took := after.CPU - before.CPU; took > slowness*time.Second {
		t.Errorf("it took %v of processor time", took)
	}
	if grown := after.Peak - before.Peak; after.Peak > before.Peak && grown > 96<<20*uint64(slowness) {
		t.Errorf("it took %d MiB", grown>>20)
	}
	if testing.Verbose() {
		t.Logf("%v, %+d KiB", after.CPU-before.CPU, int64(after.Peak-before.Peak)>>10)
	}
	limit := max(3*p.before, 2*time.Millisecond)
	if best := p.fastest(t, func(d time.Duration) bool { return d <= limit }); best > limit {
		t.Errorf("a normal query takes %v since, and took %v before", best, p.before)
	}
}

// left is how much the heap may grow by all attacks together, in bytes. It covers cached documents and responses.
const left = 24 << 20

// wantRest waits until the program is back to its earlier goroutines, open files and heap.
func (p *target) wantRest(t *testing.T, before figures) {
	t.Helper()
	p.client.CloseIdleConnections()
	var now figures
	deadline := time.Now().Add(patience)
	for {
		now = p.figures(t, true)
		if now.Goroutines <= before.Goroutines+10 && now.Open <= before.Open+10 && now.Heap <= before.Heap+left {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("the program had %+v and has %+v", before, now)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// innocent fails if an answer reveals internals.
func (p *target) innocent(t testing.TB, answer string) {
	t.Helper()
	for _, word := range []string{"goroutine ", ".go:", "runtime error", "panic", "gqlgen", "vektah", p.dir, strings.TrimPrefix(p.venue.URL, "http://"), "INTERNAL_SERVER_ERROR"} {
		if strings.Contains(answer, word) {
			t.Errorf("%q is in the answer %.500s", word, answer)
		}
	}
}

// send sends a request and checks that the answer reveals no internals.
func (p *target) send(t testing.TB, r *http.Request) response {
	t.Helper()
	got := p.do(t, r)
	p.innocent(t, got.body)
	return got
}

// post sends a body. more holds further headers as pairs of name and value.
func (p *target) post(t testing.TB, body string, more ...string) response {
	t.Helper()
	r := p.request(t, body, anonymous)
	r.Header.Set("Accept", "application/graphql-response+json")
	for i := 0; i+1 < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	return p.send(t, r)
}

// want checks the status, and the code of the first error and a part of its message unless they are empty.
func (got response) want(t testing.TB, status int, code, says string) {
	t.Helper()
	if got.status != status {
		t.Errorf("status %d, want %d: %.300s", got.status, status, got.body)
	}
	var answer struct{ Errors []graphError }
	if code == "" {
		if strings.Contains(got.body, `"errors"`) {
			t.Errorf("errors in %.300s", got.body)
		}
		return
	}
	decode(t, got.body, &answer)
	if len(answer.Errors) == 0 || answer.Errors[0].Extensions.Code != code || !strings.Contains(answer.Errors[0].Message, says) {
		t.Errorf("want %s with %q: %.300s", code, says, got.body)
	}
	if n := len(got.body); n > 64<<10 {
		t.Errorf("the answer has %d bytes", n)
	}
}

const (
	badInputCode = "BAD_USER_INPUT"
	invalid      = "GRAPHQL_VALIDATION_FAILED"
	unparsed     = "GRAPHQL_PARSE_FAILED"
)

// around returns before n times, then middle, then after n times.
func around(n int, before, middle, after string) string {
	return strings.Repeat(before, n) + middle + strings.Repeat(after, n)
}

// numbered joins n copies of text, each with # replaced by its number.
func numbered(n int, text string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(text, "#", fmt.Sprint(i)))
	}
	return b.String()
}

// documentAttacks are documents that are expensive to parse, to validate or to execute.
func documentAttacks() []attack {
	var out []attack
	for _, d := range []struct{ name, document, code, says string }{
		{"aliases", `{` + numbered(300, "a#:__typename ") + `}`, badInputCode, "more than 200 aliases"},
		{"root fields", `{` + numbered(150, "a#:__typename ") + `}`, badInputCode, "150 root fields"},
		{"aliases of searches", `{` + numbered(100, "a#:searchMarkets(first:100){nodes{marketId event{markets{edges{node{tokens{price{price}}}}}}}}") + `}`, badInputCode, ""},
		{"searches of searches", `{` + numbered(30, `a#:searchMarkets(query:"#",first:100){nodes{tokens{orderbook{bids{price}}}}}`) + `}`, badInputCode, "cost"},
		{"26 doubling fragments", `{...F0}` + numbered(25, "fragment F# on Query{...G# ...G#} fragment G# on Query{__typename}") + doubling(26), badInputCode, ""},
		{"26 doubling fragments alone", `{...D0} ` + doubling(26), badInputCode, "each fragment is counted wherever it is spread"},
		{"26 doubling fragments that nobody spreads", `{__typename} ` + doubling(26), badInputCode, "each fragment is counted wherever it is spread"},
		{"a fragment in itself", `{...A} fragment A on Query{...A}`, badInputCode, "spreads itself"},
		{"two fragments in each other", `{...A} fragment A on Query{...B} fragment B on Query{...A}`, badInputCode, "spreads itself"},
		{"49 fragments in a circle", `{...C0} ` + circle(49), badInputCode, "spreads itself"},
		{"a circle that nobody enters", `{__typename} fragment A on Query{... on Query{...B}} fragment B on Query{token(tokenId:"1"){...A}}`, badInputCode, "spreads itself"},
		{"50,000 repeated fields", `{` + strings.Repeat("a ", 50_000) + `}`, badInputCode, "65536 are accepted"},
		{"1,400 repeated fields", `{` + strings.Repeat("__typename ", 1400) + `}`, badInputCode, "selects 1400 fields"},
		{"1,600 repeated fields", `{` + strings.Repeat("__typename ", 1600) + `}`, badInputCode, "more than 1500 tokens"},
		{"repeated fields in repeated fields", `{` + strings.Repeat(`token(tokenId:"1"){`+strings.Repeat("market{slug}", 20)+`}`, 15) + `}`, badInputCode, "select"},
		{"fields 10,000 deep", around(10_000, "{a", "{a}", "}"), badInputCode, "more than 1500 tokens"},
		{"fields 400 deep", around(400, "{a", "{a}", "}"), badInputCode, "deep"},
		{"fields 25 deep", `{searchMarkets{nodes` + around(11, "{event{markets{nodes", "{slug}", "}}}") + `}}`, badInputCode, "deep"},
		{"lists 10,000 deep", `{tokens(tokenIds:` + around(10_000, "[", "1", "]") + `){tokenId}}`, badInputCode, "more than 1500 tokens"},
		{"lists 700 deep", `{tokens(tokenIds:` + around(700, "[", "1", "]") + `){tokenId}}`, badInputCode, "deep"},
		{"objects 10,000 deep", `{searchMarkets(filter:` + around(10_000, "{a:", "1", "}") + `){totalCount}}`, badInputCode, "more than 1500 tokens"},
		{"objects 300 deep", `{searchMarkets(filter:` + around(300, "{a:", "1", "}") + `){totalCount}}`, badInputCode, "deep"},
		{"inline fragments 10,000 deep", around(10_000, "{...", "{a}", "}"), badInputCode, "more than 1500 tokens"},
		{"inline fragments 400 deep", around(400, "{...", "{a}", "}"), badInputCode, "deep"},
		{"a type 700 deep", `query($a:` + around(700, "[", "Int", "]") + `){__typename}`, badInputCode, "deep"},
		{"braces without an end", strings.Repeat("{a", 700), unparsed, ""},
		{"60 KB of braces", strings.Repeat("{", 60_000), "", ""},
		{"100 directives", `{__typename` + strings.Repeat(" @skip(if:false)", 100) + `}`, badInputCode, "more than 50 directives"},
		{"10,000 directives", `{__typename` + strings.Repeat(" @a", 10_000) + `}`, badInputCode, "more than 1500 tokens"},
		{"400 arguments", `{token(` + numbered(400, "a#:1 ") + `){tokenId}}`, invalid, ""},
		{"the same argument 400 times", `{token(` + strings.Repeat(`tokenId:"1" `, 400) + `){tokenId}}`, invalid, ""},
		{"350 variables", `query(` + numbered(350, "$a#:Int ") + `){__typename}`, invalid, ""},
		{"350 fields that are not there", `{` + numbered(350, "tokenPricez# ") + `}`, badInputCode, "root fields"},
		{"90 fields that are not there", `{` + numbered(90, "tokenPricez# ") + `}`, invalid, "tokenPricez0"},
		{"60 fragments", `{__typename}` + numbered(60, "fragment F# on Query{__typename}"), badInputCode, "60 fragments"},
		{"45 unused fragments", `{__typename}` + numbered(45, "fragment F# on Query{__typename}"), invalid, "F0"},
		{"fragments of fragments that conflict", `{...F0}` + numbered(40, "fragment F# on Query{a:searchMarkets(first:#){totalCount}b:token(tokenId:\"#\"){tokenId} ...G#}") + numbered(9, "fragment G# on Query{__typename}"), invalid, ""},
		{"conflicts of all with all", `{` + numbered(30, `a:searchMarkets(first:1#){totalCount}`) + `}`, invalid, ""},
		{"11 operations", numbered(11, "query Q#{__typename}"), badInputCode, "11 operations"},
		{"a name of 10,000 bytes", `{` + strings.Repeat("a", 10_000) + `}`, badInputCode, "bytes"},
		{"a text without an end", `{token(tokenId:"` + strings.Repeat("a", 60_000), unparsed, ""},
		{"a block of 60 KB", `{nope(a:"""` + strings.Repeat("\n  a", 12_000) + `"""){tokenId}}`, invalid, "nope"},
		{"quotes and nothing else", strings.Repeat(`"`, 60_000), "", ""},
		{"backslashes in a text", `{nope(a:"` + strings.Repeat(`\u005c`, 10_000) + `"){tokenId}}`, invalid, "nope"},
		{"2,000 comments", strings.Repeat("#\n", 2000) + `{__typename}`, badInputCode, "more than 1500 tokens"},
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
				return // some of these documents are valid, or the parser accepts them
			}
			if d.code == "" {
				if !strings.Contains(got.body, badInputCode) && !strings.Contains(got.body, unparsed) && !strings.Contains(got.body, invalid) {
					t.Errorf("%d %.300s", got.status, got.body)
				}
				return
			}
			got.want(t, http.StatusBadRequest, d.code, d.says)
			// The refusal is cached: the second answer must be the same.
			p.post(t, asJSON(vars{"query": d.document})).want(t, http.StatusBadRequest, d.code, d.says)
		}})
	}
	return out
}

// doubling returns a chain of n fragments. Each spreads the next one twice.
func doubling(n int) string {
	var b strings.Builder
	for i := range n - 1 {
		fmt.Fprintf(&b, "fragment D%d on Query{...D%d ...D%d} ", i, i+1, i+1)
	}
	fmt.Fprintf(&b, "fragment D%d on Query{__typename}", n-1)
	return b.String()
}

// circle returns n fragments that spread each other in a circle.
func circle(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "fragment C%d on Query{...C%d} ", i, (i+1)%n)
	}
	return b.String()
}

// valueAttacks are hostile values of arguments and variables.
func valueAttacks() []attack {
	var out []attack
	add := func(name, query string, variables any, status int, code, says string) {
		out = append(out, attack{name: "value: " + name, run: func(t *testing.T, p *target) {
			p.venue.take()
			p.post(t, asJSON(vars{"query": query, "variables": variables})).want(t, status, code, says)
			if asked := p.venue.take(); code != "" && len(asked) > 0 {
				t.Errorf("the venue was asked %s", asked[0].URL)
			}
		}})
	}
	const fill = `query($size:Decimal){token(tokenId:"1"){fillEstimate(side:BUY,size:$size){cost}}}`
	for _, size := range []string{"1e99999", "-1e99999", "1e-99999", "1e2147483648", "1e9223372036854775808", "NaN", "-0", "Infinity", "0x1p9999", strings.Repeat("9", 65), "0.0" + strings.Repeat("0", 64), strings.Repeat("9", 60_000), "١", "1_000"} {
		add(fmt.Sprintf("a Decimal %.24s of %d characters", size, len(size)), fill, vars{"size": size}, http.StatusOK, badInputCode, "")
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
	for _, at := range []string{"10000-01-01T00:00:00Z", "2026-01-01T25:00:00Z", "2026-01-01", "9e99", "2026-01-01T00:00:00+99:99"} {
		add("a DateTime "+at, `query($d:DateTime){searchMarkets(filter:{endsAfter:$d}){totalCount}}`, vars{"d": at}, http.StatusOK, badInputCode, "DateTime")
	}
	for _, n := range []int64{-1, 0, 101, 1<<31 - 1} {
		add(fmt.Sprintf("first %d", n), `query($n:Int){searchMarkets(first:$n){totalCount}}`, vars{"n": n}, http.StatusOK, badInputCode, "")
	}
	for _, n := range []int64{-201, 0, 201, 1<<31 - 1} {
		add(fmt.Sprintf("depth %d", n), `query($n:Int){token(tokenId:"1"){orderbook(depth:$n){spread}}}`, vars{"n": n}, http.StatusOK, badInputCode, "")
	}
	for _, n := range []int64{1 << 31, -1 << 53} {
		add(fmt.Sprintf("the integer %d", n), `query($n:Int){searchMarkets(first:$n){totalCount}}`, vars{"n": n}, http.StatusBadRequest, "GRAPHQL_VALIDATION_FAILED", "32 bits")
	}
	add("501 ids", `query($i:[String!]!){tokens(tokenIds:$i){tokenId}}`, vars{"i": many(501)}, http.StatusOK, badInputCode, "at most 500")
	add("1,001 ids", `query($i:[String!]!){tokens(tokenIds:$i){tokenId}}`, vars{"i": many(1001)}, http.StatusBadRequest, badInputCode, "1000")
	add("variables of 200 KB", `query($i:String!){token(tokenId:$i){tokenId}}`, vars{"i": strings.Repeat("a", 200_000)}, http.StatusBadRequest, badInputCode, "131072")
	add("variables that nobody declared", `{__typename}`, vars{"a": strings.Repeat("a", 100_000)}, http.StatusOK, "", "")
	add("a wrong case", `query($s:OrderSide!){token(tokenId:"1"){fillEstimate(side:$s,size:1){cost}}}`, vars{"s": "buy"}, http.StatusBadRequest, invalid, "")
	for name, text := range map[string]string{"a regular expression": `(((((a+)+)+)+)+)+$` + strings.Repeat("a", 500), "wildcards": strings.Repeat("%_*?", 200), "SQL": `'; DROP TABLE markets; --`, "spaces": strings.Repeat(" ", 999)} {
		out = append(out, attack{name: "value: a search for " + name, run: func(t *testing.T, p *target) {
			p.venue.take()
			got := p.post(t, asJSON(vars{"query": `query($q:String!){searchMarkets(query:$q){totalCount}}`, "variables": vars{"q": text}}))
			if got.status != http.StatusOK {
				t.Errorf("%d %s", got.status, got.body)
			}
			for _, r := range p.venue.take() {
				if what := unmeant(r); what != "" || r.URL.Query().Get("q") != text && strings.TrimSpace(text) != "" {
					t.Errorf("the venue was asked %s: %s", r.URL, what)
				}
			}
		}})
	}
	for name, cursor := range map[string]string{
		"of another list": "AAAA", "of a space": " ", "of 5,000 bytes": strings.Repeat("A", 5000), "with a path": "../../etc/passwd", "with a parameter": "x&limit=100000",
		"that overflows": "/////////////////////w==",
	} {
		out = append(out, attack{name: "value: a cursor " + name, run: func(t *testing.T, p *target) {
			p.venue.take()
			got := p.post(t, asJSON(vars{"query": `query($a:String){searchMarkets(after:$a){totalCount}}`, "variables": vars{"a": cursor}}))
			got.want(t, http.StatusOK, badInputCode, "after is not a cursor of this list")
			if asked := p.venue.take(); len(asked) > 0 {
				t.Errorf("the venue was asked %s", asked[0].URL)
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

// inject uses an id in every argument that takes one. The venue must receive the id unchanged as a single value, or not at all.
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
		t.Errorf("%d %.300s", got.status, got.body)
	}
	// None of these texts is an address.
	p.post(t, asJSON(vars{"query": `query($a:Address!){user(address:$a){address}}`, "variables": vars{"a": evil}})).want(t, http.StatusOK, badInputCode, "0x and 40 hex digits")
	for _, r := range p.venue.take() {
		if what := unmeant(r); what != "" {
			t.Errorf("the venue was asked %s: %s", r.URL, what)
		}
		q := r.URL.Query()
		for _, name := range []string{"tokenId", "tokenIds", "id", "ids", "slug", "eventId", "eventSlug", "q", "category", "tag", "marketId"} {
			for _, v := range q[name] {
				if v != evil && !(name == "tokenIds" || name == "ids") || strings.ContainsAny(v, ",") && name != "q" && name != "category" && name != "tag" && name != "slug" {
					t.Errorf("the venue was asked for %s %q", name, v)
				}
			}
		}
		if strings.ContainsAny(r.URL.RawQuery, "\r\n\x00") || len(r.Header["X-Evil"]) > 0 {
			t.Errorf("the venue was asked %q", r.URL)
		}
	}
}

// bodyAttacks are requests with malformed or oversized bodies.
func bodyAttacks() []attack {
	const typename = `{"query":"{ __typename }"}`
	large := `{"query":"` + strings.Repeat(" ", 10<<20) + `{ __typename }"}`
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(large))
	_ = z.Close()
	hash := func(s string) string { h := sha256.Sum256([]byte(s)); return hex.EncodeToString(h[:]) }
	var out []attack
	add := func(name, body string, status int, code, says string, header ...string) {
		out = append(out, attack{name: "body: " + name, run: func(t *testing.T, p *target) { p.post(t, body, header...).want(t, status, code, says) }})
	}
	const notJSON = "not a JSON object"
	add("nothing", ``, 400, badInputCode, notJSON)
	add("half of one", typename[:20], 400, badInputCode, notJSON)
	add("one and a half", typename+typename[:10], 400, badInputCode, notJSON)
	add("a list", `[`+typename+`]`, 400, badInputCode, notJSON)
	add("a list of 9,000", `[`+strings.Repeat(typename+",", 9_000)+typename+`]`, 400, badInputCode, notJSON)
	add("no UTF-8", "{\"query\":\"{ __typename } # \xff\"}", 400, badInputCode, "UTF-8")
	add("half a character", "{\"query\":\"{ __typename } # \xe2\x82\"}", 400, badInputCode, "UTF-8")
	add("no UTF-8 in the variables", "{\"query\":\"{ __typename }\",\"variables\":{\"a\":\"\xc0\xaf\"}}", 400, badInputCode, "UTF-8")
	add("half a surrogate", `{"query":"{ token(tokenId: \"\ud800\") { tokenId } }"}`, 200, "", "")
	add("a query twice", `{"query":"{ a }","query":"{ __typename }"}`, 400, badInputCode, "twice")
	add("variables twice", `{"query":"{ a }","variables":{},"variables":{}}`, 400, badInputCode, "twice")
	add("a variable 20,000 times", `{"query":"{ __typename }","variables":{`+strings.Repeat(`"a":1,`, 20_000)+`"a":2}}`, 400, badInputCode, "")
	add("variables 5,000 deep", `{"query":"{ __typename }","variables":{"a":`+around(5000, "[", "1", "]")+`}}`, 400, badInputCode, "deep")
	add("variables 100,000 deep", `{"query":"{ __typename }","variables":{"a":`+around(100_000, "[", "", "]")+`}}`, 400, badInputCode, notJSON)
	add("objects 40,000 deep", `{"query":"{ __typename }","variables":`+around(40_000, `{"":`, "1", "}")+`}`, 400, badInputCode, notJSON)
	add("extensions 9,000 deep", `{"query":"{ __typename }","extensions":{"a":`+around(9000, "[", "1", "]")+`}}`, 200, "", "")
	add("extensions that are a list", `{"query":"{ __typename }","extensions":[]}`, 400, badInputCode, "extensions is not an object")
	add("a number of 100,000 digits", `{"query":"query($n:Int){ searchMarkets(first: $n) { totalCount } }","variables":{"n":`+strings.Repeat("9", 100_000)+`}}`, 400, invalid, "no Int")
	add("a number beyond all", `{"query":"query($n:Int){ searchMarkets(first: $n) { totalCount } }","variables":{"n":1e999999999}}`, 400, invalid, "no Int")
	add("an operation's name of 200 KB", `{"query":"query A { __typename }","operationName":"`+strings.Repeat("A", 200_000)+`"}`, 400, invalid, "not found")
	add("members that nobody knows", `{"query":"{ __typename }",`+numbered(15_000, `"a#":1,`)+`"z":1}`, 200, "", "")
	add("an id of 200 KB", `{"documentId":"`+strings.Repeat("a", 200_000)+`"}`, 400, badInputCode, "")
	add("a wrong hash", `{"query":"{ __typename }","extensions":{"persistedQuery":{"version":1,"sha256Hash":"`+hash("x")+`"}}}`, 400, badInputCode, "provided sha does not match query")
	add("a hash that is none", `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"../../etc/passwd"}}}`, 400, badInputCode, "")
	add("a hash of another version", `{"extensions":{"persistedQuery":{"version":9e99,"sha256Hash":"`+hash("x")+`"}}}`, 400, badInputCode, "")
	add("a hash that is a number", `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":1}}}`, 400, badInputCode, "")
	add("a hash without a document", `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"`+hash("x")+`"}}}`, 400, "PERSISTED_QUERY_NOT_FOUND", "PersistedQueryNotFound")
	const sendJSON = "Content-Type: application/json"
	add("a form", `query={__typename}`, 415, badInputCode, sendJSON, "Content-Type", "application/x-www-form-urlencoded")
	add("parts", "--b\r\nContent-Disposition: form-data; name=\"operations\"\r\n\r\n"+typename+"\r\n--b--\r\n", 415, badInputCode, sendJSON, "Content-Type", "multipart/form-data; boundary=b")
	add("plain text", typename, 415, badInputCode, sendJSON, "Content-Type", "text/plain")
	add("GraphQL", `{ __typename }`, 415, badInputCode, sendJSON, "Content-Type", "application/graphql")
	add("UTF-16", typename, 415, badInputCode, "UTF-8", "Content-Type", "application/json; charset=utf-16")
	add("a type of 60 KB", typename, 415, badInputCode, sendJSON, "Content-Type", "application/json;"+strings.Repeat("a", 60_000))
	add("a type of 5,000 parameters", typename, 200, "", "", "Content-Type", "application/json"+numbered(5000, ";a#=1"))
	add("gzip", zipped.String(), 415, badInputCode, "Content-Encoding", "Content-Encoding", "gzip")
	add("gzip of gzip", zipped.String(), 415, badInputCode, "Content-Encoding", "Content-Encoding", "gzip, gzip")
	add("10 MB", large, 413, badInputCode, "larger than 262144 bytes")
	out = append(out,
		attack{name: "body: eight times 10 MB at once", run: func(t *testing.T, p *target) {
			var g sync.WaitGroup
			for i := range 8 {
				g.Go(func() {
					r := p.request(t, large, anonymous)
					if i%2 == 1 { // without a Content-Length
						r.Body, r.ContentLength = io.NopCloser(strings.NewReader(large)), -1
					}
					resp, err := p.client.Do(r)
					if err != nil {
						return // the service closed the connection during the upload
					}
					defer resp.Body.Close()
					if resp.StatusCode != http.StatusRequestEntityTooLarge {
						t.Errorf("status %d", resp.StatusCode)
					}
				})
			}
			g.Wait()
		}},
		attack{name: "body: 3,000 documents to keep", run: func(t *testing.T, p *target) {
			var g sync.WaitGroup
			for worker := range 4 {
				g.Go(func() {
					for i := range 750 {
						query := fmt.Sprintf(`{ a%dx%d: __typename }`, worker, i)
						got := p.post(t, `{"query":"`+query+`","extensions":{"persistedQuery":{"version":1,"sha256Hash":"`+hash(query)+`"}}}`)
						if got.status != http.StatusOK {
							t.Errorf("%d %s", got.status, got.body)
							return
						}
					}
				})
			}
			g.Wait()
		}},
	)
	return out
}

// headerAttacks are requests by GET and POST with hostile headers or URLs.
func headerAttacks() []attack {
	const typename = `{"query":"{ __typename }"}`
	var out []attack
	add := func(name string, status int, code string, header ...string) {
		out = append(out, attack{name: "header: " + name, run: func(t *testing.T, p *target) {
			r := p.request(t, typename, anonymous)
			for i := 0; i+1 < len(header); i += 2 {
				r.Header[header[i]] = append(r.Header[header[i]], header[i+1])
			}
			p.send(t, r).want(t, status, code, "")
		}})
	}
	get := func(name, query string, status int, code string, header ...string) {
		out = append(out, attack{name: "GET: " + name, run: func(t *testing.T, p *target) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL()+query, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i+1 < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			got := p.send(t, r)
			if code == "" {
				if got.status != status {
					t.Errorf("status %d, want %d: %.300s", got.status, status, got.body)
				}
				return
			}
			got.want(t, status, code, "")
		}})
	}
	add("10,000 types", 200, "", "Accept", strings.Repeat("a/b,", 10_000)+"application/json")
	add("10,000 wildcards", 200, "", "Accept", strings.Repeat("*/*,", 10_000)+"*/*")
	add("types with 10,000 parameters", 200, "", "Accept", "application/json"+numbered(5000, ";a#=1")+",*/*")
	add("qualities that are none", 200, "", "Accept", "application/json;q=NaN,text/html;q=1e9999,*/*;q=0.5")
	add("no type that there is", 406, badInputCode, "Accept", "image/png")
	add("10,000 codings", 200, "", "Accept-Encoding", strings.Repeat("gzip,", 10_000)+"br")
	add("codings with qualities", 200, "", "Accept-Encoding", strings.Repeat("gzip;q=0.0001,", 4_000)+"*;q=0,identity;q=0")
	add("10,000 hops", 200, "", "X-Forwarded-For", strings.Repeat("127.0.0.1,", 6_000)+"127.0.0.1")
	add("hops that are none", 200, "", "X-Forwarded-For", "::ffff:256.1.1.1, [::1, <script>, 127.0.0.1")
	add("a cookie of 60 KB", 200, "", "Cookie", "a="+strings.Repeat("a", 60_000))
	add("10,000 headers", 200, "", "X-A", "1", "X-B", strings.Repeat("b", 50_000))
	add("a header of 80 KB", 431, "", "X-A", strings.Repeat("a", 80_000))
	add("credentials of 60 KB", 400, badInputCode, httpapi.CredentialsHeader, strings.Repeat("A", 60_000))
	add("credentials that are none", 400, badInputCode, httpapi.CredentialsHeader, "\xff\xfe%%%")
	add("credentials 5,000 deep", 400, badInputCode, httpapi.CredentialsHeader, "W1tbW1tbW1tbW1tbW1tbW1tb")
	add("credentials twice", 400, badInputCode, httpapi.CredentialsHeader, keyOf3, httpapi.CredentialsHeader, keyOf50)
	add("a bearer token of 60 KB", 400, badInputCode, "Authorization", "Bearer "+strings.Repeat("a", 60_000))
	add("a bearer token of nobody", 401, "UNAUTHENTICATED", "Authorization", "Bearer nobody")
	add("Basic", 401, "UNAUTHENTICATED", "Authorization", "Basic YTpi")
	add("both kinds of credentials", 400, badInputCode, "Authorization", "Bearer a", httpapi.CredentialsHeader, keyOf3)
	add("a request id of 60 KB", 200, "", "X-Request-Id", strings.Repeat("a", 60_000))
	add("an origin that is none", 200, "", "Origin", "javascript://%0a", "Origin", "null")
	add("a trace that is none", 200, "", "Traceparent", strings.Repeat("00-", 10_000))
	add("an upgrade to nothing", 200, "", "Upgrade", "h2c", "Connection", "Upgrade, HTTP2-Settings", "HTTP2-Settings", "AAMAAABkAAQAAP__")
	add("an upgrade by POST", 405, "", "Upgrade", "websocket", "Connection", "Upgrade", "Sec-Websocket-Version", "13", "Sec-Websocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
	const query = httpapi.PathGraphQL + "?query={__typename}"
	get("10,000 tags", query, 200, "", "If-None-Match", strings.Repeat(`"a",`, 10_000)+`"b"`)
	get("a range", query, 200, "", "Range", "bytes=0-0,"+strings.Repeat("1-1,", 10_000)+"2-2")
	get("an upgrade without a key", query, 400, "", "Upgrade", "websocket", "Connection", "Upgrade", "Sec-WebSocket-Version", "13")
	get("an upgrade of another version", query, 400, "", "Upgrade", "websocket", "Connection", "Upgrade", "Sec-WebSocket-Version", "8", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
	get("a query string that is none", httpapi.PathGraphQL+"?query=%zz", 400, badInputCode)
	get("a query string without UTF-8", httpapi.PathGraphQL+"?query=%ff%fe", 400, badInputCode)
	get("variables without UTF-8", query+"&variables=%7B%22a%22:%22%ff%22%7D", 400, badInputCode)
	get("a query twice", query+"&query={a}", 400, badInputCode)
	get("9,000 parameters", query+strings.Repeat("&a", 9_000), 200, "")
	get("20,000 parameters", query+strings.Repeat("&a", 20_000), 400, badInputCode)
	get("a URL of 60 KB", query+"&a="+strings.Repeat("a", 60_000), 200, "")
	get("a URL of 100 KB", query+"&a="+strings.Repeat("a", 100_000), 431, "")
	get("a document in the URL", httpapi.PathGraphQL+"?query="+url.QueryEscape(strings.Repeat("{", 10_000)), 200, unparsed)
	get("variables 5,000 deep", query+"&variables="+url.QueryEscape(`{"a":`+around(5000, "[", "1", "]")+`}`), 200, badInputCode)
	get("a path up", "/graphql/../../etc/passwd", 404, "")
	get("a path up in hex", "/graphql/%2e%2e%2f%2e%2e%2fetc%2fpasswd", 200, badInputCode)
	get("an id of zeros", "/graphql/%00%00", 200, badInputCode)
	get("an id of 60 KB", "/graphql/"+strings.Repeat("a", 60_000), 200, badInputCode)
	get("a path of slashes", strings.Repeat("/", 10_000)+"graphql", 400, badInputCode) // the router redirects to /graphql
	get("the control of the demo venue", "/__control/stats", 404, "")
	get("a profile", "/debug/pprof/", 404, "")
	return out
}

// wire is a raw connection on which a test sends any bytes.
type wire struct {
	net.Conn
	r *bufio.Reader
}

func (p *target) connect(t testing.TB) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return &wire{conn, bufio.NewReader(conn)}
}

// answer reads a response. Status 0 means that the service closed the connection without a response.
func (w *wire) answer(t testing.TB, p *target) (status int, body string) {
	t.Helper()
	resp, err := http.ReadResponse(w.r, nil)
	if err != nil {
		w.wantClosed(t)
		return 0, ""
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	p.innocent(t, string(b))
	return resp.StatusCode, string(b)
}

// wantClosed waits until the program closes the connection.
func (w *wire) wantClosed(t testing.TB) {
	t.Helper()
	_, err := io.Copy(io.Discard, w.r)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Error("the connection stays open")
	}
}

// connectionAttacks violate HTTP.
func connectionAttacks() []attack {
	const typename = `{"query":"{ __typename }"}`
	post := func(headers, body string) string {
		return "POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + headers + "\r\n" + body
	}
	length := func(n any) string { return fmt.Sprintf("Content-Length: %v\r\n", n) }
	var out []attack
	// add is for text that is not HTTP: the service answers with this status, or 0 for no answer, and closes the connection.
	add := func(name, text string, status int) {
		out = append(out, attack{name: "HTTP: " + name, run: func(t *testing.T, p *target) {
			w := p.connect(t)
			go func() { _, _ = io.WriteString(w, text) }()
			if got, body := w.answer(t, p); got != status {
				t.Errorf("status %d, want %d: %.300s", got, status, body)
			}
			w.wantClosed(t)
		}})
	}
	add("noise", strings.Repeat("\x00\xff\x16\x03", 10_000)+"\r\n\r\n", 400)
	add("TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"+strings.Repeat("a", 500)+"\r\n\r\n", 400)
	add("HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400)
	add("a method that is none", "GE T /graphql HTTP/1.1\r\nHost: localhost\r\n\r\n", 400)
	add("a version that is none", "GET /graphql HTTP/9.9\r\nHost: localhost\r\n\r\n", 505)
	add("no host", "GET /healthz HTTP/1.1\r\n\r\n", 400)
	add("two hosts", "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400)
	add("a header with a zero", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: \x00\r\n\r\n", 400)
	add("a header without a name", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n: a\r\n\r\n", 400)
	add("a space before the colon", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length : 5\r\n\r\n", 400)
	add("30,000 headers", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"+strings.Repeat("A:b\r\n", 30_000)+"\r\n", 431)
	add("a first line without an end", "GET /"+strings.Repeat("a", 1<<20), 431)
	add("two lengths", post(length(26)+length(27), typename), 400)
	add("a length below zero", post(length(-1), typename), 400)
	add("a length beyond all", post(length("99999999999999999999"), typename), 400)
	add("a length of gigabytes", post(length(1<<40), typename), 413)
	add("a length and chunks", post(length(26)+"Transfer-Encoding: chunked\r\nConnection: close\r\n", "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"), 400)
	add("a transfer coding that is none", post("Transfer-Encoding: gzip, chunked\r\n", typename), 501)
	add("chunked twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 501)
	add("a chunk of a length that is none", post("Transfer-Encoding: chunked\r\n", "zz\r\n"), 400)
	add("a chunk of a length beyond all", post("Transfer-Encoding: chunked\r\n", strings.Repeat("f", 40)+"\r\n"), 400)
	add("chunks of extensions", post("Transfer-Encoding: chunked\r\n", strings.Repeat("1;"+strings.Repeat("a", 4000)+"\r\n \r\n", 1000)), 400)
	add("chunks without an end", post("Transfer-Encoding: chunked\r\n", strings.Repeat("10000\r\n"+strings.Repeat(" ", 0x10000)+"\r\n", 100)), 413)
	add("an expectation that is none", post("Expect: the unexpected\r\n"+length(26), typename), 417)
	add("a shorter length", post(length(10), typename+"\r\n\r\n"), 400)
	add("HTTP/1.0", "POST /graphql HTTP/1.0\r\nContent-Type: application/json\r\n"+length(26)+"\r\n"+typename, 200)
	out = append(out,
		attack{name: "HTTP: a body that is to be waited for", run: func(t *testing.T, p *target) {
			w := p.connect(t)
			_, _ = io.WriteString(w, post("Expect: 100-continue\r\n"+length(10<<20), ""))
			if status, body := w.answer(t, p); status != http.StatusRequestEntityTooLarge {
				t.Errorf("%d %s", status, body)
			}
			w.wantClosed(t)
		}},
		attack{name: "HTTP: half a body and no more", run: func(t *testing.T, p *target) {
			w := p.connect(t)
			_, _ = io.WriteString(w, post(length(1000), typename))
			_ = w.Conn.(*net.TCPConn).CloseWrite()
			if status, body := w.answer(t, p); status != http.StatusBadRequest && status != 0 {
				t.Errorf("%d %s", status, body)
			}
			w.wantClosed(t)
		}},
		attack{name: "HTTP: half-open after the request", run: func(t *testing.T, p *target) {
			w := p.connect(t)
			_, _ = io.WriteString(w, post(length(26), typename))
			_ = w.Conn.(*net.TCPConn).CloseWrite()
			// The service cannot distinguish this from a client that has gone, so it may cancel the request.
			if resp, err := http.ReadResponse(w.r, nil); err == nil {
				_ = resp.Body.Close()
			}
			w.wantClosed(t)
		}},
		attack{name: "HTTP: 200 connections that break off", run: func(t *testing.T, p *target) {
			for i := range 200 {
				w := p.connect(t)
				text := post(length(1<<17), strings.Repeat(" ", 1000*(i%10)))
				_, _ = io.WriteString(w, text[:len(text)-i%len(typename)])
				_ = w.Conn.(*net.TCPConn).SetLinger(0)
				_ = w.Close()
			}
		}},
		attack{name: "HTTP: 500 connections that say nothing", run: func(t *testing.T, p *target) {
			for range 500 {
				w := p.connect(t)
				defer w.Close()
			}
		}},
		attack{name: "HTTP: 500 requests in one go", run: func(t *testing.T, p *target) {
			w := p.connect(t)
			go func() { _, _ = io.WriteString(w, strings.Repeat(post(length(26), typename), 500)) }()
			for i := range 500 {
				if status, body := w.answer(t, p); status != http.StatusOK || body != `{"data":{"__typename":"Query"}}` {
					t.Fatalf("answer %d: %d %s", i, status, body)
				}
			}
		}},
		attack{name: "HTTP: a client that never reads", run: func(t *testing.T, p *target) {
			w := p.connect(t)
			_ = w.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
			_ = w.SetWriteDeadline(time.Now().Add(2 * time.Second))
			one := "GET /schema.graphql HTTP/1.1\r\nHost: localhost\r\n\r\n"
			_, _ = io.WriteString(w, strings.Repeat(one, 20_000)) // until the service stops reading
			_ = w.Close()
		}},
		attack{name: "HTTP: 50 event streams that nobody reads", run: func(t *testing.T, p *target) {
			const body = `{"query":"subscription{streamStatusChanged{state}}"}`
			for range 50 {
				w := p.connect(t)
				defer w.Close()
				_, _ = io.WriteString(w, post("Accept: text/event-stream\r\n"+length(len(body)), body))
			}
		}},
		attack{name: "HTTP: an event stream of a document that is none", run: func(t *testing.T, p *target) {
			got := p.post(t, `{"query":"subscription{`+around(100, "a{", "a", "}")+`}"}`, "Accept", "text/event-stream")
			if got.status != http.StatusOK || !strings.Contains(got.body, badInputCode) || !strings.HasSuffix(got.body, "event: complete\ndata:\n\n") {
				t.Errorf("%+v", got)
			}
		}},
	)
	return out
}

// slowly holds slow connections by their description.
type slowly map[string]*slowConnection

type slowConnection struct {
	*wire
	p *target
	// status is the expected status of the answer, or 0 for none.
	status  int
	stop    chan struct{}
	dripped sync.WaitGroup
}

// beginSlowly opens connections that send very slowly. Their timeouts pass while other attacks run.
func beginSlowly(t *testing.T, p *target) slowly {
	out := slowly{}
	add := func(name, first, drip string, status int) {
		c := &slowConnection{wire: p.connect(t), p: p, status: status, stop: make(chan struct{})}
		_ = c.SetDeadline(time.Time{})
		_, _ = io.WriteString(c, first)
		out[name] = c
		c.dripped.Go(func() {
			for drip != "" {
				select {
				case <-c.stop:
					return
				case <-time.After(300 * time.Millisecond):
				}
				if _, err := io.WriteString(c, drip); err != nil {
					return
				}
			}
		})
		t.Cleanup(func() {
			close(c.stop)
			c.dripped.Wait()
		})
	}
	const begin = "POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	const upgrade = "GET /graphql HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n"
	add("nothing at all", "", "", 0)
	add("headers without an end", begin, "X-A: a\r\n", 0)
	add("a header byte by byte", begin+"X-A: ", "a", 0)
	add("a first line byte by byte", "POST /", "a", 0)
	add("a body byte by byte", begin+"Content-Length: 1000\r\n\r\n", " ", http.StatusRequestTimeout)
	add("chunks byte by byte", begin+"Transfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n", http.StatusRequestTimeout)
	add("a body that never comes", begin+"Content-Length: 1000\r\n\r\n{", "", http.StatusRequestTimeout)
	add("the wish for an event stream byte by byte", begin+"Accept: text/event-stream\r\nContent-Length: 1000\r\n\r\n", " ", http.StatusRequestTimeout)
	add("an upgrade byte by byte", upgrade, "X-A: a\r\n", 0)
	add("a socket that says nothing", upgrade+"\r\n", "", http.StatusSwitchingProtocols)
	add("a socket that says its name byte by byte", upgrade+"\r\n"+string(frameHead(true, 0, 1, true, 1000)), " ", http.StatusSwitchingProtocols)
	return out
}

// wait waits until the service has closed all connections, and checks how.
func (s slowly) wait(t *testing.T) {
	deadline := time.Now().Add(patience)
	for name, c := range s {
		t.Run("slowly: "+name, func(t *testing.T) {
			_ = c.SetReadDeadline(deadline)
			resp, err := http.ReadResponse(c.r, nil)
			switch {
			case err != nil && c.status != 0:
				t.Errorf("no answer: %v", err)
			case err != nil:
			case resp.StatusCode == http.StatusSwitchingProtocols && c.status == resp.StatusCode:
				if code := c.closeCode(t); code != 4408 {
					t.Errorf("close code %d", code)
				}
			case resp.StatusCode != c.status && (c.status != 0 || resp.StatusCode/100 != 4):
				t.Errorf("status %d, want %d", resp.StatusCode, c.status)
			}
			c.wantClosed(t)
		})
	}
}
