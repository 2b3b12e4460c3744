package mutations

// replicas has the mutations that remove the rules for several replicas. With these rules, all replicas together stay within
// the venue's limit, and a shared value keeps its true age.
var replicas = []mutation{
	{
		name: "a venue that is down makes replicas unready", tests: "tests/e2e",
		file: "app/ready.go", oldText: "u.clock.Now().Sub(u.started) >= startWait", newText: "u.health.reach.ok() && u.health.hasAnswered()",
		run: "^TestReadyWithoutTheVenue$",
	},
	{
		name: "one response makes a clock wrong",
		file: "app/clocks.go", oldText: "clock.against < clockChecks", newText: "clock.against < 1",
		run: "^TestClocks$", message: "two dates ahead",
	},
	{
		name: "a new ledger assumes that no calls were made",
		file: "internal/fleet/ask.lua", oldText: "local half = math.floor(limit / 2)", newText: "local half = 0",
		run: "^TestLedgerForgets$", needs: "redis-server",
	},
	{
		name: "a replica without the ledger uses the whole limit",
		file: "internal/ratelimit/pool.go", oldText: "return max(limit/p.Replicas, 1)", newText: "return limit",
		run: "^TestLedgerIsAway$",
	},
	{
		name: "a replica that loses the ledger uses its whole part at once",
		file: "internal/ratelimit/pool.go", oldText: "p.assumed = evenly(assumed, now,", newText: "p.assumed = evenly(0*assumed, now,",
		run: "^TestLedgerIsAway$",
	},
	{
		name: "calls are sent without a grant",
		file: "internal/ratelimit/pool.go", oldText: "return p.away && p.free(w.limit, now) > 0", newText: "return p.free(w.limit, now) > 0",
		run: "^TestSharedLimit$",
	},
	{
		name: "the age of a shared value is counted from its arrival",
		file: "internal/cache/shared.go", oldText: "startedAt: requestedAt, receivedAt: receivedAt}", newText: "startedAt: requestedAt, receivedAt: now}",
		run: "^TestSharedOfEveryKind$",
	},
	{
		name: "a shared value from before a change is accepted",
		file: "internal/cache/shared.go", oldText: "known && !requestedAt.Add(-clockError).After(c.at)", newText: "known && requestedAt.IsZero() && c.at.IsZero()",
		run: "^TestSharedInvalidation$", message: "without Drop",
	},
	{
		name: "shared values are not checked",
		file: "internal/cache/shared.go", oldText: " && s.store.kind.sound(key, v.Value)", newText: "",
		run: "^TestSharedRejected$", message: "TestSharedRejected/negative_price",
	},
	{
		name: "a rejected record cannot be claimed",
		file: "internal/fleet/claim.lua", oldText: " and string.sub(head, 2) > ARGV[4 + i]", newText: "",
		run: "^TestClaimOfRejectedRecords$", message: "refused: ", needs: "redis-server",
	},
	{
		name: "shared records of any length are read",
		file: "internal/fleet/claim.lua", oldText: "length <= math.min(longest, room) and ", newText: "",
		run: "^TestClaimOfRejectedRecords$", message: "got a record of", needs: "redis-server",
	},
}
