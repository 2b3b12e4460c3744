// Package messages defines the decoded messages of a venue's stream and the topics to which they belong.
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
	// Scope is a keyed hash of the credentials on ChannelUser, and empty on all other channels. It is not secret.
	Scope string
}

// Kind is the kind of a Message. It determines which fields of the Message are set.
type Kind uint8

// The kinds of messages.
const (
	// KindPrice has a complete price in Price. It has a Spread if the venue sends the best prices with the price.
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
	// KindOrder has one new or changed order of an account in Orders.
	KindOrder
	// KindFill has one new trade of an account in Trades.
	KindFill
	// KindPosition has one changed position of an account in Positions.
	KindPosition
	// KindBalance has the new balance of an account in Balance.
	KindBalance
)

// Internal is the number of a message inside this service. The messages of a topic have consecutive numbers, so a gap shows that a
// part of the service lost a message. Numbers of different Epochs cannot be compared. The zero value means that the message has no
// number. Clients never get these numbers.
type Internal struct{ Epoch, Seq uint64 }

// Message is one decoded message of a topic. Its values are shared and read-only.
type Message struct {
	Topic Topic
	Kind  Kind
	// The stream client sets Internal, even if the venue sends no numbers.
	Internal Internal
	// Seq is the venue's number of the message, and PrevSeq is the venue's number of the topic's previous message. A number is 0 if
	// the venue does not send it. Numbers of different Epochs cannot be compared.
	Epoch        string
	Seq, PrevSeq uint64
	// Time is the venue's timestamp, or zero if the venue sends no timestamp. ReceivedAt is the local time of arrival.
	Time, ReceivedAt time.Time

	Price   *market.Price
	Spread  *market.Spread
	Book    *market.Book
	Changes []market.LevelChange
	// Depth is the number of best levels on each side for which Changes is complete, or 0 if this number is unknown.
	Depth     int
	Trades    []market.Trade
	Market    *market.MarketChange
	Orders    []market.Order
	Positions []market.Position
	Balance   *market.Balance
}
