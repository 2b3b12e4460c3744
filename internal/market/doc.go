// Package market contains the types of the domain: markets, prices, books and accounts, with exact arithmetic.
//
// A price is the price of one share, from 0 to 1. Sizes are in shares. Money is in the venue's currency.
//
// Requests share values. So no code may change a value that other goroutines can read, nor its slices, nor the values behind its
// pointers.
package market
