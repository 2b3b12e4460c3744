package market

import "time"

// Channel is a kind of live data.
type Channel string

// The venue's channels.
const (
	ChannelPrices    Channel = "prices"
	ChannelOrderbook Channel = "orderbook"
	ChannelTrades    Channel = "trades"
	ChannelMarket    Channel = "market"
	ChannelUser      Channel = "user"
)

// Topic is what can be subscribed to on the venue's stream.
type Topic struct {
	Channel Channel
	// ID is a token's, on ChannelMarket a market's, on ChannelUser an account's in lower case.
	ID string
	// Scope separates the identities that read one account; empty on public channels. It is a keyed hash, no secret.
	Scope string
}

// MessageKind says what a Message carries.
type MessageKind uint8

// The kinds of messages, with the field that they carry.
const (
	// MessagePrice is a whole new price: Price, and Spread where the venue sends the best prices with it.
	MessagePrice MessageKind = iota + 1
	// MessageBookSnapshot is a whole book: Book.
	MessageBookSnapshot
	// MessageBookDelta is a change of a book: Changes.
	MessageBookDelta
	// MessageTradesSnapshot are the latest trades, oldest first: Trades.
	MessageTradesSnapshot
	// MessageTrade is one more trade: Trades, of one element.
	MessageTrade
	// MessageMarket is a change of a market: Market.
	MessageMarket
	// MessageUserSnapshot is all of an account: Orders, Positions and Balance.
	MessageUserSnapshot
	// MessageOrder, MessageFill, MessagePosition and MessageBalance are changes of an account: Orders, Trades or
	// Positions of one element, or Balance.
	MessageOrder
	MessageFill
	MessagePosition
	MessageBalance
)

// LevelChange sets the total size of one price level; size 0 removes it.
type LevelChange struct {
	Side OrderSide
	Level
}

// MarketChange is what a market's update says. Empty fields say nothing.
type MarketChange struct {
	// Kind is CREATED, STATUS, METADATA, TICK_SIZE or RESOLVED, or what else the venue sent, in upper case.
	Kind           string
	Status         Status
	StatusRaw      string
	Outcome        string
	WinningTokenID string
}

// Message is one update of a topic, decoded. Its values are shared and read-only.
type Message struct {
	Topic Topic
	Kind  MessageKind
	// Epoch and Seq number the topic's messages, snapshots included; Seq is 0 where the venue numbers nothing, and
	// numbers of different epochs can't be compared. PrevSeq is 0 where the venue does not send it.
	Epoch        string
	Seq, PrevSeq uint64
	// Time is the venue's; zero where it sends none. ReceivedAt is ours.
	Time, ReceivedAt time.Time
	// MarketID is the market that the topic's token belongs to; empty where the venue does not say.
	MarketID string

	Price   *Price
	Spread  *Spread
	Book    *Book
	Changes []LevelChange
	// Depth is how many levels a side Changes reach; 0 where that is not known.
	Depth     int
	Trades    []Trade
	Market    *MarketChange
	Orders    []Order
	Positions []Position
	Balance   *Balance
}
