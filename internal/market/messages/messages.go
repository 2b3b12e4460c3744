// Package messages defines the decoded messages of a venue's stream and their topics.
package messages

import (
	"time"

	"oddsgraph/internal/market"
)

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
	// ID is a market id on ChannelMarket, an address in lower case on ChannelUser, and a token id on all other channels.
	ID string
	// Scope is a keyed hash of the credentials that read an account. It is not secret. It is empty on public channels.
	Scope string
}

// Kind is the kind of a Message. It says which fields are set.
type Kind uint8

// The kinds of messages and their fields.
const (
	// KindPrice has a complete price in Price, and Spread if the venue sends the best prices.
	KindPrice Kind = iota + 1
	// KindBookSnapshot has a complete book in Book.
	KindBookSnapshot
	// KindBookDelta has changes of a book in Changes.
	KindBookDelta
	// KindTradesSnapshot has the latest trades, oldest first, in Trades.
	KindTradesSnapshot
	// KindTrade has one new trade in Trades.
	KindTrade
	// KindMarket has a change of a market in Market.
	KindMarket
	// KindUserSnapshot has the complete account in Orders, Positions and Balance.
	KindUserSnapshot
	// KindOrder, KindFill, KindPosition and KindBalance are changes of an account. KindOrder has one element in Orders, KindFill
	// one in Trades, and KindPosition one in Positions. KindBalance has the new balance in Balance.
	KindOrder
	KindFill
	KindPosition
	KindBalance
)

// Internal is a number that this service gives each message of a topic, without gaps. A gap shows that a part of the service
// lost a message. Numbers of different epochs cannot be compared. The zero value means that a message has no number. Clients
// never get these numbers.
type Internal struct{ Epoch, Seq uint64 }

// Message is one decoded message of a topic. Its values are shared and read-only.
type Message struct {
	Topic Topic
	Kind  Kind
	// Internal is the number that the stream client gave the message. It exists even if the venue sends no numbers.
	Internal Internal
	// Merged reports that this service made the snapshot itself. The snapshot contains all messages up to number Internal, and has
	// no number of its own.
	Merged bool
	// Seq is the venue's number of the message within an Epoch; snapshots have numbers too. Numbers of different epochs cannot be
	// compared. Seq is 0 if the venue sends no numbers, and PrevSeq is 0 if the venue does not send it.
	Epoch        string
	Seq, PrevSeq uint64
	// Time is the venue's timestamp; zero if the venue sends none. ReceivedAt is the local time.
	Time, ReceivedAt time.Time
	// MarketID is the market of the topic's token; empty if the venue does not send it.
	MarketID string

	Price   *market.Price
	Spread  *market.Spread
	Book    *market.Book
	Changes []market.LevelChange
	// Depth is the number of levels on each side to which Changes are complete. It is 0 if the number is unknown.
	Depth     int
	Trades    []market.Trade
	Market    *market.MarketChange
	Orders    []market.Order
	Positions []market.Position
	Balance   *market.Balance
}
