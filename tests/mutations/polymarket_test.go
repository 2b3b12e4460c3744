package mutations

// polymarket has the mutations of the driver for Polymarket.
var polymarket = []mutation{
	{
		name: "a part of the changes of one order is published",
		file: "internal/venue/polymarket/stream_book.go", oldText: "if !a.scratch.top().equal(c.top) {", newText: "if false {",
		run: "^TestSession$", message: "session.golden differs",
	},
	{
		name: "an incomplete burst of changes before a later change shows no gap",
		file: "internal/venue/polymarket/stream_book.go", oldText: "len(a.burst) > 0 && c.at.After(a.burstAt) ||", newText: "",
		run: "^TestSession$", message: "session.golden differs",
	},
	{
		name: "a burst of changes that stays incomplete shows no gap",
		file: "internal/venue/polymarket/stream_repair.go", oldText: "!a.burstBy.IsZero() && !now.Before(a.burstBy)", newText: "false",
		run: "^TestSession$", message: "session.golden differs",
	},
	{
		name: "a book does not replace the changes before it",
		file: "internal/venue/polymarket/stream_decode.go", oldText: "if a.replace(l, at) || pending || owed {", newText: "if pending {\n\t\treturn nil\n\t}\n\tif a.replace(l, at) || owed {",
		run: "^TestSession$", message: "session.golden differs",
	},
	{
		name:  "numbers start again for a topic that is subscribed again",
		tests: "internal/venue/polymarket", file: "internal/venue/stream/numbering.go", oldText: "last = n.highest", newText: "last = 0",
		run: "^TestSession$", message: "session.golden differs",
	},
	{
		name: "a repair drops the changes that are later than the repaired book",
		file: "internal/venue/polymarket/stream_book.go", oldText: "if !c.at.Before(b.Timestamp) {", newText: "if false {",
		run: "^TestSession$", message: "session.golden differs",
	},
	{
		name: "an asset is not subscribed again after failed repairs",
		file: "internal/venue/polymarket/stream_codec.go", oldText: "if a.failures < maxRepairs {", newText: "if true {",
		run: "^TestSession$", message: "session.golden differs",
	},
	{
		name: "frozen books are not found",
		file: "internal/venue/polymarket/stream_repair.go", oldText: "a.comparison.rest, a.comparison.deadline = b, now.Add(catchUp)", newText: "",
		run: "^TestSilentFreeze$",
	},
	{
		name: "a comparison forgets the changes since it began",
		file: "internal/venue/polymarket/stream_book.go", oldText: "if cmp.since = append(cmp.since, a.burst...); len(cmp.since) > maxKept {", newText: "if len(cmp.since) > maxKept {",
		run: "^TestSession$", message: "session.golden differs",
	},
	{
		name: "a missing first book is never read",
		file: "internal/venue/polymarket/stream_book.go", oldText: "case !now.Before(a.dueBy):", newText: "case false:",
		run: "^TestMissingFirstBook$",
	},
	{
		name: "a socket is replaced after a few lost frames",
		file: "internal/venue/polymarket/stream_repair.go", oldText: " && frozen*frozenShare > changed {", newText: " && changed >= 0 {",
		run: "^TestSilentFreeze$",
	},
	{
		name: "a frozen socket stays open",
		file: "internal/venue/polymarket/stream_repair.go", oldText: "if frozen > maxFrozen && frozen*frozenShare > changed {", newText: "if changed < 0 {",
		run: "^TestSilentFreeze$",
	},
	{
		name: "trades of another market of Polymarket are served",
		file: "internal/venue/polymarket/trades.go", oldText: "EqualFold(t.MarketID, id)", newText: "EqualFold(t.MarketID, t.MarketID)",
		run: "^TestTradesOfAnotherMarket$",
	},
	{
		name: "a market of Polymarket's protocol V2 has the tokens of V1",
		file: "internal/venue/polymarket/market.go", oldText: "return fieldPositionIDs, true", newText: "return fieldTokenIDs, true",
		run: "^TestMarketsOfProtocolV2$",
	},
	{
		name: "outcomes without tokens in the order books of Polymarket share an id",
		file: "internal/venue/polymarket/ids.go", oldText: "return marketID + \":\" + strconv.Itoa(index)", newText: "return marketID",
		run: "^TestMarketsWithoutAnOrderBook$",
	},
	{
		name:  "a list of Polymarket does not end at a repeated cursor",
		tests: "internal/venue/polymarket", file: "internal/venue/rest/rows.go", oldText: "if next == current {", newText: "if false {",
		run: "^TestARepeatedCursorEndsAList$",
	},
	{
		name: "Polymarket leaves out small positions",
		file: "internal/venue/polymarket/account.go", oldText: `rq.Query.Set("filter_type", "TOKENS").Set("filter_amount", leastSize).`, newText: "rq.Query.",
		run: "^TestPositionsAreReadToTheEnd$",
	},
	{
		name: "the limits of Polymarket's Data API exceed the limit of the whole API",
		file: "internal/venue/polymarket/driver.go", oldText: "limit(data-positions-trades,", newText: "limit(data,",
		run: "^TestLimitsAreThosePublished$",
	},
}
