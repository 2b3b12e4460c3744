package mutations

// replicas has the mutations that remove the rules for several replicas. With these rules, all replicas together stay within
// the venue's limit, a shared value keeps its true age, and the shared stream has one owner.
var replicas = []mutation{
	{
		name: "a server that forgot its calls grants at once",
		file: "internal/fleet/ask.lua", find: "-(now + keep), 'born'", replace: "-now, 'born'",
		run: "^TestLedgerForgets$/^FLUSHALL$", message: "after the loss", needs: "redis-server",
	},
	{
		name: "a server that restarts with an old file grants at once",
		file: "internal/fleet/ask.lua", find: "if not redis.call('ZSCORE', public, run) or not redis", replace: "if not redis",
		run: "^TestLedgerForgets$/^restart_with_an_old_file$", message: "after the loss", needs: "redis-server",
	},
	{
		name: "the ledger grants the reserves, too",
		file: "internal/ratelimit/ledger.go", find: "return limit - p.Replicas*p.reserve", replace: "return limit",
		run: "^TestSharedLimit$", message: "calls in a minute, want at most 95",
	},
	{
		name: "calls leave without a grant",
		file: "internal/ratelimit/ledger.go", find: "return p == nil || len(p.credits) > 0 || p.left", replace: "return true || p.left",
		run: "^TestSharedLimit$", message: "calls in a minute, want at most 95",
	},
	{
		name: "a new process uses the reserve of the one before it",
		file: "internal/ratelimit/ledger.go", find: "opens: b.opened.Add(span + time.Second)", replace: "opens: b.opened",
		run: "^TestReserve$",
	},
	{
		name: "a copy of a value is as new as its arrival",
		file: "internal/cache/second.go", find: "age: v.Age, came: came}", replace: "age: v.Age, came: now}",
		run: "^TestSecondOfEveryKind$",
	},
	{
		name: "a shared value from before a change is accepted",
		file: "internal/cache/second.go", find: "known && !asked.Add(-clockError).After(c.at)", replace: "known && asked.IsZero() && c.at.IsZero()",
		run: "^TestSecondInvalidation$", message: "without Drop",
	},
	{
		name: "frames of a former owner are accepted",
		file: "internal/fleet/relay/receive.go", find: "if f.Fence < s.fence {", replace: "if s.fence < s.fence {",
		run: "^TestStuckOwner$",
	},
	{
		name: "relayed messages get no numbers",
		file: "internal/fleet/relay/shard.go", find: "numbered.Internal = messages.Internal{Epoch: c.fence, Seq: c.n}", replace: "numbered.Internal = messages.Internal{}",
		run: "^TestLostFrames$", message: "wrong: ",
	},
	{
		name: "an owner sends after its lease",
		file: "internal/fleet/relay/relay.go", find: "if o.until.IsZero() || now.Before(o.until) {", replace: "if o.until.IsZero() || now.Before(o.until) || true {",
		run: "^TestNothingAfterTheLease$", message: "after its lease",
	},
	{
		name: "a replica does not notice that it hears nothing",
		file: "internal/fleet/relay/periodic.go", find: "if silence > renewBusAfter && now.Sub(p.reopened) > renewBusAfter {", replace: "if false {",
		run: "^TestDeafReplica$",
	},
}
