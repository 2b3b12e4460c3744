package mutations

// kalshi has the mutations of the driver for Kalshi.
var kalshi = []mutation{
	{
		name: "a lost message of Kalshi is not noticed",
		file: "internal/venue/kalshi/decode.go", find: "case last > 0 && f.seq > last+1:", replace: "case false:",
		run: "^TestGapOfSubscription$", message: "a gap gives",
	},
	{
		name: "a gap of a subscription affects one market only",
		file: "internal/venue/kalshi/decode.go", find: "if sub.channel != messages.ChannelPrices {", replace: "if sub.channel != messages.ChannelPrices && len(events) == 0 {",
		run: "^TestGapOfSubscription$", message: "a gap gives",
	},
	{
		name: "changes are applied to a book that is lost",
		file: "internal/venue/kalshi/decode.go", find: "state.book, state.askedAt = nil, time.Time{}\n\treturn c.bad", replace: "return c.bad",
		run: "^TestGapOfSubscription$", message: "a change before the snapshot gives",
	},
	{
		name: "a signed change replaces the size of a level",
		file: "internal/venue/kalshi/ladder.go", find: "total = l[s][key].Add(delta)", replace: "total = delta",
		run: "^TestSignedChanges$", message: "gives",
	},
	{
		name: "a level with a negative size is published",
		file: "internal/venue/kalshi/ladder.go", find: "return total, errNegative", replace: "return total, nil",
		run: "^TestSignedChanges$", message: "a negative total gives",
	},
	{
		name:  "numbers of a socket start again",
		tests: "internal/venue/kalshi", file: "internal/venue/stream/numbering.go", find: "last = n.highest", replace: "last = 0",
		run: "^TestNumbersGoOn$", message: "second subscription",
	},
	{
		name: "a subscription without markets stays open and gets all markets",
		file: "internal/venue/kalshi/encode.go", find: "case !c.carries(sid):", replace: "case false:",
		run: "^TestSession$", message: "session.golden differs",
	},
	{
		name: "a handshake is signed for another method",
		file: "internal/venue/kalshi/key.go", find: "[]byte(at + method + path)", replace: "[]byte(at + path)",
		run: "^TestSignature$", message: "the signature is invalid",
	},
	{
		name: "trades of another market of Kalshi are served",
		file: "internal/venue/kalshi/trades.go", find: "if both[yes].MarketID != q.MarketID {", replace: "if false {",
		run: "^TestMarketTrades$",
	},
}
