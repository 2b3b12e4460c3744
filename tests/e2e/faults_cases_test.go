package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"oddsgraph/internal/demo/faults"
	"oddsgraph/tests/tool"
)

// fault is a way in which an endpoint can fail.
type fault struct {
	name string
	faults.Fault
	code string
	// retried is true if the service retries the call.
	retried bool
	// wait is the time in the header Retry-After of the response.
	wait time.Duration
	// unclear is true if the response could mean that the venue does not support lists of ids.
	unclear bool
	// large is true if the venue sends tens of megabytes.
	large bool
}

var callFaults = []fault{
	{name: "429 with seconds", Fault: faults.Fault{Kind: faults.Status, Status: 429, RetryAfter: "7"}, code: "RATE_LIMITED", wait: 7 * time.Second},
	{name: "429 with a date", Fault: faults.Fault{Kind: faults.Status, Status: 429, RetryAfter: inSeconds}, code: "RATE_LIMITED", wait: 9 * time.Second},
	{name: "429 with 0", Fault: faults.Fault{Kind: faults.Status, Status: 429, RetryAfter: "0"}, code: "RATE_LIMITED"},
	{name: "429 with an empty body", Fault: faults.Fault{Answer: tool.Empty(429)}, code: "RATE_LIMITED"},
	{name: "429 as HTML", Fault: faults.Fault{Kind: faults.Status, Status: 429, Body: tool.HTML}, code: "RATE_LIMITED"},
	{name: "500", Fault: faults.Fault{Kind: faults.Status}, code: "UPSTREAM_UNAVAILABLE"},
	{name: "503", Fault: faults.Fault{Kind: faults.Status, Status: 503}, code: "UPSTREAM_UNAVAILABLE", retried: true},
	{name: "HTML", Fault: faults.Fault{Kind: faults.Status, Status: 200, Body: tool.HTML}, code: "UPSTREAM_BAD_RESPONSE"},
	{name: "empty body", Fault: faults.Fault{Answer: tool.Empty(200)}, code: "UPSTREAM_BAD_RESPONSE"},
	{name: "truncated JSON", Fault: faults.Fault{Kind: faults.Truncate}, code: "UPSTREAM_BAD_RESPONSE", retried: true},
	{name: "wrong types", Fault: faults.Fault{Kind: faults.JSON}, code: "UPSTREAM_BAD_RESPONSE", unclear: true},
	{name: "missing fields", Fault: faults.Fault{Answer: tool.MissingFields}, code: "UPSTREAM_BAD_RESPONSE", unclear: true},
	{name: "200 with success:false", Fault: faults.Fault{Kind: faults.Status, Status: 200, Body: tool.Failure}, code: "UPSTREAM_UNAVAILABLE"},
	{name: "200 with error", Fault: faults.Fault{Kind: faults.Status, Status: 200, Body: `{"error":"the venue is not available"}`}, code: "UPSTREAM_UNAVAILABLE", unclear: true},
	{name: "hang", Fault: faults.Fault{Kind: faults.Delay}, code: "UPSTREAM_TIMEOUT"},
	{name: "hang in the body", Fault: faults.Fault{Answer: tool.HangBody}, code: "UPSTREAM_TIMEOUT"},
	{name: "slow drip", Fault: faults.Fault{Kind: faults.Drip, DelayMs: 500}, code: "UPSTREAM_TIMEOUT"},
	{name: "reset in the body", Fault: faults.Fault{Kind: faults.Reset}, code: "UPSTREAM_UNAVAILABLE", retried: true},
	{name: "refused", Fault: faults.Fault{Kind: faults.Refuse}, code: "UPSTREAM_UNAVAILABLE", retried: true},
	{name: "64 MiB body", Fault: faults.Fault{Answer: tool.Large}, code: "UPSTREAM_BAD_RESPONSE", large: true},
	{name: "gzip bomb", Fault: faults.Fault{Answer: tool.GzipBomb}, code: "UPSTREAM_BAD_RESPONSE", large: true},
	{name: "large header", Fault: faults.Fault{Answer: tool.LargeHeader(1 << 20)}, code: "UPSTREAM_UNAVAILABLE"},
	{name: redirected, Fault: faults.Fault{Answer: tool.Redirect(307, "http://elsewhere.invalid/")}, code: "UPSTREAM_BAD_RESPONSE"},
}

// inSeconds is a placeholder in the list callFaults. faultFor replaces it by the date nine seconds after the time of lane.clock.
// redirected is the name of the fault whose target faultFor replaces by lane.otherURL.
const (
	inSeconds  = "in 9 seconds"
	redirected = "redirect to another host"
)

// faultFor returns the fault for the endpoint of b, with the placeholders replaced.
func (f *fault) faultFor(l *lane, b *branch) faults.Fault {
	out := f.Fault
	out.Path = b.path
	if out.RetryAfter == inSeconds {
		out.RetryAfter = l.clock.Now().Add(9 * time.Second).Format(http.TimeFormat)
	}
	if f.name == redirected {
		out.Answer = tool.Redirect(307, l.otherURL)
	}
	return out
}

// attempts returns the minimum and the maximum number of calls that the service makes to the endpoint of b with the fault.
func (f *fault) attempts(b *branch) (least, most int64) {
	switch {
	case f.retried:
		return 3, 3
	case f.unclear && (b.endpoint == "spreads" || b.endpoint == "market-details"):
		return 1, 2 // the service may make one more call to find out whether the venue supports lists of ids
	}
	return 1, 1
}

// drifts returns the test cases in which the endpoint of b sends responses in another format, or with an unreadable element.
func drifts(b *branch) (rows []row) {
	for name, answer := range map[string]tool.Answerer{"unknown-fields": tool.UnknownFields, "text": tool.Texts, "nested": tool.Nested} {
		rows = append(rows, row{name: fmt.Sprintf("%s, %s", b.endpoint, name), run: func(l *lane) error { return l.testDrift(b, answer) }})
	}
	if len(b.errors) > 1 {
		rows = append(rows, row{name: b.endpoint + ", a bad element", run: func(l *lane) error { return l.testBadElement(b) }})
	}
	return rows
}

// rows returns the test cases in which the endpoint of b has the fault.
func (f *fault) rows(b *branch) []row {
	if b.endpoint == "spreads" && f.code != "RATE_LIMITED" {
		return []row{
			{name: fmt.Sprintf("%s, %s, cold", b.endpoint, f.name), run: func(l *lane) error { return l.testColdFromBooks(b, f) }, alone: f.large},
			{name: fmt.Sprintf("%s, %s, warm", b.endpoint, f.name), run: func(l *lane) error { return l.testWarmFromBooks(b, f) }, alone: f.large},
		}
	}
	return []row{
		{name: fmt.Sprintf("%s, %s, cold", b.endpoint, f.name), run: func(l *lane) error { return l.testCold(b, f) }, alone: f.large},
		{name: fmt.Sprintf("%s, %s, warm", b.endpoint, f.name), run: func(l *lane) error { return l.testWarm(b, f) }, alone: f.large},
	}
}

// hangs reports whether a call with the fault times out.
func (f *fault) hangs() bool { return f.code == "UPSTREAM_TIMEOUT" }

// timeLimit returns the time limit for an operation with the fault, or without a fault if f is nil. All limits are below
// operationTimeout.
func (f *fault) timeLimit() time.Duration {
	if f != nil && f.hangs() {
		return callTimeout + answerLimit
	}
	return answerLimit
}

// testCold tests the fault at the endpoint of b while the data of this endpoint are not cached.
func (l *lane) testCold(b *branch, f *fault) error {
	var r report
	l.prepare(&r)
	if err := l.faults.Set([]faults.Fault{f.faultFor(l, b)}); err != nil {
		return err
	}
	got := l.wantFailure(&r, "cold", b, f)
	for endpoint, n := range l.calls {
		if endpoint != b.endpoint && got.calls[endpoint][0] > n[0] { // there may be fewer calls, because a refresh of the previous test case may replace a call
			r.add("in the same query, %s was called %d times, want at most %d", endpoint, got.calls[endpoint][0], n[0])
		}
	}
	if f.code != "UPSTREAM_BAD_RESPONSE" { // every failure starts a backoff, except an unreadable response
		again := l.wantFailure(&r, "at the same instant", b, nil)
		if n := again.calls[b.endpoint][0]; n != 0 {
			r.add("at the same instant, the endpoint was called %d more times, want none", n)
		}
		if wait := f.wait - time.Second; wait > 0 {
			l.clock.Advance(wait)
			if n := l.wantFailure(&r, "a second before Retry-After ends", b, nil).calls[b.endpoint][0]; n != 0 {
				r.add("a second before Retry-After ends, the endpoint was called %d times, want none", n)
			}
		}
	}
	l.wantRecovery(&r, b, f)
	return r.err()
}

// asFromBooks rewrites the expected spreads as if they came from order books.
func asFromBooks(values string) string { return strings.ReplaceAll(values, `"VENUE"`, `"ORDER_BOOK"`) }

// wantFromBooks sends wholeQuery while the spreads endpoint fails. It expects fresh spreads from order books, and no error.
func (l *lane) wantFromBooks(r *report, when string, b *branch, f *fault) reply {
	got, err := l.try(wholeQuery, l.variables, keyOf3)
	if err != nil {
		r.add("%s: %w", when, err)
		return got
	}
	r.wantWithin(when, got, f.timeLimit())
	for _, e := range got.errors {
		r.add("%s: got the error %s: %s", when, e, e.Message)
	}
	if values, want := valuesAt(got.data, b.at), asFromBooks(l.whole[b.at]); values != want {
		r.add("%s: %s is %.300s, want %.300s", when, b.at, values, want)
	}
	for path := range strings.SplitSeq(b.freshness(got.data), " ") {
		if at(got.data, path) != false {
			r.add("%s: %s is marked stale", when, path)
		}
	}
	l.wantOthers(r, when, b, got.data)
	if n := l.otherRequests.Swap(0); n != 0 {
		r.add("%s: the service called another host %d times", when, n)
	}
	return got
}

// testColdFromBooks tests uncached spreads while their endpoint fails. The service must compute the spreads from order books.
func (l *lane) testColdFromBooks(b *branch, f *fault) error {
	var r report
	l.prepare(&r)
	if err := l.faults.Set([]faults.Fault{f.faultFor(l, b)}); err != nil {
		return err
	}
	got := l.wantFromBooks(&r, "cold", b, f)
	least, most := f.attempts(b)
	if n := got.calls[b.endpoint][0]; n < least || n > most {
		r.add("the endpoint was called %d times, want %d to %d", n, least, most)
	}
	for endpoint, n := range l.calls {
		if endpoint == "orderbook" {
			n[0] += int64(len(b.errors))
		}
		if endpoint != b.endpoint && got.calls[endpoint][0] > n[0] {
			r.add("%s was called %d times, want at most %d", endpoint, got.calls[endpoint][0], n[0])
		}
	}
	if n := l.wantFromBooks(&r, "at the same instant", b, nil).calls; n[b.endpoint][0] != 0 || n["orderbook"][0] != 0 {
		r.add("at the same instant, the venue got the calls %v, want none for spreads and books", n)
	}
	l.prepare(&r) // after this, the cached spreads from order books have expired
	l.wantRecovery(&r, b, f)
	return r.err()
}

// testWarmFromBooks tests expired spreads while their endpoint fails. The first response must still have the cached spreads, and
// starts a refresh. A later response must have spreads from order books.
func (l *lane) testWarmFromBooks(b *branch, f *fault) error {
	var r report
	l.prepare(&r)
	l.wantAll(&r, "warming up")
	l.clock.Advance(b.staleAfter)
	if err := l.faults.Set([]faults.Fault{f.faultFor(l, b)}); err != nil {
		return err
	}
	began := l.reads.instant()
	l.wantAll(&r, "stale")
	if !until(patience, func() bool { return l.reads.completedSince(b.endpoint, began) }) {
		r.add("no refresh has ended")
	}
	l.wantFromBooks(&r, "refreshed", b, f)
	l.prepare(&r)
	l.wantRecovery(&r, b, f)
	return r.err()
}

// hangRow returns the test case in which the endpoint of b hangs for longer than the operation's timeout.
func hangRow(b *branch) row {
	return row{name: b.endpoint + ", hang longer than the operation's timeout", run: func(l *lane) error { return l.testTimeout(b) }}
}

// testTimeout tests an endpoint that hangs for longer than the operation's timeout.
func (l *lane) testTimeout(b *branch) error {
	var r report
	l.prepare(&r)
	f := fault{Fault: faults.Fault{Kind: faults.Delay}, code: "UPSTREAM_TIMEOUT"}
	if err := l.faults.Set([]faults.Fault{f.faultFor(l, b)}); err != nil {
		return err
	}
	l.wantFailure(&r, "cold", b, &f)
	if err := l.faults.Set(nil); err != nil {
		return err
	}
	l.wantAll(&r, "after the fault") // a cancelled call is not a failure and starts no backoff
	return r.err()
}

// testDrift changes the format of the venue's responses. The service's response must stay the same.
func (l *lane) testDrift(b *branch, answer tool.Answerer) error {
	var r report
	l.prepare(&r)
	if err := l.faults.Set([]faults.Fault{{Path: b.path, Answer: answer}}); err != nil {
		return err
	}
	l.wantAll(&r, "in another format")
	return r.err()
}

// testBadElement tests a list with one unreadable element. Only this element may fail.
func (l *lane) testBadElement(b *branch) error {
	var r report
	l.prepare(&r)
	bad := l.variables["ids"].([]string)[1]
	if err := l.faults.Set([]faults.Fault{{Path: b.path, Kind: faults.JSON, Contains: []string{bad}}}); err != nil {
		return err
	}
	got, err := l.try(wholeQuery, l.variables, keyOf3)
	if err != nil {
		return err
	}
	r.wantWithin("a bad element", got, answerLimit)
	want := []string{b.errors[1] + " UPSTREAM_BAD_RESPONSE"}
	if b.endpoint == "spreads" { // the spread comes from the token's order book
		want = nil
		if v := valuesAt(got.data, b.errors[1]); !strings.Contains(asFromBooks(l.whole[b.at]), v) || v == "null" {
			r.add("element 1 is %s, want the spread from the order book", v)
		}
	}
	if !slices.Equal(errorTexts(got.errors), want) {
		r.add("got the errors %q, want %q", errorTexts(got.errors), want)
	}
	for _, i := range []int{0, 2} {
		if v := valuesAt(got.data, fmt.Sprint(b.at, ".", i)); !strings.Contains(l.whole[b.at], v) || v == "null" {
			r.add("element %d is %s, want an element of %s", i, v, l.whole[b.at])
		}
	}
	l.wantOthers(&r, "beside the bad element", b, got.data)
	return r.err()
}

func errorTexts(errors []graphError) []string {
	texts := make([]string, len(errors))
	for i, e := range errors {
		texts[i] = e.String()
	}
	return texts
}

// testWarm tests the fault at the endpoint of b while the cached data of this endpoint have expired.
func (l *lane) testWarm(b *branch, f *fault) error {
	var r report
	l.prepare(&r)
	l.wantAll(&r, "warming up")
	l.clock.Advance(b.staleAfter)
	if err := l.faults.Set([]faults.Fault{f.faultFor(l, b)}); err != nil {
		return err
	}
	if b.public() {
		before, began := l.callCount(b), l.reads.instant()
		got := l.wantAll(&r, "stale")
		for path := range strings.SplitSeq(b.freshness(got.data), " ") {
			if at(got.data, path) != true {
				r.add("%s is not marked stale in %s", path, asJSON(at(got.data, b.at)))
			}
		}
		least, most := f.attempts(b)
		// The refresh runs in the background, and waits between its attempts. It compares dates from the venue with l.clock, so the
		// clock must not advance before the refresh has ended.
		if !until(patience, func() bool { return l.reads.completedSince(b.endpoint, began) }) {
			r.add("no refresh has ended")
		}
		if n := l.callCount(b) - before; n < least || n > most {
			r.add("the refresh took %d calls, want %d to %d", n, least, most)
		}
		l.clock.Advance(3 * time.Hour)
		if err := l.faults.Set([]faults.Fault{f.faultFor(l, b)}); err != nil {
			return err
		}
	}
	l.wantFailure(&r, "after the stale time", b, f)
	l.wantRecovery(&r, b, f)
	return r.err()
}

// freshness returns the paths of the fields freshness.stale in the data of b, joined by spaces. For a search, it returns only the
// path in the first market.
func (b *branch) freshness(data any) string {
	switch b.endpoint {
	case "prices", "spreads":
		return strings.Join([]string{b.at + ".0.freshness.stale", b.at + ".1.freshness.stale", b.at + ".2.freshness.stale"}, " ")
	case "orderbook":
		return "book.orderbook.freshness.stale"
	case "price-history":
		return "chart.history.freshness.stale"
	case "market-search":
		return "search.nodes.0.freshness.stale"
	}
	return b.at + ".freshness.stale"
}

// prepare removes the faults of the previous test case, and advances the clock until the cached values have expired.
func (l *lane) prepare(r *report) {
	if err := l.faults.Set(nil); err != nil {
		r.add("%w", err)
	}
	l.clock.Advance(3 * time.Hour)
}

// callCount returns how many calls the endpoint of b has received.
func (l *lane) callCount(b *branch) int64 { return l.venue.Stats().Requests[b.path] }

// wantFailure sends wholeQuery while the endpoint of b fails. It expects errors in the branch b only, and unchanged data in all
// other branches. If f is not nil, wantFailure also checks the error codes, the retry times and the number of calls.
func (l *lane) wantFailure(r *report, when string, b *branch, f *fault) reply {
	got, err := l.try(wholeQuery, l.variables, keyOf3)
	if err != nil {
		r.add("%s: %w", when, err)
		return got
	}
	r.wantWithin(when, got, f.timeLimit())
	paths, codes := []string{}, []string{}
	for _, e := range got.errors {
		path, code, _ := strings.Cut(e.String(), " ")
		paths = append(paths, path)
		codes = append(codes, code)
		if f != nil && f.wait > 0 && e.Extensions.RetryAfterMs != f.wait.Milliseconds() {
			r.add("%s: retryAfterMs is %d, want %d", when, e.Extensions.RetryAfterMs, f.wait.Milliseconds())
		}
	}
	if !slices.Equal(paths, b.errors) {
		r.add("%s: got errors at the paths %q, want %q", when, paths, b.errors)
	}
	for _, code := range codes {
		if f != nil && code != f.code {
			r.add("%s: an error has the code %s, want %s", when, code, f.code)
		}
	}
	for _, path := range b.errors {
		if at(got.data, path) != nil {
			r.add("%s: %s is %s, want null", when, path, asJSON(at(got.data, path)))
		}
	}
	l.wantOthers(r, when, b, got.data)
	if f != nil {
		least, most := f.attempts(b)
		if n := got.calls[b.endpoint][0]; n > most || n < least && when == "cold" { // if the cached value has expired, a refresh in flight may replace the call
			r.add("%s: the endpoint was called %d times, want %d to %d", when, n, least, most)
		}
	}
	if n := l.otherRequests.Swap(0); n != 0 {
		r.add("%s: the service called another host %d times", when, n)
	}
	return got
}

// wantOthers checks that the data of all branches except b are the same as without faults. If b is nil, it checks all branches.
func (l *lane) wantOthers(r *report, when string, b *branch, data any) {
	for _, other := range wholeBranches {
		if b == nil || other.at != b.at {
			if got := valuesAt(data, other.at); got != l.whole[other.at] {
				r.add("%s: %s is %.300s, want %.300s", when, other.at, got, l.whole[other.at])
			}
		}
	}
}

// wantAll sends wholeQuery and expects all data.
func (l *lane) wantAll(r *report, when string) reply {
	got, err := l.try(wholeQuery, l.variables, keyOf3)
	if err != nil {
		r.add("%s: %w", when, err)
		return got
	}
	r.wantWithin(when, got, answerLimit)
	for _, e := range got.errors {
		r.add("%s: got the error %s: %s", when, e, e.Message)
	}
	l.wantOthers(r, when, nil, got.data)
	return got
}

// firstBackoff is the longest backoff after a first failure without Retry-After.
const firstBackoff = 250 * time.Millisecond

// wantRecovery removes the fault, advances the clock by one backoff and sends wholeQuery. It expects all data, and one call to the
// endpoint of b.
func (l *lane) wantRecovery(r *report, b *branch, f *fault) {
	if err := l.faults.Set(nil); err != nil {
		r.add("%w", err)
	}
	l.clock.Advance(max(f.wait, firstBackoff))
	got := l.wantAll(r, "one backoff later")
	if n := got.calls[b.endpoint][0]; n != 1 {
		r.add("one backoff later, the endpoint was called %d times, want once", n)
	}
}
