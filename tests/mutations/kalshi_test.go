package mutations

// kalshi has the mutations of the driver for Kalshi.
var kalshi = []mutation{
	{
		name: "a lost message of Kalshi is not noticed",
		file: "internal/venue/kalshi/decode.go", oldText: "case last > 0 && f.seq > last+1:", newText: "case false:",
		run: "^TestSession$", message: "session.golden differs",
	},
	{
		name: "a gap of a subscription affects one market only",
		file: "internal/venue/kalshi/decode.go", oldText: "if sub.channel != messages.ChannelPrices {", newText: "if sub.channel != messages.ChannelPrices && len(events) == 0 {",
		run: "^TestSession$", message: "session.golden differs",
	},
	{
		name: "after a gap, changes are applied to the old book",
		file: "internal/venue/kalshi/decode.go", oldText: "state.book, state.askedAt = nil, time.Time{}\n\treturn c.numbers.Lose", newText: "return c.numbers.Lose",
		run: "^TestSession$", message: "session.golden differs",
	},
	{
		name: "a change of a market that cannot be read is ignored",
		file: "internal/venue/kalshi/decode.go", oldText: "return append(events, c.loseAll(f.sid)...)", newText: "return events",
		run: "^TestSession$", message: "session.golden differs",
	},
	{
		name: "a signed change replaces the size of a level",
		file: "internal/venue/kalshi/books.go", oldText: "total = l.Size.Add(delta)", newText: "total = delta",
		run: "^TestSession$", message: "session.golden differs",
	},
	{
		name: "a level with a negative size is published",
		file: "internal/venue/kalshi/books.go", oldText: "return total, false", newText: "return total, true",
		run: "^TestSession$", message: "session.golden differs",
	},
	{
		name:  "sequence numbers start again for a topic that is subscribed again",
		tests: "internal/venue/kalshi", file: "internal/venue/stream/numbering.go", oldText: "last = n.highest", newText: "last = 0",
		run: "^TestSession$", message: "session.golden differs",
	},
	{
		name: "a subscription without markets stays open and gets all markets",
		file: "internal/venue/kalshi/codec.go", oldText: "case !c.carries(sid):", newText: "case false:",
		run: "^TestSession$", message: "session.golden differs",
	},
	{
		name: "a handshake is signed for another method",
		file: "internal/venue/kalshi/key.go", oldText: "[]byte(at + method + path)", newText: "[]byte(at + path)",
		run: "^TestSignature$", message: "the signature is invalid",
	},
	{
		name: "trades of another market of Kalshi are served",
		file: "internal/venue/kalshi/trades.go", oldText: "if both[yes].MarketID != q.MarketID {", newText: "if false {",
		run: "^TestMarketTrades$",
	},
}
