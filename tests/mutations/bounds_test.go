package mutations

// bounds has the mutations that remove limits. These limits protect the memory, the time and the accounts of other clients.
var bounds = []mutation{
	{
		name: "a response grows beyond its limit",
		file: "graph/exec/room.go", find: "if err == nil {\n\t\tx.Limit", replace: "if err == nil || true {\n\t\tx.Limit",
		run: "^TestRoom$",
	},
	{
		name: "one client takes all memory for bodies and responses",
		file: "httpapi/quota/memory.go", find: "if !Fair(m.holders[client], n, m.free) {", replace: "if n > m.free {",
		run: "^TestMemoryIsShared$",
	},
	{
		name: "a client that leaves still pays for a document that others use",
		file: "httpapi/quota/shared.go", find: "if t.payer == client {", replace: "if false {",
		run: "^TestSharedThingsTakeMemoryOnce$",
	},
	{
		name: "a client has any number of connections",
		file: "httpapi/quota/listener.go", find: "if l.limits.PerClient > 0 &&", replace: "if false &&",
		run: "^TestConnectionsPerClient$",
	},
	{
		name: "no connection is kept free for health checks",
		file: "httpapi/quota/listener.go", find: "total -= total / reservedShare", replace: "total -= 0",
		run: "^TestRoomForHealthChecks$",
	},
	{
		name: "a client that does not read fills the kernel's buffers",
		file: "httpapi/quota/listener.go", find: "boundUnsent(c)", replace: "_ = c",
		run: "^TestSendBuffersAreBounded$",
	},
	{
		name: "events beyond a client's rate are produced",
		file: "httpapi/quota/pace.go", find: "c.saved, c.at = p.present(c, now)-float64(n), now", replace: "c.saved, c.at = p.present(c, now), now",
		run: "^TestPace$",
	},
	{
		name: "a bad key locks out all keys of its address",
		file: "httpapi/auth/refusals.go", find: "r.pairs.Peek(pair{quota.Network(addr), key})", replace: "r.pairs.Peek(pair{quota.Network(addr), Key{}})",
		run: "^TestRefusals$",
	},
	{
		name: "guesses under way do not count",
		file: "httpapi/auth/refusals.go", find: "taken, wait := len(g.underWay), time.Second", replace: "taken, wait := 0, time.Second",
		run: "^TestGuesses$",
	},
	{
		name: "tokens for other services are accepted",
		file: "httpapi/auth/jwt/verifier.go", find: ", AnyAudience: josejwt.Audience{v.cfg.Audience}", replace: "",
		run: "^TestTokens$",
	},
	{
		name: "tokens of any issuer are accepted",
		file: "httpapi/auth/jwt/verifier.go", find: "josejwt.Expected{Issuer: v.cfg.Issuer, ", replace: "josejwt.Expected{",
		run: "^TestTokens$",
	},
	{
		name: "tokens that never expire are accepted",
		file: "httpapi/auth/jwt/verifier.go", find: "if claims.Expiry == nil {", replace: "if false {",
		run: "^TestTokens$",
	},
	{
		name: "a page reaches the service by DNS rebinding",
		file: "app/hosts/hosts.go", find: "filter(r) && !served(r.Host, names)", replace: "false",
		run: "^TestGuard$",
	},
	{
		name: "unknown documents of one client are compiled without a limit",
		file: "httpapi/engine.go", find: "release, err := e.compileLimiter.acquire(ctx)", replace: "release, err := func() {}, error(nil)",
		run: "^TestUnknownDocumentsWait$",
	},
	{
		name: "what is sent once displaces what is used",
		file: "httpapi/respcache/doorkeeper.go", find: "return ok", replace: "return ok || true",
		run: "^TestAgain$",
	},
	{
		name: "the errors of a response have no bound",
		file: "httpapi/refused.go", find: "if len(errs) < 2 {", replace: "if true {",
		run: "^TestRefusalsAreShort$",
	},
	{
		name: "a subscription of one account is shared with another",
		file: "httpapi/subscriptions.go", find: "if c := reqctx.CredentialsFrom(ctx); c != nil {\n\t\taddress", replace: "if c := reqctx.CredentialsFrom(ctx); c != nil && false {\n\t\taddress",
		run: "^TestSubscribersOfOneAccountShare$",
	},
	{
		name: "compiled documents take any memory",
		file: "httpapi/documents.go", find: "for d.bytes > MaxDocumentBytes {", replace: "for false {",
		run: "^TestDocumentsMakeRoom$",
	},
	{
		name: "cached responses take any memory",
		file: "httpapi/respcache/cache.go", find: "for c.bytes > c.limit {", replace: "for false {",
		run: "^TestBound$",
	},
	{
		name: "integers have more than 32 bits",
		file: "httpapi/variables.go", find: `t.Name() == "Int" && value !=`, replace: `false && value !=`,
		run: "^TestIntVariablesHave32Bits$",
	},
	{
		name: "a page of another origin controls the demo venue",
		file: "internal/demo/control.go", find: "if crossOrigin.Check(r) != nil {", replace: "if false {",
		run: "^TestControlRefusesOtherOrigins$",
	},
	{
		name: "lines that are lost are not counted",
		file: "internal/telemetry/writer.go", find: "w.dropped.Add(uint64(bytes.Count", replace: "_ = (uint64(bytes.Count",
		run: "^TestLinesThatCannotBeWrittenAreCounted$",
	},
	{
		name: "a venue that answers no ping is disconnected",
		file: "internal/venue/stream/session_events.go", find: "s.pongBy = time.Time{} // any", replace: "_ = time.Time{} // any",
		run: "^TestPing$",
	},
	{
		name: "one client takes all places of the queue",
		file: "httpapi/limiter.go", find: "if !quota.Fair(len(s.waiting), 1, l.queue-l.waiting) {", replace: "if l.waiting == l.queue {",
		run: "^TestOneClientLeavesRoom$",
	},
	{
		name: "an account reads other wallets at a venue that checks no credentials",
		file: "httpapi/identity.go", find: "id.credentials = id.credentials.Confined()", replace: "_ = id.credentials.Confined()",
		run: "^TestUncheckedAccountsReadOnlyTheirOwnWallet$",
	},
	{
		name: "any client decides which operations are traced",
		file: "internal/telemetry/trace.go", find: "SpanContextFromContext(remote); trusted {", replace: "SpanContextFromContext(remote); trusted || true {",
		run: "^TestOnlyTrustedSpansDecideSampling$",
	},
	{
		name: "a client that reads no response keeps its connection",
		file: "app/listener.go", find: "WriteTimeout:      WriteTimeout,", replace: "",
		run: "^TestListenersHaveDeadlines$",
	},
}
