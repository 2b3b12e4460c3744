// Package kalshi is the driver of Kalshi: its public REST API, version 2, and its WebSocket.
//
// A market of Kalshi has one book with the bids of both sides: a bid for NO at p is an ask for YES at 1 − p. The GraphQL API has a
// token for each side, TICKER:yes and TICKER:no, so one market of the venue has two tokens. The id of a market is its ticker.
// Kalshi has no slugs; the slug of a market or event is its ticker in lower case, as in the addresses of the venue's pages.
package kalshi
