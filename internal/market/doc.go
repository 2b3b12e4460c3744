// Package market is the domain: markets, prices, books, accounts and their arithmetic, in exact numbers.
//
// Prices are 0 to 1 per share, sizes are in shares, and money is in the venue's currency. Requests share values, so values are
// read-only once they are published. This includes their slices and everything that their pointers lead to.
package market
