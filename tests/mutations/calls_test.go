package mutations

// calls has the mutations that remove defences of calls to the venue. Without these defences, a venue that fails harms the service,
// or the service harms the venue.
var calls = []mutation{
	{
		name: "a response body has any size", tests: "internal/venue/generic",
		file: "internal/venue/rest/transport.go", oldText: "case n > limit:", newText: "case n < 0:",
		run: "^TestBodies$", message: "over_the_limit",
	},
	{
		name: "a response header has any size", tests: "internal/venue/generic",
		file: "internal/venue/rest/transport.go", oldText: "MaxResponseHeaderBytes: maxResponseHeader,", newText: "",
		run: "^TestConnectionFailures$", message: "a header of 128 KiB",
	},
	{
		name: "redirects are followed", tests: "internal/venue/generic",
		file: "internal/venue/rest/request.go", oldText: "c.cfg.Transport.RoundTrip(", newText: "(&http.Client{Transport: c.cfg.Transport}).Do(",
		run: "^TestStatuses$", message: "unexpected request GET /elsewhere",
	},
	{
		name: "a failed order book counts as no spread",
		file: "internal/venue/generic/spreads.go", oldText: "case r.Err == nil || mayBeMissing(r.Err):\n\t\t\tr.Err = top.Err", newText: "case false:",
		run: "^TestFailedBooksAreNotMissingSpreads$", message: "the result of token",
	},
	{
		name: "failed calls are not retried", tests: "internal/venue/generic",
		file: "internal/venue/rest/retry.go", oldText: "if attempt >= c.cfg.Retries ||", newText: "if true ||",
		run: "^TestRetrySucceeds$",
	},
	{
		name: "the transport repeats calls", tests: "internal/venue/generic",
		file: "internal/venue/rest/request.go", oldText: "Body: emptyBody{},", newText: "Body: http.NoBody,",
		run: "^TestTransportRepeatsNoCall$",
	},
	{
		name: "calls do not wait for the rate limiter", tests: "internal/venue/drivers",
		file: "internal/venue/rest/request.go", oldText: "if err := call.Admit(ctx); err != nil {", newText: "if err := error(nil); err != nil {",
		run: "^TestEveryCallIsAdmitted$",
	},
	{
		name: "Retry-After is ignored", tests: "internal/venue/generic",
		file: "internal/venue/rest/errors.go", oldText: "case http.StatusTooManyRequests, http.StatusTooEarly, http.StatusServiceUnavailable:", newText: "case http.StatusTooEarly:",
		run: "^TestStatuses$", message: "RetryAfter is",
	},
	{
		name: "a truncated body is decoded", tests: "internal/venue/generic",
		file: "internal/venue/rest/request.go", oldText: "case err != nil:\n\t\treturn wire.Value{}, connectionFailure", newText: "case false:\n\t\treturn wire.Value{}, connectionFailure",
		run: "^TestConnectionFailures$",
	},
	{
		name: "an error response with status 200 is read as a value", tests: "internal/venue/generic",
		file: "internal/venue/rest/errors.go", oldText: `if !isBool(body.Member("success"), wire.False, "false") && !isError(body.Member("error")) {`, newText: "if true {",
		run: "^TestStatuses$",
	},
	{
		name: "a call has no deadline", tests: "internal/venue/generic",
		file: "internal/venue/rest/request.go", oldText: "context.WithTimeout(ctx, c.cfg.Timeout)", newText: "context.WithTimeout(ctx, 300*c.cfg.Timeout)",
		run: "^TestOnlyTransientFailuresAreRetried$/^hang$", message: "the read took",
	},
	{
		name: "a failed call serves no stale value",
		file: "internal/cache/store.go", oldText: "if now.Before(staleUntil) {\n\t\tcause", newText: "if false {\n\t\tcause",
		run: "^TestFailedCallServesStaleEntry$",
	},
	{
		name: "the stale time is not extended while the rate limit is short",
		file: "internal/cache/lookup.go", oldText: "return freshUntil.Add(s.stretch)", newText: "return time.Time{}",
		run: "^TestStaleTimeStretches$",
	},
	{
		name: "a call without waiters goes on",
		file: "internal/cache/batch.go", oldText: "if b.waitedKeys--; b.waitedKeys == 0 {\n\t\tb.cancel()", newText: "if b.waitedKeys--; b.waitedKeys == 0 {",
		run: "^TestCallIsCancelledWhenNobodyWaits$",
	},
	{
		name: "one caller takes all calls",
		file: "internal/ratelimit/queue.go", oldText: "case t.caller.used < w.share():", newText: "case true:",
		run: "^TestFairShare$",
	},
	{
		name: "all calls have one priority",
		file: "internal/ratelimit/budget.go", oldText: "t.priority, t.caller, t.arrival = req.Priority,", newText: "t.priority, t.caller, t.arrival = upstream.PriorityPrices,",
		run: "^TestPriorities$",
	},
	{
		name: "calls with a key count as public calls",
		file: "internal/ratelimit/budget.go", oldText: "w, now := b.windowOf(req.Scope,", newText: `w, now := b.windowOf("",`,
		run: "^TestScopes$",
	},
	{
		name: "the queue of calls has no bound",
		file: "internal/ratelimit/queue.go", oldText: "full := w.waiting >= size\n", newText: "full := false\n",
		run: "^TestQueueIsBounded$",
	},
	{
		name: "refused calls use up the turn of their kind",
		file: "internal/ratelimit/window.go", oldText: "\t\tt.countedAs = upstream.PriorityRefresh\n", newText: "",
		run: "^TestRefusedCallsAreNoTurn$",
	},
	{
		name: "a new process assumes that no calls were made",
		file: "internal/ratelimit/window.go", oldText: "w.others = evenly(w.limit/2,", newText: "w.others = evenly(0,",
		run: "^TestStart$", message: "calls at the start",
	},
	{
		name: "a new process has any number of calls in flight after the first answer",
		file: "internal/ratelimit/refusals.go", oldText: "w.maxInFlight = unproven + len(w.ended)*w.limit/provenBy", newText: "w.maxInFlight = 0",
		run: "^TestFirstAnswer$",
	},
	{
		name: "many calls are in flight although an earlier process has used up the limit",
		file: "internal/ratelimit/refusals.go", oldText: "case !w.usedUp:", newText: "default:",
		run: "^TestRefusedAtTheStart$",
	},
	{
		name: "the pauses at the start do not grow",
		file: "internal/ratelimit/refusals.go", oldText: "wait <= 0 || whole && w.others.assumed", newText: "wait <= 0",
		run: "^TestRefusedAtTheStart$",
	},
	{
		name: "calls do not pause after a 429",
		file: "internal/ratelimit/refusals.go", oldText: "\tw.pause(until, now)\n", newText: "",
		run: "^TestRefused$",
	},
	{
		name: "an endpoint that is refused alone pauses all endpoints",
		file: "internal/ratelimit/refusals.go", oldText: "whole = false", newText: "whole = true",
		run: "^TestOneEndpointIsRefused$",
	},
	{
		name: "more than one call tests an endpoint after its pause",
		file: "internal/ratelimit/refusals.go", oldText: "(r.row == 0 || r.probe == nil)", newText: "true",
		run: "^TestOneCallProbes$",
	},
	{
		name: "a 429 in the first minute does not count the limit as used up",
		file: "internal/ratelimit/refusals.go", oldText: "w.usedUp, w.others = true, evenly(w.limit-w.used(), w.refusal.until, w.span, true)", newText: "w.usedUp = true",
		run: "^TestRefusedAtTheStart$",
	},
}
