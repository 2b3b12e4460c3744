// Package market contains the types of the domain: markets, prices, books and accounts, with exact arithmetic.
//
// A price is the price of one share, from 0 to 1. Sizes are in shares. Money is in the venue's currency. Requests share values, so
// a value must not be changed once it is published. This includes its slices and everything that its pointers lead to.
package market
