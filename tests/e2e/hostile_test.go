//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"strings"
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
