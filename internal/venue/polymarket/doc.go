// Package polymarket reads Polymarket: its Gamma API (markets, events, search), its CLOB API (prices, books, price histories) and
// its Data API (positions, trades, activity). All three APIs are public. No call contains credentials.
//
// A market's id is Polymarket's condition id, a token's id is its CLOB token id, and an event's id is Gamma's.
package polymarket
