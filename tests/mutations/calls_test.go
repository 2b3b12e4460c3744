package mutations

// calls has the mutations of calls to the venue. Without these defences, a venue that fails harms the service, or the service harms
// the venue.
var calls = []mutation{
	{
		name: "a response body has any size", tests: "internal/venue/generic",
		file: "internal/venue/rest/transport.go", find: "case n > limit:", replace: "case n < 0:",
		run: "^TestBodies$", message: "over_the_limit",
	},
	{
		name: "a decompression bomb is read",
		file: "internal/venue/rest/transport.go", find: "if f.n > bombSize && f.n > bombRatio*f.received.n {", replace: "if false {",
		run: "^TestBombIsRefusedEarly$",
	},
	{
		name: "a response header has any size", tests: "internal/venue/generic",
		file: "internal/venue/rest/transport.go", find: "MaxResponseHeaderBytes: maxResponseHeader,", replace: "",
		run: "^TestDemoFaults$", message: "header",
	},
	{
		name: "redirects are followed", tests: "internal/venue/generic",
		file: "internal/venue/rest/request.go", find: "c.cfg.Transport.RoundTrip(", replace: "(&http.Client{Transport: c.cfg.Transport}).Do(",
		run: "^TestRedirectsAreNotFollowed$", message: "followed to",
	},
	{
		name: "failed calls are not retried", tests: "internal/venue/generic",
		file: "internal/venue/rest/retry.go", find: "if attempt >= c.cfg.Retries ||", replace: "if true ||",
		run: "^TestRetrySucceeds$",
	},
	{
		name: "the transport repeats calls", tests: "internal/venue/generic",
		file: "internal/venue/rest/request.go", find: "Body: emptyBody{},", replace: "Body: http.NoBody,",
		run: "^TestTransportRepeatsNoCall$",
	},
	{
		name: "calls are not admitted", tests: "internal/venue/generic",
		file: "internal/venue/rest/request.go", find: "if err := reqctx.AdmitCall(ctx); err != nil {", replace: "if err := error(nil); err != nil {",
		run: "^TestEveryCallOfAReadIsAdmitted$",
	},
	{
		name: "Retry-After is ignored", tests: "internal/venue/generic",
		file: "internal/venue/rest/errors.go", find: "case http.StatusTooManyRequests, http.StatusTooEarly, http.StatusServiceUnavailable:", replace: "case http.StatusTooEarly:",
		run: "^TestStatuses$", message: "RetryAfter is",
	},
	{
		name: "a truncated body is decoded", tests: "internal/venue/generic",
		file: "internal/venue/rest/request.go", find: "case err != nil:\n\t\treturn resp.StatusCode", replace: "case false:\n\t\treturn resp.StatusCode",
		run: "^TestConnectionFailures$",
	},
	{
		name: "an error with status 200 is a value", tests: "internal/venue/generic",
		file: "internal/venue/rest/errors.go", find: `if !isBool(body.Member("success"), wire.False, "false") && !isError(body.Member("error")) {`, replace: "if true {",
		run: "^TestStatuses$",
	},
	{
		name: "a call has no deadline", tests: "internal/venue/generic",
		file: "internal/venue/rest/request.go", find: "context.WithTimeout(ctx, c.cfg.Timeout)", replace: "context.WithTimeout(ctx, 300*c.cfg.Timeout)",
		run: "^TestSlowResponseTimesOut$/^hang$/^prices$", message: "it took",
	},
	{
		name: "a failed call serves no stale value",
		file: "internal/cache/store.go", find: "if now.Before(staleUntil) {\n\t\te.markUsed()", replace: "if false {\n\t\te.markUsed()",
		run: "^TestFailedCallServesStaleEntry$",
	},
	{
		name: "the stale time does not stretch",
		file: "internal/cache/lookup.go", find: "return freshUntil.Add(s.stretch)", replace: "return time.Time{}",
		run: "^TestStaleTimeStretches$",
	},
	{
		name: "a call without waiters goes on",
		file: "internal/cache/batch.go", find: "if b.wanted--; b.wanted == 0 {\n\t\tb.cancel()", replace: "if b.wanted--; b.wanted == 0 {",
		run: "^TestCallIsCancelledWhenNobodyWaits$",
	},
	{
		name: "one caller takes all calls",
		file: "internal/ratelimit/queue.go", find: "case t.caller.used < w.share():", replace: "case true:",
		run: "^TestFairShare$",
	},
	{
		name: "all calls have one priority",
		file: "internal/ratelimit/queue.go", find: "t.priority, t.caller = req.Priority,", replace: "t.priority, t.caller = reqctx.PriorityPrices,",
		run: "^TestPriorities$",
	},
	{
		name: "calls with a key count as public calls",
		file: "internal/ratelimit/budget.go", find: "t.window = b.windowOf(req.Scope,", replace: `t.window = b.windowOf("",`,
		run: "^TestScopes$",
	},
	{
		name: "any number of calls wait",
		file: "internal/ratelimit/queue.go", find: "full := w.waiting >= w.budget.cfg.Queue", replace: "full := false",
		run: "^TestQueueIsBounded$",
	},
}
