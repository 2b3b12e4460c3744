package mutations

// polymarket has the mutations of the driver for Polymarket.
var polymarket = []mutation{
	{
		name: "a part of an order is published",
		file: "internal/venue/polymarket/stream_book.go", find: "if !a.scratch.top().equal(c.top) {", replace: "if false {",
		run: "^TestBurstIsOneChange$",
	},
	{
		name: "a later change shows no gap",
		file: "internal/venue/polymarket/stream_book.go", find: "len(a.burst) > 0 && c.at.After(a.burstAt) ||", replace: "",
		run: "^TestLaterChangeShowsGap$",
	},
	{
		name: "an open burst shows no gap",
		file: "internal/venue/polymarket/stream_repair.go", find: "!a.burstBy.IsZero() && !now.Before(a.burstBy)", replace: "false",
		run: "^TestOpenBurstShowsGap$",
	},
	{
		name: "a book does not replace the changes before it",
		file: "internal/venue/polymarket/stream_decode.go", find: "if a.replace(l, at) || pending || owed {", replace: "if pending {\n\t\treturn nil\n\t}\n\tif a.replace(l, at) || owed {",
		run: "^TestBookReplaces$",
	},
	{
		name:  "numbers begin again on the same socket",
		tests: "internal/venue/polymarket", file: "internal/venue/stream/numbering.go", find: "last = n.highest", replace: "last = 0",
		run: "^TestStreamNumbersGoOn$",
	},
	{
		name: "later changes are lost in a repair",
		file: "internal/venue/polymarket/stream_book.go", find: "if !c.at.Before(b.Timestamp) {", replace: "if false {",
		run: "^TestLaterChangeShowsGap$",
	},
	{
		name: "an asset is never subscribed again",
		file: "internal/venue/polymarket/stream_codec.go", find: "if a.failures < maxRepairs {", replace: "if true {",
		run: "^TestFailedRepairs$",
	},
	{
		name: "frozen books are not found",
		file: "internal/venue/polymarket/stream_repair.go", find: "a.comparison.rest, a.comparison.deadline = b, now.Add(catchUp)", replace: "",
		run: "^TestSilentFreeze$",
	},
	{
		name: "a comparison forgets the changes since it began",
		file: "internal/venue/polymarket/stream_book.go", find: "if cmp.since = append(cmp.since, a.burst...); len(cmp.since) > maxKept {", replace: "if len(cmp.since) > maxKept {",
		run: "^TestChangesDuringAComparison$",
	},
	{
		name: "a missing first book is never read",
		file: "internal/venue/polymarket/stream_book.go", find: "case !now.Before(a.dueBy):", replace: "case false:",
		run: "^TestMissingFirstBook$",
	},
	{
		name: "a few lost frames replace a socket",
		file: "internal/venue/polymarket/stream_repair.go", find: " && frozen*frozenShare > changed {", replace: " && changed >= 0 {",
		run: "^TestSilentFreeze$",
	},
	{
		name: "a frozen socket stays open",
		file: "internal/venue/polymarket/stream_repair.go", find: "if frozen > maxFrozen && frozen*frozenShare > changed {", replace: "if changed < 0 {",
		run: "^TestSilentFreeze$",
	},
	{
		name: "trades of another market of Polymarket are served",
		file: "internal/venue/polymarket/trades.go", find: "EqualFold(t.MarketID, q.MarketID)", replace: "EqualFold(t.MarketID, t.MarketID)",
		run: "^TestTradesOfAnotherMarket$",
	},
}
