// Package demo is a prediction-market venue in memory: an [http.Handler] that serves the venue's whole REST API,
// and its stream over WebSocket at [StreamPath], from one consistent, moving state.
//
// It needs no configuration. [New] builds the markets, events, order books and accounts from a seed; [Venue.Run] (or [Venue.Step])
// moves prices and books and lets the three demo accounts trade. With the same seed, the same clock and the same number of steps,
// two venues give the same answers, except for the epoch. A wallet that belongs to no demo account is an exception: it trades only
// while a client is subscribed to it. [Venue.Close] ends the streams.
//
// The stream and REST have the same sequence numbers: equal numbers mean equal states. The venue puts each change into the bounded
// queues of the stream's clients before REST can return the change. A slow client delays no other client.
//
// Faults can change while the venue serves, from Go or over the control endpoints; see [Fault]. [Config] sets rate limits and
// latency. Tests compare answers with the results of the exported methods that read the state, because these methods do not use
// HTTP.
//
// Internally, prices are whole ten-thousandths, sizes whole hundredths of a share and money whole millionths, so that
// size × price is exact and a wallet's sums agree to the last digit.
package demo
