// Package market is the domain of oddsgraph: what a prediction-market venue trades and reports, in exact numbers.
//
// Prices are 0 to 1 per share, sizes are in shares, amounts of money are in the venue's currency. Values handed out by
// the service are shared between requests and therefore read-only: nobody changes a value, its slices or what its
// pointers lead to after it was published.
package market
