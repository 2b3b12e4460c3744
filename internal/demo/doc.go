// Package demo is a prediction-market venue that lives in memory: an [http.Handler] that serves the venue's whole REST API,
// and its stream over WebSocket at [StreamPath], from one consistent, moving state.
//
// It needs no configuration. [New] builds the markets, events, order books and accounts from a seed; [Venue.Run] (or
// [Venue.Step]) moves prices and books and lets the three demo accounts trade. With the same seed, the same clock and the
// same number of steps two venues give the same answers, byte for byte but for the epoch; only wallets that are streamed and
// are no demo account's depend on who listens. [Venue.Close] ends the streams.
//
// A stream's numbers are those of the state itself: what REST answers at a sequence number is what the stream holds at it.
// Whatever changes the state publishes the change before anybody can read it, into bounded queues of which nobody waits for
// the slowest.
//
// Faults, rate limits and latency can be switched while it serves, from Go or over the control endpoints; see [Fault] and
// [Config]. The exported methods that read the state are the independent truth for tests: they do not pass through HTTP.
//
// Inside, prices are whole ten-thousandths, sizes whole hundredths of a share and money whole millionths, so that
// size × price is exact and a wallet's sums agree to the last digit.
package demo
