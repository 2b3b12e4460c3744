package mutations

// replicas has the mutations that remove the rules for several replicas. With these rules, all replicas together stay within
// the venue's limit, and a shared value keeps its true age.
var replicas = []mutation{
	{
		name: "a Redis server that has lost its records grants calls at once",
		file: "internal/fleet/ask.lua", oldText: "-(now + keep), 'born'", newText: "-now, 'born'",
		run: "^TestLedgerForgets$/^FLUSHALL$", message: "after the loss", needs: "redis-server",
	},
	{
		name: "a Redis server that restarts with an old file grants calls at once",
		file: "internal/fleet/ask.lua", oldText: "if not redis.call('ZSCORE', public, run) or not redis", newText: "if not redis",
		run: "^TestLedgerForgets$/^restart_with_an_old_file$", message: "after the loss", needs: "redis-server",
	},
	{
		name: "the ledger also grants the calls of the replicas' reserves",
		file: "internal/ratelimit/ledger.go", oldText: "return limit - p.Replicas*p.reserve", newText: "return limit",
		run: "^TestSharedLimit$", message: "calls in a minute, want at most 95",
	},
	{
		name: "calls are sent without a grant",
		file: "internal/ratelimit/ledger.go", oldText: "return p == nil || len(p.credits) > 0 || p.left", newText: "return true || p.left",
		run: "^TestSharedLimit$", message: "calls in a minute, want at most 95",
	},
	{
		name: "a new process uses the reserve of the previous process",
		file: "internal/ratelimit/ledger.go", oldText: "reserveOpensAt: b.opened.Add(span + time.Second)", newText: "reserveOpensAt: b.opened",
		run: "^TestReserve$",
	},
	{
		name: "the age of a shared value is counted from its arrival",
		file: "internal/cache/shared.go", oldText: "age: v.Age, receivedAt: receivedAt}", newText: "age: v.Age, receivedAt: now}",
		run: "^TestSharedOfEveryKind$",
	},
	{
		name: "a shared value from before a change is accepted",
		file: "internal/cache/shared.go", oldText: "known && !requestedAt.Add(-clockError).After(c.at)", newText: "known && requestedAt.IsZero() && c.at.IsZero()",
		run: "^TestSharedInvalidation$", message: "without Drop",
	},
}
