package mutations

// bounds has the mutations that remove limits and checks of clients. These protect the service and its other clients.
var bounds = []mutation{
	{
		name: "a response grows beyond its limit",
		file: "graph/exec/sizelimiter.go", oldText: "if err == nil {\n\t\tx.Limit", newText: "if err == nil || true {\n\t\tx.Limit",
		run: "^TestSizeLimit$",
	},
	{
		name: "one client takes all memory for bodies and responses",
		file: "httpapi/quota/memory.go", oldText: "if !Fair(m.holders[client], n, m.free) {", newText: "if n > m.free {",
		run: "^TestMemoryIsShared$",
	},
	{
		name: "a shared document is still charged to a client that has disconnected",
		file: "httpapi/quota/shared.go", oldText: "if t.payer == client {", newText: "if false {",
		run: "^TestSharedThingsTakeMemoryOnce$",
	},
	{
		name: "clients leave no connection to others",
		file: "httpapi/quota/listener.go", oldText: "!Fair(own, 1, free)", newText: "false",
		run: "^TestTotalConnections$",
	},
	{
		name: "a client has any number of connections",
		file: "httpapi/quota/listener.go", oldText: "|| l.limits.PerClient > 0 &&", newText: "|| false &&",
		run: "^TestConnectionsPerClient$",
	},
	{
		name: "a client that does not read fills the kernel's buffers",
		file: "httpapi/quota/listener.go", oldText: "boundUnsent(c)", newText: "_ = c",
		run: "^TestSendBuffersAreBounded$",
	},
	{
		name: "a bad key locks out all keys of its address",
		file: "httpapi/auth/refusals.go", oldText: "r.pairs.Peek(p)", newText: "r.pairs.Peek(pair{p.network, Key{}})",
		run: "^TestRefusals$",
	},
	{
		name: "a client tries any number of credentials",
		file: "httpapi/auth/refusals.go", oldText: "accepted || missing <= 0", newText: "accepted || true",
		run: "^TestGuesses$",
	},
	{
		name: "tokens for other services are accepted",
		file: "httpapi/auth/jwt/verifier.go", oldText: ", AnyAudience: josejwt.Audience{v.cfg.Audience}", newText: "",
		run: "^TestTokens$",
	},
	{
		name: "tokens of any issuer are accepted",
		file: "httpapi/auth/jwt/verifier.go", oldText: "josejwt.Expected{Issuer: v.cfg.Issuer, ", newText: "josejwt.Expected{",
		run: "^TestTokens$",
	},
	{
		name: "tokens that never expire are accepted",
		file: "httpapi/auth/jwt/verifier.go", oldText: "if claims.Expiry == nil {", newText: "if false {",
		run: "^TestTokens$",
	},
	{
		name: "a page reaches the service by DNS rebinding",
		file: "app/hosts/hosts.go", oldText: "filter(r) && !served(r.Host, names)", newText: "false",
		run: "^TestGuard$",
	},
	{
		name: "unknown documents of one client are compiled without a limit",
		file: "httpapi/engine.go", oldText: "release, err := e.compileLimiter.Acquire(ctx)", newText: "release, err := func() {}, error(nil)",
		run: "^TestUnknownDocumentsWait$",
	},
	{
		name: "an item that is requested once evicts items that are used often",
		file: "httpapi/respcache/doorkeeper.go", oldText: "return ok", newText: "return ok || true",
		run: "^TestAgain$",
	},
	{
		name: "a response has any number of errors",
		file: "httpapi/refused.go", oldText: "if len(errs) < 2 {", newText: "if true {",
		run: "^TestRefusalsAreShort$",
	},
	{
		name: "a subscription of one account is shared with another",
		file: "httpapi/subscriptions.go", oldText: "if c := request.CredentialsFrom(ctx); c != nil {\n\t\taddress", newText: "if c := request.CredentialsFrom(ctx); c != nil && false {\n\t\taddress",
		run: "^TestSubscribersOfOneAccountShare$",
	},
	{
		name: "compiled documents take any memory",
		file: "httpapi/documents.go", oldText: "for d.bytes > MaxDocumentBytes {", newText: "for false {",
		run: "^TestDocumentsMakeRoom$",
	},
	{
		name: "cached responses take any memory",
		file: "httpapi/respcache/cache.go", oldText: "for c.bytes > c.limit {", newText: "for false {",
		run: "^TestBound$",
	},
	{
		name: "the orders of lists take any memory",
		file: "resolvers/list_orders.go", oldText: "for o.bytes+size > MaxListOrderBytes {", newText: "for false {",
		run: "^TestListOrdersAreBounded$",
	},
	{
		name: "variables of the type Int have more than 32 bits",
		file: "httpapi/validation/variables.go", oldText: "strconv.ParseInt(string(value), 10, 32)", newText: "strconv.ParseInt(string(value), 10, 64)",
		run: "^TestVariables$",
	},
	{
		name: "a page of another origin controls the demo venue",
		file: "internal/demo/control/endpoints.go", oldText: "case crossOrigin.Check(r) != nil:", newText: "case false:",
		run: "^TestControlRefusesOtherOrigins$",
	},
	{
		name: "lost log lines are not counted",
		file: "internal/telemetry/writer.go", oldText: "w.dropped.Add(uint64(bytes.Count", newText: "_ = (uint64(bytes.Count",
		run: "^TestLinesThatCannotBeWrittenAreCounted$",
	},
	{
		name: "the service disconnects from a venue that sends messages but answers no ping",
		file: "internal/venue/stream/session_events.go", oldText: "s.pongBy = time.Time{} // any", newText: "_ = time.Time{} // any",
		run: "^TestPing$",
	},
	{
		name: "one client takes all places of the queue",
		file: "httpapi/admission/limiter.go", oldText: "if !quota.Fair(len(s.waiting), 1, l.queue-l.waiting) {", newText: "if l.waiting == l.queue {",
		run: "^TestOneClientLeavesRoom$",
	},
	{
		name: "operations that wait for a hung venue take all places",
		file: "httpapi/admission/limiter.go", oldText: "return (l.operations/l.Venues + 1) / 2 }", newText: "return l.operations }",
		run: "^TestOperationsThatWaitForTheVenueLeaveRoom$",
	},
	{
		name: "an account reads other wallets at a venue that checks no credentials",
		file: "httpapi/identity.go", oldText: "id.credentials = id.credentials.Confined()", newText: "_ = id.credentials.Confined()",
		run: "^TestUncheckedAccountsReadOnlyTheirOwnWallet$",
	},
	{
		name: "any client decides which operations are traced",
		file: "internal/telemetry/trace.go", oldText: "SpanContextFromContext(remote); trusted {", newText: "SpanContextFromContext(remote); trusted || true {",
		run: "^TestOnlyTrustedSpansDecideSampling$",
	},
	{
		name: "a client that reads no response keeps its connection",
		file: "app/listener.go", oldText: "WriteTimeout:      WriteTimeout,", newText: "",
		run: "^TestListenersHaveDeadlines$",
	},
}
