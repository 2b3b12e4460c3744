// Package polymarket reads Polymarket: its Gamma API (markets, events, search), its CLOB API (prices, books, price histories) and
// its Data API (positions, trades, activity). All three APIs are public. No call contains credentials.
//
// The id of a market is its condition id. The id of a token is its CLOB token id. The id of an event is its id in the Gamma API.
package polymarket
