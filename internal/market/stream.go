package market

import "time"

// Channel is a channel of the venue's stream.
type Channel string

// The venue's channels.
const (
	ChannelPrices    Channel = "prices"
	ChannelOrderbook Channel = "orderbook"
	ChannelTrades    Channel = "trades"
	ChannelMarket    Channel = "market"
	ChannelUser      Channel = "user"
)

// Topic is one subscription on the venue's stream: a channel and an id.
type Topic struct {
	Channel Channel
	// ID is a token id, on ChannelMarket a market id, and on ChannelUser an address in lower case.
	ID string
	// Scope is a keyed hash of the credentials that read an account. It is empty on public channels, and not secret.
	Scope string
}

// MessageKind is the kind of a Message. It says which fields are set.
type MessageKind uint8

// The kinds of messages and their fields.
const (
	// MessagePrice has a complete price in Price, and Spread if the venue sends the best prices.
	MessagePrice MessageKind = iota + 1
	// MessageBookSnapshot has a complete book in Book.
	MessageBookSnapshot
	// MessageBookDelta has changes of a book in Changes.
	MessageBookDelta
	// MessageTradesSnapshot has the latest trades, oldest first, in Trades.
	MessageTradesSnapshot
	// MessageTrade has one new trade in Trades.
	MessageTrade
	// MessageMarket has a change of a market in Market.
	MessageMarket
	// MessageUserSnapshot has the complete account in Orders, Positions and Balance.
	MessageUserSnapshot
	// MessageOrder, MessageFill, MessagePosition and MessageBalance are changes of an account. They have one element in Orders,
	// Trades or Positions, or Balance.
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

// MarketChange is an update of a market. Empty fields do not change.
type MarketChange struct {
	// Kind is CREATED, STATUS, METADATA, TICK_SIZE, RESOLVED or any other text of the venue, in upper case.
	Kind           string
	Status         Status
	StatusRaw      string
	Outcome        string
	WinningTokenID string
}

// Message is one decoded message of a topic. Its values are shared and read-only.
type Message struct {
	Topic Topic
	Kind  MessageKind
	// Seq numbers the topic's messages, including snapshots, within an Epoch. Numbers of different epochs cannot be compared.
	// Seq is 0 if the venue sends no numbers, and PrevSeq is 0 if the venue does not send it.
	Epoch        string
	Seq, PrevSeq uint64
	// Time is the venue's time; zero if it sends none. ReceivedAt is the local time.
	Time, ReceivedAt time.Time
	// MarketID is the market of the topic's token; empty if the venue does not send it.
	MarketID string

	Price   *Price
	Spread  *Spread
	Book    *Book
	Changes []LevelChange
	// Depth is the number of levels on each side that Changes cover; 0 if unknown.
	Depth     int
	Trades    []Trade
	Market    *MarketChange
	Orders    []Order
	Positions []Position
	Balance   *Balance
}
