//go:build unix

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// target is the program with its default limits. The venue records every request of the program.
type target struct {
	*program
	venue *witness
	// normal is the body of a valid request, and answer is the expected body of the response.
	normal, answer string
	// thousandCost is the processor time that the program used for a thousand normal requests before the attacks.
	thousandCost time.Duration
	// moves counts the calls of moveBooks.
	moves int
}

// attack is one kind of hostile input.
type attack struct {
	name string
	run  func(t *testing.T, p *target)
}

// TestHostileInputs checks that hostile input gets the expected response and does not exhaust the program. The constant
// maxAttackCost limits the processor time of each attack. After each attack, a normal query must work as before. After each group
// of attacks, the program must have released goroutines, files and nearly all memory.
func TestHostileInputs(t *testing.T) {
	venue := newWitness(t)
	p := &target{program: runProgram(t, venue.args()...), venue: venue}
	p.begin(t)
	p.measure(t)
	slow := openSlowConnections(t, p)
	before := p.figures(t, true)
	names := map[string]bool{}
	for _, attacks := range [][]attack{documentAttacks(), valueAttacks(), bodyAttacks(), headerAttacks(), connectionAttacks(), heldAttacks(), socketAttacks()} {
		for _, a := range attacks {
			if names[a.name] {
				t.Errorf("two attacks have the name %q", a.name)
			}
			names[a.name] = true
			t.Run(a.name, func(t *testing.T) { p.runAttack(t, a) })
		}
		p.wantRest(t, before)
	}
	slow.wait(t)
	if n := len(names) + len(slow); n < 80 {
		t.Errorf("the test has %d attacks, want at least 80", n)
	}
	if log := p.log.String(); strings.Contains(log, `"level":"ERROR"`) || strings.Contains(log, "panic") {
		t.Error("the log contains an error or a panic")
	}
}

// begin chooses the normal query, and records its response.
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
}

// measure measures the processor time of a thousand normal requests.
func (p *target) measure(t *testing.T) {
	start := p.figures(t, false).CPU
	for range 1000 {
		p.post(t, p.normal)
	}
	p.thousandCost = p.figures(t, false).CPU - start
}

// maxAttackCost limits the processor time of an attack. Its unit is the processor time of a thousand normal requests, because the
// same attack takes several times as long on a slow or busy machine.
const maxAttackCost = 15

// wantNormal sends the normal query, which must be answered as before the attacks.
func (p *target) wantNormal(t *testing.T) {
	t.Helper()
	if got := p.post(t, p.normal); got.status != http.StatusOK || got.body != p.answer {
		t.Fatalf("a normal query got status %d and the body %s", got.status, got.body)
	}
}

// runAttack runs an attack, and checks how much processor time and memory the program used for it. After the attack, a normal query
// must be answered as before.
func (p *target) runAttack(t *testing.T, a attack) {
	before := p.figures(t, false)
	a.run(t, p)
	after := p.figures(t, false)
	if took := after.CPU - before.CPU; took > maxAttackCost*p.thousandCost {
		t.Errorf("the attack took %v of processor time, want at most %d times the %v of a thousand normal requests", took, maxAttackCost, p.thousandCost)
	}
	if grown := after.Peak - before.Peak; after.Peak > before.Peak && grown > 96<<20*memoryFactor {
		t.Errorf("the peak memory grew by %d MiB, want at most %d MiB", grown>>20, 96*memoryFactor)
	}
	if testing.Verbose() {
		t.Logf("%v of processor time, %.1f × a thousand normal requests, %+d KiB", after.CPU-before.CPU, float64(after.CPU-before.CPU)/float64(p.thousandCost), int64(after.Peak-before.Peak)>>10)
	}
	p.wantNormal(t)
}

// maxGrowth limits the growth of the heap during all attacks, in bytes. The heap grows because the program caches documents and
// responses.
const maxGrowth = 24 << 20

// wantRest waits until the program has about as many goroutines and open files as before, and its heap has grown by at most
// maxGrowth.
func (p *target) wantRest(t *testing.T, before figures) {
	t.Helper()
	p.client.CloseIdleConnections()
	var now figures
	deadline := time.Now().Add(patience)
	for {
		now = p.figures(t, true)
		if now.Goroutines <= before.Goroutines+10 && now.Open <= before.Open+10 && now.Heap <= before.Heap+maxGrowth {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("before the attacks the program had %+v, now it has %+v", before, now)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// wantNoInternals checks that a response reveals no internals of the program.
func (p *target) wantNoInternals(t testing.TB, answer string) {
	t.Helper()
	for _, word := range []string{"goroutine ", ".go:", "runtime error", "panic", "gqlgen", "vektah", p.dir, strings.TrimPrefix(p.venue.URL, "http://"), "INTERNAL_SERVER_ERROR"} {
		if strings.Contains(answer, word) {
			t.Errorf("the response reveals the internal text %q: %.500s", word, answer)
		}
	}
}

// send sends a request and checks that the response reveals no internals of the program.
func (p *target) send(t testing.TB, r *http.Request) response {
	t.Helper()
	got := p.do(t, r)
	p.wantNoInternals(t, got.body)
	return got
}

// post sends a body. The parameter more alternates between names and values of additional headers.
func (p *target) post(t testing.TB, body string, more ...string) response {
	t.Helper()
	r := p.request(t, body, anonymous)
	r.Header.Set("Accept", "application/graphql-response+json")
	for i := 0; i+1 < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	return p.send(t, r)
}

// want checks the status and the errors of a response. If code is empty, the response must have no errors. Otherwise the first
// error must have this code and a message that contains part, and the body must have at most 64 KiB.
func (got response) want(t testing.TB, status int, code, part string) {
	t.Helper()
	if got.status != status {
		t.Errorf("got status %d, want %d: %.300s", got.status, status, got.body)
	}
	var answer struct{ Errors []graphError }
	if code == "" {
		if strings.Contains(got.body, `"errors"`) {
			t.Errorf("the response has errors: %.300s", got.body)
		}
		return
	}
	decode(t, got.body, &answer)
	if len(answer.Errors) == 0 || answer.Errors[0].Extensions.Code != code || !strings.Contains(answer.Errors[0].Message, part) {
		t.Errorf("got %.300s, want the error %s with a message that contains %q", got.body, code, part)
	}
	if n := len(got.body); n > 64<<10 {
		t.Errorf("the response has %d bytes, want at most 64 KiB", n)
	}
}

const (
	badInputCode   = "BAD_USER_INPUT"
	validationCode = "GRAPHQL_VALIDATION_FAILED"
	parseErrorCode = "GRAPHQL_PARSE_FAILED"
)

// wrapText returns the text middle, with n copies of opening in front of it and n copies of closing behind it.
func wrapText(n int, opening, middle, closing string) string {
	return strings.Repeat(opening, n) + middle + strings.Repeat(closing, n)
}

// repeatNumbered joins n copies of text. In each copy, it replaces # by the index of the copy.
func repeatNumbered(n int, text string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(text, "#", fmt.Sprint(i)))
	}
	return b.String()
}

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

// heldAttacks returns attacks that make the program buffer as many unfinished requests as possible.
func heldAttacks() []attack {
	const size, clients, perClient = 250 << 10, 20, 12
	long := strings.Repeat(" ", size-1)
	client := func(i int) string { return fmt.Sprintf("10.10.0.%d", i%clients) }
	// hold calls send for many clients. The function send starts a request that stops one byte before its end. The bodies of all
	// requests together exceed the program's limit. Of the requests that do not fit into the limit, the program must refuse at
	// least half. The function refused waits until the program ends a request, and reports whether the program refused the request.
	// The program's memory may grow by the limit, and by 48 KiB for each connection.
	hold := func(t *testing.T, p *target, send func(client string) *wire, refused func(w *wire) bool) {
		before := p.figures(t, true).Heap
		refusals := make(chan struct{}, clients*perClient)
		var all []*wire
		var g sync.WaitGroup
		for i := range clients * perClient {
			w := send(client(i))
			all = append(all, w)
			g.Go(func() {
				if refused(w) {
					refusals <- struct{}{}
				}
			})
		}
		const room, taken = 32 << 20, 240 << 10 // in bytes: room is the limit for all request bodies together, and taken is what the program reserves for each body
		timeout := time.After(patience)
		for range (clients*perClient - room/taken) / 2 {
			select {
			case <-refusals:
			case <-timeout:
				t.Fatalf("the program refused too few requests within %v", patience)
			}
		}
		held, most := p.figures(t, true).Heap-before, uint64(room+clients*perClient*(48<<10))
		if held > most && held < 1<<62 { // held is huge if the heap has shrunk, because the subtraction overflows
			t.Errorf("the program holds %d MiB, want at most %d MiB", held>>20, most>>20)
		}
		if testing.Verbose() {
			t.Logf("the program holds %d MiB of the %d MiB in all requests", int64(held)>>20, clients*perClient*size>>20)
		}
		p.post(t, p.normal, "X-Forwarded-For", client(0)).want(t, http.StatusOK, "", "") // a complete request still works
		for _, w := range all {
			_ = w.Close()
		}
		g.Wait()
	}
	return []attack{
		{name: "held: bodies that stop before their end", run: func(t *testing.T, p *target) {
			hold(t, p, func(client string) *wire {
				w := p.connect(t)
				_, _ = fmt.Fprintf(w, "POST /graphql HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", client, size)
				go func() { _, _ = io.WriteString(w, long) }() // ends when the connection is closed
				return w
			}, func(w *wire) bool {
				resp, err := http.ReadResponse(w.r, nil)
				if err != nil {
					return false
				}
				if resp.StatusCode == http.StatusRequestTimeout { // on a slow machine
					return false
				}
				if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" || !resp.Close {
					t.Errorf("a refused request got status %d and the header %v, want 503, Retry-After: 1 and a closed connection", resp.StatusCode, resp.Header)
				}
				return true
			})
		}},
		{name: "held: messages that stop before their end", run: func(t *testing.T, p *target) {
			hold(t, p, func(client string) *wire {
				w := p.upgrade(t, client, initMessage)
				go func() { _, _ = io.WriteString(w, string(frameHead(true, 0, opText, true, size))+long) }()
				return w
			}, func(w *wire) bool {
				for {
					op, payload, err := w.frame()
					if err != nil {
						return false
					}
					if op == opClose {
						switch string(payload) {
						case "\x03\xf5Too much is being sent": // 1013
							return true
						case "\x03\xf0A message took too long": // 1008, on a slow machine
						default:
							t.Errorf("the WebSocket was closed with %q", payload)
						}
						return false
					}
				}
			})
		}},
	}
}
