// Package demo is a prediction-market venue in memory. A [Venue] is an [http.Handler] that serves the venue's whole REST API, and
// its stream over WebSocket at [StreamPath]. REST and the stream show the same state.
//
// A venue needs no configuration. [New] builds the markets, events, order books and accounts from a seed. [Venue.Run] or
// [Venue.Step] moves prices and books, and lets the three demo accounts trade. [Venue.Close] ends the streams.
//
// With the same seed, the same clock and the same number of steps, two venues give the same answers, with two exceptions: the
// stream's epoch, and wallets that belong to no demo account. Such a wallet trades only while a client is subscribed to it.
//
// The stream and REST have the same sequence numbers: equal numbers mean equal states. The venue puts each change into the bounded
// queues of the stream's clients before REST can return the change. A slow client delays no other client.
//
// [Config] sets rate limits and latency. Faults are the business of the package faults, a proxy in front of the venue. Some exported
// methods return the venue's state without HTTP, so that tests can compare this state with the answers.
//
// Prices are integers in ten-thousandths, sizes in hundredths of a share and money in millionths. Products of size and price, and
// all sums of a wallet, are therefore exact.
package demo
